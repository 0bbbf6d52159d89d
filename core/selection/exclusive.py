"""Exclusive needs: what would leave the must-haves if one of them were dropped.

Where every form's needs are settled, a must-have takes along what nobody else needs: it is counted
by references, on knots of candidates that need one another, so a cycle holds nothing by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from loadmaster.core.pool import Pool
from loadmaster.core.selection.reach import knots
from loadmaster.core.selection.search import Picks


class Exclusive:
    """The must-haves that are left, and what holds each part of their closure in."""

    def __init__(self, pool: Pool, facts: Iterable[int], picks: Picks) -> None:
        self._knot = {index: at for at, knot in enumerate(knots(pool)) for index in knot if index in picks}
        self._needs: dict[int, set[int]] = {at: set() for at in self._knot.values()}
        self._cost: Counter[int] = Counter()
        for index, at in self._knot.items():
            self._cost[at] += pool.cost[index][picks[index]]
            self._needs[at].update(self._knot[need] for need in pool.needs.get(index, ()))
        self._alone = {index: pool.cost[index][picks[index]] for index in picks if index not in self._knot}
        self._asked = Counter(self._knot[index] for index in facts if index in self._knot)
        self._held = Counter(need for at, needs in self._needs.items() for need in needs if need != at)

    def brought_by(self, index: int) -> int:
        """Give the tokens that leave with a must-have."""
        if index in self._alone:
            return self._alone[index]
        return sum(self._cost[at] for at in self._leaving(index))

    def drop(self, index: int) -> None:
        """Take a must-have out, with what leaves."""
        if index in self._knot:
            leaving = self._leaving(index)
            self._asked[self._knot[index]] -= 1
            for at in leaving:
                self._held.subtract(need for need in self._needs[at] if need != at)

    def _leaving(self, index: int) -> list[int]:
        start = self._knot[index]
        if self._asked[start] > 1 or self._held[start]:
            return []
        leaving = [start]
        released: Counter[int] = Counter()
        for at in leaving:  # grows as what was held by it alone follows
            for need in self._needs[at]:
                if need != at:
                    released[need] += 1
                    if released[need] == self._held[need] and not self._asked[need]:
                        leaving.append(need)
        return leaving
