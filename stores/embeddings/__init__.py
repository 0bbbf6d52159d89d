"""Vectors of texts from any embedder, on one exact integer grid; offline embedders come along.

`default_embedder` depends on what is installed; name an embedder yourself to pin it.
"""

from __future__ import annotations

from loadmaster.stores.extras import extra

with extra("stores"):
    import numpy as _numpy  # noqa: F401  (every module below needs it: say at once how to get it)

from loadmaster.stores.embeddings.adapters import (
    FrameworkEmbedder,
    from_chroma,
    from_langchain,
    from_llamaindex,
)
from loadmaster.stores.embeddings.choice import default_embedder
from loadmaster.stores.embeddings.embedder import (
    Embedder,
    EmbedderChanged,
    EmbedderError,
    EmbedderId,
    EmbedderUnavailable,
    identity,
)
from loadmaster.stores.embeddings.grid import GRID, cosine, unit_grid
from loadmaster.stores.embeddings.hashed import HashedEmbedder
from loadmaster.stores.embeddings.static import StaticEmbedder

__all__ = [
    "GRID",
    "Embedder",
    "EmbedderChanged",
    "EmbedderError",
    "EmbedderId",
    "EmbedderUnavailable",
    "FrameworkEmbedder",
    "HashedEmbedder",
    "StaticEmbedder",
    "cosine",
    "default_embedder",
    "from_chroma",
    "from_langchain",
    "from_llamaindex",
    "identity",
    "unit_grid",
]
