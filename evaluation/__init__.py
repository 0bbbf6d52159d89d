"""Evaluation of packers: fixtures, ladder, ablations, oracle, metrics, benches."""
