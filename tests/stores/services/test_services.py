"""The servers that the store tests run on: real, empty for each test, and gone with the test process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import create_engine, inspect, text
from tests.stores.services.backends import REQUIRE, Backend, unavailable
from tests.stores.services.postgres import find_binaries, unprivileged
from tests.stores.services.servers import Missing, NotStarted, free_port, start

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_an_empty_ledger_and_an_empty_chroma(backend: Backend, turn: int) -> None:
    import chromadb

    engine = create_engine(backend.ledger_url)
    assert engine.dialect.name == {"embedded": "sqlite", "servers": "postgresql"}[backend.name]
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == []
        connection.execute(text("CREATE TABLE notes (body TEXT)"))
        connection.execute(text("INSERT INTO notes VALUES (:body)"), {"body": "Grüße"})
        assert connection.execute(text("SELECT body FROM notes")).scalar_one() == "Grüße"
    engine.dispose()

    remote, _, port = backend.chroma.rpartition(":")
    client = (
        chromadb.HttpClient(host="127.0.0.1", port=int(port))
        if remote == "http://127.0.0.1"
        else chromadb.PersistentClient(backend.chroma)
    )
    assert client.count_collections() == 0
    collection = client.create_collection("notes", embedding_function=None)
    collection.add(ids=["a", "b"], embeddings=np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    nearest = collection.query(query_embeddings=np.array([[0.9, 0.1]], dtype=np.float32), n_results=1)
    assert nearest["ids"] == [["a"]]


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 2])
def test_an_emptied_chroma_holds_no_tenants_either(chroma_server_url: str, turn: int) -> None:
    import chromadb
    from chromadb.config import Settings

    port = int(chroma_server_url.rpartition(":")[2])
    settings = Settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host="127.0.0.1",
        chroma_server_http_port=port,
        anonymized_telemetry=False,
    )
    admin = chromadb.AdminClient(settings)
    admin.create_tenant("another")
    admin.create_database("another", tenant="another")  # which refuses a name that is taken
    client = chromadb.HttpClient(host="127.0.0.1", port=port, tenant="another", database="another")
    assert client.count_collections() == 0
    client.create_collection("notes", embedding_function=None)


KILLED = """
import time
from tests.stores.services.{module} import start_{module}
server = start_{module}().server
print(server.port, server.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["postgres", "chroma"])
@pytest.mark.parametrize(
    "sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["SIGKILL", "SIGTERM", "SIGINT"]
)
def test_no_server_outlives_its_test_process(
    module: str, sent: signal.Signals, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(module)  # skips the test where the server is not installed
    program = KILLED.format(module=module)
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port, place = process.stdout.readline().split()
        folder = Path(place)
        server = int((folder / "server.pid").read_text(encoding="ascii"))
        assert exists(server) and listens(int(port))
        process.send_signal(sent)
    assert process.returncode != 0
    deadline = time.monotonic() + 30
    while exists(server) or listens(int(port)) or folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_that_ends_at_once_is_told_with_its_log() -> None:
    folders = []

    def prepare(folder: Path, port: int) -> list[str]:
        folders.append(folder)
        return [sys.executable, "-c", f"import sys; sys.exit('no room on port {port}')"]

    with pytest.raises(NotStarted, match="no room on port"):
        start("failing", prepare, lambda _: False)
    assert len(folders) == 3 and not any(folder.exists() for folder in folders)


def test_a_free_port_is_not_one_that_is_listened_on() -> None:
    with socket.socket() as listening:
        taken = free_port()
        listening.bind(("127.0.0.1", taken))
        listening.listen()
        assert free_port() != taken


def test_what_is_missing_skips_or_fails_with_the_command_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Missing, match=r"apt-get install .*postgresql") as missing:
        find_binaries([str(tmp_path)], tmp_path / "postgresql")
    monkeypatch.delenv(REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install"):
        unavailable(missing.value)
    monkeypatch.setenv(REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install"):
        unavailable(missing.value)


def test_the_path_comes_before_the_newest_of_debian(tmp_path: Path) -> None:
    for version in ("9.6", "15", "17"):
        install(tmp_path / "debian" / version / "bin")
    assert find_binaries([], tmp_path / "debian") == tmp_path / "debian" / "17" / "bin"
    install(tmp_path / "own")
    assert find_binaries(["", str(tmp_path / "own")], tmp_path / "debian") == tmp_path / "own"
    (tmp_path / "own" / "initdb").unlink()
    assert find_binaries([str(tmp_path / "own")], tmp_path / "debian").parts[-2] == "17"


def install(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (folder / name).touch(mode=0o755)


def test_root_hands_postgresql_to_an_account_that_is_not_root() -> None:
    account = unprivileged()
    assert (account is None) == (os.geteuid() != 0)
    assert account is None or account.user != 0
