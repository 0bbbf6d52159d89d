"""A Chroma folder: owned by one process at a time, read by a child first, moved aside when ruined."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from loadmaster.stores.vectors.chroma import ChromaFailed
from loadmaster.stores.vectors.report import FolderInUse

_ROOM = 1 << 20  # bytes that must still fit, or else a folder may be unreadable for lack of room


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the child found in a folder.

    Attributes:
        ruined: Why the folder cannot be used; None if it can.
        collections: How many collections it holds.
        found: The collection asked for is among them.
        empty: There is no folder, or nothing in it.
    """

    ruined: str | None = None
    empty: bool = False
    collections: int = 0
    found: bool = False


class Folder:
    """Beside the folder lie ``.lock``, held while this process owns it, and ``.owner``, which names the
    process, and is still there at the next opening if this one did not close.
    """

    def __init__(self, path: str, *, seconds: float) -> None:
        self.path = Path(path).absolute()
        self._seconds = seconds
        self._owner = self._beside(".owner")
        self._lock = FileLock(self._beside(".lock"), thread_local=False)
        self._unclean = False

    def own(self) -> None:
        """Become the folder's owner, unless this already is.

        Raises:
            FolderInUse: Somebody else is.
            ChromaFailed: The lock cannot be written.
        """
        if self._lock.is_locked:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout:
            raise FolderInUse(str(self.path), self._owner_pid()) from None
        except OSError as error:
            raise ChromaFailed(f"the Chroma folder cannot be locked: {error}") from error
        self._unclean = self._owner.exists()
        try:
            self._owner.write_text(str(os.getpid()), encoding="ascii")
        except OSError:  # it only helps others to find us
            self._unclean = True

    def release(self, *, clean: bool) -> None:
        """Give the folder up; a clean end spares the next owner the long check."""
        if not self._lock.is_locked:
            return
        if clean:
            self._owner.unlink(missing_ok=True)
        self._lock.release()

    def check(self, collection: str) -> Verdict:
        """Let a child process read the folder, the whole of it if its last owner did not close it.

        Raises:
            ChromaFailed: It cannot be told whether the folder is ruined, such as on a full disk.
        """
        if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
            return Verdict(empty=True)
        how = "all" if self._unclean else "some"
        command = [sys.executable, "-m", "loadmaster.stores.vectors.probe", str(self.path), collection, how]
        try:
            child = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return self._ruined(f"reading it took longer than {self._seconds:g} seconds")
        except OSError as error:
            raise ChromaFailed(f"no process can be started to check the Chroma folder: {error}") from error
        if child.returncode < 0:
            return self._ruined(f"reading it killed the process ({_signal(-child.returncode)})")
        if child.returncode:
            said = child.stderr.decode(errors="replace").strip().splitlines()
            return self._ruined(said[-1] if said else f"reading it ended with status {child.returncode}")
        found = json.loads(child.stdout.decode().splitlines()[-1])
        return Verdict(collections=len(found["collections"]), found=found["found"])

    def _ruined(self, reason: str) -> Verdict:
        trial = self._beside(".room")
        try:
            with trial.open("wb") as file:
                file.write(b"\0" * _ROOM)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ChromaFailed(f"the Chroma folder cannot be read, nor its disk written: {error}") from error
        finally:
            trial.unlink(missing_ok=True)
        return Verdict(ruined=reason)

    def set_aside(self) -> Path:
        """Move the folder out of the way, and give where it is now.

        Raises:
            ChromaFailed: It cannot be moved.
        """
        number = 1
        while (place := self._beside(f".ruined-{number}")).exists():
            number += 1
        try:
            self.path.rename(place)
        except OSError as error:
            raise ChromaFailed(f"the ruined Chroma folder cannot be moved aside: {error}") from error
        return place

    def all_set_aside(self) -> tuple[str, ...]:
        """Give the ruined folders that have been moved aside and are still there."""
        try:
            names = os.listdir(self.path.parent)
        except OSError:
            return ()
        start = f"{self.path.name}.ruined-"
        return tuple(sorted(str(self.path.with_name(name)) for name in names if name.startswith(start)))

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def _owner_pid(self) -> int | None:
        try:
            return int(self._owner.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
