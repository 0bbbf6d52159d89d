"""The port of every store: candidates for a request, or a plain word that there can be none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from loadmaster.core.contract import Candidate, Observation, Request


@runtime_checkable
class Store(Protocol):
    """Where candidates come from.

    ``name`` starts the ids of its candidates (``name/…``) and its observations (``source:name``);
    ``layers`` are those that its candidates may be in.
    """

    name: str
    layers: tuple[str, ...]

    def candidates(self, request: Request, query: str, limit: int) -> list[Candidate]:
        """Give at most ``limit`` candidates within the request's scope, the most relevant first.

        Raises:
            SourceUnavailable: The store cannot answer; an empty list means that it has nothing.
        """


@dataclass(frozen=True, slots=True)
class Found:
    """What a store gave, and what is worth recording about how: degraded, searched approximately, …"""

    candidates: tuple[Candidate, ...] = ()
    observations: tuple[Observation, ...] = ()


@runtime_checkable
class ObservedStore(Store, Protocol):
    """A store that also tells how it found what it gives."""

    def find(self, request: Request, query: str, limit: int) -> Found:
        """Give what `candidates` gives, with observations."""


class StoreError(Exception):
    """Base of what stores raise on purpose."""


class SourceUnavailable(StoreError):
    """A store cannot answer now; `reason` is fit for users, the cause for operators."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


def source_unavailable(store: Store, reason: str) -> Observation:
    """Give the observation by which the compiler learns that layers are missing, not empty."""
    value = {"status": "unavailable", "layers": list(store.layers), "reason": reason}
    return Observation(key=f"source:{store.name}", value=value)


def degraded(store: Store, reason: str) -> Observation:
    """Give the observation that a store answered, but not in its best way."""
    return Observation(key=f"source:{store.name}", value={"status": "degraded", "reason": reason})
