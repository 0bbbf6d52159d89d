from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadmaster.stores.embeddings import (
    Embedder,
    EmbedderError,
    HashedEmbedder,
    StaticEmbedder,
    cosine,
    identity,
    static,
)
from loadmaster.stores.embeddings.packaged import folder_of
from loadmaster.stores.embeddings.tensors import read_tensors

pytestmark = pytest.mark.skipif(not StaticEmbedder.installed(), reason="the extra `static` is not installed")

TEXTS = ["Ana moved to Berlin.", "", "Café déjà vu", "我喜欢喝绿茶", "x" * 5000, "broken \ud800 text", "😀"]
IN_A_PROCESS = """
import hashlib
from loadmaster.stores.embeddings import StaticEmbedder
print(hashlib.sha256(StaticEmbedder().embed({texts!r}).tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def test_it_is_an_embedder_whose_version_names_its_files(embedder: StaticEmbedder) -> None:
    plugged: Embedder = embedder
    assert plugged.kind == "static"
    assert (embedder.dimension, embedder.embed(TEXTS).shape) == (256, (len(TEXTS), 256))
    assert str(identity(embedder)).startswith("static-wordllama-l2-supercat@1-")


def test_it_reads_the_table_that_the_package_reads(embedder: StaticEmbedder) -> None:
    """The reference: the package's own tokenizer file and table, the mean taken as the package takes it."""
    from tokenizers import Tokenizer

    folder = folder_of("wordllama")
    assert folder is not None
    table = read_tensors(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    text = "refunds requested by customers"
    rows = table[tokenizer.encode(text, add_special_tokens=False).ids].astype(np.float64)
    mean = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
    assert np.abs(embedder.embed_query(text) / 32767 - mean).max() < 1 / 32767


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_text_has_the_same_vector_alone_and_in_any_batch(texts: list[str]) -> None:
    embedder = StaticEmbedder()
    rows = embedder.embed(texts)
    for text, row in zip(texts, rows, strict=True):
        assert np.array_equal(row, embedder.embed_query(text))
        assert row.any() == bool(text.strip())
    assert np.array_equal(embedder.embed(texts[::-1]), rows[::-1])


def test_every_process_gives_the_same_bytes(embedder: StaticEmbedder) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS.format(texts=TEXTS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "RAYON_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    assert ran.stdout.strip() == hashlib.sha256(embedder.embed(TEXTS).tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("query", "paraphrase", "unrelated"),
    [
        ("refunds requested by customers", "clients who want their money back", "the cat sat on the mat"),
        ("Where does she live now?", "Ana's new home is in Berlin", "The invoice was paid by card"),
        ("He is afraid of dogs", "canines frighten him", "the train leaves at noon"),
    ],
)
def test_a_paraphrase_scores_above_an_unrelated_text(
    embedder: StaticEmbedder, query: str, paraphrase: str, unrelated: str
) -> None:
    near, far = cosine(embedder.embed_query(query), embedder.embed([paraphrase, unrelated]))
    assert near > far + 0.1
    lexical = HashedEmbedder()
    assert near > cosine(lexical.embed_query(query), lexical.embed([paraphrase]))[0]


def test_similar_words_are_named_in_order_without_the_word_itself(embedder: StaticEmbedder) -> None:
    words = ["truck", "banana", "vehicle", "vehicle", "car", "sad", "glad", "automobile"]
    found = embedder.similar_words(["car", "happy", "qqqq"], words, at_least=0.4, most=2)
    assert [word for word, _ in found["car"]] == ["vehicle", "automobile"]
    assert next(word for word, _ in found["happy"]) == "glad" and found["qqqq"] == []
    assert all(0.4 <= score <= 1 for near in found.values() for _, score in near)
    assert found == embedder.similar_words(["qqqq", "car", "happy"], words[::-1], at_least=0.4, most=2)
    assert embedder.similar_words(["car"], [], at_least=0, most=3) == {"car": []}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package's data, to be damaged."""
    original = folder_of("wordllama")
    assert original is not None
    for part in ("weights", "tokenizers"):
        shutil.copytree(original / part, tmp_path / part)
    monkeypatch.setattr(static, "folder_of", lambda _: tmp_path)
    static._load.cache_clear()
    yield tmp_path
    static._load.cache_clear()


def test_the_same_files_elsewhere_are_the_same_embedder(copied: Path, embedder: StaticEmbedder) -> None:
    assert identity(StaticEmbedder()) == identity(embedder)


def test_another_table_of_that_shape_is_another_embedder(copied: Path, embedder: StaticEmbedder) -> None:
    with (copied / "weights" / "l2_supercat_256.safetensors").open("r+b") as table:
        table.seek(1000)
        table.write(b"\x00\x00")
    assert identity(StaticEmbedder()) != identity(embedder)


def test_a_missing_tokenizer_is_named(copied: Path) -> None:
    (copied / "tokenizers" / "l2_supercat_tokenizer_config.json").unlink()
    with pytest.raises(EmbedderError, match=r"l2_supercat_tokenizer_config\.json is missing"):
        StaticEmbedder()


def test_a_ruined_tokenizer_is_named(copied: Path) -> None:
    (copied / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(EmbedderError, match=r"l2_supercat_tokenizer_config.json cannot be read"):
        StaticEmbedder()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read as safetensors"),
        (b"\xff" * 40, "cannot be read as safetensors"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "cannot be read as safetensors"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}", "not among"),
    ],
)
def test_a_ruined_table_is_refused(copied: Path, content: bytes, said: str) -> None:
    (copied / "weights" / "l2_supercat_256.safetensors").write_bytes(content)
    with pytest.raises(EmbedderError, match=said):
        StaticEmbedder()


def test_a_table_cut_short_is_refused(copied: Path) -> None:
    with (copied / "weights" / "l2_supercat_256.safetensors").open("r+b") as table:
        table.truncate(1_000_000)
    with pytest.raises(EmbedderError, match="cannot be read as safetensors"):
        StaticEmbedder()


def test_a_table_of_another_shape_is_refused(copied: Path) -> None:
    header = b'{"embedding.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}'
    content = len(header).to_bytes(8, "little") + header + bytes(8)
    (copied / "weights" / "l2_supercat_256.safetensors").write_bytes(content)
    with pytest.raises(EmbedderError, match=r"float16 \(2, 2\).*wordllama 0.4"):
        StaticEmbedder()
