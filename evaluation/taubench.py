"""Real agent histories through the compiler: every point at which the model was called, at several budgets.

    python -m loadmaster.evaluation.taubench [--data DIR] [--budgets 500,1000,…] [--profile P] [--json]

DIR is a folder with ``taubench/`` in it (default: the environment's ``LOADMASTER_DATA``); without one there
is nothing to measure, and that is said. Each budget is applied twice: to the whole request, system prompt and
tool schemas included, and to the history alone, with those two on top. Beside the compiler stand the naive
tail, which keeps the last messages that fit; the same from its first user message on; and the tail that
counts texts alone, without frames, call ids or JSON, which is how such figures are usually published.

Value provenance: of the string arguments of the call that the model made next, those that it had from an
earlier message; the share of values, and of calls with all their values, that the bundle still holds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.table import Table

from loadmaster.compiler import Compiler
from loadmaster.core.failures.failure import CompileFailure
from loadmaster.defaults import find_encoding
from loadmaster.evaluation.histories import SYSTEM, Message, Point, Ruler, points_of, tail, values_kept
from loadmaster.evaluation.legality import PROVIDERS, violations
from loadmaster.integrations.messages import compile_messages

BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
ENCODING = "o200k_base"
HISTORIES = "gpt-4o-airline-even.json"
SCHEMAS = "tools-data.json"
SCHEMA = 1

Tool = Mapping[str, Any]
Scope = Literal["whole", "history"]
SCOPES: tuple[Scope, ...] = ("whole", "history")
PACKERS = ("loadmaster", "tail", "tail_from_user", "tail_text_only")


class Record(NamedTuple):
    """What one packer did at one point under one budget. ``code`` says why it gave nothing."""

    scope: Scope
    budget: int
    packer: str
    calls: bool
    values: int
    code: str | None = None
    used: int = 0
    counted_right: bool = True
    fits: bool = True
    illegal: tuple[str, ...] = ()
    kept: int = 0


def measure(
    histories: Sequence[Sequence[Message]],
    tools: Sequence[Tool],
    budgets: Sequence[int],
    *,
    compiler: Compiler | None = None,
    profile: str | None = None,
) -> list[Record]:
    """Run every packer at every point of some histories."""
    encoding = find_encoding(ENCODING)
    if encoding is None:
        raise RuntimeError(f"{ENCODING} is not at hand; install loadmaster[llamaindex], which ships it")
    bench = _Bench(compiler or Compiler(), tools, Ruler(encoding), profile)
    return [
        record
        for history in histories
        for point in points_of(history)
        for budget in budgets
        for scope in SCOPES
        for record in bench.records(point, budget, scope)
    ]


class _Bench:
    """The packers on one set of tools."""

    def __init__(self, compiler: Compiler, tools: Sequence[Tool], ruler: Ruler, profile: str | None) -> None:
        self.compiler = compiler
        self.tools = tools
        self.ruler = ruler
        self.profile = profile

    def records(self, point: Point, budget: int, scope: Scope) -> Iterator[Record]:
        """Run every packer at one point."""
        system = [message for message in point.messages if message["role"] in SYSTEM]
        history = [message for message in point.messages if message["role"] not in SYSTEM]
        standing = self.ruler.total(system, self.tools)
        window = budget if scope == "whole" else budget + standing
        empty = Record(scope, budget, "", point.calls, len(point.values))
        yield self._compiled(point, window, empty)
        room = window - standing
        start = tail([self.ruler.message(message) for message in history], room)
        yield self._judged(point, [*system, *history[start:]], window, empty._replace(packer="tail"))
        while start < len(history) and history[start]["role"] != "user":
            start += 1
        record = empty._replace(packer="tail_from_user")
        yield self._judged(point, [*system, *history[start:]], window, record)
        start = tail([self.ruler.texts(message) for message in history], room)
        record = empty._replace(packer="tail_text_only")
        yield self._judged(point, [*system, *history[start:]], window, record)

    def _compiled(self, point: Point, window: int, record: Record) -> Record:
        record = record._replace(packer="loadmaster")
        result = compile_messages(
            self.compiler, point.messages, self.tools, budget=window, tokenizer=ENCODING, profile=self.profile
        )
        if isinstance(result, CompileFailure):
            return record._replace(code=result.code)
        counted = self.ruler.total(result.messages, result.tools) == result.tokens.used
        return self._judged(point, result.messages, window, record)._replace(counted_right=counted)

    def _judged(self, point: Point, messages: Sequence[Message], window: int, record: Record) -> Record:
        used = self.ruler.total(messages, self.tools)
        return record._replace(
            used=used,
            fits=used <= window,
            illegal=tuple(provider for provider in PROVIDERS if violations(messages, provider)),
            kept=values_kept(point.values, messages),
        )


def report_of(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Sum records up to one row for each scope, budget and packer."""
    rows: dict[tuple[Scope, int, str], list[Record]] = defaultdict(list)
    for record in records:
        rows[record.scope, record.budget, record.packer].append(record)
    return [
        {"scope": scope, "budget": budget, "packer": packer, **_row(rows[scope, budget, packer])}
        for scope, budget, packer in sorted(
            rows, key=lambda key: (SCOPES.index(key[0]), key[1], PACKERS.index(key[2]))
        )
    ]


def _row(records: Sequence[Record]) -> dict[str, Any]:
    there = [record for record in records if record.code is None]
    used = sorted(record.used for record in there)
    return {
        "points": len(records),
        "compiled": len(there),
        "failed": dict(sorted(Counter(record.code for record in records if record.code).items())),
        "used_mean": round(sum(used) / len(used)) if used else None,
        "used_p95": used[-(-len(used) * 95 // 100) - 1] if used else None,
        "used_max": used[-1] if used else None,
        "counted_right": sum(record.counted_right for record in there),
        "fits": sum(record.fits for record in there),
        "illegal": {provider: sum(provider in record.illegal for record in there) for provider in PROVIDERS},
        "provenance": _provenance(records),
        "provenance_where_compiled": _provenance(there),
    }


def _provenance(records: Sequence[Record]) -> dict[str, Any]:
    asked = [record for record in records if record.values]
    values, calls = sum(record.values for record in asked), len(asked)
    kept, whole = sum(record.kept for record in asked), sum(record.kept == record.values for record in asked)
    return {
        "values": values,
        "values_kept": round(kept / values, 3) if values else None,
        "calls": calls,
        "calls_kept": round(whole / calls, 3) if calls else None,
    }


def load(data: Path) -> tuple[list[list[Message]], list[Tool]]:
    """Read the histories and the airline's tool schemas, in OpenAI's form, from a data folder."""
    folder = data / "taubench"
    histories = json.loads((folder / HISTORIES).read_bytes())
    schemas = json.loads((folder / SCHEMAS).read_bytes())["airline"]["tools"]
    return [history["traj"] for history in histories], [_openai_form(schema) for schema in schemas]


def _openai_form(schema: Mapping[str, Any]) -> Tool:
    properties = {}
    for parameter in schema["parameters"]:
        kind = {"type": parameter["type"], "description": parameter["description"]}
        properties[parameter["name"]] = kind | (
            {"items": {"type": "object"}} if kind["type"] == "array" else {}
        )
    required = [parameter["name"] for parameter in schema["parameters"] if parameter["required"]]
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": schema["name"], "description": schema["description"], "parameters": parameters}
    return {"type": "function", "function": function}


def run(
    data: Path, budgets: Sequence[int] = BUDGETS, *, profile: str | None = None, processes: int = 2
) -> list[dict[str, Any]]:
    """Measure all histories of a data folder, in several processes."""
    histories, tools = load(data)
    parts = [histories[start::processes] for start in range(processes)]
    work = partial(measure, tools=tools, budgets=budgets, profile=profile)
    if processes == 1:
        return report_of(work(histories))
    with ProcessPoolExecutor(processes) as pool:
        return report_of([record for part in pool.map(work, parts) for record in part])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m loadmaster.evaluation.taubench", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--data", type=Path, help="the data folder; default: the environment's LOADMASTER_DATA"
    )
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="tokens, with commas")
    parser.add_argument("--profile", help="compile under this profile instead of the default")
    parser.add_argument("--processes", type=int, default=2, help="how many to run in")
    parser.add_argument("--json", action="store_true", help="write JSON instead of tables")
    options = parser.parse_args(arguments)
    try:
        budgets = tuple(sorted({int(budget) for budget in options.budgets.split(",")}))
    except ValueError:
        parser.error("--budgets must be whole numbers with commas between them")
    if budgets[0] < 0 or options.processes < 1:
        parser.error("--budgets must not be negative, --processes at least 1")
    data = options.data or Path(os.environ.get("LOADMASTER_DATA", ""))
    if not (data / "taubench" / HISTORIES).is_file():
        print(f"skipped: no taubench/{HISTORIES} in {options.data or 'LOADMASTER_DATA'}", file=sys.stderr)  # noqa: T201
        return 0 if options.data is None else 2
    rows = run(data, budgets, profile=options.profile, processes=options.processes)
    if options.json:
        json.dump({"schema": SCHEMA, "encoding": ENCODING, "rows": rows}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show(rows)
    return 0


_TITLES = {
    "whole": "Budget for the whole request: system prompt, tool schemas and history",
    "history": "Budget for the history alone: system prompt and tool schemas on top",
}


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the tables."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    for scope, title in _TITLES.items():
        table = Table(title=title, title_justify="left")
        for name in (
            "budget",
            "packer",
            "points",
            "failed",
            "used\nmean/p95",
            "recount\nequal",
            "within\nbudget",
        ):
            left = name in ("packer", "failed")
            table.add_column(name, justify="left" if left else "right", no_wrap=left, overflow="fold")
        for name in ("illegal\nO/A/G", "kept of all\nvalues/calls", "of compiled\nvalues/calls"):
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            if row["scope"] == scope:
                table.add_row(*_cells(row), end_section=row["packer"] == PACKERS[-1])
        console.print(table)
    console.print(
        "illegal: bundles that OpenAI/Anthropic/Gemini refuse. kept of all: a failure keeps nothing."
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    used = f"{row['used_mean']:,}/{row['used_p95']:,}" if row["compiled"] else "-"
    return [
        f"{row['budget']:,}",
        row["packer"],
        f"{row['compiled']:,}/{row['points']:,}",
        "\n".join(f"{code} {count:,}" for code, count in row["failed"].items()) or "-",
        used,
        f"{row['counted_right']:,}",
        f"{row['fits']:,}",
        "/".join(f"{count}" for count in row["illegal"].values()),
        _kept(row["provenance"]),
        _kept(row["provenance_where_compiled"]),
    ]


def _kept(share: Mapping[str, Any]) -> str:
    return f"{share['values_kept']:.3f}/{share['calls_kept']:.3f}" if share["calls"] else "-"


if __name__ == "__main__":
    raise SystemExit(main())
