"""What changed between two results, as data and as a screen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from loadmaster.screens.meanings import rule_of
from loadmaster.screens.page import BAD, DIM, GOOD, HEAD, WARN, Cell, Page, Part
from loadmaster.screens.results import BlockView, BundleView, FailureView, InvalidView, Result
from loadmaster.screens.words import clip, count, listing, number, sentence

MOST_NAMED = 4
"""Lines for each kind of change; the rest is a count. The JSON form names all."""
_FIGURES = ("window", "usable", "headroom", "capacity", "standing", "task", "used", "slack")
_ACCOUNT = ("floor", "ratio", "cap", "wants", "granted", "used")


def difference(a: Result, b: Result) -> dict[str, Any]:
    """Compare two results: who entered, left, changed or moved, the first difference, the cached prefix."""
    data: dict[str, Any] = {
        "same": a == b,
        "status": [a.status, b.status],
        "outcome": [_outcome(a), _outcome(b)],
    }
    if isinstance(a, BundleView) and isinstance(b, BundleView):
        data |= _of_bundles(a, b)
    elif isinstance(a, FailureView) and isinstance(b, FailureView):
        data |= _of_failures(a, b)
    elif isinstance(a, InvalidView) and isinstance(b, InvalidView):
        known, now = ({(fault.path, fault.message) for fault in view.faults} for view in (a, b))
        data["mended"] = [list(fault) for fault in sorted(known - now)]
        data["new_faults"] = [list(fault) for fault in sorted(now - known)]
    return data


def _outcome(result: Result) -> str:
    if isinstance(result, BundleView):
        tokens = result.tokens
        blocks = count(len(result.blocks), "block")
        used = f"{number(tokens.used)} of {number(tokens.capacity)} tokens"
        return f"{used} in {blocks}, {number(len(result.omitted))} left out"
    if isinstance(result, InvalidView):
        return count(len(result.faults), "fault")
    if result.excess_tokens is None:
        return f"{result.code}, {count(len(result.blocking), 'must-have')} in the way"
    need, room, over = result.needed_tokens, result.capacity.capacity, result.excess_tokens
    return f"{result.code}, need {number(need)}, capacity {number(room)}, over by {number(over)}"


def _of_bundles(a: BundleView, b: BundleView) -> dict[str, Any]:
    before, after = ({block.id: block for block in view.blocks} for view in (a, b))
    out_before, out_after = ({omission.id: omission.rule for omission in view.omitted} for view in (a, b))
    both = [identifier for identifier in after if identifier in before]
    return {
        "digest": [a.digest, b.digest],
        "policy": _policy(a, b),
        "entered": [
            {**_brief(block), "was": out_before.get(identifier)}
            for identifier, block in after.items()
            if identifier not in before
        ],
        "left": [
            {**_brief(block), "rule": out_after.get(identifier)}
            for identifier, block in before.items()
            if identifier not in after
        ],
        "changed": [
            {
                "id": identifier,
                "form": [before[identifier].form, after[identifier].form],
                "tokens": [before[identifier].tokens, after[identifier].tokens],
            }
            for identifier in both
            if before[identifier].text != after[identifier].text
        ],
        "moved": _moved(list(before), both),
        "left_out_otherwise": [
            {"id": identifier, "rule": [out_before[identifier], rule]}
            for identifier, rule in out_after.items()
            if identifier in out_before and out_before[identifier] != rule
        ],
        "tokens": _pairs(a.tokens.model_dump(), b.tokens.model_dump(), _FIGURES),
        "allocation": _accounts(a, b),
        "first_difference": _first_difference(a.blocks, b.blocks),
        "prefix": _prefix(a, b),
    }


def _brief(block: BlockView) -> dict[str, Any]:
    return {"id": block.id, "layer": block.layer, "form": block.form, "tokens": block.tokens}


def _pairs(a: Mapping[str, Any], b: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [a.get(name), b.get(name)] for name in names if a.get(name) != b.get(name)}


def _policy(a: BundleView, b: BundleView) -> dict[str, list[Any]]:
    """Give what decides differently in the two: profile, layout, renderer, compiler, tokenizer."""
    parts = [
        {
            **view.policies,
            "profile": view.profile.name,
            "profiles": view.profile.version,
            "tokenizer": view.tokens.encoding,
        }
        for view in (a, b)
    ]
    return _pairs(parts[0], parts[1], sorted({*parts[0], *parts[1]}))


def _accounts(a: BundleView, b: BundleView) -> list[dict[str, Any]]:
    before, after = ({row.layer: row.model_dump() for row in view.allocation} for view in (a, b))
    rows = []
    for layer in dict.fromkeys([*before, *after]):
        changed = _pairs(before.get(layer, {}), after.get(layer, {}), _ACCOUNT)
        if changed:
            rows.append({"layer": layer, **changed})
    return rows


def _moved(before: Sequence[str], both: Sequence[str]) -> list[str]:
    """Give the fewest blocks whose move explains the new order of what stayed."""
    position = {identifier: at for at, identifier in enumerate(before)}
    tails: list[int] = []
    last: list[int] = []
    previous: list[int | None] = []
    for at, identifier in enumerate(both):
        place = position[identifier]
        length = bisect_left(tails, place)
        previous.append(last[length - 1] if length else None)
        tails[length : length + 1] = [place]
        last[length : length + 1] = [at]
    kept = set()
    at_end = last[-1] if last else None
    while at_end is not None:
        kept.add(at_end)
        at_end = previous[at_end]
    return [identifier for at, identifier in enumerate(both) if at not in kept]


def _shared(a: Sequence[BlockView], b: Sequence[BlockView]) -> int:
    pairs = zip(a, b, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one.text != other.text), min(len(a), len(b)))


def _first_difference(a: Sequence[BlockView], b: Sequence[BlockView]) -> dict[str, Any] | None:
    at = _shared(a, b)
    if at == len(a) == len(b):
        return None
    one = a[at] if at < len(a) else None
    other = b[at] if at < len(b) else None
    return {
        "block": at,
        "tokens_before": sum(block.tokens for block in b[:at]),
        "kind": _kind(a, b, one, other),
        "a": one.id if one else None,
        "b": other.id if other else None,
    }


def _kind(
    a: Sequence[BlockView], b: Sequence[BlockView], one: BlockView | None, other: BlockView | None
) -> str:
    if one is None:
        return "inserted"
    if other is None:
        return "removed"
    if one.id == other.id:
        return "changed"
    if all(block.id != other.id for block in a):
        return "inserted"
    return "removed" if all(block.id != one.id for block in b) else "reordered"


def _prefix(a: BundleView, b: BundleView) -> dict[str, Any]:
    """Say whether what a cache kept of ``a`` serves ``b``, and what speaks against it."""
    shared = _shared(a.blocks, b.blocks)
    kept = min(shared, a.prefix.blocks)
    reasons = []
    policy = _policy(a, b)
    if "tokenizer" in policy:
        reasons.append("another tokenizer, so most likely another model")
    reasons += [f"another {name}" for name in ("layout", "renderer") if name in policy]
    tools = [[block.text for block in view.blocks if block.kind == "tool"] for view in (a, b)]
    if tools[0] != tools[1]:
        reasons.append("other tool schemas, which providers put before everything else")
    if kept < a.prefix.blocks:
        first = _first_difference(a.blocks, b.blocks)
        assert first is not None
        causes = [name for name in ("profile", "profiles") if name in policy]
        because = f" (under another {sentence(causes)})" if causes else ""
        reasons.append(f"block {first['block'] + 1:,} was {first['kind']}: {_what(first)}{because}")
    elif b.prefix.blocks < kept:
        block = b.blocks[b.prefix.blocks]
        reasons.append(f"{block.id} is {block.stability} now, so what a cache may keep ends before it")
    return {
        "survives": not reasons,
        "blocks": [a.prefix.blocks, b.prefix.blocks],
        "tokens": [a.prefix.tokens, b.prefix.tokens],
        "kept_blocks": kept,
        "kept_tokens": sum(block.tokens for block in a.blocks[:kept]),
        "reasons": reasons,
    }


def _what(first: Mapping[str, Any]) -> str:
    """Name what a first difference is about."""
    if first["kind"] == "reordered":
        return f"{first['b']} stands where {first['a']} stood"
    return str(first["a"] if first["kind"] == "removed" else first["b"])


def _of_failures(a: FailureView, b: FailureView) -> dict[str, Any]:
    before, after = ([fact.id for fact in view.blocking] for view in (a, b))
    return {
        "code": [a.code, b.code],
        "tokens": _pairs(
            {"needed": a.needed_tokens, "excess": a.excess_tokens, "capacity": a.capacity.capacity},
            {"needed": b.needed_tokens, "excess": b.excess_tokens, "capacity": b.capacity.capacity},
            ("needed", "capacity", "excess"),
        ),
        "no_longer_blocking": [identifier for identifier in before if identifier not in after],
        "now_blocking": [identifier for identifier in after if identifier not in before],
    }


def difference_screen(data: Mapping[str, Any], width: int) -> Page:
    """Show a comparison that `difference` made."""
    page = Page(width)
    before, after = data["status"]
    if data["same"]:
        page.add(Cell("SAME", GOOD), f"  two equal results, status {before}")
        return page
    page.add(
        Cell("DIFFERENT", WARN),
        f"  {before} -> {after}" if before != after else f"  two results, status {before}",
    )
    for side, outcome in zip(("before", "after "), data["outcome"], strict=True):
        page.add(Cell(side, DIM), f"  {outcome}", indent=2)
    if before == after == "bundle":
        _show_bundles(page, data)
    elif before == after == "failure":
        _show_failures(page, data)
    elif before == after == "invalid":
        for title, key in (("mended", "mended"), ("new faults", "new_faults")):
            _names(page, title, [f"{path}: {message}" for path, message in data[key]])
    return page


def _show_bundles(page: Page, data: Mapping[str, Any]) -> None:
    for name, (one, other) in data["policy"].items():
        page.add(Cell(name, HEAD), f"  {one} -> {other}", indent=2)
    if data["digest"][0] == data["digest"][1]:
        page.add("  the bundle is the same, byte for byte; only the accounts around it differ")
    page.gap()
    _show_prefix(page, data)
    _show_items(page, data)
    _show_figures(page, data)


def _show_prefix(page: Page, data: Mapping[str, Any]) -> None:
    prefix, first = data["prefix"], data["first_difference"]
    kept = (
        f"{number(prefix['kept_blocks'])} of {count(prefix['blocks'][0], 'block')} and"
        f" {number(prefix['kept_tokens'])} of {count(prefix['tokens'][0], 'token')} are the same"
    )
    if prefix["survives"]:
        page.add(Cell("Cached prefix", HEAD), ": ", Cell("survives", GOOD), f"; {kept}")
    else:
        page.add(Cell("Cached prefix", HEAD), ": ", Cell("misses", BAD), f"; {kept}")
        for reason in prefix["reasons"]:
            page.add(f"because {reason}", indent=2)
    if first is not None:
        page.add(
            Cell("First difference", HEAD),
            f": block {first['block'] + 1:,}, after {count(first['tokens_before'], 'token')}:"
            f" {_what(first)}, {first['kind']}",
        )
    page.gap()


def _show_items(page: Page, data: Mapping[str, Any]) -> None:
    rows: list[list[Part]] = []

    def add(title: str, style: str, entries: Sequence[tuple[str, str, str]]) -> None:
        for at, (identifier, tokens, note) in enumerate(entries[:MOST_NAMED]):
            rows.append([Cell(title if at == 0 else "", style), identifier, tokens, Cell(note, DIM)])
        if len(entries) > MOST_NAMED:
            rows.append([Cell(""), Cell(f"…and {len(entries) - MOST_NAMED:,} more", DIM), "", ""])

    add(
        "entered", GOOD, [(e["id"], _plus(e["tokens"]), _was(e["was"], "was out: ")) for e in data["entered"]]
    )
    add(
        "left",
        BAD,
        [(e["id"], _plus(-e["tokens"]), _was(e["rule"], "", "no longer a candidate")) for e in data["left"]],
    )
    add(
        "changed",
        WARN,
        [(e["id"], _plus(e["tokens"][1] - e["tokens"][0]), _forms(e)) for e in data["changed"]],
    )
    add("moved", WARN, [(identifier, "", "stands elsewhere in the order") for identifier in data["moved"]])
    add(
        "still out",
        DIM,
        [
            (e["id"], "", " -> ".join(rule_of(rule).short for rule in e["rule"]))
            for e in data["left_out_otherwise"]
        ],
    )
    page.table(rows, align="llrl", header=["", "", "tokens", ""] if any(row[2] for row in rows) else ())
    if rows:
        page.gap()


def _plus(value: int) -> str:
    return f"{value:+,}" if value else "0"


def _was(rule: str | None, before: str, absent: str = "is new") -> str:
    return f"{before}{rule_of(rule).short}" if rule else absent


def _forms(entry: Mapping[str, Any]) -> str:
    one, other = entry["form"]
    return f"{one} -> {other}" if one != other else "other text"


def _show_figures(page: Page, data: Mapping[str, Any]) -> None:
    if data["tokens"]:
        rows = [_figure(name, pair) for name, pair in data["tokens"].items()]
        page.table(rows, header=["Figures", "before", "after", "change"], align="lrrr")
    if data["allocation"]:
        page.gap()
        accounts: list[list[Part]] = [
            [account["layer"], *(_arrow(account.get(name)) for name in _ACCOUNT)]
            for account in data["allocation"]
        ]
        page.table(accounts, header=["Layers", *_ACCOUNT], align="l" + "r" * len(_ACCOUNT))


def _arrow(pair: Sequence[Any] | None) -> str:
    return f"{_value(pair[0])} -> {_value(pair[1])}" if pair else ""


def _figure(name: str, pair: Sequence[Any]) -> list[Part]:
    one, other = pair
    change = _plus(other - one) if isinstance(one, int) and isinstance(other, int) else ""
    return [name, _value(one), _value(other), change]


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return number(value) if isinstance(value, int) else f"{value:g}"


def _show_failures(page: Page, data: Mapping[str, Any]) -> None:
    one, other = data["code"]
    page.add(f"code {one}" + (f" -> {other}" if one != other else ""), indent=2)
    page.gap()
    _names(page, "blocks no longer", data["no_longer_blocking"])
    _names(page, "blocks now", data["now_blocking"])
    if data["tokens"]:
        rows = [_figure(name, pair) for name, pair in data["tokens"].items()]
        page.table(rows, header=["Figures", "before", "after", "change"], align="lrrr")


def _names(page: Page, title: str, names: Sequence[str]) -> None:
    if names:
        shown = listing([clip(name, page.width) for name in names], 2 * page.width)
        page.add(Cell(title, HEAD), f"  {shown}", indent=2)
