"""Where passages stand: numbered places in sessions, each linked to its neighbours, with their columns."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

import numpy as np

from loadmaster.core.items import OrderKey, order_key
from loadmaster.stores.ranking.passages import Passage
from loadmaster.stores.ranking.postings import Bools, Floats, Ints

_COLUMNS: Final = (
    *(("alive", False), ("derived", False), ("message", False), ("asks", False), ("timed", False)),
    *(("before", -1), ("after", -1), ("length", 0), ("window_length", 0), ("day", 0), ("author", -1)),
)
OWN_SHARE: Final = 1000
"""Shares of neighbours are thousandths, so that sums of them are whole numbers and exact in any order."""


class Shelf:
    """Columns by place. Places are given out in order of arrival and mean nothing.

    A session's passages stand in the order of their positions, then ids; `before` and `after` are
    the neighbours' places, or -1. Derived passages and those without a session have none.
    """

    def __init__(self, window: tuple[int, ...]) -> None:
        self.size = 0
        self.passages: list[Passage] = []
        self.keys: list[tuple[OrderKey, str]] = []  # by which ties are ordered
        self._window = window
        self._columns = {name: np.full(64, empty) for name, empty in _COLUMNS}
        self._sessions: dict[str, list[tuple[OrderKey, str, int]]] = {}
        self._stale: set[int] = set()

    def column(self, name: str) -> Ints:
        return self._columns[name][: self.size]

    def flags(self, name: str) -> Bools:
        return self._columns[name][: self.size].astype(bool, copy=False)

    def put(self, passage: Passage, **values: int | bool) -> int:
        """Give a passage a place."""
        place = self.size
        self.size += 1
        if self.size > len(self._columns["alive"]):
            for name, empty in _COLUMNS:
                grown = np.full(2 * place, empty)
                grown[:place] = self._columns[name]
                self._columns[name] = grown
        for name, value in values.items():
            self._columns[name][place] = value
        self.passages.append(passage)
        self.keys.append((order_key(passage.position), passage.id))
        self._columns["alive"][place] = True
        if not values["derived"]:
            self._stale.add(place)
            if passage.session is not None:
                row = self._sessions.setdefault(passage.session, [])
                entry = (*self.keys[place], place)
                insort(row, entry)
                at = bisect_left(row, entry)
                self._link(row[at - 1][2] if at else -1, place)
                self._link(place, row[at + 1][2] if at + 1 < len(row) else -1)
        return place

    def take(self, place: int) -> None:
        """Take a passage away; its place is not given out again."""
        self._columns["alive"][place] = False
        passage = self.passages[place]
        self._stale.discard(place)
        if self._columns["derived"][place] or passage.session is None:
            return
        row = self._sessions[passage.session]
        del row[bisect_left(row, (*self.keys[place], place))]
        if not row:
            del self._sessions[passage.session]
        before, after = int(self._columns["before"][place]), int(self._columns["after"][place])
        self._link(before, after)
        self._stale.update(one for one in (before, after) if one >= 0)

    def _link(self, one: int, other: int) -> None:
        if one >= 0:
            self._columns["after"][one] = other
        if other >= 0:
            self._columns["before"][other] = one

    def reach(self, places: Ints, distance: int) -> list[tuple[int, int, Ints, Ints]]:
        """Walk from places to their neighbours, up to a distance.

        Gives (distance, direction, index into places, place reached), nearest first.
        """
        steps = []
        for direction, name in ((1, "after"), (-1, "before")):
            onward = self.column(name)
            index, reached = np.arange(len(places)), places
            for far in range(1, distance + 1):
                reached = onward[reached]
                on = reached >= 0
                index, reached = index[on], reached[on]
                if not len(reached):
                    break
                steps.append((far, direction, index, reached))
        return sorted(steps, key=lambda step: (step[0], -step[1]))

    def window_lengths(self) -> Ints:
        """Give how many terms stand in each passage's surroundings, in thousandths."""
        lengths = self._columns["window_length"]
        if self._stale:
            near = np.array(sorted(self._stale), np.int64)
            near = np.unique(np.concatenate([near, *(s[3] for s in self.reach(near, len(self._window)))]))
            own = self.column("length")
            fresh = own[near] * OWN_SHARE
            for far, _, index, reached in self.reach(near, len(self._window)):
                fresh[index] += self._window[far - 1] * own[reached]
            lengths[near] = fresh
            self._stale.clear()
        return lengths[: self.size]

    def shared(self, values: Ints, shares: tuple[int, ...]) -> Ints:
        """Give each place's whole-numbered value with its neighbours' shares, in thousandths."""
        out = values * OWN_SHARE
        for far, _, index, reached in self.reach(np.arange(self.size), len(shares)):
            out[index] += shares[far - 1] * values[reached]
        return out

    def neighbour(self, name: str, values: Floats) -> Floats:
        """Give for each place the value of the one ``before`` or ``after`` it, else 0."""
        near = self.column(name)
        return np.where(near >= 0, values[near], 0.0)
