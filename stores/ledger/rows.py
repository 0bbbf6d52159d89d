"""Records as rows: what never changes is one JSON body, what may change has columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import orjson
from sqlalchemy import Connection, Row, select

from loadmaster.core.canonical import canonical_json
from loadmaster.stores.clock import from_microseconds, to_microseconds
from loadmaster.stores.ledger.records import Record, Scope
from loadmaster.stores.ledger.schema import records

_COLUMNS = ("id", "kind", "tier", "conflict", "pinned", "version")
_TIME_COLUMNS = ("recorded_at", "retired_at", "valid_until", "closed_at", "expires_at")
_NOT_IN_BODY = (*_COLUMNS, *_TIME_COLUMNS, "scope")
_BODY_TIMES = ("at", "valid_from")
_BODY_TUPLES = ("place", "labels", "derived_from", "supersedes")
_EMPTY: dict[str, Any] = {
    "author": None, "session": None, "place": (), "at": None, "valid_from": None, "labels": (), "text": "",
    "subject": None, "predicate": None, "object": None, "confidence": None, "source": None,
    "source_version": None, "provenance": None, "derived_from": (), "supersedes": (),
}  # fmt: skip

_CHUNK = 500  # ids in one statement: below every database's limit of parameters

T = TypeVar("T")


def chunks(values: Sequence[T], size: int = _CHUNK) -> Iterator[Sequence[T]]:
    """Cut a sequence into runs that one statement can take."""
    return (values[start : start + size] for start in range(0, len(values), size))


def to_row(record: Record, scope_key: str, version: int, now: datetime) -> dict[str, Any]:
    """Give the row of a record that is written now."""
    body = {name: value for name, value in record.to_dict().items() if name not in _NOT_IN_BODY}
    return {
        "id": record.id,
        "scope_key": scope_key,
        "version": version,
        "kind": record.kind,
        "digest": record.digest,
        "body": canonical_json(body),
        "tier": record.tier,
        "conflict": record.conflict,
        "pinned": record.pinned,
        "recorded_at": to_microseconds(now),
        "retired_at": None,
        "valid_until": _micros(record.valid_until),
        "closed_at": None,
        "expires_at": _micros(record.expires_at),
    }


def from_row(row: Row[Any], scope: Scope) -> Record:
    """Give the record of a row. It was checked when it was written, so it is only put together here."""
    columns = row._mapping
    values = {**_EMPTY, "metadata": {}, **orjson.loads(columns["body"])}
    for name in _BODY_TIMES:
        if values[name] is not None:
            values[name] = datetime.fromisoformat(values[name])
    for name in _BODY_TUPLES:
        values[name] = tuple(values[name])
    if values["confidence"] is not None:
        values["confidence"] = Decimal(values["confidence"])
    for name in _COLUMNS:
        values[name] = columns[name]
    for name in _TIME_COLUMNS:
        time = columns[name]
        values[name] = None if time is None else from_microseconds(time)
    values["scope"] = scope
    values["digest"] = columns["digest"]
    record = object.__new__(Record)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record


def records_in(
    connection: Connection,
    scope_key: str,
    scope: Scope,
    *,
    since: int = 0,
    kinds: Iterable[str] | None = None,
) -> list[Record]:
    """Give a scope's records written after a version, retired ones too, by (version, id)."""
    query = select(records).where(records.c.scope_key == scope_key, records.c.version > since)
    if kinds is not None:
        query = query.where(records.c.kind.in_(sorted(set(kinds))))
    rows = connection.execute(query.order_by(records.c.version)).all()
    found = [from_row(row, scope) for row in rows]
    found.sort(key=lambda record: (record.version, record.id))  # databases collate strings in their own ways
    return found


def records_by_id(
    connection: Connection, ids: Iterable[str], scopes: Mapping[str, Scope]
) -> dict[str, Record]:
    """Give the records with these ids that lie in these scopes (by key), in the order asked for."""
    wanted = list(dict.fromkeys(ids))
    found = {}
    for some in chunks(wanted):
        for row in connection.execute(select(records).where(records.c.id.in_(some))):
            if row.scope_key in scopes:
                found[row.id] = from_row(row, scopes[row.scope_key])
    return {name: found[name] for name in wanted if name in found}


def _micros(time: datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)
