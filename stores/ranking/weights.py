"""The weights of ranking: versioned data, one readable file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from loadmaster.stores.ranking.dates import Fit

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """What each channel is worth where it applies; weights.toml says what each of them is."""

    words: float
    window: float
    author: float
    date: float
    time: float
    statement: float
    opening: float
    derived: float
    meaning: float
    surroundings: float
    derived_meaning: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """All figures of ranking.

    Attributes:
        k1, b: BM25's saturation and its correction for length.
        window: Shares, in thousandths, of passages at distance 1, 2, … in a passage's surroundings.
        meaning_window: The same for meaning.
        before, after: Share of its neighbours' word score that a passage takes over.
        related: Share of a word's weight that a related word has.
        fit: How a passage's date fits one that the query names.
        date_alone, author_alone: The confidence that a date or an author alone can give.
        without_meaning, with_meaning: The channels' weights.
    """

    k1: float
    b: float
    window: tuple[int, ...]
    meaning_window: tuple[int, ...]
    before: float
    after: float
    related: float
    fit: Fit
    date_alone: float
    author_alone: float
    without_meaning: Channels
    with_meaning: Channels

    @classmethod
    def read(cls, text: str) -> Weights:
        """Read weights from a TOML text of the form of weights.toml.

        Raises:
            ValueError: The text has another version, or a figure is missing, unknown, negative or no number.
        """
        table = tomllib.loads(text)
        if table.get("version") != VERSION:
            raise ValueError(f"weights of version {table.get('version')!r}; this is for version {VERSION}")
        try:
            bm25, near, dates = table["bm25"], table["near"], table["dates"]
            return cls(
                k1=_figure(bm25["k1"], "bm25.k1"),
                b=_figure(bm25["b"], "bm25.b"),
                window=tuple(int(_figure(share, "near.window")) for share in near["window"]),
                meaning_window=tuple(int(_figure(share, "near.meaning")) for share in near["meaning"]),
                before=_figure(near["before"], "near.before"),
                after=_figure(near["after"], "near.after"),
                related=_figure(table["thesaurus"]["share"], "thesaurus.share"),
                fit=Fit(
                    after_days={**dates["after_days"]},
                    after=_figure(dates["after"], "dates.after"),
                    before_days=int(_figure(dates["before_days"], "dates.before_days")),
                    before=_figure(dates["before"], "dates.before"),
                ),
                date_alone=_figure(table["confidence"]["date"], "confidence.date"),
                author_alone=_figure(table["confidence"]["author"], "confidence.author"),
                without_meaning=_channels(table["words"], "words"),
                with_meaning=_channels(table["meaning"], "meaning"),
            )
        except KeyError as error:
            raise ValueError(
                f"weights lack {error.args[0]!r}; weights.toml of this package has them all"
            ) from None


def _figure(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise ValueError(f"weights: {name} is {value!r}; it must be a number from 0 on")
    return float(value)


def _channels(table: dict[str, Any], name: str) -> Channels:
    known = [field.name for field in fields(Channels)]
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ValueError(
            f"weights: {name} has no channel {', '.join(unknown)}; channels are {', '.join(known)}"
        )
    return Channels(**{channel: _figure(table[channel], f"{name}.{channel}") for channel in known})


@cache
def packaged_weights() -> Weights:
    """Give the weights that come with the package."""
    return Weights.read(
        files("loadmaster.stores.ranking").joinpath("weights.toml").read_text(encoding="utf-8")
    )
