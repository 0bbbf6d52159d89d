"""Points in time as RFC 3339 writes them, compared exactly.

The standard library's ``datetime`` cuts fractions at microseconds and rejects leap seconds, both of
which RFC 3339 allows; two different instants would then compare equal. An instant here is a pair
that orders as time does: whole seconds of UTC since 0001-01-01, and the fraction's digits.
"""

from __future__ import annotations

import re
from datetime import date

Instant = tuple[int, str]

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_DURATION = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_instant(text: str) -> Instant:
    """Read an RFC 3339 time.

    Raises:
        ValueError: The text is no RFC 3339 time with an offset.

    >>> parse_instant("2026-03-01T12:00:00+01:00") == parse_instant("2026-03-01T11:00:00.000Z")
    True
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(
            f"must be an RFC 3339 time with an offset, like 2026-03-01T09:00:00Z, not {text!r:.60}"
        )
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, off_hour, off_minute = match.groups()[6:]
    if hour > 23 or minute > 59 or second > 60 or int(off_hour or 0) > 23 or int(off_minute or 0) > 59:
        raise ValueError(f"{text!r} is no time of day")
    try:
        days = date(year, month, day).toordinal()
    except ValueError as error:
        raise ValueError(f"{text!r} is no date: {error}") from None
    offset = (int(off_hour or 0) * 3600 + int(off_minute or 0) * 60) * (-1 if sign == "-" else 1)
    return days * 86_400 + hour * 3600 + minute * 60 + second - offset, (fraction or "").rstrip("0")


def parse_duration(text: str) -> int:
    """Read a duration such as ``365d`` as seconds; units are s, m, h, d and w.

    Raises:
        ValueError: The text is no such duration.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"must be a duration like 90m, 12h, 365d or 2w, not {text!r:.60}")
    return int(match[1]) * _SECONDS[match[2]]
