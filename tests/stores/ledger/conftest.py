from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loadmaster.stores.clock import ManualClock
from loadmaster.stores.ledger.ledger import Ledger


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def ledger(tmp_path: Path, clock: ManualClock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db", clock=clock) as opened:
        yield opened
