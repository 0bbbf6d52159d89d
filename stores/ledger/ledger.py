"""The ledger: opened on an SQLite file or a PostgreSQL URL, written through `Ledger.write`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from loadmaster.stores.clock import Clock, from_microseconds, system_clock, to_microseconds, utc
from loadmaster.stores.ledger import embedded, erasing
from loadmaster.stores.ledger.dialects import add_recalls, insert_missing, insert_or_set
from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.engine import LedgerError, open_engine, reading, writing
from loadmaster.stores.ledger.erasing import Erased
from loadmaster.stores.ledger.records import Record, Scope, checked_scope, includes, scope_key, visible_keys
from loadmaster.stores.ledger.rows import chunks, records_by_id, records_in
from loadmaster.stores.ledger.schema import (
    SCHEMA_VERSION,
    bodies,
    found_version,
    marks,
    meta,
    prepare,
    promotions,
    recalls,
    records,
    scopes,
    tables,
    vectors,
)
from loadmaster.stores.ledger.writing import Write, put_vectors

_PREPARING = int.from_bytes(b"ldgr", "big")  # names PostgreSQL's lock for creating and upgrading tables


@dataclass(frozen=True, slots=True)
class ScopeState:
    """How far a scope is: ``version`` grows with each write, ``epoch`` with each erasure.

    Who keeps a copy reads `Ledger.changed` since the version that it has; after another epoch it
    starts anew.
    """

    key: str
    scope: Scope
    version: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an index holds a scope."""

    version: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Promotion:
    """By which rule a record was promoted, when, and what the rule saw."""

    record_id: str
    rule: str
    rules_version: str
    at: datetime
    because: Mapping[str, Any]


class Ledger:
    """The record of everything that stores know. Safe to share between threads.

    Args:
        url: The path of an SQLite file, made if it is not there, or a PostgreSQL URL.
        clock: Gives the time of each write.

    Raises:
        LedgerError: The place cannot hold a ledger, or a newer Loadmaster wrote this one.
        LedgerUnavailable: The database cannot be reached or is broken.
    """

    def __init__(self, url: str | Path, *, clock: Clock = system_clock) -> None:
        self.clock = clock
        self._engine = open_engine(url)
        self.upgraded_from: int | None = None
        try:
            with reading(self._engine) as connection:
                found = found_version(connection)
            if found != SCHEMA_VERSION:
                with writing(self._engine) as connection:
                    if self._engine.dialect.name == "postgresql":  # SQLite writers wait for each other anyway
                        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_PREPARING})")
                    found = prepare(connection)
        except BaseException:
            self._engine.dispose()
            raise
        if 0 < found < SCHEMA_VERSION:
            self.upgraded_from = found

    def close(self) -> None:
        """Give back the connections; a closed ledger opens them again when it is used."""
        self._engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    @contextmanager
    def write(self, scope: Scope) -> Iterator[Write]:
        """Open a write on one scope: when the block ends all of it is kept and lasts, or else nothing is.

        Raises:
            LedgerUnavailable: The database failed; nothing was kept.
        """
        scope = checked_scope(scope)
        with writing(self._engine) as connection:
            yield Write(connection, scope, scope_key(scope), utc(self.clock()))

    def append(self, given: Iterable[Record]) -> list[Record]:
        """Write records, one transaction for each scope, and give those that are new."""
        by_scope: dict[str, list[Record]] = {}
        for record in given:
            by_scope.setdefault(scope_key(record.scope), []).append(record)
        fresh = []
        for some in by_scope.values():
            with self.write(some[0].scope) as write:
                fresh += write.append(some)
        return fresh

    def recalled(self, ids: Iterable[str], session: str) -> None:
        """Count that records were recalled in a session; those that have gone are passed over."""
        now = to_microseconds(utc(self.clock()))
        with writing(self._engine) as connection:
            for some in chunks(sorted(set(ids))):
                present = connection.scalars(select(records.c.id).where(records.c.id.in_(some))).all()
                add_recalls(
                    connection,
                    recalls,
                    [
                        {"record_id": name, "session": session, "at": now, "times": 1}
                        for name in sorted(present)
                    ],
                )

    def put_vectors(self, key: str, embedder: str, given: Mapping[str, bytes]) -> None:
        """Keep vectors of a scope's records, beside them; what is there already stays."""
        with writing(self._engine) as connection:
            _lock(connection, key)
            put_vectors(connection, embedder, given)

    def erase(self, scope: Scope, ids: Iterable[str] | None = None) -> Erased:
        """Erase for good: the records with these ids and all that was derived from them, or a whole scope.

        A whole scope takes with it every scope that includes it: forgetting a tenant forgets its
        users. Indexes are not touched; they see the raised epoch and erase in their turn.

        Returns:
            How many rows of each kind are gone.
        """
        wanted = None if ids is None else list(ids)
        scope = checked_scope(scope)
        with writing(self._engine) as connection:
            if wanted is None:
                found = [state.key for state in self._states(connection) if includes(state.scope, scope)]
                erased = erasing.erase_scopes(connection, found)
            else:
                erased = erasing.erase_records(connection, scope_key(scope), wanted)
        erasing.forget_pages(self._engine)
        return erased

    # Reading

    def scopes(self, *, within: Scope | None = None) -> list[ScopeState]:
        """Give every scope, or those that include ``within``, by key."""
        with reading(self._engine) as connection:
            states = self._states(connection)
        return [state for state in states if within is None or includes(state.scope, within)]

    def visible(self, scope: Scope) -> list[ScopeState]:
        """Give the scopes that a request with this scope may see: its own and every wider one."""
        keys = list(visible_keys(scope))
        states = []
        with reading(self._engine) as connection:
            for some in chunks(keys):
                rows = connection.execute(select(scopes).where(scopes.c.key.in_(some)))
                states += [_state(row) for row in rows]
        return sorted(states, key=lambda state: state.key)

    def changed(
        self, key: str, *, since: int = 0, kinds: Iterable[str] | None = None
    ) -> tuple[ScopeState, list[Record]]:
        """Give a scope's state, and its records written after a version, retired or not, by (version, id)."""
        with reading(self._engine) as connection:
            row = connection.execute(select(scopes).where(scopes.c.key == key)).one_or_none()
            if row is None:
                raise LedgerError(f"the ledger has no scope {key!r}")
            state = _state(row)
            return state, records_in(connection, key, state.scope, since=since, kinds=kinds)

    def get(self, ids: Iterable[str], scope: Scope) -> dict[str, Record]:
        """Give the records with these ids that a request with this scope may see; the rest is left out."""
        states = {state.key: state.scope for state in self.visible(scope)}
        with reading(self._engine) as connection:
            return records_by_id(connection, ids, states)

    def vectors(self, key: str, embedder: str, *, since: int = 0) -> dict[str, bytes]:
        """Give the vectors of a scope's records that were written after a version, by id."""
        query = (
            select(vectors.c.record_id, vectors.c.vector)
            .join(records, records.c.id == vectors.c.record_id)
            .where(records.c.scope_key == key, records.c.version > since, vectors.c.embedder == embedder)
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return dict(sorted((row.record_id, row.vector) for row in rows))

    def embedded(
        self, key: str, embedder: str, *, since: int = 0, with_vectors: bool = True
    ) -> tuple[ScopeState, list[Embedded]]:
        """Give a scope's state, and its records written after a version with their vectors, by (version, id).

        Unlike `changed` this reads no texts. It also gives retired records, and those without a vector.
        """
        with reading(self._engine) as connection:
            row = connection.execute(select(scopes).where(scopes.c.key == key)).one_or_none()
            if row is None:
                raise LedgerError(f"the ledger has no scope {key!r}")
            return _state(row), embedded.embedded_in(
                connection, key, embedder, since=since, with_vectors=with_vectors
            )

    def embedded_among(
        self, ids: Iterable[str], keys: Iterable[str], embedder: str, *, with_vectors: bool = True
    ) -> list[Embedded]:
        """Give those of these records that lie in scopes with these keys, with their vectors, by id."""
        with reading(self._engine) as connection:
            return embedded.embedded_among(connection, ids, keys, embedder, with_vectors=with_vectors)

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        """Give how many records each of these scopes holds, retired ones too."""
        with reading(self._engine) as connection:
            return embedded.count_by_scope(connection, keys)

    def drop_vectors(self, embedder: str) -> int:
        """Drop all vectors of one embedder, which no index uses any more, and give how many these were."""
        with writing(self._engine) as connection:
            return embedded.drop_vectors(connection, embedder)

    def recalls(self, ids: Iterable[str]) -> dict[str, dict[str, int]]:
        """Give how often records were recalled: by record, then by session."""
        counted: dict[str, dict[str, int]] = {}
        with reading(self._engine) as connection:
            for some in chunks(sorted(set(ids))):
                query = select(recalls).where(recalls.c.record_id.in_(some))
                for row in connection.execute(query.order_by(recalls.c.at)):
                    counted.setdefault(row.record_id, {})[row.session] = row.times
        return dict(sorted(counted.items()))

    def promotions(self, scope: Scope) -> list[Promotion]:
        """Give the promotions in a scope, in the order in which they happened."""
        query = select(promotions).join(records, records.c.id == promotions.c.record_id)
        with reading(self._engine) as connection:
            rows = connection.execute(query.where(records.c.scope_key == scope_key(scope))).all()
        found = [
            Promotion(
                row.record_id,
                row.rule,
                row.rules_version,
                from_microseconds(row.at),
                orjson.loads(row.because),
            )
            for row in rows
        ]
        return sorted(found, key=lambda promotion: (promotion.at, promotion.record_id, promotion.rule))

    def body(self, digest: str, scope: Scope) -> bytes | None:
        """Give a large body that a request with this scope may see, or None."""
        query = select(bodies.c.body).where(bodies.c.digest == digest)
        with reading(self._engine) as connection:
            return connection.scalars(query.where(bodies.c.scope_key.in_(list(visible_keys(scope))))).first()

    def counts(self) -> dict[str, int]:
        """Give how many rows each table holds."""
        with reading(self._engine) as connection:
            return {
                table.name.removeprefix("loadmaster_"): connection.scalar(
                    select(func.count()).select_from(table)
                )
                or 0
                for table in tables.sorted_tables
            }

    def export(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Give all that is kept of a scope and of those that include it, as JSON data, by scope and id."""
        for state in self.scopes(within=scope):
            found = self.changed(state.key)[1]
            counted = self.recalls(record.id for record in found)
            for record in sorted(found, key=lambda record: record.id):
                yield {**record.to_dict(), "recalls": counted.get(record.id, {})}

    # What indexes keep about themselves

    def mark(self, index: str, key: str) -> Mark:
        """Give how far an index holds a scope."""
        query = select(marks).where(marks.c.index_name == index, marks.c.scope_key == key)
        with reading(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        return Mark(row.version, row.epoch) if row else Mark()

    def behind(self, index: str) -> list[ScopeState]:
        """Give the scopes that an index does not hold to the end, by key."""
        held = marks.c.index_name == index
        query = (
            select(scopes)
            .outerjoin(marks, (marks.c.scope_key == scopes.c.key) & held)
            .where(
                (func.coalesce(marks.c.version, 0) < scopes.c.version)
                | (func.coalesce(marks.c.epoch, 0) < scopes.c.epoch)
            )
        )
        with reading(self._engine) as connection:
            states = [_state(row) for row in connection.execute(query)]
        return sorted(states, key=lambda state: state.key)

    def set_mark(self, index: str, key: str, mark: Mark) -> None:
        """Note that an index holds a scope up to a version. Marks of one epoch never go back."""
        with writing(self._engine) as connection:
            row = {"index_name": index, "scope_key": key, "version": 0, "epoch": 0}
            insert_missing(connection, marks, [row])
            newer = (marks.c.epoch < mark.epoch) | (
                (marks.c.epoch == mark.epoch) & (marks.c.version < mark.version)
            )
            mine = (marks.c.index_name == index) & (marks.c.scope_key == key)
            connection.execute(
                marks.update().where(mine, newer).values(version=mark.version, epoch=mark.epoch)
            )

    def clear_marks(self, index: str) -> None:
        """Forget how far an index is: it is about to be rebuilt."""
        with writing(self._engine) as connection:
            connection.execute(marks.delete().where(marks.c.index_name == index))

    def setting(self, name: str) -> str | None:
        """Give a setting that is shared by all who open this ledger, such as an index's embedder."""
        with reading(self._engine) as connection:
            return connection.scalar(select(meta.c.value).where(meta.c.key == f"setting:{name}"))

    def settle(self, name: str, value: str, *, instead_of: str | None = None) -> str:
        """Set a setting unless somebody has, or if it still is ``instead_of``; give what it is now."""
        key = f"setting:{name}"
        with writing(self._engine) as connection:
            insert_or_set(connection, meta, {"key": key, "value": value}, instead_of)
            return str(connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one())

    @staticmethod
    def _states(connection: Connection) -> list[ScopeState]:
        return sorted(
            (_state(row) for row in connection.execute(select(scopes))), key=lambda state: state.key
        )


def _state(row: Any) -> ScopeState:
    return ScopeState(row.key, orjson.loads(row.scope), row.version, row.epoch)


def _lock(connection: Connection, key: str) -> None:
    """Wait for the scope's other writers, without making a new version."""
    connection.execute(scopes.update().where(scopes.c.key == key).values(version=scopes.c.version))
