from __future__ import annotations

import pytest

from loadmaster.core.instants import parse_duration, parse_instant

ONE_INSTANT = [
    "2026-03-01T12:00:00Z",
    "2026-03-01t12:00:00z",
    "2026-03-01 12:00:00Z",
    "2026-03-01T12:00:00.000Z",
    "2026-03-01T12:00:00+00:00",
    "2026-03-01T12:00:00-00:00",
    "2026-03-01T13:30:00+01:30",
    "2026-02-28T12:01:00-23:59",
    "2026-03-01T11:59:60Z",
]


@pytest.mark.parametrize("text", ONE_INSTANT)
def test_spellings_of_one_instant(text: str) -> None:
    assert parse_instant(text) == parse_instant(ONE_INSTANT[0])


def test_instants_order_as_time_does() -> None:
    ordered = [
        "0001-01-01T00:00:00+23:59",
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00Z",
        "2024-02-29T00:00:00Z",
        "2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.0000000000000000000000000001Z",
        "2026-03-01T12:00:00.09Z",
        "2026-03-01T12:00:00.1Z",
        "2026-03-01T12:00:00.10000001Z",
        "2026-03-01T12:00:00.9Z",
        "2026-03-01T12:00:01Z",
        "2026-03-01T12:00:01+00:00"[:-6] + ".5-00:01",
        "9999-12-31T23:59:59-23:59",
    ]
    instants = [parse_instant(text) for text in ordered]
    assert instants == sorted(set(instants))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-03-01",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00Z",
        "2026-3-1T12:00:00Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00+01",
        "2026-03-01T12:00:00+0100",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+01:60",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:61Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-03-01T12:00:00Z\n",
        " 2026-03-01T12:00:00Z",
        "20260301T120000Z",
        "２０２６-03-01T12:00:00Z",
        "1772366400",
        "-2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00Z" * 1000,
    ],
)
def test_what_is_no_rfc_3339_time(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_instant(text)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90m", 5400), ("12h", 43_200), ("365d", 31_536_000), ("2w", 1_209_600)]
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "1", "d", "1y", "-1d", "1.5h", "1 d", "1d\n", "P1D", "1D", "9" * 10 + "d", "٣d"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_duration(text)
