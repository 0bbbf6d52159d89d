"""Nearness in meaning: the ledger's vectors, searched exactly or through Chroma, which is only an index."""

from __future__ import annotations

from loadmaster.stores.extras import extra

with extra("stores"):
    import numpy as _numpy  # noqa: F401  (every module below needs it: say at once how to get it)

from loadmaster.stores.vectors.index import VectorIndex
from loadmaster.stores.vectors.report import FolderInUse, IndexState, Meaning, Opened, Synced

__all__ = ["FolderInUse", "IndexState", "Meaning", "Opened", "Synced", "VectorIndex"]
