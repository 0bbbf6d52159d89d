"""Records as indexes of vectors see them: no text, but whether they are embedded, and as what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, LargeBinary, func, literal, select

from loadmaster.stores.ledger.rows import chunks
from loadmaster.stores.ledger.schema import records, vectors


@dataclass(frozen=True, slots=True)
class Embedded:
    """A record, and its vector by one embedder.

    Attributes:
        live: It has not been retired.
        has: It has a vector.
        vector: The vector's bytes; empty where there is none, or where none was asked for.
    """

    id: str
    scope_key: str
    kind: str
    version: int
    live: bool
    has: bool
    vector: bytes = field(repr=False)


def embedded_in(
    connection: Connection, key: str, embedder: str, *, since: int, with_vectors: bool
) -> list[Embedded]:
    """Give a scope's records written after a version, by (version, id)."""
    within = records.c.scope_key == key, records.c.version > since
    found = _embedded(connection, embedder, within, with_vectors=with_vectors)
    return sorted(found, key=lambda row: (row.version, row.id))


def embedded_among(
    connection: Connection, ids: Iterable[str], keys: Iterable[str], embedder: str, *, with_vectors: bool
) -> list[Embedded]:
    """Give those of some records that are in the ledger and in one of these scopes, by id."""
    allowed = set(keys)
    found: list[Embedded] = []
    for some in chunks(sorted(set(ids))):
        found += _embedded(connection, embedder, (records.c.id.in_(some),), with_vectors=with_vectors)
    return sorted((row for row in found if row.scope_key in allowed), key=lambda row: row.id)


def count_by_scope(connection: Connection, keys: Iterable[str]) -> dict[str, int]:
    """Give how many records each of these scopes holds, retired ones too."""
    counted = dict.fromkeys(sorted(set(keys)), 0)
    for some in chunks(list(counted)):
        query = select(records.c.scope_key, func.count()).where(records.c.scope_key.in_(some))
        for key, count in connection.execute(query.group_by(records.c.scope_key)):
            counted[key] = count
    return counted


def drop_vectors(connection: Connection, embedder: str) -> int:
    """Drop all vectors of one embedder, and give how many these were."""
    return int(connection.execute(vectors.delete().where(vectors.c.embedder == embedder)).rowcount)


def _embedded(
    connection: Connection, embedder: str, within: tuple[ColumnElement[bool], ...], *, with_vectors: bool
) -> list[Embedded]:
    its_own = (vectors.c.record_id == records.c.id) & (vectors.c.embedder == embedder)
    query = select(
        records.c.id,
        records.c.scope_key,
        records.c.kind,
        records.c.version,
        records.c.retired_at.is_(None).label("live"),
        vectors.c.record_id.is_not(None).label("has"),
        vectors.c.vector if with_vectors else literal(b"", LargeBinary).label("vector"),
    )
    rows = connection.execute(query.outerjoin_from(records, vectors, its_own).where(*within))
    return [
        Embedded(
            row.id, row.scope_key, row.kind, row.version, bool(row.live), bool(row.has), row.vector or b""
        )
        for row in rows
    ]
