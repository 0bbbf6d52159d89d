"""Inserts that meet a row which is there already: the words that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def _insert(connection: Connection, table: Table) -> Any:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)


def insert_missing(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert the rows whose primary key is not there yet."""
    if rows:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


def add_recalls(connection: Connection, recalls: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert recalls, or add to the count of those that are there; the first time stays."""
    if not rows:
        return
    statement = _insert(connection, recalls)
    raised = {"times": recalls.c.times + statement.excluded.times}
    connection.execute(
        statement.on_conflict_do_update(index_elements=list(recalls.primary_key), set_=raised), rows
    )


def insert_or_set(connection: Connection, meta: Table, row: dict[str, str], instead_of: str | None) -> None:
    """Insert a setting, or set it where it still has the value that is to be replaced."""
    statement = _insert(connection, meta)
    if instead_of is None:
        statement = statement.on_conflict_do_nothing()
    else:
        statement = statement.on_conflict_do_update(
            index_elements=[meta.c.key], set_={"value": row["value"]}, where=meta.c.value == instead_of
        )
    connection.execute(statement, row)
