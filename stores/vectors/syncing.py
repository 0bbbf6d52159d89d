"""One synchronisation: scope by scope, the ledger's vectors first, then Chroma's, then the marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.ledger import Ledger, Mark, ScopeState
from loadmaster.stores.ledger.rows import chunks
from loadmaster.stores.vectors.chroma import ChromaFailed
from loadmaster.stores.vectors.feeding import Failures, Feeder
from loadmaster.stores.vectors.replica import Replica, reached
from loadmaster.stores.vectors.report import Progress

_TRIES = 5  # to keep up with erasures by others


@dataclass(slots=True)
class Run:
    """What a synchronisation works with, and what it has done so far.

    Attributes:
        replica: The collection to keep up; None from where Chroma has failed.
        failed: Why Chroma failed in this run.
    """

    ledger: Ledger
    feeder: Feeder
    replica: Replica | None
    batch: int
    progress: Progress | None = None
    failures: Failures = field(default_factory=Failures)
    embedded: int = 0
    indexed: int = 0
    deleted: int = 0
    lacking: dict[str, int] = field(default_factory=dict)
    failed: str | None = None
    total: int = 0
    done: int = 0

    @property
    def waiting(self) -> int:
        """How many records still have no vector."""
        return sum(self.lacking.values())

    def behind(self) -> list[str]:
        """Give the keys of all scopes that are not embedded, or not indexed, to the end."""
        states = self.ledger.behind(self.feeder.mark)
        if self.replica is not None:
            states += self.ledger.behind(self.replica.mark)
        return sorted({state.key for state in states})

    def scopes(self, keys: Iterable[str]) -> None:
        """Bring scopes up to the ledger.

        Raises:
            LedgerUnavailable: The ledger cannot be read or written.
        """
        wanted = sorted(set(keys))
        if self.progress is not None:
            self.total = sum(len(self._rows(key)[1]) for key in wanted)
        for key in wanted:
            before = self.done
            try:
                self._scope(key)
            except ChromaFailed as error:
                self.replica, self.failed = None, str(error)
                self.done = before
                self._scope(key)  # the vectors go on into the ledger

    def _rows(self, key: str) -> tuple[ScopeState, list[Embedded], Mark]:
        """Give what is new in a scope since it was embedded and indexed, and how far it was indexed."""
        embedded = self.ledger.mark(self.feeder.mark, key)
        indexed = embedded if self.replica is None else self.ledger.mark(self.replica.mark, key)
        since = min(embedded.version, indexed.version)
        state, rows = self.ledger.embedded(key, self.feeder.identity, since=since, with_vectors=False)
        return state, rows, indexed

    def _scope(self, key: str) -> None:
        for _ in range(_TRIES):
            state, rows, indexed = self._rows(key)
            settled = True
            if self.replica is not None and indexed.epoch != state.epoch:
                _, deleted, settled = self.replica.agree_lastingly(state, self.replica.strangers(key))
                self.deleted += deleted
            for some in chunks(rows, self.batch):
                self.embedded += self.feeder.embed(state, some, self.failures)
                if self.replica is not None:
                    settled = self._index(self.replica, state, some, indexed) and settled
                self._advance(len(some))
            self._mark(state, rows, settled)
            if settled:
                return

    def _index(self, replica: Replica, state: ScopeState, rows: Sequence[Embedded], indexed: Mark) -> bool:
        ids = [row.id for row in rows if row.version > indexed.version]
        if indexed.epoch == state.epoch:  # else an id may have been erased, and given again to another text
            held = replica.vectors.held(ids)
            ids = [name for name in ids if name not in held]
        put, deleted, settled = replica.agree_lastingly(state, ids)
        self.indexed += put
        self.deleted += deleted
        return settled

    def _mark(self, state: ScopeState, rows: Sequence[Embedded], settled: bool) -> None:
        since = rows[0].version - 1 if rows else state.version
        now = self.ledger.embedded(state.key, self.feeder.identity, since=since, with_vectors=False)[1]
        now = [row for row in now if row.version <= state.version]
        mark = Mark(reached(state, now), state.epoch)
        self.ledger.set_mark(self.feeder.mark, state.key, mark)
        if self.replica is not None and settled:
            self.ledger.set_mark(self.replica.mark, state.key, mark)
        self.lacking[state.key] = sum(not row.has for row in now)

    def _advance(self, count: int) -> None:
        self.done += count
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)
