"""What the ledger keeps: records with a scope, two time axes and where they came from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

from loadmaster.core.canonical import canonical_json
from loadmaster.stores.clock import rfc3339, utc

Scope = Mapping[str, str | int | bool]
"""Who may see a record, as the data contract's ``scope``: a request sees what its own scope includes."""

MOST_KEYS = 10
"""Scopes are found by the subsets of a request's scope, of which there are 2**keys."""

_TIMES = ("at", "valid_from", "valid_until", "expires_at", "recorded_at", "closed_at", "retired_at")
_NAMES = ("kind", "id", "author", "session", "subject", "predicate", "object", "source", "conflict", "tier")
KEPT_BY_LEDGER: Final = ("recorded_at", "closed_at", "retired_at", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One thing that a store knows: an episode, a fact, an entity, a chunk, …

    Two time axes, both half-open and in UTC: a record is true from ``valid_from`` until
    ``valid_until``, and the ledger knew it from ``recorded_at`` until ``retired_at``. ``closed_at``
    is when the end of its validity became known; before that it looked open.

    Attributes:
        id: Unique in the ledger; by default ``kind:`` and a digest of everything given here, so
            that the same thing written twice is one record.
        kind: What it is, such as ``episode``, ``fact``, ``summary``, ``entity``, ``chunk``.
        scope: Who may see it.
        author: Who said or wrote it.
        session: The conversation, document or run that it belongs to.
        place: Where it stands in its session, as a candidate's ``order``.
        at: When it happened.
        subject, predicate, object: What a fact says, beside its ``text``.
        source, source_version, provenance: Where it came from, as a candidate's ``source``.
        derived_from: Records that it was made from; they are erased together.
        supersedes: Records whose validity this one ends.
        conflict: The set of contradicting records that it belongs to.
        tier: What a memory has made of it, such as ``long_term``.
        metadata: Free JSON data.
        version: The version of its scope in which it was last written.
        digest: Of all that its writer said; equal content is one record.
    """

    kind: str
    scope: Scope
    text: str
    id: str = ""
    author: str | None = None
    session: str | None = None
    place: tuple[int | str, ...] = ()
    at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    labels: tuple[str, ...] = ()
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    confidence: Decimal | None = None
    source: str | None = None
    source_version: str | None = None
    provenance: str | None = None
    derived_from: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    conflict: str | None = None
    tier: str | None = None
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    recorded_at: datetime | None = None
    closed_at: datetime | None = None
    retired_at: datetime | None = None
    version: int = 0
    digest: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in _TIMES:
            time = getattr(self, name)
            if time is not None:
                object.__setattr__(self, name, utc(time))
        for name in ("labels", "derived_from", "supersedes"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))
        object.__setattr__(self, "scope", checked_scope(self.scope))
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None:
                _check_name(name, value)
        if not self.kind:
            raise ValueError("record.kind is empty; say what the record is, such as 'episode'")
        if self.valid_from and self.valid_until and self.valid_until < self.valid_from:
            raise ValueError(
                f"record.valid_until {rfc3339(self.valid_until)} lies before valid_from "
                f"{rfc3339(self.valid_from)}; swap them"
            )
        try:
            object.__setattr__(self, "digest", _digest_of(self))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"record {self.id or self.text[:40]!r} holds what JSON cannot: {error}"
            ) from None
        if not self.id:
            object.__setattr__(self, "id", f"{self.kind}:{self.digest[:32]}")

    def known(self, as_of: datetime | None = None) -> bool:
        """Say whether the ledger held this record at a time; by default now."""
        if as_of is None:
            return self.retired_at is None
        recorded = self.recorded_at is None or self.recorded_at <= as_of
        return recorded and (self.retired_at is None or as_of < self.retired_at)

    def end(self, known: datetime | None = None) -> datetime | None:
        """Give the end of the validity, as far as it was known at a time; by default now."""
        hidden = known is not None and self.closed_at is not None and known < self.closed_at
        return None if hidden else self.valid_until

    def holds(self, valid: datetime, known: datetime | None = None) -> bool:
        """Say whether this is true at ``valid``, as far as was known at ``known``."""
        end = self.end(known)
        begun = self.valid_from is None or self.valid_from <= valid
        return self.known(known) and begun and (end is None or valid < end)

    def to_dict(self) -> dict[str, Any]:
        """Give the record as JSON data, without what is empty; `from_dict` reads it back."""
        given: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name) if item.init else None
            if value is None or value is False or value in ((), {}, 0):
                continue
            if isinstance(value, datetime):
                value = rfc3339(value)
            elif isinstance(value, Decimal):
                value = str(value)
            elif isinstance(value, tuple):
                value = list(value)
            given[item.name] = value
        return given

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """Read a record from the JSON data that `to_dict` gives."""
        given = {"scope": {}, "text": "", **data}
        for name in _TIMES:
            if name in given:
                given[name] = datetime.fromisoformat(given[name])
        if "confidence" in given:
            given["confidence"] = Decimal(given["confidence"])
        for name in ("labels", "derived_from", "supersedes", "place"):
            if name in given:
                given[name] = tuple(given[name])
        return cls(**given)


def _digest_of(record: Record) -> str:
    """Give the digest of all that its writer said about a record, whatever id it has."""
    said = record.to_dict()
    for name in ("id", *KEPT_BY_LEDGER):
        said.pop(name, None)
    return sha256(canonical_json(said).encode()).hexdigest()


def checked_scope(scope: Scope) -> dict[str, str | int | bool]:
    """Give a scope with sorted keys.

    Raises:
        ValueError: A key or value is of a kind that no scope has, or there are too many keys.
    """
    if len(scope) > MOST_KEYS:
        raise ValueError(f"a scope has {len(scope)} keys; at most {MOST_KEYS} are allowed")
    for key, value in scope.items():
        _check_name("scope key", key)
        if isinstance(value, str):
            _check_name(f"scope.{key}", value)
        elif not isinstance(value, int):
            raise ValueError(
                f"scope.{key} must be a string, a whole number or a boolean, not {type(value).__name__}"
            )
    return dict(sorted(scope.items()))


def scope_key(scope: Scope) -> str:
    """Give the key under which the ledger keeps a scope: 1, "1" and true differ."""
    return sha256(canonical_json(checked_scope(scope)).encode()).hexdigest()[:32]


def visible_keys(scope: Scope) -> Iterator[str]:
    """Give the keys of all scopes that a request with this scope may see: its subsets, smallest first."""
    pairs = sorted(checked_scope(scope).items())
    for size in range(len(pairs) + 1):
        for chosen in itertools.combinations(pairs, size):
            yield scope_key(dict(chosen))


def includes(wide: Scope, narrow: Scope) -> bool:
    """Say whether a scope has every pair of a narrower one, told apart by JSON type."""
    return all(
        key in wide and type(wide[key]) is type(value) and wide[key] == value for key, value in narrow.items()
    )


def _check_name(name: str, value: object) -> None:
    """Refuse what one of the databases could not hold, so that all behave alike."""
    if not isinstance(value, str):
        raise ValueError(f"record.{name} must be a string, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"record.{name} {value!r} holds a NUL character, which PostgreSQL refuses")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"record.{name} {value!r} holds a lone surrogate, which no database keeps") from None
