"""The index of vectors over a ledger: what is near in meaning, exactly or through Chroma."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from threading import RLock

from loadmaster.stores.embeddings import Embedder, EmbedderChanged, default_embedder
from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.ledger import Ledger, Mark, ScopeState
from loadmaster.stores.ledger.rows import chunks
from loadmaster.stores.vectors.exact import Matrices
from loadmaster.stores.vectors.feeding import Failures, Feeder, checked
from loadmaster.stores.vectors.report import Meaning, Mode, Progress, Synced

_BATCH = 256


class VectorIndex:
    """Vectors of a ledger's records. Safe to share between threads.

    Whoever writes to the ledger calls `sync` afterwards, with the keys of the scopes; whoever erases
    does too.

    Raises:
        EmbedderChanged: The ledger's vectors were made by another embedder.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        embedder: Embedder | None = None,
        chroma: str | Path | None = None,
        name: str = "vectors",
        mode: Mode = "auto",
    ) -> None:
        self._ledger = ledger
        self._feeder = Feeder(ledger, embedder or default_embedder())
        self._embedder_setting = f"index:{name}:embedder"
        self._name = name
        self._matrices = Matrices(ledger, self._feeder.identity, self._feeder.embedder.dimension)
        self._syncing = RLock()
        self._check_embedder(ledger.setting(self._embedder_setting))

    def close(self) -> None:
        """Let go of Chroma; the ledger stays open."""

    def __enter__(self) -> VectorIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meaning(
        self,
        states: Sequence[ScopeState],
        query: str,
        *,
        limit: int,
        kinds: Collection[str] | None = None,
    ) -> Meaning:
        """Give the records nearest to a query, in the scopes that `Ledger.visible` gave.

        Raises:
            LedgerUnavailable: The ledger cannot be read.
        """
        embedder = self._feeder.embedder
        try:
            vector = checked(embedder.embed_query(query)[None, :], 1, embedder)[0]
        except Exception as error:  # embedders are anybody's code
            return Meaning({}, "exact", f"the embedder failed: {type(error).__name__}: {error}")
        scores, lacking = self._matrices.nearest(states, vector, limit, kinds)
        reason = f"{lacking} records have no vector yet; synchronise the index" if lacking else None
        return Meaning(scores, "exact", reason)

    def sync(self, keys: Iterable[str] | None = None, *, progress: Progress | None = None) -> Synced:
        """Bring scopes up to the ledger, by default all that are behind: embed, index, then mark.

        Raises:
            EmbedderChanged: Somebody has embedded the ledger anew with another embedder.
            LedgerUnavailable: The ledger cannot be read or written.
        """
        with self._syncing:
            self._check_embedder(self._ledger.settle(self._embedder_setting, self._feeder.identity))
            behind = {state.key: state for state in self._ledger.behind(self._feeder.mark)}
            wanted = list(behind) if keys is None else sorted(set(keys) & set(behind))
            failures = Failures()
            embedded = waiting = done = 0
            work: list[tuple[ScopeState, list[Embedded]]] = []
            for key in wanted:
                since = self._ledger.mark(self._feeder.mark, key).version
                work.append(
                    self._ledger.embedded(key, self._feeder.identity, since=since, with_vectors=False)
                )
            total = sum(len(rows) for _, rows in work)
            for state, rows in work:
                for some in chunks(rows, _BATCH):
                    embedded += self._feeder.embed(state, some, failures)
                    done += len(some)
                    if progress is not None:
                        progress(done, total)
                since = rows[0].version - 1 if rows else state.version
                now = self._ledger.embedded(
                    state.key, self._feeder.identity, since=since, with_vectors=False
                )[1]
                lacking = [row.version for row in now if not row.has and row.version <= state.version]
                reached = min(lacking) - 1 if lacking else state.version
                self._ledger.set_mark(self._feeder.mark, state.key, Mark(reached, state.epoch))
                waiting += len(lacking)
            return Synced(embedded=embedded, waiting=waiting, degraded=failures.reason)

    def _check_embedder(self, stored: str | None) -> None:
        if stored is not None and stored != self._feeder.identity:
            raise EmbedderChanged(f"the ledger's index {self._name!r}", stored, self._feeder.identity)
