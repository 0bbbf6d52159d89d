"""The index of vectors over a ledger: what is near in meaning, exactly or through Chroma."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from threading import RLock

from loadmaster.stores.embeddings import Embedder, EmbedderChanged, EmbedderError, default_embedder
from loadmaster.stores.embeddings.grid import Grid
from loadmaster.stores.ledger.ledger import Ledger, ScopeState
from loadmaster.stores.vectors.attaching import Attachment
from loadmaster.stores.vectors.chroma import ChromaFailed
from loadmaster.stores.vectors.exact import Matrices
from loadmaster.stores.vectors.feeding import Feeder, checked, mark_of
from loadmaster.stores.vectors.replica import Replica
from loadmaster.stores.vectors.report import FolderInUse, IndexState, Meaning, Mode, Opened, Progress, Synced
from loadmaster.stores.vectors.syncing import Run

_BATCH = 256


class VectorIndex:
    """Vectors of a ledger's records, kept in the ledger; Chroma only makes large searches fast.

    Whoever writes to the ledger calls `sync` afterwards, with the keys of the scopes; whoever erases
    does too. Until then searches say how many records they cannot compare. Where Chroma fails, every
    record is compared instead, answers say ``degraded``, and the next `sync` tries Chroma again.
    Safe to share between threads.

    Args:
        ledger: The record of everything; it stays open when the index is closed.
        embedder: Makes the vectors; by default what `default_embedder` finds installed.
        chroma: A folder, which one index at a time may own; or the URL of a server, which many
            processes may share; or None to compare every record always.
        name: Tells indexes over one ledger apart, where there are several.
        mode: ``exact`` compares every visible record, ``ann`` asks Chroma, and ``auto`` asks Chroma only
            where more than ``exact_up_to`` records are visible. Only exact answers are a function of
            what the ledger holds.
        reembed: Embed all anew if the ledger's vectors were made by another embedder; the former
            vectors are in use until all are made, and then dropped.
        progress: Called while existing records are embedded anew or written to Chroma again.
        probe_seconds: How long a folder may take to be read before it counts as ruined.

    Raises:
        EmbedderChanged: The ledger's vectors were made by another embedder; pass it, or reembed=True.
        EmbedderError: Embedding anew failed; the former vectors are still in use.
        FolderInUse: Another index owns the folder.
        LedgerUnavailable: The ledger cannot be read.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        embedder: Embedder | None = None,
        chroma: str | Path | None = None,
        name: str = "vectors",
        mode: Mode = "auto",
        exact_up_to: int = 20_000,
        reembed: bool = False,
        progress: Progress | None = None,
        probe_seconds: float = 300.0,
    ) -> None:
        if mode == "ann" and chroma is None:
            raise ValueError("mode='ann' needs chroma: give a folder or the URL of a server")
        self._ledger = ledger
        self._feeder = Feeder(ledger, embedder or default_embedder())
        self._name = name
        self._mode = mode
        self._exact_up_to = exact_up_to
        self._setting = f"index:{name}:embedder"
        self._matrices = Matrices(ledger, self._feeder.identity, self._feeder.embedder.dimension)
        self._sizes: dict[str, tuple[int, int, int]] = {}
        self._syncing = RLock()
        self._replica: Replica | None = None
        self._degraded: str | None = None
        self._opened = Opened()
        stored = ledger.setting(self._setting)
        if stored is not None and stored != self._feeder.identity:
            if not reembed:
                raise EmbedderChanged(f"the ledger's index {name!r}", stored, self._feeder.identity)
            self._embed_anew(stored, progress)
        self._attachment: Attachment | None = None
        if chroma is not None:
            self._attachment = Attachment(
                ledger, str(chroma), index=name, embedder=self._feeder.identity, seconds=probe_seconds
            )
            try:
                self._attach(progress)
            except BaseException:
                self._attachment.close(clean=False)
                raise

    def close(self) -> None:
        """Let go of Chroma; the ledger stays open. Searches go on, and compare every record."""
        with self._syncing:
            clean, self._replica = self._degraded is None, None
            if self._attachment is not None:
                self._attachment.close(clean=clean)
                self._attachment = None

    def __enter__(self) -> VectorIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def state(self) -> IndexState:
        """How the index is now."""
        attachment, replica = self._attachment, self._replica
        return IndexState(
            embedder=self._feeder.identity,
            chroma=None if attachment is None else attachment.place,
            collection=None if replica is None else replica.vectors.name,
            degraded=self._degraded,
            opened=self._opened,
            set_aside=() if attachment is None else attachment.set_aside,
        )

    def meaning(
        self,
        states: Sequence[ScopeState],
        query: str,
        *,
        limit: int,
        kinds: Collection[str] | None = None,
    ) -> Meaning:
        """Give the records nearest to a query, in the scopes that `Ledger.visible` gave.

        Retired records are left out, and all but the given kinds.

        Raises:
            LedgerUnavailable: The ledger cannot be read.
        """
        embedder = self._feeder.embedder
        try:
            vector: Grid = checked(embedder.embed_query(query)[None, :], 1, embedder)[0]
        except Exception as error:  # embedders are anybody's code
            return Meaning({}, "exact", f"the embedder failed: {type(error).__name__}: {error}")
        found = None
        replica = self._replica
        if replica is not None and self._approximate(states):
            try:
                found = replica.nearest(states, vector, limit, kinds)
            except ChromaFailed as error:
                self._degrade(replica, error)
        if found is not None:
            return Meaning(found[0], "ann", self._reason(found[1]))
        scores, lacking = self._matrices.nearest(states, vector, limit, kinds)
        return Meaning(scores, "exact", self._reason(lacking))

    def sync(self, keys: Iterable[str] | None = None, *, progress: Progress | None = None) -> Synced:
        """Bring scopes up to the ledger, by default all that are behind: embed, index, then mark.

        Neither the embedder nor Chroma can make this raise: what they failed to do is reported, and
        tried again by the next call.

        Raises:
            EmbedderChanged: Somebody has embedded the ledger anew with another embedder.
            LedgerUnavailable: The ledger cannot be read or written.
        """
        with self._syncing:
            stored = self._ledger.settle(self._setting, self._feeder.identity)
            if stored != self._feeder.identity:
                raise EmbedderChanged(f"the ledger's index {self._name!r}", stored, self._feeder.identity)
            before = self._opened
            if self._attachment is not None and self._replica is None:
                try:
                    self._attach(progress)
                except FolderInUse as error:  # it was taken while we could not lock it
                    self._degrade(None, error)
            run = Run(self._ledger, self._feeder, self._replica, _BATCH, progress)
            run.scopes(run.behind() if keys is None else keys)
            if run.failed is not None and self._replica is not None:
                self._degrade(self._replica, run.failed)
            again = self._opened if self._opened is not before else Opened()
            return Synced(
                embedded=run.embedded,
                indexed=run.indexed + again.replayed,
                deleted=run.deleted + again.deleted,
                waiting=run.waiting,
                degraded=run.failures.reason or self._degraded,
            )

    def rebuild(self, *, progress: Progress | None = None) -> Synced:
        """Build Chroma's collection anew from the ledger, and remove the former with its files.

        A folder keeps the numbers of a deleted vector in its files until they are needed for others;
        after this nothing is left of them.

        Raises:
            LedgerUnavailable: The ledger cannot be read.
        """
        with self._syncing:
            if self._attachment is None:
                return Synced()
            if self._replica is None:
                self._attach(progress)
            try:
                if self._replica is not None:
                    self._replica, self._opened = self._attachment.rebuild(progress)
            except ChromaFailed as error:
                self._degrade(self._replica, error)
            return Synced(
                indexed=self._opened.replayed, deleted=self._opened.deleted, degraded=self._degraded
            )

    def _attach(self, progress: Progress | None) -> None:
        assert self._attachment is not None
        try:
            self._replica, self._opened = self._attachment.attach(progress)
            self._degraded = None
        except ChromaFailed as error:
            self._degrade(None, error)

    def _degrade(self, replica: Replica | None, reason: object) -> None:
        """Stop using Chroma until the next synchronisation; the client is closed then, by `attach`."""
        if self._replica is replica:
            self._replica = None
            self._degraded = str(reason)

    def _reason(self, lacking: int) -> str | None:
        reasons = [self._degraded] if self._degraded else []
        if lacking:
            reasons.append(f"records without a vector yet, which were not compared: {lacking}")
        return "; ".join(reasons) or None

    def _approximate(self, states: Sequence[ScopeState]) -> bool:
        if self._mode != "auto":
            return self._mode == "ann"
        known = self._sizes
        stale = [
            state.key for state in states if known.get(state.key, ())[:2] != (state.version, state.epoch)
        ]
        if stale:
            counted = self._ledger.sizes(stale)
            by_key = {state.key: state for state in states}
            for key in stale:
                known[key] = (by_key[key].version, by_key[key].epoch, counted[key])
        return sum(known[state.key][2] for state in states) > self._exact_up_to

    def _embed_anew(self, stored: str, progress: Progress | None) -> None:
        run = Run(self._ledger, self._feeder, None, _BATCH, progress)
        run.scopes(run.behind())
        if run.waiting:
            raise EmbedderError(
                f"{run.waiting} records could not be embedded anew, so that the vectors of {stored} stay in "
                f"use; open the index again to go on ({run.failures.reason})"
            )
        now = self._ledger.settle(self._setting, self._feeder.identity, instead_of=stored)
        if now != self._feeder.identity:
            raise EmbedderChanged(f"the ledger's index {self._name!r}", now, self._feeder.identity)
        self._ledger.clear_marks(mark_of(stored))
        self._ledger.drop_vectors(stored)
