"""How queries are read: cases are in queries.toml."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from loadmaster.stores.ranking.dates import Fit, Named
from loadmaster.stores.ranking.reading import read_query, tells_time
from loadmaster.stores.ranking.vocabulary import related, stem, terms

CASES = tomllib.loads((Path(__file__).parent / "queries.toml").read_text())["query"]
FIT = Fit(
    after_days={"day": 7, "week": 7, "month": 30, "season": 30, "year": 30},
    after=0.5,
    before_days=7,
    before=0.3,
)


def shown(named: Named) -> str:
    if named.year is None:
        first, last = named.span(2023)
        return f"*{first.isoformat()[4:]}..*{last.isoformat()[4:]}"
    first, last = named.span(named.year)
    return f"{first}..{last}"


@pytest.mark.parametrize("case", CASES, ids=[case["text"][:40] or "empty" for case in CASES])
def test_query_is_read(case: dict[str, Any]) -> None:
    today = date.fromisoformat(case["today"]) if "today" in case else None
    reading = read_query(case["text"], case.get("authors", ["Ada Byron", "Tom"]), today)
    assert list(reading.authors) == case["authors_named"]
    assert reading.asks_when == case.get("asks_when", False)
    if "terms" in case:
        assert list(reading.terms) == case["terms"]
    if "dates" in case:
        assert [shown(named) for named in reading.dates] == case["dates"]
    if "topic" in case:
        assert reading.topic == case["topic"]


@pytest.mark.parametrize(
    ("named", "day", "fit"),
    [
        (Named("month", 2023, 6), date(2023, 6, 1), 1.0),
        (Named("month", 2023, 6), date(2023, 7, 30), 0.5),
        (Named("month", 2023, 6), date(2023, 7, 31), 0.0),
        (Named("month", 2023, 6), date(2023, 5, 25), 0.3),
        (Named("month", 2023, 6), date(2024, 6, 5), 0.0),
        (Named("month", None, 6), date(2024, 6, 5), 1.0),
        (Named("month", None, 12), date(2024, 1, 5), 0.5),
        (Named("day", 2023, 6, 16), date(2023, 6, 16), 1.0),
        (Named("day", 2023, 6, 16), date(2023, 6, 24), 0.0),
        (Named("day", None, 2, 29), date(2023, 2, 28), 1.0),
        (Named("season", None, 12), date(2024, 2, 29), 1.0),
        (Named("year", 2023), date(2024, 1, 30), 0.5),
        (Named("year", 2023), date(1, 1, 1), 0.0),
        (Named("year", 2023), date(9999, 12, 31), 0.0),
    ],
)
def test_dates_fit(named: Named, day: date, fit: float) -> None:
    assert FIT.of(named, day) == fit


def test_text_becomes_stems_without_stop_words_and_possessives() -> None:
    assert terms("The dog's owners weren’t RUNNING; naïve café-goers ran 5 km") == [
        *("dog", "owner", "run", "naïv", "café", "goer", "ran", "5", "km")
    ]


def test_thesaurus_joins_both_ways_and_kinds_one_way() -> None:
    table = related()
    assert table[stem("wife")][stem("husband")] == table[stem("husband")][stem("wife")] == 1.0
    assert 0 < table[stem("instrument")][stem("cello")] < 1
    assert stem("instrument") not in table.get(stem("cello"), {})
    assert all(own not in reached for own, reached in table.items())


def test_time_is_told_by_words_months_and_years() -> None:
    assert tells_time(["we", "met", "yesterday"])
    assert tells_time(["in", "october"])
    assert tells_time(["since", "1999"])
    assert not tells_time(["she", "may", "march", "123"])
