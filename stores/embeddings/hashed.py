"""The embedder that needs nothing: hashed words and character n-grams. It measures wording, not meaning."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.embedder import EmbedderError, Kind
from loadmaster.stores.embeddings.grid import Grid, unit_grid

_WORD = re.compile(r"\w+")
_SIZES = (3, 4, 5)
_LONGEST_WORD = 64  # of longer runs (encoded data, mostly) only the beginning is cut into n-grams
_STEPS = 4096  # weights are whole numbers of these, so that sums are exact in any order
_MOST_COMPONENTS = 1 << 16


class HashedEmbedder:
    """Words and their character 3-5-grams, each added to or taken from one of ``dimension`` components.

    Two texts are near if they share words or pieces of words: "lexical", whatever they mean. A word
    that occurs n times weighs the square root of n (sublinear, and correctly rounded everywhere, which
    a logarithm is not). There are no word statistics, since an embedder knows no corpus. Texts without
    a letter or digit have nothing in them. The same vectors in every process and on every machine.

    Raises:
        EmbedderError: The dimension is not within 8..65,536.
    """

    name = "hashed-words-and-3-5-grams"
    version = "1"
    kind: Kind = "lexical"

    def __init__(self, dimension: int = 512) -> None:
        if not 8 <= dimension <= _MOST_COMPONENTS:
            raise EmbedderError(f"a hashed vector has 8 to {_MOST_COMPONENTS} components, not {dimension}")
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Grid:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for place, text in enumerate(texts):
            words = Counter(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
            if not words:
                continue
            places, signs = zip(*(_features(word, self.dimension) for word in words), strict=True)
            weights = [round(math.sqrt(count) * _STEPS) for count in words.values()]
            signed = np.concatenate([sign * weight for sign, weight in zip(signs, weights, strict=True)])
            rows[place] = np.bincount(np.concatenate(places), weights=signed, minlength=self.dimension)
        return unit_grid(rows)

    def embed_query(self, text: str) -> Grid:
        vector: Grid = self.embed([text])[0]
        return vector


@lru_cache(maxsize=1 << 15)
def _features(word: str, dimension: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Give the components that a word touches, one per feature, and whether it adds (1) or takes (-1)."""
    edged = f"<{word[:_LONGEST_WORD]}>"
    pieces = [edged[at : at + size] for size in _SIZES for at in range(len(edged) - size + 1)]
    hashes = [_hash(f"w {word}"), *(_hash(f"g {piece}") for piece in pieces)]
    places = np.array([value % dimension for value in hashes], dtype=np.int64)
    signs = np.array([1 if value >> 63 else -1 for value in hashes], dtype=np.int64)
    return places, signs


def _hash(feature: str) -> int:
    """Hash to 64 bits, the same in every process. Half a surrogate pair is hashed as it is."""
    return int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest())
