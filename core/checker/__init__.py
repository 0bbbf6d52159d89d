"""The independent checker: every invariant of a bundle, derived again from inputs and bundle alone."""
