"""The ledger's tables, and the steps that bring an older ledger to them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)

SCHEMA_VERSION = 2

tables = MetaData()

meta = Table(
    "loadmaster_meta",
    tables,
    Column("key", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

scopes = Table(
    "loadmaster_scopes",
    tables,
    Column("key", String(32), primary_key=True),
    Column("scope", Text, nullable=False),
    Column("version", BigInteger, nullable=False),  # raised by each write, under a lock until it commits
    Column("epoch", BigInteger, nullable=False),  # raised by each erasure: what was read before is void
)

records = Table(
    "loadmaster_records",
    tables,
    Column("id", Text, primary_key=True),
    Column("scope_key", ForeignKey(scopes.c.key), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("body", Text, nullable=False),  # what never changes, as JSON
    Column("tier", Text),
    Column("conflict", Text),
    Column("pinned", Boolean, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),  # all times in microseconds since 1970
    Column("retired_at", BigInteger),
    Column("valid_until", BigInteger),
    Column("closed_at", BigInteger),
    Column("expires_at", BigInteger),
    Index("loadmaster_records_by_version", "scope_key", "version"),
)

links = Table(
    "loadmaster_links",
    tables,
    Column("target_id", Text, primary_key=True),  # need not be in the ledger
    Column("record_id", ForeignKey(records.c.id), primary_key=True, index=True),
    Column("derived", Boolean, nullable=False),  # else it only supersedes the target
)

vectors = Table(
    "loadmaster_vectors",
    tables,
    Column("record_id", ForeignKey(records.c.id), primary_key=True),
    Column("embedder", String(200), primary_key=True),
    Column("vector", LargeBinary, nullable=False),  # little-endian int16, on the grid of `embeddings`
)

recalls = Table(
    "loadmaster_recalls",
    tables,
    Column("record_id", ForeignKey(records.c.id), primary_key=True),
    Column("session", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),  # the first recall in this session
    Column("times", Integer, nullable=False),
)

promotions = Table(
    "loadmaster_promotions",
    tables,
    Column("record_id", ForeignKey(records.c.id), primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("rules_version", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("because", Text, nullable=False),  # JSON: what the rule saw
)

bodies = Table(
    "loadmaster_bodies",
    tables,
    Column("scope_key", ForeignKey(scopes.c.key), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
)

marks = Table(
    "loadmaster_marks",
    tables,
    Column("index_name", String(200), primary_key=True),
    Column("scope_key", ForeignKey(scopes.c.key), primary_key=True),
    Column("version", BigInteger, nullable=False),  # the index holds all of the scope up to here
    Column("epoch", BigInteger, nullable=False),
)


class SchemaTooNew(Exception):
    """The ledger was written by a newer Loadmaster."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the ledger has schema {found}, and this Loadmaster reads up to {SCHEMA_VERSION}; "
            "upgrade Loadmaster, or open the ledger with the version that wrote it"
        )


def prepare(connection: Connection) -> int:
    """Create the tables, or bring an older ledger up to date, in the caller's transaction.

    Returns:
        The schema version that was found; 0 for a new ledger.

    Raises:
        SchemaTooNew: The ledger is from the future; nothing was changed.
    """
    found = found_version(connection)
    if found > SCHEMA_VERSION:
        raise SchemaTooNew(found)
    if found == SCHEMA_VERSION:
        return found
    if found == 0:
        tables.create_all(connection)
        connection.execute(meta.insert().values(key="schema", value=str(SCHEMA_VERSION)))
        return found
    for version in range(found, SCHEMA_VERSION):
        for statement in _STEPS[version]:
            connection.exec_driver_sql(statement)
    tables.create_all(connection)  # tables that the older schema did not have
    connection.execute(meta.update().where(meta.c.key == "schema").values(value=str(SCHEMA_VERSION)))
    return found


def found_version(connection: Connection) -> int:
    """Give the schema version of a ledger, 0 where there is none."""
    if not inspect(connection).has_table(meta.name):
        return 0
    value = connection.scalar(select(meta.c.value).where(meta.c.key == "schema"))
    return int(value) if value is not None else 0


_STEPS: dict[int, tuple[str, ...]] = {
    # 1 -> 2: when the end of a validity became known, so that "what did we know then" has an answer;
    # before, an end counts as known from the beginning. Indexes mark how far they are, scope by scope.
    1: ("ALTER TABLE loadmaster_records ADD COLUMN closed_at BIGINT",),
}
