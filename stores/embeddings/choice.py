"""Which embedder is used where none is named."""

from __future__ import annotations

from loadmaster.stores.embeddings.embedder import Embedder
from loadmaster.stores.embeddings.hashed import HashedEmbedder
from loadmaster.stores.embeddings.static import StaticEmbedder


def default_embedder() -> Embedder:
    """Give the static word vectors if the extra ``static`` is installed, else hashed words and n-grams.

    The choice depends on what is installed, and shows in the embedder's ``name``. What was stored with
    one is refused by the other (`EmbedderChanged`). To pin it, construct `StaticEmbedder` or
    `HashedEmbedder` yourself. Nothing is ever downloaded.

    Raises:
        EmbedderError: The extra is installed, but not as this version of Loadmaster can read it.
    """
    return StaticEmbedder() if StaticEmbedder.installed() else HashedEmbedder()
