"""Weights are read from one file and refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest

from loadmaster.stores.ranking import Corpus, Passage, Weights, packaged_weights

TEXT = files("loadmaster.stores.ranking").joinpath("weights.toml").read_text(encoding="utf-8")


def test_packaged_weights_are_the_file() -> None:
    assert packaged_weights() == Weights.read(TEXT)
    assert packaged_weights().without_meaning.meaning == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("version = 1", "version = 2", "version 2"),
        ("k1 = 1.2", "", "'k1'"),
        ("k1 = 1.2", "k1 = -1", "bm25.k1 is -1"),
        ("k1 = 1.2", "k1 = true", "bm25.k1 is True"),
        ("opening = ", "openings = ", "no channel openings"),
    ],
)
def test_bad_weights_are_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Weights.read(TEXT.replace(old, new, 1))


def test_given_weights_are_used() -> None:
    weights = packaged_weights()
    nobody = replace(weights, without_meaning=replace(weights.without_meaning, author=0.0))
    passages = [Passage(id="a", text="lake", author="Ada"), Passage(id="b", text="lake", author="Bo")]
    assert Corpus(passages).rank("What of the lake, Bo?")[0].id == "b"
    assert Corpus(passages, nobody).rank("What of the lake, Bo?")[0].id == "a"
