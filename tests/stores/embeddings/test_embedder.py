from __future__ import annotations

import subprocess
import sys

import pytest

from loadmaster.stores.embeddings import (
    Embedder,
    EmbedderChanged,
    EmbedderError,
    EmbedderId,
    HashedEmbedder,
    StaticEmbedder,
    default_embedder,
    identity,
)
from loadmaster.stores.port import StoreError


def test_the_identity_names_what_must_be_equal() -> None:
    assert str(identity(HashedEmbedder())) == "hashed-words-and-3-5-grams@1/512"
    assert identity(HashedEmbedder()) == identity(HashedEmbedder(512)) != identity(HashedEmbedder(256))
    assert isinstance(HashedEmbedder(), Embedder)


def test_models_with_slashes_and_signs_in_their_version_stay_apart() -> None:
    names = [("a", "b@c/1"), ("a/b", "c/1"), ("a", "b"), ("a/b", "b@c/1")]
    assert len({str(EmbedderId(name, version, 2)) for name, version in names}) == 4


@pytest.mark.parametrize(
    ("name", "version", "dimension", "said"),
    [
        ("", "1", 8, "name"),
        ("a", "", 8, "version"),
        ("a b", "1", 8, "white space"),
        ("a", "1\n", 8, "version"),
        ("a@b", "1", 8, "@"),
        ("a", "1", 0, "not 0"),
        ("a" * 150, "b" * 60, 8, "200"),
    ],
)
def test_unfit_identities_are_refused(name: str, version: str, dimension: int, said: str) -> None:
    with pytest.raises(EmbedderError, match=said):
        EmbedderId(name, version, dimension)


def test_a_change_names_both_and_what_to_do() -> None:
    error = EmbedderChanged("memory", "a@1/8", "b@1/8")
    assert issubclass(EmbedderChanged, StoreError) and issubclass(EmbedderChanged, ValueError)
    assert "memory" in str(error) and "a@1/8" in str(error) and "b@1/8" in str(error) and "anew" in str(error)


def test_the_default_shows_in_its_name_what_it_is() -> None:
    expected = StaticEmbedder.name if StaticEmbedder.installed() else HashedEmbedder.name
    assert default_embedder().name == expected


def test_without_the_extra_the_default_is_hashed_and_static_says_how_to_install() -> None:
    """In a process in which the package cannot be found, as where it is not installed."""
    script = """
import importlib.machinery
import sys

finder = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name == "wordllama" else finder(name, path, target)
)
from loadmaster.stores.embeddings import StaticEmbedder, default_embedder
assert default_embedder().name == "hashed-words-and-3-5-grams"
assert not any(name.partition(".")[0] in ("tokenizers", "wordllama") for name in sys.modules)
try:
    StaticEmbedder()
except ImportError as error:
    assert "loadmaster[static]" in str(error), error
else:
    raise AssertionError("no refusal")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
