"""The database behind the ledger: an SQLite file by default, PostgreSQL by URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from loadmaster.stores.extras import extra
from loadmaster.stores.ledger.schema import SchemaTooNew
from loadmaster.stores.port import SourceUnavailable, StoreError

_BUSY_SECONDS = 30


class LedgerError(StoreError):
    """The ledger refuses, or its database failed; nothing of the write that was under way is kept."""


class LedgerUnavailable(SourceUnavailable, LedgerError):
    """The database cannot be reached, is full, locked or broken."""

    def __init__(self, reason: str) -> None:
        SourceUnavailable.__init__(self, "ledger", reason)


def open_engine(url: str | Path) -> Engine:
    """Give the engine of a ledger: a path is an SQLite file, whose folder must exist.

    Raises:
        LedgerError: The URL is neither SQLite nor PostgreSQL, or names a folder that is not there.
        ImportError: The PostgreSQL driver is not installed; the message names the extra.
    """
    text = str(url)
    try:
        place = make_url(text if "://" in text else f"sqlite:///{text}")
    except ArgumentError as error:
        raise LedgerError(f"{text!r} is neither a path nor a database URL: {error}") from None
    backend = place.get_backend_name()
    if backend == "postgresql":
        if place.drivername == "postgresql":
            place = place.set(drivername="postgresql+psycopg")
        with extra("postgres"):
            return create_engine(place, pool_pre_ping=True)
    if backend != "sqlite":
        raise LedgerError(
            f"a ledger lies in SQLite or PostgreSQL, not in {backend}; give a path or such a URL"
        )
    file = place.database
    if not file or file == ":memory:":
        raise LedgerError("a ledger is a file, not :memory:, so that what is acknowledged lasts; give a path")
    if not Path(file).absolute().parent.is_dir():
        raise LedgerError(
            f"the folder {str(Path(file).absolute().parent)!r} of the ledger does not exist; create it"
        )
    engine = create_engine(place, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """Take the write lock at once where a write will follow: upgrading a read lock can fail as busy."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that sees one state of the ledger.

    Raises:
        LedgerUnavailable: The database failed.
    """
    with _plain_errors(), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection whose changes are kept together when the block ends, or not at all.

    Raises:
        LedgerUnavailable: The database failed; nothing was kept.
    """
    with _plain_errors(), engine.connect() as connection:
        connection = connection.execution_options(writes=True)
        with connection.begin():
            yield connection


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except SchemaTooNew as error:
        raise LedgerError(str(error)) from error
    except DBAPIError as error:
        raise LedgerUnavailable(_plain(str(error.orig))) from error
    except (NoSuchModuleError, SQLAlchemyError) as error:
        raise LedgerUnavailable(_plain(str(error))) from error


def _plain(message: str) -> str:
    first = message.strip().splitlines()[0] if message.strip() else "the database gave no reason"
    if "disk is full" in first or "No space left" in message:
        return f"{first}; free space and write again, nothing of this write was kept"
    if "locked" in first:
        return f"{first} for {_BUSY_SECONDS} seconds by another process; write again"
    if "malformed" in first or "not a database" in first:
        return f"{first}; restore the ledger file from a backup, the indexes are rebuilt from it"
    return first
