from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding

from loadmaster.stores.embeddings import (
    Embedder,
    EmbedderError,
    EmbedderUnavailable,
    FrameworkEmbedder,
    HashedEmbedder,
    cosine,
    from_chroma,
    from_langchain,
    from_llamaindex,
    identity,
    unit_grid,
)
from loadmaster.stores.port import SourceUnavailable

TEXTS = ["Ana moved to Berlin.", "", "The invoice was paid.", "Ana moved to Berlin.", " \n"]


class Hashed(Embeddings):
    """A LangChain embedding of a user's own, on vectors that are known."""

    model = "hashed-64"

    def __init__(self, spoil: Callable[[list[list[float]]], Any] = lambda vectors: vectors) -> None:
        self.spoil = spoil
        self.batches: list[int] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        vectors: list[list[float]] = (HashedEmbedder(64).embed(texts) * 3.5).tolist()
        return self.spoil(vectors)  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Asymmetric(BaseEmbedding):
    """A LlamaIndex embedding that embeds questions otherwise than passages."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0, float(len(text)), 0.0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return [0.0, 0.0, 2.0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def test_a_langchain_embedding_is_put_on_the_grid() -> None:
    model = DeterministicFakeEmbedding(size=48)
    embedder = from_langchain(model, version="fake-1")
    plugged: Embedder = embedder
    assert str(identity(plugged)) == "DeterministicFakeEmbedding@fake-1/48"
    rows = embedder.embed(TEXTS)
    assert np.array_equal(rows[[0, 2]], unit_grid(np.array(model.embed_documents([TEXTS[0], TEXTS[2]]))))
    assert np.array_equal(rows[0], rows[3]) and not rows[[1, 4]].any()
    query = unit_grid(np.array([model.embed_query(TEXTS[0])]))[0]
    assert np.array_equal(embedder.embed_query(TEXTS[0]), query)
    assert np.array_equal(embedder.embed(TEXTS[::-1]), rows[::-1])


def test_a_llamaindex_embedding_is_put_on_the_grid() -> None:
    embedder = from_llamaindex(MockEmbedding(embed_dim=16), version="mock")
    assert str(identity(embedder)) == "MockEmbedding@mock/16"
    assert np.array_equal(embedder.embed(TEXTS[:1]), unit_grid(np.full((1, 16), 0.5)))


def test_a_question_is_embedded_as_the_model_embeds_questions() -> None:
    embedder = from_llamaindex(Asymmetric(model_name="asymmetric-2"))
    assert str(identity(embedder)) == "Asymmetric@asymmetric-2/3"
    assert embedder.embed_query("who?").tolist() == [0, 0, 32767]
    assert cosine(embedder.embed_query("who?"), embedder.embed(["she"])).tolist() == [0.0]


def test_a_chroma_function_is_put_on_the_grid() -> None:
    types = pytest.importorskip("chromadb.api.types", reason="the extra `chroma` is not installed")

    class Lengths(types.EmbeddingFunction[list[str]]):  # type: ignore[misc, name-defined]
        MODEL_NAME = "lengths"

        def __init__(self) -> None: ...

        def __call__(self, input: list[str]) -> Sequence[Any]:
            return [np.array([len(text), 1], dtype=np.float32) for text in input]

    embedder = from_chroma(Lengths())
    assert str(identity(embedder)) == "Lengths@lengths/2"
    expected = unit_grid(np.array([[2, 1], [9, 1]], dtype=np.float32))
    assert np.array_equal(embedder.embed(["ab", "ninechars"]), expected)
    assert np.array_equal(embedder.embed_query("ab"), expected[0])


def test_a_plain_function_will_do_for_chroma() -> None:
    embedder = from_chroma(lambda input: [[1.0, 0.0]] * len(input), name="constant", version="1", dimension=2)
    assert embedder.embed_query("a").tolist() == embedder.embed(["b"])[0].tolist() == [32767, 0]


def test_many_texts_go_in_batches_in_order() -> None:
    model = Hashed()
    texts = [f"turn {number}" if number % 7 else "" for number in range(700)]
    rows = from_langchain(model, dimension=64).embed(texts)
    assert model.batches == [256, 256, 600 - 512]
    assert np.abs(rows.astype(int) - HashedEmbedder(64).embed(texts)).max() <= 1


def test_the_length_that_a_model_gives_does_not_matter() -> None:
    def of(scale: float) -> FrameworkEmbedder:
        model = Hashed(lambda vectors: [[value * scale for value in vector] for vector in vectors])
        return from_langchain(model, dimension=64)

    assert np.array_equal(of(2.0**-40).embed(TEXTS), of(2.0**900).embed(TEXTS))


def _replaced(place: int, value: object) -> Callable[[list[list[float]]], Any]:
    return lambda vectors: [value if at == place else vector for at, vector in enumerate(vectors)]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_replaced(1, [float("nan")] * 64), "nan as component 0 of text 2 of 5"),
        (_replaced(0, [0.0] * 63 + [float("inf")]), "inf as component 63 of text 0 of 5"),
        (_replaced(2, [1.0] * 63), r"shape \(63,\) for text 3 of 5.*64 components"),
        (_replaced(1, [[1.0] * 64]), r"shape \(1, 64\) for text 2"),
        (_replaced(1, None), "for text 2"),
        (_replaced(1, ["a"] * 64), "no vector of numbers for text 2"),
        (lambda vectors: vectors[:-1], "2 vectors for 3 texts"),
        (lambda vectors: [*vectors, vectors[0]], "4 vectors for 3 texts"),
        (lambda vectors: None, "none vectors for 3 texts"),
    ],
)
def test_what_is_no_vector_is_refused_with_the_text_that_it_was_for(
    spoil: Callable[[list[list[float]]], Any], said: str
) -> None:
    embedder = from_langchain(Hashed(spoil), dimension=64)
    with pytest.raises(EmbedderError, match=said) as raised:
        embedder.embed(TEXTS)
    assert raised.value.args[0].startswith("Hashed gave")


def test_a_query_is_checked_as_well() -> None:
    with pytest.raises(EmbedderError, match="nan as component 0 of the query"):
        from_langchain(Hashed(_replaced(0, [float("nan")] * 64)), dimension=64).embed_query("who?")
    with pytest.raises(EmbedderError, match="not 32 components"):
        from_langchain(Hashed(), dimension=32).embed_query("who?")
    assert not from_langchain(Hashed(), dimension=64).embed_query(" ").any()


def test_a_failing_model_is_unavailable_and_its_words_stay_in_the_cause() -> None:
    def fail(vectors: list[list[float]]) -> Any:
        raise ConnectionError("no route to secret-host")

    embedder = from_langchain(Hashed(fail), dimension=64)
    asking: list[Callable[[], object]] = [lambda: embedder.embed(TEXTS), lambda: embedder.embed_query("who?")]
    for ask in asking:
        with pytest.raises(SourceUnavailable, match="ConnectionError") as raised:
            ask()
        assert "secret" not in str(raised.value)
        assert isinstance(raised.value.__cause__, ConnectionError)
    with pytest.raises(EmbedderUnavailable, match="the probe"):
        from_langchain(Hashed(fail))


def test_an_object_that_names_no_model_needs_a_version() -> None:
    making: list[Callable[[], object]] = [
        lambda: from_langchain(DeterministicFakeEmbedding(size=8)),
        lambda: from_llamaindex(MockEmbedding(embed_dim=8)),
        lambda: from_chroma(lambda input: [[1.0]]),
    ]
    for make in making:
        with pytest.raises(EmbedderError, match="pass version="):
            make()


def test_the_dimension_is_asked_for_once_if_not_given() -> None:
    model = Hashed()
    assert from_langchain(model).dimension == 64 and model.batches == [1]
