"""A page of lines for a given width: paragraphs, aligned tables, wrapped last columns. No boxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from loadmaster.screens.words import clip, head, safe

GOOD, BAD, WARN, HINT, HEAD, DIM = "green", "bold red", "yellow", "cyan", "bold", "dim"
"""The styles of the screens; nothing is said by colour alone."""


class Cell(NamedTuple):
    """A piece of text with its style. It is made safe where it is placed."""

    text: str
    style: str = ""


Part = str | Cell
GAP = "  "
LEAST_TEXT, LEAST_LAST = 8, 12
"""Columns that text keeps at least: any text, and the wrapped one at the end."""


@dataclass
class Page:
    """Lines of at most ``width`` columns; ids and labels in them are made safe to show."""

    width: int
    lines: list[Text] = field(default_factory=list)

    def add(self, *parts: Part, indent: int = 0) -> None:
        """Add a line, wrapped at words where it is too long."""
        texts = _wrap([_cell(part) for part in parts], max(self.width - indent, 20))
        for at, text in enumerate(texts):
            self.lines.append(_indented(text, indent + (2 if at else 0)))

    def gap(self) -> None:
        """Add an empty line."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def table(
        self,
        rows: Sequence[Sequence[Part]],
        *,
        header: Sequence[str] = (),
        align: str,
        indent: int = 2,
        widest: int = 32,
    ) -> None:
        """Add rows in columns: ``align`` has ``l`` or ``r`` for each, and the last one wraps.

        Columns before the last are cut in the middle at ``widest``. A column that is empty in every
        row is left out, with its heading.
        """
        cells = [[_cell(part) for part in row] for row in rows]
        kept = [at for at in range(len(align)) if any(row[at].text for row in cells)]
        if not kept:
            return
        grid = [[row[at] for at in kept] for row in cells]
        names = [header[at] if header else "" for at in kept]
        turns = [align[at] for at in kept]
        limit = min(widest, max(2 * self.width // 5, 12))
        widths = [
            min(limit, max(cell_len(name), *(cell_len(safe(row[at].text)) for row in grid)))
            for at, name in enumerate(names)
        ]
        _shrink(widths, turns, self.width - indent - len(GAP) * (len(widths) - 1))
        if header:
            self._row([Cell(name, DIM) for name in names], turns, widths, indent)
        for row in grid:
            self._row(row, turns, widths, indent)

    def _row(self, row: Sequence[Cell], turns: Sequence[str], widths: Sequence[int], indent: int) -> None:
        line = Text(" " * indent)
        for at, (cell, turn, width) in enumerate(zip(row, turns, widths, strict=True)):
            if at == len(row) - 1 and turn == "l":
                break
            shown = clip(cell.text, width)
            pad = " " * (width - cell_len(shown))
            line.append(pad if turn == "r" else "")
            line.append(shown, cell.style)
            line.append((pad if turn == "l" else "") + GAP)
        else:
            self.lines.append(_stripped(line))
            return
        start = cell_len(line.plain)
        first, *rest = _wrap([row[-1]], max(self.width - start, LEAST_LAST))
        self.lines.append(_stripped(line.append_text(first)))
        self.lines.extend(_indented(text, start) for text in rest)

    def plain(self) -> str:
        """Give the page as plain text."""
        return "".join(line.plain + "\n" for line in self.lines)


def _shrink(widths: list[int], turns: Sequence[str], room: int) -> None:
    """Narrow the widest columns of text until the table fits; the last one, which wraps, needs little."""
    flows = turns[-1] == "l"
    texts = [at for at, turn in enumerate(turns) if turn == "l" and not (flows and at == len(turns) - 1)]
    fixed = sum(widths[:-1]) + (min(widths[-1], LEAST_LAST) if flows else widths[-1])
    for _ in range(max(fixed - room, 0)):
        widest = max(texts, key=lambda at: widths[at], default=None)
        if widest is None or widths[widest] <= LEAST_TEXT:
            return
        widths[widest] -= 1


def _cell(part: Part) -> Cell:
    return part if isinstance(part, Cell) else Cell(part)


def _indented(text: Text, indent: int) -> Text:
    return _stripped(Text(" " * indent).append_text(text))


def _stripped(text: Text) -> Text:
    text.rstrip()
    return text


def _wrap(cells: Iterable[Cell], width: int) -> list[Text]:
    """Break styled text at spaces into lines of at most ``width`` columns; a longer word is broken too."""
    lines = [Text()]
    used = 0
    for cell in cells:
        run = ""
        for at, word in enumerate(safe(cell.text).split(" ")):
            space = " " if at else ""
            for chunk in _chunks(word, width):
                size = cell_len(chunk)
                if used and used + len(space) + size > width:
                    lines[-1].append(run, cell.style)
                    lines.append(Text())
                    run, used, space = "", 0, ""
                run += space + chunk
                used += len(space) + size
                space = ""
        lines[-1].append(run, cell.style)
    return [_stripped(line) for line in lines]


def _chunks(word: str, width: int) -> Iterable[str]:
    while cell_len(word) > width:
        chunk = head(word, width)
        yield chunk
        word = word[len(chunk) :]
    yield word
