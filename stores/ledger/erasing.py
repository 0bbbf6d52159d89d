"""Erasure: the only deletion. It takes what was derived from the erased with it, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Column, ColumnElement, Connection, Engine, Table, func, select
from sqlalchemy.exc import OperationalError

from loadmaster.stores.ledger.rows import chunks
from loadmaster.stores.ledger.schema import (
    bodies,
    links,
    promotions,
    recalls,
    records,
    scopes,
    vectors,
)

BODY = "body:"
"""Starts the link by which a record holds a large body: ``derived_from=(f"body:{digest}",)``."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure took away: rows by table, records by kind, and the ids that are gone.

    The ids are for the indexes that must follow; do not keep them.
    """

    rows: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    ids: tuple[str, ...] = field(default=(), repr=False)
    scope_keys: tuple[str, ...] = ()


def erase_scopes(connection: Connection, keys: Sequence[str]) -> Erased:
    """Erase all that these scopes hold, and whose they were; bare keys stay, so that indexes can follow."""
    _raise_epochs(connection, keys)
    ids: list[str] = []
    for some in chunks(keys):
        ids += connection.scalars(select(records.c.id).where(records.c.scope_key.in_(some)))
    for some in chunks(keys):
        connection.execute(scopes.update().where(scopes.c.key.in_(some)).values(scope="{}"))
    return _erase(connection, keys, sorted(ids), body_keys=keys)


def erase_records(connection: Connection, key: str, ids: Iterable[str]) -> Erased:
    """Erase records of one scope, and whatever in that scope was derived from them, however indirectly."""
    _raise_epochs(connection, [key])
    # Links of bodies are never followed backwards: two records may hold one body and else be strangers.
    gone: set[str] = set()
    wave = sorted(set(ids))
    while wave:
        present: list[str] = []
        for some in chunks(wave):
            within = records.c.scope_key == key, records.c.id.in_(some)
            present += connection.scalars(select(records.c.id).where(*within))
        gone.update(present)
        derived: set[str] = set()
        for some in chunks(present):
            query = select(links.c.record_id).where(links.c.target_id.in_(some), links.c.derived)
            derived.update(connection.scalars(query))
        wave = sorted(derived - gone)
    ids = sorted(gone)
    held = _bodies_of(connection, ids)
    erased = _erase(connection, [key], ids, body_keys=())
    orphans = sorted(held - _bodies_still_held(connection, key, sorted(held)))
    erased.rows["bodies"] = _delete(connection, bodies, bodies.c.digest, orphans, bodies.c.scope_key == key)
    return erased


def _bodies_of(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Give the digests of the bodies that records hold, by their links to ``body:DIGEST``."""
    held: set[str] = set()
    for some in chunks(ids):
        query = select(links.c.target_id).where(links.c.record_id.in_(some))
        held.update(connection.scalars(query.where(links.c.target_id.startswith(BODY))))
    return {target.removeprefix(BODY) for target in held}


def _bodies_still_held(connection: Connection, key: str, digests: Sequence[str]) -> set[str]:
    held: set[str] = set()
    for some in chunks([BODY + digest for digest in digests]):
        query = select(links.c.target_id).join(records, records.c.id == links.c.record_id)
        held.update(connection.scalars(query.where(links.c.target_id.in_(some), records.c.scope_key == key)))
    return {target.removeprefix(BODY) for target in held}


def forget_pages(engine: Engine) -> None:
    """Let SQLite write its journal back, so that erased text does not linger in it."""
    if engine.dialect.name != "sqlite":
        return
    try:
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except OperationalError:  # readers hold it; the next checkpoint does it
        pass


def _raise_epochs(connection: Connection, keys: Sequence[str]) -> None:
    for some in chunks(sorted(keys)):
        raised = scopes.update().where(scopes.c.key.in_(some))
        connection.execute(raised.values(version=scopes.c.version + 1, epoch=scopes.c.epoch + 1))


def _erase(
    connection: Connection, keys: Sequence[str], ids: Sequence[str], *, body_keys: Sequence[str]
) -> Erased:
    kinds: dict[str, int] = {}
    for some in chunks(ids):
        query = select(records.c.kind, func.count()).where(records.c.id.in_(some)).group_by(records.c.kind)
        for kind, count in connection.execute(query):
            kinds[kind] = kinds.get(kind, 0) + count
    rows = {
        "recalls": _delete(connection, recalls, recalls.c.record_id, ids),
        "promotions": _delete(connection, promotions, promotions.c.record_id, ids),
        "vectors": _delete(connection, vectors, vectors.c.record_id, ids),
        "links": _delete(connection, links, links.c.record_id, ids)
        + _delete(connection, links, links.c.target_id, ids),
        "records": _delete(connection, records, records.c.id, ids),
        "bodies": _delete(connection, bodies, bodies.c.scope_key, body_keys),
    }
    return Erased(rows, dict(sorted(kinds.items())), tuple(ids), tuple(keys))


def _delete(
    connection: Connection,
    table: Table,
    column: Column[str],
    values: Sequence[str],
    *also: ColumnElement[bool],
) -> int:
    return sum(
        int(connection.execute(table.delete().where(column.in_(some), *also)).rowcount)
        for some in chunks(values)
    )
