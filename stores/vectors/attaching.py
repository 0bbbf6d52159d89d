"""Finding, checking and rebuilding the collection of an index, whatever has happened to it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from secrets import token_hex

from loadmaster.stores.ledger.ledger import Ledger
from loadmaster.stores.vectors.chroma import ChromaFailed, Client, is_server
from loadmaster.stores.vectors.folder import Folder
from loadmaster.stores.vectors.replica import Replica
from loadmaster.stores.vectors.report import Opened, Progress

_TRIES = 5


class Attachment:
    """The Chroma of one index, as long as it works.

    Collections are named ``loadmaster-LEDGER-INDEX-EMBEDDER-GENERATION``, so that one server may hold those
    of many ledgers. Which of them is in use is a setting of the ledger, and is changed only after the
    next one has been built and counted.

    Args:
        place: A folder, or the URL of a server.
        seconds: How long a folder may take to be read before it counts as ruined.
    """

    def __init__(self, ledger: Ledger, place: str, *, index: str, embedder: str, seconds: float) -> None:
        self.place = place
        self._ledger = ledger
        self._embedder = embedder
        self._setting = f"index:{index}:collection"
        self._folder = None if is_server(place) else Folder(place, seconds=seconds)
        # Random, since nothing else tells two ledgers apart on one server; no answer depends on it.
        owner = ledger.setting("ledger") or ledger.settle("ledger", token_hex(8))
        self._family = f"loadmaster-{owner}-{_short(index)}-"
        self._client: Client | None = None

    @property
    def set_aside(self) -> tuple[str, ...]:
        """The ruined folders that are still there."""
        return () if self._folder is None else self._folder.all_set_aside()

    def attach(self, progress: Progress | None = None) -> tuple[Replica, Opened]:
        """Open Chroma and make it agree with the ledger, from which it is rebuilt if it must be.

        Raises:
            FolderInUse: Somebody else owns the folder.
            ChromaFailed: Chroma cannot be used now.
            LedgerUnavailable: The ledger cannot be read.
        """
        self.detach()
        current = self._ledger.setting(self._setting)
        opened = Opened()
        found = True
        if self._folder is not None:
            self._folder.own()
            verdict = self._folder.check(current or self._named(1))
            reason = verdict.ruined
            if reason is None and current and not verdict.collections and not verdict.empty:
                reason = "it holds no collection any more"
            if reason is not None:
                opened = replace(opened, ruined=reason, moved_to=str(self._folder.set_aside()))
            found = verdict.found and reason is None
        self._client = Client(self.place)
        if self._folder is None and current:
            found = current in self._client.names()
        return self._build(current, found, opened, progress)

    def rebuild(self, progress: Progress | None = None) -> tuple[Replica, Opened]:
        """Build the collection anew beside the one in use, and go over to it; needs an attached Chroma."""
        current = self._ledger.setting(self._setting)
        return self._build(current, False, Opened(), progress)

    def _build(
        self, current: str | None, found: bool, opened: Opened, progress: Progress | None
    ) -> tuple[Replica, Opened]:
        assert self._client is not None
        name = current or self._named(1)
        if current and not (found and current == self._named(_generation(current))):
            name = self._named(_generation(current) + 1)
        replica = Replica(self._ledger, self._embedder, self._client.open(name, self._embedder))
        put, deleted = replica.audit(progress)
        if name != current:
            for _ in range(_TRIES):  # others may be writing
                if replica.is_whole():
                    break
                put, deleted = (a + b for a, b in zip((put, deleted), replica.audit(), strict=True))
            else:
                raise ChromaFailed(
                    f"the collection {name!r} does not hold all vectors that were written to it"
                )
            self._switch(current, name)
        return replica, replace(opened, replayed=put, deleted=deleted)

    def _switch(self, current: str | None, name: str) -> None:
        now = self._ledger.settle(self._setting, name, instead_of=current)
        if now != name:
            raise ChromaFailed(f"another process has gone over to the collection {now!r} meanwhile")
        assert self._client is not None
        for other in self._client.names():
            if other.startswith(self._family) and _generation(other) < _generation(name):
                self._client.drop(other)
                self._ledger.clear_marks(f"chroma:{other}")
        if current is not None:
            self._ledger.clear_marks(f"chroma:{current}")

    def detach(self) -> None:
        """Close Chroma, and go on owning the folder."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(ChromaFailed):  # it is given up in any case
                client.close()

    def close(self, *, clean: bool) -> None:
        """Close Chroma and give the folder up."""
        self.detach()
        if self._folder is not None:
            self._folder.release(clean=clean)

    def _named(self, generation: int) -> str:
        return f"{self._family}{_short(self._embedder)}-{generation}"


def _generation(name: str) -> int:
    return int(name.rpartition("-")[2])


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
