"""Reach: everything that a unit needs, as bit sets, so that a price does not walk a long chain anew.

Only what is needed whatever form is chosen is covered. A unit that may need something for the sake
of a form is `open`: what it costs is a matter of choice, which `search` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadmaster.core.pool import Pool

MOST_BYTES = 100_000_000
"""Memory for the bit sets: enough for a chain of 40,000, since a chain of n takes n * n / 16 bytes."""


class Reach:
    """The needs of a pool's related candidates, and which of them are in the bundle."""

    def __init__(self, pool: Pool) -> None:
        self._bit: dict[int, int] = {}
        self._knot: dict[int, int] = {}
        self._below: list[int] = []
        self._within: list[int] = []
        self._planes: list[int] = []
        self._choices = 0
        self.inside = 0
        if not self._tie(pool):
            self._bit, self._knot = {}, {}

    def _tie(self, pool: Pool) -> bool:
        """Number candidates so that what is needed comes first; tells whether the sets fit the memory."""
        choosing = {index for index, _ in pool.form_needs}
        left = MOST_BYTES
        for knot in knots(pool):
            below = within = 0
            for index in knot:
                self._bit[index] = bit = len(self._bit)
                self._knot[index] = len(self._below)
                if len(knot) > 1:
                    within |= 1 << bit
                if index in choosing:
                    self._choices |= 1 << bit
            for index in knot:
                for need in _leans_on(pool, index):
                    if self._knot[need] < len(self._below):
                        below |= self._reach_of(need)
            self._below.append(below)
            self._within.append(within)
            left -= (below.bit_length() + within.bit_length()) // 8
            if left < 0:
                return False
        planes: dict[int, bytearray] = {}
        for index, bit in self._bit.items():
            cost = min(pool.cost[index], default=0)
            for power in range(cost.bit_length()):
                if cost >> power & 1:
                    plane = planes.setdefault(power, bytearray(len(self._bit) // 8 + 1))
                    plane[bit >> 3] |= 1 << (bit & 7)
        self._planes = [
            int.from_bytes(planes.get(power, b""), "little") for power in range(max(planes, default=-1) + 1)
        ]
        return True

    def _reach_of(self, index: int) -> int:
        """Give the set of a candidate with everything that it needs."""
        at = self._knot[index]
        return self._below[at] | (self._within[at] or 1 << self._bit[index])

    def bits(self, indices: Iterable[int]) -> int:
        """Give the set of some candidates; those without relations are in no set."""
        found = 0
        for index in indices:
            if index in self._bit:
                found |= 1 << self._bit[index]
        return found

    def needed_by(self, unit: Sequence[int]) -> int | None:
        """Give the set of what a unit needs beside itself; None if forms have a say in it."""
        if unit[0] not in self._knot:
            return None
        at = self._knot[unit[0]]
        reach = self._below[at] | self._within[at]
        if (reach | 1 << self._bit[unit[0]]) & self._choices:
            return None
        return reach & ~self.bits(unit) if self._within[at] else reach

    def cost(self, members: int) -> int:
        """Give what a set costs at its cheapest forms."""
        return sum((members & plane).bit_count() << power for power, plane in enumerate(self._planes))


def _leans_on(pool: Pool, index: int) -> tuple[int, ...]:
    return pool.mates(index) + pool.needs.get(index, ())


def knots(pool: Pool) -> Iterable[list[int]]:
    """Give the strongly connected sets of related candidates, needed ones first (Tarjan 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    trail: list[int] = []
    open_: set[int] = set()
    for start in sorted(pool.tied):
        if start in number:
            continue
        work = [(start, iter(_leans_on(pool, start)))]
        number[start] = low[start] = len(number)
        trail.append(start)
        open_.add(start)
        while work:
            index, rest = work[-1]
            for need in rest:
                if need not in number:
                    number[need] = low[need] = len(number)
                    trail.append(need)
                    open_.add(need)
                    work.append((need, iter(_leans_on(pool, need))))
                    break
                if need in open_:
                    low[index] = min(low[index], number[need])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[index])
                if low[index] == number[index]:
                    knot = [trail.pop()]
                    while knot[-1] != index:
                        knot.append(trail.pop())
                    open_.difference_update(knot)
                    yield knot
