"""One write: everything in it is kept together, stamped with one time and one version of its scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from loadmaster.core.canonical import canonical_json
from loadmaster.stores.clock import rfc3339, to_microseconds
from loadmaster.stores.ledger.dialects import insert_missing
from loadmaster.stores.ledger.engine import LedgerError
from loadmaster.stores.ledger.records import Record, Scope
from loadmaster.stores.ledger.rows import chunks, records_by_id, records_in, to_row
from loadmaster.stores.ledger.schema import bodies, links, promotions, records, scopes, vectors


class IdTaken(LedgerError):
    """A record's id belongs to one with other content, or in another scope."""


class Write:
    """A transaction on one scope, whose other writers wait. Made by `Ledger.write`.

    Attributes:
        now: The time of everything written here.
        version: The scope's version that this write makes. Versions commit in order, so whoever has
            read up to one has missed nothing before it.
    """

    def __init__(self, connection: Connection, scope: Scope, scope_key: str, now: datetime) -> None:
        self._connection = connection
        self.scope = scope
        self.scope_key = scope_key
        self.now = now
        text = canonical_json(scope)
        insert_missing(connection, scopes, [{"key": scope_key, "scope": text, "version": 0, "epoch": 0}])
        raised = scopes.update().where(scopes.c.key == scope_key)
        raised = raised.values(version=scopes.c.version + 1, scope=text)  # an erasure may have emptied it
        self.version: int = connection.execute(raised.returning(scopes.c.version)).scalar_one()

    def records(self, *, kinds: Iterable[str] | None = None) -> list[Record]:
        """Give the scope's records as this write sees them, retired ones too, by (version, id)."""
        return records_in(self._connection, self.scope_key, self.scope, kinds=kinds)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """Give the records of this scope with these ids; absent ones are left out."""
        return records_by_id(self._connection, ids, {self.scope_key: self.scope})

    def append(self, given: Iterable[Record]) -> list[Record]:
        """Add records, and give those that are new, in the order given; what is there already stays as it is.

        Raises:
            ValueError: A record is of another scope.
            IdTaken: An id belongs to other content, or in another scope.
        """
        fresh: dict[str, Record] = {}
        for record in given:
            if record.scope != self.scope:
                raise ValueError(
                    f"record {record.id!r} is of scope {canonical_json(record.scope)}, and this write "
                    f"of {canonical_json(self.scope)}; use one write for each scope"
                )
            if fresh.setdefault(record.id, record).digest != record.digest:
                raise IdTaken(f"record id {record.id!r} is given twice in one write, with unlike content")
        for some in chunks(list(fresh)):
            query = select(records.c.id, records.c.digest, records.c.scope_key).where(records.c.id.in_(some))
            for row in self._connection.execute(query).all():
                record = fresh.pop(row.id)
                if row.scope_key != self.scope_key or row.digest != record.digest:
                    where = "with other content" if row.scope_key == self.scope_key else "in another scope"
                    raise IdTaken(f"record id {row.id!r} is taken {where}; give another id, or none")
        rows = [to_row(record, self.scope_key, self.version, self.now) for record in fresh.values()]
        if rows:
            self._connection.execute(records.insert(), rows)
        targets = [
            {"target_id": target, "record_id": record.id, "derived": target in record.derived_from}
            for record in fresh.values()
            for target in sorted({*record.derived_from, *record.supersedes})
        ]
        if targets:
            self._connection.execute(links.insert(), targets)
        return list(self.get(fresh).values())

    def close(self, record_id: str, valid_until: datetime) -> None:
        """End the validity of a record; that it ends is known from now on.

        Raises:
            LedgerError: The scope has no such record, or its validity begins later.
        """
        record = self._one(record_id)
        if record.valid_from is not None and valid_until < record.valid_from:
            raise LedgerError(
                f"record {record_id!r} is valid from {rfc3339(record.valid_from)} and cannot end before, "
                f"at {rfc3339(valid_until)}"
            )
        self._set([record_id], valid_until=to_microseconds(valid_until), closed_at=to_microseconds(self.now))

    def retire(self, ids: Iterable[str]) -> None:
        """Take records out of what is known from now on; what was known before stays as it was."""
        self._set(list(ids), retired_at=to_microseconds(self.now))

    def change(
        self,
        ids: Iterable[str],
        *,
        tier: str | None = None,
        conflict: str | None = None,
        pinned: bool | None = None,
        expires_at: datetime | None = None,
    ) -> None:
        """Set what a memory decides about records; None leaves a field alone, an empty string empties it."""
        values: dict[str, Any] = {}
        if tier is not None:
            values["tier"] = tier or None
        if conflict is not None:
            values["conflict"] = conflict or None
        if pinned is not None:
            values["pinned"] = pinned
        if expires_at is not None:
            values["expires_at"] = to_microseconds(expires_at)
        self._set(list(ids), **values)

    def promoted(self, record_id: str, *, rule: str, rules_version: str, because: Mapping[str, Any]) -> bool:
        """Note by which rule a record was promoted; False if that rule had promoted it before."""
        earlier = promotions.c.record_id == self._one(record_id).id, promotions.c.rule == rule
        if self._connection.execute(select(promotions.c.at).where(*earlier)).first():
            return False
        row = {
            "record_id": record_id,
            "rule": rule,
            "rules_version": rules_version,
            "at": to_microseconds(self.now),
            "because": canonical_json(because),
        }
        self._connection.execute(promotions.insert(), [row])
        return True

    def put_vectors(self, embedder: str, given: Mapping[str, bytes]) -> None:
        """Keep the vectors of records beside them; a vector that is there already stays."""
        put_vectors(self._connection, embedder, given)

    def put_body(self, body: bytes) -> str:
        """Keep a large body and give its SHA-256; the same body in one scope is kept once."""
        digest = sha256(body).hexdigest()
        row = {
            "scope_key": self.scope_key,
            "digest": digest,
            "body": body,
            "recorded_at": to_microseconds(self.now),
        }
        insert_missing(self._connection, bodies, [row])
        return digest

    def _one(self, record_id: str) -> Record:
        found = self.get([record_id]).get(record_id)
        if found is None:
            raise LedgerError(f"scope {canonical_json(self.scope)} has no record {record_id!r}")
        return found

    def _set(self, ids: list[str], **values: Any) -> None:
        for some in chunks(ids):
            within = records.c.scope_key == self.scope_key, records.c.id.in_(some)
            self._connection.execute(records.update().where(*within).values(version=self.version, **values))


def put_vectors(connection: Connection, embedder: str, given: Mapping[str, bytes]) -> None:
    """Keep vectors of records that are still in the ledger; those that have gone are passed over."""
    present: set[str] = set()
    for some in chunks(sorted(given)):
        present.update(connection.scalars(select(records.c.id).where(records.c.id.in_(some))))
    rows = [{"record_id": name, "embedder": embedder, "vector": given[name]} for name in sorted(present)]
    insert_missing(connection, vectors, rows)
