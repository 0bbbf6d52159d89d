from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.stores.services.backends import Backend

from loadmaster.stores.clock import ManualClock
from loadmaster.stores.ledger.ledger import Ledger


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def ledger(backend: Backend, clock: ManualClock) -> Iterator[Ledger]:
    with Ledger(backend.ledger_url, clock=clock) as opened:
        yield opened
