"""What an index of vectors tells about its answers, its writes and itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from loadmaster.stores.port import StoreError

Mode = Literal["auto", "exact", "ann"]

Progress = Callable[[int, int], None]
"""Called with how many records are done, and how many there are to do."""


class FolderInUse(StoreError):
    """Another process, or another index in this one, owns the Chroma folder."""

    def __init__(self, folder: str, pid: int | None) -> None:
        owner = "another process" if pid is None else f"process {pid}"
        super().__init__(
            f"the Chroma folder {folder!r} is in use by {owner}, and two writers would ruin it; close the "
            "index there, or let all processes share a Chroma server (chroma='http://host:port')"
        )
        self.folder = folder
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Meaning:
    """Which records are nearest to a query.

    Attributes:
        scores: Cosines in -1..1, rounded to 1e-6, by record id; the nearest first, equals by id.
        mode: ``exact`` if every visible record was compared, ``ann`` if an approximate search chose
            which: then a record may be missing, and another build of the index may give others.
        degraded: Why this is not as good as it should be; None if it is.
    """

    scores: Mapping[str, float]
    mode: Literal["exact", "ann"]
    degraded: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a synchronisation did.

    Attributes:
        embedded: Records that got a vector, which the ledger now keeps.
        indexed: Vectors written to Chroma.
        deleted: Vectors deleted from Chroma, because their records have been erased.
        waiting: Records that still have no vector, because the embedder failed.
        degraded: Why the index is not as far as the ledger; None if it is.
    """

    embedded: int = 0
    indexed: int = 0
    deleted: int = 0
    waiting: int = 0
    degraded: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What an existing index was like when it was opened, or opened again after a fault.

    Attributes:
        replayed: Vectors that Chroma lacked and got from the ledger.
        deleted: Vectors that Chroma had and the ledger has not.
        ruined: Why the folder could not be used; None if it could.
        moved_to: Where the ruined folder was moved. It is not deleted, and holds vectors of whatever
            had not been erased by then; delete it when nobody wants to look into it.
    """

    replayed: int = 0
    deleted: int = 0
    ruined: str | None = None
    moved_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How an index is.

    Attributes:
        embedder: The identity of the embedder.
        chroma: The folder or server; None if vectors are only in the ledger.
        collection: The collection in use; None while there is none.
        degraded: Why Chroma is not used now; None if it is, or if none was asked for.
        opened: What was found when Chroma was last opened.
        set_aside: Ruined folders that were moved aside and are still there.
    """

    embedder: str
    chroma: str | None
    collection: str | None
    degraded: str | None
    opened: Opened
    set_aside: tuple[str, ...] = ()
