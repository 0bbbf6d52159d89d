"""Real servers for tests: each in a temporary folder, on a free loopback port, and gone when the run is."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
START_SECONDS = 60
STARTS = 3


class Missing(Exception):
    """A server cannot be run here; the message says what to install, and how."""


class NotStarted(Exception):
    """A server is installed, but does not come up; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as, where that may not be us."""

    user: int
    group: int


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and the guard that ends it."""

    port: int
    folder: Path
    guard: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End the server, wait until it has ended, and remove its folder."""
        assert self.guard.stdin is not None
        self.guard.stdin.close()
        self.guard.wait(START_SECONDS)


def start(
    name: str,
    prepare: Callable[[Path, int], Sequence[str]],
    ready: Callable[[int], bool],
    *,
    stop: str = "SIGTERM",
    account: Account | None = None,
) -> Server:
    """Start a server and wait until it answers.

    Args:
        name: Part of the folder's name.
        prepare: Given the new folder and a port, fills the folder and gives the command to run there.
        ready: Tells whether the server answers on the port.
        stop: The signal by which the server is asked to end.
        account: Whom the server runs as; the folder is theirs.

    Raises:
        NotStarted: It ended or did not answer, on several ports.
    """
    tail = ""
    for _ in range(STARTS):
        port = free_port()
        folder = _new_folder(name, account)
        try:
            command = prepare(folder, port)
        except BaseException:
            shutil.rmtree(folder)
            raise
        log = folder / "server.log"
        log.touch()
        with log.open(errors="replace") as kept:  # readable also after the guard has removed the folder
            server = Server(port, folder, _guarded(command, folder, log, stop, account))
            if _answers(server, ready):
                return server
            server.stop()
            tail = kept.read()[-2000:]
    raise NotStarted(f"{name} did not come up, {STARTS} times on different ports; its log ends with:\n{tail}")


def free_port() -> int:
    """Give a loopback port on which nothing listens, and that no other test process is about to take.

    The ports lie below those that systems give to outgoing connections, and each process begins at another.
    """
    first, count = 20_000, 12_000
    for step in range(count):
        port = first + (os.getpid() * 4 + step) % count
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise NotStarted(f"no loopback port from {first} to {first + count - 1} is free")


def _new_folder(name: str, account: Account | None) -> Path:
    """Make a folder that is not pytest's own: into those, no other account may go."""
    folder = Path(tempfile.mkdtemp(prefix=f"loadmaster-{name}-"))
    if account is not None:
        os.chown(folder, account.user, account.group)
    return folder


def _guarded(
    command: Sequence[str], folder: Path, log: Path, stop: str, account: Account | None
) -> subprocess.Popen[bytes]:
    options = ["--folder", str(folder), "--log", str(log), "--stop", stop]
    if account is not None:
        options += ["--user", str(account.user), "--group", str(account.group)]
    return subprocess.Popen(
        [sys.executable, str(GUARD), *options, "--", *command],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C must not reach it: it ends when we do, after the last test
    )


def _answers(server: Server, ready: Callable[[int], bool]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while server.guard.poll() is None and time.monotonic() < deadline:
        if ready(server.port):
            return True
        time.sleep(0.05)
    return False
