"""What an embedder is, how it is told apart from others, and what goes wrong with embedders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from loadmaster.stores.embeddings.grid import Grid
from loadmaster.stores.port import SourceUnavailable, StoreError

Kind = Literal["lexical", "static", "model"]
"""What nearness means: shared wording, a mean of word vectors, or a model that has read the text."""

_LONGEST_ID = 200  # the ledger's column


class EmbedderError(StoreError, ValueError):
    """An embedder was set up wrongly, or gave something that is no vector; the message says what to do."""


class EmbedderUnavailable(SourceUnavailable, EmbedderError):
    """The model behind an embedder failed or could not be reached; what it raised is the cause."""


class EmbedderChanged(EmbedderError):
    """Vectors of one embedder would be compared with those of another, whose scores would mean nothing."""

    def __init__(self, where: str, stored: str, given: str) -> None:
        super().__init__(
            f"{where} holds vectors of {stored}, but was opened with {given}; open it with the former "
            "embedder, or embed its records anew with the latter"
        )
        self.where = where
        self.stored = stored
        self.given = given


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors on the grid of `GRID` steps.

    The same text gives the same vector alone and in any batch. A text with nothing in it gives zeros.
    ``version`` changes whenever any vector could, so that name, version and dimension are an identity.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def kind(self) -> Kind: ...

    def embed(self, texts: Sequence[str]) -> Grid:
        """Give one row per text."""

    def embed_query(self, text: str) -> Grid:
        """Give the vector of a question, which some models embed otherwise than a passage."""


@dataclass(frozen=True, slots=True, order=True)
class EmbedderId:
    """Which embedder made a vector. Its text, ``name@version/dimension``, is what is stored.

    Raises:
        EmbedderError: The name or version is empty, the name holds an ``@``, one of them holds white
            space or what cannot be printed, the dimension is below 1, or the text is over 200 characters.
    """

    name: str
    version: str
    dimension: int

    def __post_init__(self) -> None:
        for part, text in (("name", self.name), ("version", self.version)):
            if not text or not text.isprintable() or any(sign.isspace() for sign in text):
                raise EmbedderError(
                    f"the {part} {text!r} of an embedder must be printable, without white space, not empty"
                )
        if "@" in self.name:
            raise EmbedderError(f"the name {self.name!r} of an embedder holds an @; put it into the version")
        if self.dimension < 1:
            raise EmbedderError(f"{self.name}: a vector has at least 1 component, not {self.dimension}")
        if len(str(self)) > _LONGEST_ID:
            raise EmbedderError(f"{self.name}: name and version are longer than {_LONGEST_ID}; shorten them")

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.dimension}"


def identity(embedder: Embedder) -> EmbedderId:
    """Give what must be equal for two vectors to be comparable."""
    return EmbedderId(embedder.name, embedder.version, embedder.dimension)
