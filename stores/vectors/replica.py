"""A collection kept like the ledger: what is in both, what only one has, and what is near in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadmaster.stores.embeddings.grid import Grid, cosine
from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.ledger import Ledger, Mark, ScopeState
from loadmaster.stores.ledger.rows import chunks
from loadmaster.stores.vectors.chroma import Vectors
from loadmaster.stores.vectors.exact import best
from loadmaster.stores.vectors.report import Progress

_BATCH = 1000
_OVER = 4  # times the limit is asked for: retired and misplaced ones go out of what comes back
_LEAST = 100
_MOST_UNINDEXED = 20_000  # rows compared beside the collection, before a scan of everything is as good
_TRIES = 5  # to keep up with erasures by others


@dataclass(frozen=True, slots=True)
class Replica:
    """The vectors of a ledger in one collection of Chroma.

    Every method raises `ChromaFailed` if Chroma fails, and `LedgerUnavailable` if the ledger does.
    """

    ledger: Ledger
    embedder: str
    vectors: Vectors

    @property
    def mark(self) -> str:
        """The name under which the ledger notes how far the collection is."""
        return f"chroma:{self.vectors.name}"

    def agree(self, key: str, ids: Iterable[str]) -> tuple[int, int]:
        """Make the collection hold of these ids what the ledger holds; give how many were put and deleted."""
        put = deleted = 0
        for some in chunks(sorted(set(ids)), _BATCH):
            rows = [row for row in self.ledger.embedded_among(some, [key], self.embedder) if row.has]
            if rows:
                self.vectors.put(
                    [row.id for row in rows],
                    grid_of(rows),
                    [row.scope_key for row in rows],
                    [row.kind for row in rows],
                )
            here = {row.id for row in rows}
            gone = sorted(self.vectors.held([name for name in some if name not in here]))
            self.vectors.delete(gone)
            put += len(rows)
            deleted += len(gone)
        return put, deleted

    def agree_lastingly(self, state: ScopeState, ids: Iterable[str]) -> tuple[int, int, bool]:
        """Do as `agree`, and again while others erase in between; say also whether that came to an end."""
        touched = set(ids)
        put = deleted = 0
        epoch = state.epoch
        for _ in range(_TRIES):
            more = self.agree(state.key, touched)
            put, deleted = put + more[0], deleted + more[1]
            now = self.epoch(state.key)
            if now == epoch:
                return put, deleted, epoch == state.epoch
            epoch = now
        return put, deleted, False

    def epoch(self, key: str) -> int:
        """Give the scope's epoch as it is now."""
        return self.ledger.embedded(key, self.embedder, since=1 << 62, with_vectors=False)[0].epoch

    def strangers(self, key: str) -> set[str]:
        """Give the ids that the collection holds of a scope, and the ledger does not."""
        held = self.vectors.in_scope(key)
        return held - {row.id for row in self.ledger.embedded(key, self.embedder, with_vectors=False)[1]}

    def audit(self, progress: Progress | None = None) -> tuple[int, int]:
        """Compare everything with the ledger and set it right; give how many were put and deleted."""
        held = self.vectors.everything()  # before the ledger is read: what comes later is no stranger
        states = self.ledger.scopes()
        total = sum(self.ledger.sizes(state.key for state in states).values())
        put = deleted = done = 0
        for state in states:
            now, rows = self.ledger.embedded(state.key, self.embedder, with_vectors=False)
            mark = self.ledger.mark(self.mark, state.key)
            ours = {row.id for row in rows if row.has}
            wrong = ours ^ held.pop(state.key, set())
            if mark.version and mark.epoch != now.epoch:  # an id may have been erased, and given again
                wrong |= {row.id for row in rows if row.version > mark.version}
            settled = True
            for some in chunks(sorted(wrong), _BATCH):
                more = self.agree_lastingly(now, some)
                put, deleted, settled = put + more[0], deleted + more[1], settled and more[2]
                if progress is not None:
                    progress(min(done + len(some), total), total)
            done += len(rows)
            new = Mark(reached(now, rows), now.epoch)
            if settled and new != mark:
                self.ledger.set_mark(self.mark, state.key, new)
        for ids in held.values():
            self.vectors.delete(sorted(ids))
            deleted += len(ids)
        return put, deleted

    def is_whole(self) -> bool:
        """Count whether the collection holds as many vectors as the ledger, before anybody relies on it."""
        wanted = 0
        for state in self.ledger.scopes():
            rows = self.ledger.embedded(state.key, self.embedder, with_vectors=False)[1]
            wanted += sum(row.has for row in rows)
        return self.vectors.count() >= wanted

    def nearest(
        self, states: Sequence[ScopeState], query: Grid, limit: int, kinds: Collection[str] | None
    ) -> tuple[dict[str, float], int] | None:
        """Search approximately, compare what is found exactly, and all that is not in the collection yet.

        Returns:
            Scores by id, the highest first, and how many records have no vector; None if so much is
            not in the collection that everything should be compared.
        """
        if limit <= 0 or not states:
            return {}, 0
        late: list[Embedded] = []
        for state in states:
            mark = self.ledger.mark(self.mark, state.key)
            if mark != Mark(state.version, state.epoch):
                late += self.ledger.embedded(
                    state.key, self.embedder, since=mark.version, with_vectors=False
                )[1]
            if len(late) > _MOST_UNINDEXED:
                return None
        lacking = sum(1 for row in late if row.live and not row.has and (kinds is None or row.kind in kinds))
        keys = [state.key for state in states]
        count = max(_LEAST, _OVER * limit)
        while True:
            found = self.vectors.nearest(query, count, keys=keys, kinds=kinds)
            ids = {*found, *(row.id for row in late if row.has)}
            rows = [
                row
                for row in self.ledger.embedded_among(ids, keys, self.embedder)
                if row.has and row.live and (kinds is None or row.kind in kinds)
            ]
            if len(rows) >= limit or len(found) < count:
                break
            count *= _OVER
        scores = cosine(query, grid_of(rows)).tolist() if rows else []
        return best(zip(scores, (row.id for row in rows), strict=True), limit), lacking


def reached(state: ScopeState, rows: Iterable[Embedded]) -> int:
    """Give the version up to which a scope's records all have vectors."""
    return min([state.version, *(row.version - 1 for row in rows if not row.has)])


def grid_of(rows: Sequence[Embedded]) -> Grid:
    """Give the vectors of records, which all have one, as a matrix."""
    vectors: Grid = np.frombuffer(b"".join(row.vector for row in rows), dtype="<i2").astype(np.int16)
    return vectors.reshape(len(rows), -1)
