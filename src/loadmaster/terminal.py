"""Reading documents, and writing data to stdout and words to stderr, whatever the terminal is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.core.reading import parse_json
from loadmaster.screens.page import Page
from loadmaster.screens.words import count, safe

LEAST_WIDTH = 72
MOST_FAULTS = 50
"""More faults than this are not listed in words; the JSON on stdout holds all."""
T = TypeVar("T")


def read_bytes(name: str) -> bytes:
    """Read a file or stdin whole.

    Raises:
        InvalidInput: It cannot be read, or there is nothing in it.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput([Fault("$", f"cannot read {safe(name)}: {reason}")]) from None
    if not data.strip():
        raise InvalidInput([Fault("$", f"{name_of(name)} is empty")])
    return data


def read_plain_json(name: str) -> Any:
    """Read strict JSON, but with the numbers that a provider's client would send."""
    data = read_bytes(name)
    named(name, lambda: parse_json(data))
    return json.loads(data)


def named(name: str, read: Callable[[], T]) -> T:
    """Read with faults of the whole document saying which document it is."""
    try:
        return read()
    except InvalidInput as error:
        raise InvalidInput(
            Fault(fault.path, f"{name_of(name)} {fault.message}") if fault.path == "$" else fault
            for fault in error.faults
        ) from None


def name_of(name: str) -> str:
    """Give the name of a document as a message shows it."""
    return "stdin" if name == "-" else safe(name)


def write(text: str) -> None:
    """Write data to stdout as UTF-8, whatever the terminal's encoding and newlines are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def write_json(data: Any) -> None:
    """Write JSON to stdout: laid out for a person at a terminal, else on one line."""
    layout: dict[str, Any] = {"indent": 2} if sys.stdout.isatty() else {"separators": (",", ":")}
    write(json.dumps(data, ensure_ascii=False, allow_nan=False, **layout) + "\n")


class CannotWrite(Exception):
    """A file that the user named cannot be written; the message says why."""


def write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that it is never seen half-written; a device or pipe is written as it is."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.writelines(chunks)
            return
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("xb") as file:
                file.writelines(chunks)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotWrite(f"cannot write {safe(path)}: {reason}") from None


def say(line: str) -> None:
    """Say a line on stderr."""
    with suppress(BrokenPipeError):
        _console(stderr=True).print(safe(line), soft_wrap=True)


def show(page: Page) -> None:
    """Show a screen on stdout."""
    console = _console()
    for line in page.lines:
        console.print(line, soft_wrap=True)


def width() -> int:
    """Give the columns that screens may use."""
    return max(_console().width, LEAST_WIDTH)


def _console(stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    with suppress(AttributeError, ValueError):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def say_faults(faults: Sequence[Fault]) -> None:
    """Say the first faults on stderr, each on a line."""
    if len(faults) == 1 and faults[0].path == "$":
        say(f"error: {faults[0].message}")
        return
    say(f"error: invalid input, {count(len(faults), 'fault')}")
    for fault in faults[:MOST_FAULTS]:
        say(f"  {fault.path}: {fault.message}")
    if len(faults) > MOST_FAULTS:
        say(f"  …and {count(len(faults) - MOST_FAULTS, 'more fault')}; the JSON on stdout holds all")


def forget_stdout() -> None:
    """Let nothing more be written to a pipe that nobody reads, not even at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
