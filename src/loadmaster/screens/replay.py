"""Comparing a recorded trace with the trace of a new run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from loadmaster.core.canonical import sha256
from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.screens.meanings import rule_of
from loadmaster.screens.page import BAD, DIM, GOOD, HEAD, WARN, Cell, Page, Part
from loadmaster.screens.words import number, sentence

HEAD_PARTS = {
    "compiler": "another version of the compiler",
    "request": "another request",
    "inventory": "other candidates",
    "policy": "another profile set",
    "profile": "another profile",
    "tokenizer": "another tokenizer",
    "as_of": "another time",
    "budget": "another budget",
    "passes": "other passes, since the compile ended elsewhere",
    "schema": "another form of trace",
}
"""What it means that a part of the head differs."""

Line = Mapping[str, Any]


def read_trace(data: bytes) -> tuple[bytes, ...]:
    """Take the first trace of a log apart into its lines.

    Raises:
        InvalidInput: It is no trace, or not a whole one.
    """
    lines = [line + b"\n" for line in data.split(b"\n") if line.strip()]
    for at, line in enumerate(lines):
        kind = _parsed(line, at).get("t")
        if (kind == "head") != (at == 0):
            what = (
                "is no trace: its first line is no head"
                if at == 0
                else "is cut short: a trace begins inside it"
            )
            raise InvalidInput([Fault("$", what)])
        if kind == "foot":
            return tuple(lines[: at + 1])
    raise InvalidInput([Fault("$", "is cut short: the trace has no foot")])


def _parsed(line: bytes, at: int) -> Line:
    try:
        data = orjson.loads(line)
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict):
        raise InvalidInput([Fault("$", f"is no trace: line {at + 1:,} is no JSON object")])
    return data


def is_genuine(lines: Sequence[bytes]) -> bool:
    """Whether the digest in a trace's foot is that of its lines."""
    foot = orjson.loads(lines[-1])
    claimed = foot.pop("trace", None)
    rest = orjson.dumps(foot, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    return bool(claimed == sha256(b"".join([*lines[:-1], rest])))


def compare_traces(recorded: Sequence[bytes], replayed: Sequence[bytes]) -> dict[str, Any]:
    """Compare two traces: digests, what differs in their heads, and the first other line that differs."""
    old_head, new_head = orjson.loads(recorded[0]), orjson.loads(replayed[0])
    old_foot, new_foot = orjson.loads(recorded[-1]), orjson.loads(replayed[-1])
    at = next(
        (at for at, (old, new) in enumerate(zip(recorded, replayed, strict=False)) if at and old != new),
        min(len(recorded), len(replayed)),
    )
    first = None
    if at < max(len(recorded), len(replayed)):
        sides = [orjson.loads(side[at]) if at < len(side) else None for side in (recorded, replayed)]
        first = {"line": at + 1, "recorded": sides[0], "replayed": sides[1]}
    return {
        "same": list(recorded) == list(replayed),
        "genuine": is_genuine(recorded),
        "trace": [old_foot.get("trace"), new_foot.get("trace")],
        "digest": [old_foot.get("digest"), new_foot.get("digest")],
        "outcome": [_outcome(old_foot), _outcome(new_foot)],
        "lines": [len(recorded), len(replayed)],
        "head": {
            name: [old_head.get(name), new_head.get(name)]
            for name in dict.fromkeys([*HEAD_PARTS, *sorted({*old_head, *new_head})])
            if old_head.get(name) != new_head.get(name)
        },
        "first_difference": first,
    }


def _outcome(foot: Line) -> str:
    return f"failure, {foot.get('code')}" if foot.get("outcome") == "failure" else str(foot.get("outcome"))


def replay_screen(data: Mapping[str, Any], width: int) -> Page:
    """Show a comparison that `compare_traces` made."""
    page = Page(width)
    if data["same"]:
        page.add(Cell("SAME", GOOD), f"  {data['outcome'][1]}, {number(data['lines'][1])} lines repeated")
        page.add(f"trace {data['trace'][1]}", indent=2)
    else:
        page.add(Cell("DIFFERENT", BAD), "  the replay does not repeat the trace")
        _outcomes(page, data)
    if not data["genuine"]:
        page.add(
            Cell("warning", WARN), ": the trace's own digest is not that of its lines; it has been changed"
        )
    for name, (old, new) in data["head"].items():
        page.add(Cell("warning", WARN), f": {HEAD_PARTS.get(name, f'the head has another {name}')}")
        page.table([["recorded", _value(old, new)], ["replayed", _value(new, old)]], align="ll", indent=4)
    if data["first_difference"] is not None:
        _first(page, data["first_difference"])
    return page


def _outcomes(page: Page, data: Mapping[str, Any]) -> None:
    for at, side in enumerate(("recorded", "replayed")):
        digest = short_digest(data["digest"][at] or "")
        page.add(Cell(side, DIM), f"  {data['outcome'][at]} {digest}", indent=2)
    if data["digest"][0] is not None and data["digest"][0] == data["digest"][1]:
        page.add("the bundle is the same, byte for byte; the way to it differs", indent=2)


def _value(value: Any, other: Any) -> str:
    """Show a part of a head; of an object only what differs."""
    if isinstance(value, dict) and isinstance(other, dict):
        parts = [
            f"{name} {_plain(value.get(name))}"
            for name in sorted({*value, *other})
            if value.get(name) != other.get(name)
        ]
        return ", ".join(parts)
    return _plain(value)


def short_digest(digest: str) -> str:
    """Give enough of a digest to tell it from another one."""
    name, _, hexadecimal = digest.partition(":")
    return f"{name}:{hexadecimal[:12]}…" if len(hexadecimal) > 12 else digest


def _plain(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return (
        "none"
        if value is None
        else short_digest(str(value))
        if str(value).startswith("sha256:")
        else str(value)
    )


def _first(page: Page, first: Mapping[str, Any]) -> None:
    page.gap()
    page.add(Cell("First difference", HEAD), f", line {number(first['line'])}")
    rows: list[list[Part]] = [[Cell(side, DIM), _line(first[side], first[other])] for side, other in _SIDES]
    page.table(rows, align="ll")


_SIDES = (("recorded", "replayed"), ("replayed", "recorded"))


def _line(line: Line | None, other: Line | None) -> str:
    """Say a line in words; of a foot only what differs from the other."""
    if line is None:
        return "nothing: it ended before"
    match line.get("t"):
        case "dec":
            args = sentence(f"{name} {_plain(value)}" for name, value in sorted(line.get("args", {}).items()))
            why = (
                f"{line['rule']} ({rule_of(str(line['rule'])).short})"
                if line["verdict"] == "rejected"
                else line["rule"]
            )
            return f"{line['pass']}: {line['item']} {line['verdict']}, {why}" + (
                f", with {args}" if args else ""
            )
        case "pass":
            rules = sentence(f"{times} {rule}" for rule, times in line.get("histogram", {}).items())
            settled = f", {number(line['tokens'])} tokens" if "tokens" in line else ""
            return f"pass {line['pass']}: {number(line['in'])} in, {number(line['out'])} left{settled}" + (
                f"; {rules}" if rules else ""
            )
        case "obs":
            return f"observation {line['key']}, {line['digest']}"
        case "foot":
            mine = {name: value for name, value in line.items() if name != "trace"}
            return f"foot: {_value(_flat(mine), _flat(other or {}))}"
    return orjson.dumps(line).decode()


def _flat(line: Line) -> dict[str, Any]:
    flat = {name: value for name, value in line.items() if not isinstance(value, dict | list)}
    flat |= dict(line.get("tokens", {}))
    for row in line.get("allocation", ()):
        flat |= {f"{row['layer']} {name}": value for name, value in row.items() if name != "layer"}
    flat.pop("trace", None)
    return flat
