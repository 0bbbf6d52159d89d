"""Run one server for a test process: end it, and remove its folder, as soon as standard input closes.

The test process holds the other end of that pipe, and the kernel closes it however that process ends: at the
end of the run, by Ctrl-C, or by a SIGKILL that lets nothing else clean up. Run as a script, by its path.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

GRACE_SECONDS = 10


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="removed at the end")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--stop", default="SIGTERM", help="the signal that asks the server to end")
    parser.add_argument("--user", type=int, help="run the server as this user")
    parser.add_argument("--group", type=int)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with asked.log.open("ab") as log:
        server = subprocess.Popen(
            asked.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=asked.folder,
            start_new_session=True,  # a process group of its own, which `end` ends as a whole
            user=asked.user,
            group=asked.group,
            extra_groups=None if asked.user is None else [],
        )
    try:
        (asked.folder / "server.pid").write_text(str(server.pid), encoding="ascii")
        while server.poll() is None:
            if select.select([sys.stdin], [], [], 0.1)[0]:
                break
        return server.returncode or 0
    finally:
        end(server, signal.Signals[asked.stop])
        shutil.rmtree(asked.folder, ignore_errors=True)


def end(server: subprocess.Popen[bytes], asked: signal.Signals) -> None:
    """Ask the server to end, then make it: it and all that is left of its process group."""
    for sent in (asked, signal.SIGKILL):
        try:
            os.killpg(server.pid, sent)
            server.wait(GRACE_SECONDS)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
