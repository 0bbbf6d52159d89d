"""Embedders of LangChain, LlamaIndex and Chroma, plugged in as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.embedder import (
    EmbedderError,
    EmbedderId,
    EmbedderUnavailable,
    Kind,
)
from loadmaster.stores.embeddings.grid import Grid, unit_grid

_Vector = Sequence[float] | npt.NDArray[np.floating]
_AT_ONCE = 256
_MODEL_ATTRIBUTES = ("model_name", "model", "model_id", "MODEL_NAME")
_NO_MODEL = ("", "unknown")  # LlamaIndex's default name says that nothing is known


class LangChainEmbeddings(Protocol):
    """The part of LangChain's ``Embeddings`` that is used."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...
    def embed_query(self, text: str) -> list[float]: ...


class LlamaIndexEmbedding(Protocol):
    """The part of LlamaIndex's ``BaseEmbedding`` that is used."""

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]: ...
    def get_query_embedding(self, query: str) -> list[float]: ...


class ChromaFunction(Protocol):
    """The part of Chroma's ``EmbeddingFunction`` that is used."""

    def __call__(self, input: list[str]) -> Sequence[_Vector]: ...


class FrameworkEmbedder:
    """A framework's embedder, whose vectors are checked and put on the grid.

    Texts go to it in batches, in order; texts of white space alone do not go to it and give zeros.
    Whether one text gives the same vector in any batch is up to the model. Made by `from_langchain`,
    `from_llamaindex` and `from_chroma`, which say what is raised.
    """

    kind: Kind = "model"

    def __init__(
        self,
        *,
        name: str,
        version: str,
        dimension: int | None,
        passages: Callable[[list[str]], Sequence[_Vector]],
        query: Callable[[str], _Vector],
    ) -> None:
        self.name = name
        self.version = version
        self._passages = passages
        self._query = query
        EmbedderId(name, version, dimension or 1)  # refuses unfit names before a model is asked
        if dimension is None:
            dimension = self._row(self._ask(self._one, ["dimension"], "the probe")[0], None, "the probe").size
        self.dimension = dimension
        EmbedderId(name, version, dimension)

    def embed(self, texts: Sequence[str]) -> Grid:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float64)
        sent = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(sent), _AT_ONCE):
            places = sent[start : start + _AT_ONCE]
            what = f"texts {places[0]} to {places[-1]} of {len(texts)} (counted from 0)"
            vectors = self._ask(self._passages, [texts[place] for place in places], what)
            for place, vector in zip(places, vectors, strict=True):
                one = f"text {place} of {len(texts)} (counted from 0)"
                rows[place] = self._row(vector, self.dimension, one)
        return unit_grid(rows)

    def embed_query(self, text: str) -> Grid:
        row = np.zeros((1, self.dimension), dtype=np.float64)
        if text.strip():
            row[0] = self._row(self._ask(self._one, [text], "the query")[0], self.dimension, "the query")
        vector: Grid = unit_grid(row)[0]
        return vector

    def _one(self, texts: list[str]) -> Sequence[_Vector]:
        return [self._query(texts[0])]

    def _ask(
        self, ask: Callable[[list[str]], Sequence[_Vector] | None], texts: list[str], what: str
    ) -> Sequence[_Vector]:
        """Ask the framework for vectors; what it raises can be anything, from its network to its checks."""
        try:
            vectors = ask(texts)
        except Exception as error:
            # Its text may hold an address or a key: the kind will do, the rest is in the cause.
            raise EmbedderUnavailable(self.name, f"failed on {what} with {type(error).__name__}") from error
        if vectors is None or len(vectors) != len(texts):
            given = "none" if vectors is None else str(len(vectors))
            raise EmbedderError(f"{self.name} gave {given} vectors for {len(texts)} texts ({what})")
        return vectors

    def _row(self, vector: _Vector, dimension: int | None, what: str) -> npt.NDArray[np.float64]:
        """Check that what came back is one vector of finite numbers."""
        try:
            row = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise EmbedderError(f"{self.name} gave no vector of numbers for {what}: {error}") from error
        if row.ndim != 1 or row.size == 0 or (dimension is not None and row.size != dimension):
            wanted = "one dimension" if dimension is None else f"{dimension} components"
            raise EmbedderError(f"{self.name} gave the shape {row.shape} for {what}, not {wanted}")
        if not np.isfinite(row).all():
            at = int(np.flatnonzero(~np.isfinite(row))[0])
            raise EmbedderError(f"{self.name} gave {row[at]} as component {at} of {what}; mend the model")
        return row


def from_langchain(
    embeddings: LangChainEmbeddings,
    *,
    name: str | None = None,
    version: str | None = None,
    dimension: int | None = None,
) -> FrameworkEmbedder:
    """Plug in a LangChain ``Embeddings``, synchronously.

    Args:
        embeddings: Any object with ``embed_documents`` and ``embed_query``.
        name: Default: the name of its class.
        version: Default: the name of the model that it uses. A model that changes under its name
            needs a version of your own.
        dimension: Default: that of one query, which is sent at once.

    Raises:
        EmbedderError: No version is given and the object names no model; or, when texts are embedded,
            the number of vectors, a vector's dimension or a component (not finite) is wrong.
        EmbedderUnavailable: The object raised; its error is the cause.
    """
    return FrameworkEmbedder(
        name=name or type(embeddings).__name__,
        version=version or _model_of(embeddings),
        dimension=dimension,
        passages=embeddings.embed_documents,
        query=embeddings.embed_query,
    )


def from_llamaindex(
    embedding: LlamaIndexEmbedding,
    *,
    name: str | None = None,
    version: str | None = None,
    dimension: int | None = None,
) -> FrameworkEmbedder:
    """Plug in a LlamaIndex ``BaseEmbedding``. The rest is as for `from_langchain`."""
    return FrameworkEmbedder(
        name=name or type(embedding).__name__,
        version=version or _model_of(embedding),
        dimension=dimension,
        passages=embedding.get_text_embedding_batch,
        query=embedding.get_query_embedding,
    )


def from_chroma(
    function: ChromaFunction,
    *,
    name: str | None = None,
    version: str | None = None,
    dimension: int | None = None,
) -> FrameworkEmbedder:
    """Plug in a Chroma ``EmbeddingFunction``, with its ``embed_query`` where it has one.

    The rest is as for `from_langchain`.
    """
    of_query = getattr(function, "embed_query", function)
    return FrameworkEmbedder(
        name=name or type(function).__name__,
        version=version or _model_of(function),
        dimension=dimension,
        passages=lambda texts: function(input=texts),
        query=lambda text: _only(of_query(input=[text])),
    )


def _only(vectors: Sequence[_Vector]) -> _Vector:
    (vector,) = vectors
    return vector


def _model_of(embedder: object) -> str:
    for attribute in _MODEL_ATTRIBUTES:
        model = getattr(embedder, attribute, None)
        if isinstance(model, str) and model not in _NO_MODEL:
            return model
    raise EmbedderError(
        f"{type(embedder).__name__} does not say which model it uses; pass version=…, and change it whenever "
        "the model changes, so that vectors of two models are never compared"
    )
