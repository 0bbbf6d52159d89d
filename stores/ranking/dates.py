"""Dates that a query names, and how well a passage's date fits them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal

Precision = Literal["day", "week", "month", "season", "year"]

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = {name: number for number, name in enumerate(MONTHS, 1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items()} | {"sept": 9}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AMBIGUOUS = frozenset({"may", "march", "mar", "sep", "dec", "jan"})  # months only with a capital

_M = r"(?P<month>" + "|".join(sorted(_MONTH, key=lambda name: (-len(name), name))) + r")\b\.?"
_D = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_Y = r"(?P<year>(?:19|20)\d\d)"
_S = r"spring|summer|autumn|winter|fall(?=\s+(?:of\s+)?(?:19|20)\d\d)"  # to fall is also a verb
_PATTERNS: tuple[tuple[Precision, re.Pattern[str]], ...] = (
    ("day", re.compile(rf"\b{_Y}-(?P<month>\d\d)-(?P<day>\d\d)\b")),
    ("day", re.compile(rf"\b{_D}(?:\s+of)?\s+{_M}(?:,?\s*{_Y}\b)?", re.I)),
    ("day", re.compile(rf"\b{_M}\s+{_D}(?!\d)(?:,?\s*{_Y}\b)?", re.I)),
    ("month", re.compile(rf"\b{_Y}-(?P<month>\d\d)\b")),
    ("month", re.compile(rf"\b{_M}(?:\s+of|,)?(?:\s*{_Y}\b)?", re.I)),
    ("season", re.compile(rf"\b(?P<season>{_S})\b(?:\s+of)?(?:\s+{_Y}\b)?", re.I)),
    ("year", re.compile(rf"\b{_Y}\b")),
)
_IN_A_MONTH = re.compile(r"\b(?:in|of|since|during|until|till|by|last|next|early|late|mid|this)[\s-]+$", re.I)
_COUNT = r"(?P<count>\d+|an?|one|two|three|four|five|six)"
_SPAN = rf"(?P<what>week|weekend|month|year|{'|'.join(_WEEKDAYS)})"
_RELATIVE = re.compile(
    rf"\b(?:(?P<near>yesterday|today|tonight|tomorrow)|(?P<which>last|this|next|past)\s+{_SPAN}"
    rf"|{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago)\b",
    re.I,
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


@dataclass(frozen=True, slots=True)
class Named:
    """A date that a query names: a day, month, season or year; without a year it recurs."""

    precision: Precision
    year: int | None
    month: int | None = None
    day: int | None = None

    def span(self, year: int) -> tuple[date, date]:
        """Give the first and last day that is meant in a year."""
        if self.month is None:
            return date(year, 1, 1), date(year, 12, 31)
        if self.day is not None:
            first = date(year, self.month, min(self.day, _month_end(year, self.month).day))
            return first, first + timedelta(days=6 if self.precision == "week" else 0)
        last = self.month + (2 if self.precision == "season" else 0)
        return date(year, self.month, 1), _month_end(year + (last > 12), (last - 1) % 12 + 1)


def _month_end(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a passage fits a named date when its own lies outside: what happened is told soon after.

    Attributes:
        after_days, after: A passage of up to so many days later fits so much, by precision.
        before_days, before: One of up to so many days earlier, which may tell of a plan.
    """

    after_days: dict[Precision, int]
    after: float
    before_days: int
    before: float

    def of(self, named: Named, day: date) -> float:
        """Give 1 where the day is meant, less where it is near, else 0."""
        best = 0.0
        for year in (named.year,) if named.year else (day.year - 1, day.year):
            if not 1 < year < 9999:
                continue
            first, last = named.span(year)
            if first <= day <= last:
                return 1.0
            if 0 < (day - last).days <= self.after_days[named.precision]:
                best = max(best, self.after)
            elif 0 < (first - day).days <= self.before_days:
                best = max(best, self.before)
        return best


def named_dates(query: str, today: date | None = None) -> list[Named]:
    """Read the dates that a query names; words such as "last week" only where today is known."""
    taken: list[tuple[int, int]] = []
    found: list[Named] = []
    for precision, pattern in _PATTERNS:
        for match in pattern.finditer(query):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            named = _absolute(precision, match, query)
            if named is not None:
                taken.append(match.span())
                found.append(named)
    if today is not None:
        found += _relative(query, today)
    return list(dict.fromkeys(found))


def _absolute(precision: Precision, match: re.Match[str], query: str) -> Named | None:
    parts = match.groupdict()
    year = int(parts["year"]) if parts.get("year") else None
    if precision == "year":
        return Named("year", year)
    if precision == "season":
        return Named("season", year, _SEASONS[parts["season"].lower()])
    word = parts["month"].lower()
    month = int(word) if word.isdigit() else _MONTH[word]
    if not 1 <= month <= 12:
        return None
    if precision == "day":
        day = int(parts["day"])
        return Named("day", year, month, day) if 1 <= day <= 31 else None
    if word in _AMBIGUOUS and (parts["month"].islower() or _is_a_name(match, query, year)):
        return None
    return Named("month", year, month)


def _is_a_name(match: re.Match[str], query: str, year: int | None) -> bool:
    """May, March and Jan are people, verbs and months: a month needs a year or a word such as "in"."""
    return year is None and _IN_A_MONTH.search(query, 0, match.start()) is None


def _relative(query: str, today: date) -> Iterator[Named]:
    for match in _RELATIVE.finditer(query):
        parts = match.groupdict()
        if parts["near"]:
            yield _day(today + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(parts["near"].lower(), 0)))
        elif parts["count"]:
            word = parts["count"].lower()
            yield _ago(today, int(word) if word.isdigit() else _NUMBERS[word], parts["unit"].lower())
        else:
            step = {"next": 1, "this": 0}.get(parts["which"].lower(), -1)
            what = parts["what"].lower()
            if what in _WEEKDAYS:
                back = (today.weekday() - _WEEKDAYS.index(what)) % 7
                yield _day(today - timedelta(days=(back or 7) if step < 0 else back - 7 * step))
            else:
                yield _ago(today, -step, "week" if what == "weekend" else what)


def _ago(today: date, count: int, unit: str) -> Named:
    count = max(-5000, min(count, 5000))  # nobody means more, and dates end
    if unit == "day":
        return _day(today - timedelta(days=count))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return Named("week", monday.year, monday.month, monday.day)
    if unit == "year":
        return Named("year", max(2, today.year - count))
    months = max(24, today.year * 12 + today.month - 1 - count)
    return Named("month", months // 12, months % 12 + 1)


def _day(day: date) -> Named:
    return Named("day", day.year, day.month, day.day)
