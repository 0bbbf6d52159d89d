"""Ranking: a query's calibrated relevance, 0 to 1, for the passages of one corpus."""

from loadmaster.stores.ranking.corpus import Corpus
from loadmaster.stores.ranking.passages import Passage, Ranked
from loadmaster.stores.ranking.weights import Weights, packaged_weights

__all__ = ["Corpus", "Passage", "Ranked", "Weights", "packaged_weights"]
