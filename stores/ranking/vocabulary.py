"""Words: how text becomes terms, and which terms stand for one another."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from threading import Lock
from typing import Any, Final

import snowballstemmer

WORD: Final = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_STEMMER = snowballstemmer.stemmer("english")
_ONE_AT_A_TIME = Lock()  # the stemmer keeps its word in itself


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("loadmaster.stores.ranking").joinpath(name).read_text(encoding="utf-8"))


def listed(name: str) -> frozenset[str]:
    """Give a list of words.toml: ``stop``, ``scaffold`` or ``time``."""
    return _listed(name)


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(_table("words.toml")[name].split())


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Give a lower-case word's Snowball stem (English)."""
    with _ONE_AT_A_TIME:
        return str(_STEMMER.stemWord(word))


def words(text: str) -> list[str]:
    """Split a text into lower-case words: runs of letters and digits, without a possessive ``'s``."""
    return WORD.findall(_POSSESSIVE.sub("", text.lower()))


def terms(text: str) -> list[str]:
    """Give the stems of a text's words, in order and without stop words."""
    stop = _listed("stop")
    return [stem(word) for word in words(text) if word not in stop]


@cache
def related() -> dict[str, dict[str, float]]:
    """Give, for each stem of the thesaurus, the stems that may stand for it, with 0..1 of its weight.

    A line of ``same`` joins all of its words both ways; a kind reaches its members, not the reverse.
    """
    table = _table("thesaurus.toml")
    found: dict[str, dict[str, float]] = {}
    for line in table["same"]:
        stems = list(dict.fromkeys(stem(word) for word in line.split()))
        for one in stems:
            found.setdefault(one, {}).update((other, 1.0) for other in stems if other != one)
    for kind, members in table["kinds"].items():
        reached = found.setdefault(stem(kind), {})
        for member in members.split():
            if stem(member) != stem(kind):
                reached.setdefault(stem(member), table["member"])
    return found
