"""Chroma behind few calls that fail in one way: an embedded folder, or a server by URL."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection as Group
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.grid import GRID, Grid
from loadmaster.stores.extras import extra
from loadmaster.stores.port import StoreError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_MOST_AT_ONCE = 5461  # Chroma's own limit for a batch where it does not name one
_PAGE = 5000
_TRIES = 5  # to make a collection that other processes are making, too


class ChromaFailed(StoreError):
    """Chroma raised something, or is not what it should be; the ledger answers instead."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn whatever Chroma raises into `ChromaFailed`, panics of its compiled part too.

    Raises:
        ChromaFailed: Chroma failed.
    """
    try:
        yield
    except (ChromaFailed, ImportError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic is no Exception
        text = str(error).strip().splitlines()
        raise ChromaFailed(f"Chroma failed: {type(error).__name__}: {text[0] if text else ''}") from error


def is_server(place: str) -> bool:
    """Say whether a place is a server's URL; else it is a folder."""
    return place.startswith(("http://", "https://"))


class Client:
    """An open Chroma.

    Raises:
        ChromaFailed: It cannot be opened or reached.
        ImportError: Chroma is not installed; the message names the extra.
    """

    def __init__(self, place: str) -> None:
        with extra("chroma"):
            import chromadb
            from chromadb.config import Settings
        settings = Settings(anonymized_telemetry=False)
        self._folder = None if is_server(place) else Path(place)
        with plain_errors():
            if self._folder is None:
                url = urlsplit(place)
                secure = url.scheme == "https"
                port = url.port or (443 if secure else 8000)
                host = url.hostname or "localhost"
                self._client: ClientAPI = chromadb.HttpClient(host, port=port, ssl=secure, settings=settings)
            else:
                self._client = chromadb.PersistentClient(str(self._folder), settings=settings)
            self._batch = min(self._client.get_max_batch_size() or _MOST_AT_ONCE, _MOST_AT_ONCE)

    def names(self) -> list[str]:
        """Give the names of all collections."""
        names: list[str] = []
        with plain_errors():
            while page := self._client.list_collections(limit=100, offset=len(names)):
                names += [collection.name for collection in page]
        return sorted(names)

    def open(self, name: str, embedder: str) -> Vectors:
        """Open a collection of an embedder's vectors, or make it."""
        collection = self._made(name, embedder)
        stored = (collection.metadata or {}).get("embedder")
        if stored != embedder:
            raise ChromaFailed(f"the collection {name!r} holds vectors of {stored!r}, not of {embedder!r}")
        return Vectors(collection, self._batch)

    def _made(self, name: str, embedder: str, tries: int = _TRIES) -> Collection:
        try:
            with plain_errors():
                return self._client.get_or_create_collection(
                    name,
                    embedding_function=None,
                    metadata={"embedder": embedder},
                    configuration={"hnsw": {"space": "cosine"}},
                )
        except ChromaFailed:
            if tries == 1:
                raise
        return self._made(name, embedder, tries - 1)

    def find(self, name: str) -> Vectors | None:
        """Give a collection, if there is one of this name."""
        if name not in self.names():
            return None
        with plain_errors():
            return Vectors(self._client.get_collection(name, embedding_function=None), self._batch)

    def drop(self, name: str) -> None:
        """Remove a collection; from a folder also its files, which Chroma would leave there."""
        with plain_errors():
            segments = self._segments(self._client.get_collection(name, embedding_function=None).id)
            self._client.delete_collection(name)
        for segment in segments:
            shutil.rmtree(segment, ignore_errors=True)

    def _segments(self, collection: object) -> list[Path]:
        if self._folder is None:
            return []
        try:
            with closing(sqlite3.connect(self._folder / "chroma.sqlite3")) as connection:
                rows = connection.execute("SELECT id FROM segments WHERE collection = ?", (str(collection),))
                return [self._folder / row[0] for row in rows if row[0]]
        except sqlite3.Error:  # another release of Chroma keeps it otherwise: leave its files alone
            return []

    def close(self) -> None:
        """Release the files or the connection."""
        close = getattr(self._client, "close", None)  # absent from the protocol, and from early releases
        if close is not None:
            with plain_errors():
                close()


class Vectors:
    """One collection: vectors by record id, each with its scope's key and its kind, and never a text."""

    def __init__(self, collection: Collection, batch: int) -> None:
        self._collection = collection
        self._batch = batch

    @property
    def name(self) -> str:
        return str(self._collection.name)

    def count(self) -> int:
        """Give how many vectors there are."""
        with plain_errors():
            return int(self._collection.count())

    def put(self, ids: Sequence[str], vectors: Grid, scopes: Sequence[str], kinds: Sequence[str]) -> None:
        """Write vectors; one that is there already is replaced."""
        floats = _floats(vectors)
        for start in range(0, len(ids), self._batch):
            part = slice(start, start + self._batch)
            metadatas: list[Any] = [
                {"scope": scope, "kind": kind} for scope, kind in zip(scopes[part], kinds[part], strict=True)
            ]
            with plain_errors():
                self._collection.upsert(ids=list(ids[part]), embeddings=floats[part], metadatas=metadatas)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete vectors; those that are not there are passed over."""
        for start in range(0, len(ids), self._batch):
            with plain_errors():
                self._collection.delete(ids=list(ids[start : start + self._batch]))

    def held(self, ids: Sequence[str]) -> set[str]:
        """Give which of these ids have a vector here."""
        found: set[str] = set()
        for start in range(0, len(ids), self._batch):
            with plain_errors():
                found.update(
                    self._collection.get(ids=list(ids[start : start + self._batch]), include=[])["ids"]
                )
        return found

    def in_scope(self, key: str) -> set[str]:
        """Give the ids of all vectors of a scope."""
        with plain_errors():
            return set(self._collection.get(where={"scope": key}, include=[])["ids"])

    def everything(self) -> dict[str, set[str]]:
        """Give the ids of all vectors by their scope's key."""
        held: dict[str, set[str]] = {}
        offset = 0
        while True:
            with plain_errors():
                page = self._collection.get(include=["metadatas"], limit=_PAGE, offset=offset)
            for name, metadata in zip(page["ids"], page["metadatas"] or [], strict=True):
                held.setdefault(str((metadata or {}).get("scope")), set()).add(name)
            offset += len(page["ids"])
            if len(page["ids"]) < _PAGE:
                return held

    def pages(self, size: int) -> Iterator[tuple[list[str], npt.NDArray[np.float32]]]:
        """Give all ids with their vectors, some at a time."""
        offset = 0
        while True:
            with plain_errors():
                page = self._collection.get(include=["embeddings"], limit=size, offset=offset)
            if not page["ids"]:
                return
            yield page["ids"], np.asarray(page["embeddings"], dtype=np.float32)
            offset += len(page["ids"])

    def nearest(
        self, vector: Grid, count: int, *, keys: Sequence[str] | None = None, kinds: Group[str] | None = None
    ) -> list[str]:
        """Give about the nearest ids, at most ``count``; None asks for all scopes, or all kinds."""
        conditions: list[Any] = []
        for field, values in (("scope", keys), ("kind", kinds)):
            if values is not None:
                if not values:
                    return []
                conditions.append({field: {"$in": sorted(values)}})
        where = {"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None)
        with plain_errors():
            found = self._collection.query(
                query_embeddings=_floats(vector[None, :]),
                n_results=max(count, 1),
                where=where,
                include=[],
            )
        return list(found["ids"][0])


def _floats(vectors: Grid) -> npt.NDArray[np.float32]:
    """Give vectors as Chroma takes them; they are exact in the ledger alone."""
    floats: npt.NDArray[np.float32] = vectors.astype(np.float32) / np.float32(GRID)
    return floats
