from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadmaster.stores.embeddings import EmbedderError, HashedEmbedder, cosine

CASES = json.loads((Path(__file__).parent / "hashed.json").read_text(encoding="utf-8"))
TEXTS = [case["text"] for case in CASES]
IN_A_PROCESS = """
import hashlib, json, sys
from loadmaster.stores.embeddings import HashedEmbedder
rows = HashedEmbedder().embed(json.load(sys.stdin))
print(hashlib.sha256(rows.astype("<i2").tobytes()).hexdigest())
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_vectors_are_those_of_version_1(case: dict[str, str]) -> None:
    """A digest that must change means a new version, or else stored vectors would be compared wrongly."""
    assert HashedEmbedder.version == "1"
    row = HashedEmbedder().embed_query(case["text"])
    assert hashlib.sha256(row.astype("<i2").tobytes()).hexdigest()[:16] == case["digest"]


@given(st.lists(st.text(), max_size=6))
def test_a_text_has_the_same_vector_alone_and_in_any_batch(texts: list[str]) -> None:
    embedder = HashedEmbedder(64)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 64) and rows.dtype == np.int16
    for text, row in zip(texts, rows, strict=True):
        assert np.array_equal(row, embedder.embed_query(text))
    assert np.array_equal(embedder.embed(texts[::-1]), rows[::-1])


@given(st.permutations(["the", "moved", "house", "in", "Lyon", "and", "the", "old", "house"]))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    expected = HashedEmbedder().embed_query("the moved house in Lyon and the old house")
    assert np.array_equal(HashedEmbedder().embed_query(" ".join(words)), expected)


def test_every_process_gives_the_same_bytes() -> None:
    def digest(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS],
            input=json.dumps(TEXTS),
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        return ran.stdout.strip()

    here = hashlib.sha256(HashedEmbedder().embed(TEXTS).astype("<i2").tobytes()).hexdigest()
    assert {digest("0"), digest("1")} == {here}


def test_shared_wording_is_near_and_a_paraphrase_in_other_words_is_not() -> None:
    """What the kind "lexical" says: this embedder must not be taken for one that knows meaning."""
    embedder = HashedEmbedder()
    query = embedder.embed_query("customer refund requests")
    inflected, paraphrase, unrelated = cosine(
        query,
        embedder.embed(["The customers requested refunds", "Clients want money back", "A cat sat on a mat"]),
    )
    assert inflected > 0.4 and max(paraphrase, unrelated) < 0.2
    assert embedder.kind == "lexical"


def test_letters_are_compared_without_case_and_width() -> None:
    rows = HashedEmbedder().embed(["STRASSE Ｌｙｏｎ", "straße lyon"])
    assert np.array_equal(rows[0], rows[1]) and rows[0].any()


@pytest.mark.parametrize("text", ["", "  \n", "?! — …", "😀"])
def test_a_text_with_nothing_in_it_is_zero(text: str) -> None:
    assert not HashedEmbedder().embed_query(text).any()


def test_a_word_that_occurs_often_weighs_less_than_in_proportion() -> None:
    once, often, alone = HashedEmbedder().embed(["lyon paris", "lyon paris paris paris paris", "paris"])
    assert 0.8 < cosine(alone, often[None])[0] < 0.97 and cosine(alone, once[None])[0] < 0.85


def test_a_huge_word_takes_no_huge_memory() -> None:
    run = "a9" * 500_000
    near, far = HashedEmbedder().embed([run + "x", "b8" * 500_000])
    score = cosine(HashedEmbedder().embed_query(run), np.stack([near, far]))
    assert score[0] > 0.9 > score[1]


@pytest.mark.parametrize("dimension", [0, 7, -1, 1 << 17])
def test_unfit_dimensions_are_refused(dimension: int) -> None:
    with pytest.raises(EmbedderError, match=str(dimension)):
        HashedEmbedder(dimension)
