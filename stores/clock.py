"""Time as an input: every write takes its instant from an injected clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Gives the present as an aware UTC datetime. Stores call it once a write."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def system_clock() -> datetime:
    """Give the machine's time, in UTC."""
    return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is moved, for tests, simulations and replays."""

    def __init__(self, start: datetime) -> None:
        self.now = utc(start)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **spans: float) -> datetime:
        """Move forward by a timedelta's keywords, such as ``days=1``, and give the new time."""
        self.now += timedelta(**spans)
        return self.now


def utc(time: datetime) -> datetime:
    """Give an aware datetime in UTC.

    Raises:
        ValueError: The datetime names no time zone, so that nobody can say which instant is meant.
    """
    if time.tzinfo is None:
        raise ValueError(
            f"{time.isoformat()} names no time zone; pass an aware datetime, such as with tzinfo=UTC"
        )
    return time.astimezone(UTC)


def to_microseconds(time: datetime) -> int:
    """Give an instant as whole microseconds since 1970, as the ledger keeps it."""
    return (utc(time) - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """Give the instant that a number of microseconds since 1970 stands for."""
    return _EPOCH + value * _MICROSECOND


def rfc3339(time: datetime) -> str:
    """Write an instant as the data contract does, in UTC and with a ``Z``."""
    return utc(time).isoformat().replace("+00:00", "Z")
