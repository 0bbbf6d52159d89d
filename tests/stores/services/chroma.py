"""A Chroma server for tests."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.stores.services.servers import Missing, NotStarted, Server, start

RUN = "from chromadb.cli.cli import app; app()"


@dataclass(frozen=True, slots=True)
class Chroma:
    """A running Chroma server."""

    server: Server

    @property
    def url(self) -> str:
        """Give the URL that clients are given."""
        return f"http://127.0.0.1:{self.server.port}"

    def reset(self) -> None:
        """Remove all collections of all tenants."""
        status, answer = _ask(self.server.port, "POST", "/api/v2/reset")
        if status != 200:
            raise NotStarted(f"Chroma does not empty itself: {status} {answer}")


def start_chroma() -> Chroma:
    """Start what ``chroma run`` starts, on an empty folder.

    Raises:
        Missing: Chroma is not installed.
        NotStarted: It does not come up.
    """
    if find_spec("chromadb") is None:
        raise Missing("chromadb is not installed; install it with: pip install 'loadmaster[chroma]'")
    return Chroma(start("chroma", _prepare, _ready))


def _prepare(folder: Path, port: int) -> Sequence[str]:
    settings = {
        "port": port,
        "listen_address": "127.0.0.1",
        "persist_path": str(folder / "data"),
        "allow_reset": True,  # no option of the command line does this
    }
    config = folder / "config.yaml"
    config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    return [sys.executable, "-c", RUN, "run", str(config)]


def _ready(port: int) -> bool:
    try:
        return _ask(port, "GET", "/api/v2/heartbeat")[0] == 200
    except OSError:
        return False


def _ask(port: int, method: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()
