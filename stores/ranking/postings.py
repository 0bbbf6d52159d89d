"""An inverted index that grows: for each term, the places that have it and how often."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

GRID: Final = 1_000_000
"""Logarithms are rounded to millionths: libraries differ in the last bit, orders must not."""


def rarity(count: int, among: int) -> float:
    """Give BM25's inverse document frequency, which is never negative."""
    return round(math.log(1 + (among - count + 0.5) / (count + 0.5)) * GRID) / GRID


class Postings:
    """Terms of places, which are small numbers that the caller gives out and never uses twice.

    Removed places stay listed until the caller builds anew; `gather` is given those that live.
    """

    def __init__(self) -> None:
        self.count = 0
        self.length = 0
        self._places: dict[str, array[int]] = {}
        self._times: dict[str, array[int]] = {}
        self._holders: Counter[str] = Counter()

    def add(self, place: int, terms: Sequence[str]) -> None:
        for term, times in Counter(terms).items():
            if term not in self._places:
                self._places[term], self._times[term] = array("q"), array("q")
            self._places[term].append(place)
            self._times[term].append(times)
            self._holders[term] += 1
        self.count += 1
        self.length += len(terms)

    def remove(self, terms: Sequence[str]) -> None:
        for term in set(terms):
            self._holders[term] -= 1
        self.count -= 1
        self.length -= len(terms)

    def holders(self, term: str) -> int:
        """Give how many living places have a term."""
        return self._holders[term]

    @property
    def mean_length(self) -> float:
        return self.length / self.count if self.count else 0.0

    def gather(self, terms: Sequence[str], alive: Bools) -> tuple[Ints, Ints, Floats]:
        """Give, for each living place of each term, the term's index, the place, and how often it is there.

        The order is that of the terms, so that sums over a place's terms have one order however
        places were numbered.
        """
        if not terms:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        lists = [self._places.get(term, _NONE) for term in terms]
        which = np.repeat(np.arange(len(terms)), [len(places) for places in lists])
        places = np.concatenate([np.array(one, np.int64) for one in lists])
        times = np.concatenate([np.array(self._times.get(term, _NONE), np.float64) for term in terms])
        if not alive.all():
            keep = alive[places]
            which, places, times = which[keep], places[keep], times[keep]
        return which, places, times


_NONE: array[int] = array("q")


def summed(at: Ints, values: Floats, size: int) -> Floats:
    """Sum values by index, each index's in the order in which they come."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def saturated(times: Floats, length: Floats, mean_length: float, k1: float, b: float) -> Floats:
    """Give BM25's weight of a term that a text of some length has so many times."""
    return times * (k1 + 1) / (times + k1 * (1 - b + b * length / mean_length))


def term_weights(
    terms: Sequence[str],
    related: Mapping[str, Mapping[str, float]],
    share: float,
    rarities: Mapping[str, float],
    unknown: float,
) -> dict[str, float]:
    """Give the weight of each term of a query and of each related one, which is never above its origin's.

    A related term is worth ``share`` of the lesser of the two rarities; one that several terms reach counts
    once, by the best of them.
    """
    weights = {term: rarities[term] for term in terms if term in rarities}
    for term in terms:
        own = rarities.get(term, unknown)
        for other, closeness in related.get(term, {}).items():
            if other in rarities and other not in terms:
                weights[other] = max(weights.get(other, 0.0), closeness * share * min(rarities[other], own))
    return weights
