"""Small parts of every screen: figures, names and lists, safe to show whatever they hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Categories of characters that move the cursor, turn the text around, or cannot be seen."""


def safe(text: object) -> str:
    """Give text on one line with every control, invisible and bidirectional character as an escape.

    >>> safe("a\\nb\\u202e")
    'a\\\\nb\\\\u202e'
    """
    raw = str(text)
    if raw.isascii() and raw.isprintable():
        return raw
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in raw)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def clip(text: object, width: int) -> str:
    """Give safe text of at most ``width`` columns, the middle left out where it is longer.

    Both ends of an id tell candidates apart, so neither is dropped.
    """
    shown = safe(text)
    if cell_len(shown) <= width:
        return shown
    keep = max(width - 1, 1)
    tail = keep // 2
    return head(shown, keep - tail) + "…" + head(shown[::-1], tail)[::-1]


def clip_end(text: object, width: int) -> str:
    """Give safe text of at most ``width`` columns, its end left out where it is longer."""
    shown = safe(text)
    return shown if cell_len(shown) <= width else head(shown, max(width - 1, 0)) + "…"


def head(text: str, width: int) -> str:
    """Give the longest beginning of at most ``width`` columns."""
    used = 0
    for at, char in enumerate(text):
        used += cell_len(char)
        if used > width:
            return text[:at]
    return text


def number(value: int | None) -> str:
    """Give a figure with thousands separators; nothing for None.

    >>> number(12345)
    '12,345'
    """
    return "" if value is None else f"{value:,}"


def count(number_of: int, noun: str) -> str:
    """Give a number with its noun.

    >>> count(1, "block"), count(2000, "block")
    ('1 block', '2,000 blocks')
    """
    return f"{number_of:,} {noun}" if number_of == 1 else f"{number_of:,} {noun}s"


def percent(part: int, whole: int) -> str:
    """Give a share in whole percent, rounded down; never 100 % for less than all.

    >>> percent(999, 1000)
    '99%'
    """
    return f"{100 * part // whole}%" if whole > 0 else "-"


def listing(names: Sequence[str], width: int, more: Callable[[int], str] = "…and {:,} more".format) -> str:
    """Join names with commas to one line of at most ``width`` columns, the rest as a count."""
    whole = ", ".join(names)
    if cell_len(whole) <= width or not names:
        return whole
    shown: list[str] = []
    used = 0
    for at, name in enumerate(names):
        rest = more(len(names) - at - 1)
        used += cell_len(name) + 2
        if used + cell_len(rest) > width and shown:
            break
        shown.append(name)
    left = len(names) - len(shown)
    return ", ".join([*shown, more(left)] if left else shown)


def sentence(parts: Iterable[str]) -> str:
    """Join parts as in speech.

    >>> sentence(["a", "b", "c"])
    'a, b and c'
    """
    words = list(parts)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""
