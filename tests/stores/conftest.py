"""Where stores live in tests: embedded (SQLite, a Chroma folder) or on servers (PostgreSQL, Chroma).

Servers are started when the first test asks for them, one of each for every test process, so that no two
tests ever share one at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.stores.services.backends import Backend, unavailable
from tests.stores.services.chroma import Chroma, start_chroma
from tests.stores.services.postgres import Postgres, start_postgres
from tests.stores.services.servers import Missing

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    try:
        running = start_postgres()
    except Missing as reason:
        unavailable(reason)
    yield running
    running.server.stop()


@pytest.fixture(scope="session")
def chroma() -> Iterator[Chroma]:
    try:
        running = start_chroma()
    except Missing as reason:
        unavailable(reason)
    yield running
    running.server.stop()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """Give the URL of an empty database of the test's own."""
    database = f"test_{next(_numbers)}"
    yield postgres.create(database)
    postgres.drop(database)


@pytest.fixture
def chroma_server_url(chroma: Chroma) -> str:
    """Give the URL of a Chroma server that holds nothing."""
    chroma.reset()
    return chroma.url


@pytest.fixture(params=["embedded", pytest.param("servers", marks=pytest.mark.slow)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Give each place that stores can live in: a test with this fixture runs once on each."""
    if request.param == "embedded":
        folder = tmp_path / "backend"
        folder.mkdir()
        return Backend("embedded", f"sqlite:///{folder / 'ledger.sqlite3'}", str(folder / "chroma"))
    return Backend(
        "servers", request.getfixturevalue("postgres_url"), request.getfixturevalue("chroma_server_url")
    )
