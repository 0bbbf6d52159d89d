"""Where a test's stores live: one ledger and one Chroma, both empty and the test's own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NoReturn

import pytest

REQUIRE = "LOADMASTER_REQUIRE_SERVICES"


@dataclass(frozen=True, slots=True)
class Backend:
    """What a test opens its stores on: ``chroma`` is a folder's path or an http URL."""

    name: str
    ledger_url: str
    chroma: str


def unavailable(reason: Exception) -> NoReturn:
    """Skip the test, or fail it where servers are required, as they are in CI."""
    if os.environ.get(REQUIRE) == "1":
        raise pytest.fail.Exception(f"{REQUIRE}=1, but {reason}", pytrace=False) from None
    raise pytest.skip.Exception(str(reason)) from None
