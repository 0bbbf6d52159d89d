"""Screens as golden files: each case at 80 and at 120 columns, without colour and with it.

`LOADMASTER_GOLDEN=write pytest tests/cli` writes the files anew; read the difference before committing it.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from loadmaster.screens.page import Page

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
WIDTHS = (80, 120)
_DIGEST = re.compile(r"(sha256:)[0-9a-f]{12,64}…?")


def shown(page: Page, width: int, colour: bool) -> str:
    """Render a page as a terminal would get it, the escape character made visible."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    with console.capture() as capture:
        for line in page.lines:
            console.print(line, soft_wrap=True)
    return _DIGEST.sub(r"\1…", capture.get()).replace("\x1b", "␛")


def all_forms(draw: Callable[[int], Page]) -> str:
    parts = []
    for colour in (False, True):
        for width in WIDTHS:
            title = f"{width} columns, {'with' if colour else 'without'} colour"
            parts.append(f"{'=' * 8} {title} {'=' * 8}\n{shown(draw(width), width, colour)}")
    return "\n".join(parts)


def check(name: str, draw: Callable[[int], Page]) -> None:
    """Compare a screen with its golden file, or write that file."""
    path = GOLDEN / f"{name}.txt"
    text = all_forms(draw)
    if os.environ.get("LOADMASTER_GOLDEN") == "write":
        path.write_text(text, "utf-8", newline="\n")
    assert path.exists(), f"{path.name} is missing; run with LOADMASTER_GOLDEN=write"
    assert text == path.read_text("utf-8"), (
        f"{path.name} differs; run with LOADMASTER_GOLDEN=write and look at it"
    )


@pytest.fixture
def golden() -> Callable[[str, Callable[[int], Page]], None]:
    return check
