"""Every record of a scope compared with a query: the ledger's vectors, kept in memory as one matrix."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.grid import Grid, cosine
from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.ledger import Ledger, ScopeState

T = TypeVar("T", bound=np.generic)

_MOST_ROWS = 400_000  # in memory over all scopes: 400 MB at 512 components


@dataclass(frozen=True, slots=True)
class Rows:
    """A scope's vectors as they were at one moment; what is added later does not change them."""

    ids: Sequence[str]  # may have grown since: only the first len(vectors) are meant
    vectors: Grid
    kinds: npt.NDArray[np.uint16]
    live: npt.NDArray[np.bool_]
    codes: Mapping[str, int]  # of the kinds
    lacking: Sequence[str]  # the kinds of live records without a vector

    def nearest(self, query: Grid, limit: int, kinds: Collection[str] | None) -> Iterable[tuple[float, str]]:
        """Give scores and ids of the nearest, and of all that score as much as the last of them."""
        if limit <= 0:
            return ()
        chosen = self.live
        if kinds is not None:
            wanted = [self.codes[kind] for kind in sorted(kinds) if kind in self.codes]
            chosen = chosen & np.isin(self.kinds, wanted)
        places = np.flatnonzero(chosen)
        scores = cosine(query, self.vectors)[places]
        if len(places) > limit:
            least = np.partition(scores, len(places) - limit)[len(places) - limit]
            kept = scores >= least
            places, scores = places[kept], scores[kept]
        return zip(scores.tolist(), (self.ids[place] for place in places.tolist()), strict=True)


@dataclass(slots=True)
class _Scope:
    dimension: int
    version: int = 0
    epoch: int = 0
    ids: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    vectors: Grid = field(init=False)
    kinds: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, dtype=np.uint16))
    live: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    codes: dict[str, int] = field(default_factory=dict)
    lacking: dict[str, Embedded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vectors = np.empty((0, self.dimension), dtype=np.int16)

    def rows(self) -> Rows:
        end = len(self.ids)
        lacking = [row.kind for row in self.lacking.values() if row.live]
        return Rows(self.ids, self.vectors[:end], self.kinds[:end], self.live[:end], self.codes, lacking)

    def take(self, changed: Sequence[Embedded]) -> None:
        """Take in records that are new, have got a vector, or were retired."""
        fresh = [row for row in changed if row.has and row.id not in self.places]
        for row in changed:
            if row.has:
                self.lacking.pop(row.id, None)
            else:
                self.lacking[row.id] = row
        known = [row for row in changed if row.id in self.places]
        if any(self.live[self.places[row.id]] != row.live for row in known):
            self.live = self.live.copy()  # readers keep what they have
            for row in known:
                self.live[self.places[row.id]] = row.live
        if not fresh:
            return
        start, end = len(self.ids), len(self.ids) + len(fresh)
        if end > len(self.vectors):
            room = max(end, 2 * start)
            self.vectors = _grown(self.vectors, start, (room, self.dimension))
            self.kinds = _grown(self.kinds, start, (room,))
            self.live = _grown(self.live, start, (room,))
        joined = b"".join(row.vector for row in fresh)
        self.vectors[start:end] = np.frombuffer(joined, dtype="<i2").reshape(len(fresh), self.dimension)
        self.kinds[start:end] = [self.codes.setdefault(row.kind, len(self.codes)) for row in fresh]
        self.live[start:end] = [row.live for row in fresh]
        self.places.update({row.id: start + place for place, row in enumerate(fresh)})
        self.ids += [row.id for row in fresh]  # last: no reader counts what is not there yet


@dataclass(slots=True)
class _Slot:
    scope: _Scope
    lock: Lock = field(default_factory=Lock)


class Matrices:
    """The matrices of the scopes that were searched lately. Safe to share between threads."""

    def __init__(self, ledger: Ledger, embedder: str, dimension: int, *, most_rows: int = _MOST_ROWS) -> None:
        self._ledger = ledger
        self._embedder = embedder
        self._dimension = dimension
        self._most_rows = most_rows
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = Lock()

    def nearest(
        self, states: Iterable[ScopeState], query: Grid, limit: int, kinds: Collection[str] | None
    ) -> tuple[dict[str, float], int]:
        """Give the nearest records of these scopes, and how many have no vector to compare.

        Raises:
            LedgerUnavailable: The ledger cannot be read.
        """
        views = [self.rows(state) for state in states]
        found = [pair for rows in views for pair in rows.nearest(query, limit, kinds)]
        lacking = [kind for rows in views for kind in rows.lacking if kinds is None or kind in kinds]
        return best(found, limit), len(lacking)

    def rows(self, state: ScopeState) -> Rows:
        """Give a scope's vectors, at least as new as the given state."""
        slot = self._slot(state.key)
        with slot.lock:
            scope = slot.scope
            if scope.epoch == state.epoch and scope.version >= state.version and not scope.lacking:
                return scope.rows()
            since = min([scope.version, *(row.version - 1 for row in scope.lacking.values())])
            if scope.epoch != state.epoch:
                since = 0
            now, changed = self._ledger.embedded(state.key, self._embedder, since=since)
            if now.epoch != scope.epoch:  # something was erased: only a new matrix is right
                if since:
                    now, changed = self._ledger.embedded(state.key, self._embedder)
                scope = _Scope(self._dimension)
            scope.take(changed)
            scope.version, scope.epoch = now.version, now.epoch
            slot.scope = scope
            return scope.rows()

    def _slot(self, key: str) -> _Slot:
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot(_Scope(self._dimension))
                held = sum(len(other.scope.ids) for other in self._slots.values())
                while held > self._most_rows and len(self._slots) > 1:
                    held -= len(self._slots.popitem(last=False)[1].scope.ids)
            self._slots.move_to_end(key)
            return slot


def best(found: Iterable[tuple[float, str]], limit: int) -> dict[str, float]:
    """Give the highest scores by id, the highest first, equal ones by id."""
    ordered = sorted((-score, name) for score, name in found)[:limit]
    return {name: -negative for negative, name in ordered}


def _grown(rows: npt.NDArray[T], end: int, shape: tuple[int, ...]) -> npt.NDArray[T]:
    grown: npt.NDArray[T] = np.empty(shape, dtype=rows.dtype)
    grown[:end] = rows[:end]
    return grown
