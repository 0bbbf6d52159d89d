"""Means of the static word vectors inside the ``wordllama`` wheel, read with numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.embedder import EmbedderError, Kind
from loadmaster.stores.embeddings.grid import Grid, cosine, unit_grid
from loadmaster.stores.embeddings.packaged import digest, folder_of, read_tokenizer, whole_characters
from loadmaster.stores.embeddings.tensors import read_tensors
from loadmaster.stores.extras import extra

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PACKAGE = "wordllama"
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_SHAPE = (32_000, 256)
_VOCABULARIES = 8


class StaticEmbedder:
    """The mean of a text's token vectors, from the table of 32,000 tokens in the extra ``static``.

    It knows which words are alike, not how they stand together. Texts are taken whole, as they are
    written. Sums of 16-bit floats are exact in float64, so the same files give the same vectors
    everywhere. The version holds a digest of table and tokenizer. Two embedders share one table.

    Raises:
        ImportError: The extra is not installed; the message says how to install it.
        EmbedderError: The installed package holds another table than this class can read.
    """

    name = "static-wordllama-l2-supercat"
    kind: Kind = "static"

    def __init__(self) -> None:
        self._table, self._tokenizer, self.version = _load()
        self.dimension = _SHAPE[1]

    @staticmethod
    def installed() -> bool:
        """Tell whether the extra is there."""
        return folder_of(_PACKAGE) is not None

    def embed(self, texts: Sequence[str]) -> Grid:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for place, text in enumerate(texts):
            if text.strip():
                tokens = self._tokenizer.encode(whole_characters(text), add_special_tokens=False).ids
                sums[place] = self._table[tokens].sum(axis=0, dtype=np.float64)
        return unit_grid(sums)  # scaled to length 1, a sum is as good as a mean

    def embed_query(self, text: str) -> Grid:
        vector: Grid = self.embed([text])[0]
        return vector

    def similar_words(
        self, words: Sequence[str], vocabulary: Sequence[str], at_least: float, most: int
    ) -> dict[str, list[tuple[str, float]]]:
        """Give for each word the others of a vocabulary that are like it, the most alike first.

        At most ``most``, each with a cosine of ``at_least`` or more (rounded to 1e-6), ties by the
        word. A word is not like itself. A vocabulary that is given again as a tuple of the same
        strings is not embedded again.
        """
        others = tuple(vocabulary)
        rows = _vectors(self, others)
        found: dict[str, list[tuple[str, float]]] = {}
        for word in words:
            scores = cosine(self.embed_query(word), rows)
            near = [(others[at], float(scores[at])) for at in np.flatnonzero(scores >= at_least)]
            unique = dict(pair for pair in near if pair[0] != word)
            found[word] = sorted(unique.items(), key=lambda pair: (-pair[1], pair[0]))[:most]
        return found


@lru_cache(maxsize=_VOCABULARIES)
def _vectors(embedder: StaticEmbedder, words: tuple[str, ...]) -> Grid:
    return embedder.embed(words)


@cache
def _load() -> tuple[npt.NDArray[np.float16], Tokenizer, str]:
    folder = folder_of(_PACKAGE)
    with extra("static"):
        if folder is None:
            raise ModuleNotFoundError(name=_PACKAGE)
        tokenizer = read_tokenizer(folder / _TOKENIZER)
    tensors = read_tensors(folder / _TABLE)
    table = tensors.get("embedding.weight")
    if table is None or table.dtype != np.float16 or table.shape != _SHAPE:
        found = f"not among {sorted(tensors)}" if table is None else f"{table.dtype} {table.shape}"
        raise EmbedderError(
            f"the table in {_PACKAGE} is {found}, not float16 {_SHAPE}; install wordllama 0.4, with which "
            "this version of Loadmaster was tested"
        )
    if tokenizer.get_vocab_size() != _SHAPE[0]:
        raise EmbedderError(
            f"the tokenizer in {_PACKAGE} knows {tokenizer.get_vocab_size()} tokens, but its table has "
            f"{_SHAPE[0]}; reinstall the package"
        )
    return table.view(np.float16), tokenizer, f"1-{digest(folder / _TABLE, folder / _TOKENIZER)}"
