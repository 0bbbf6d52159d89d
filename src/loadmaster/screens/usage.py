"""The screen of realised use over many compiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadmaster.screens.meanings import rule_of
from loadmaster.screens.page import BAD, DIM, HEAD, WARN, Cell, Page, Part
from loadmaster.screens.words import count, number, sentence


def usage_screen(data: Mapping[str, Any], width: int) -> Page:
    """Show what layers really got; ``data`` comes from `evaluation.realised_use`."""
    page = Page(width)
    failures: Mapping[str, int] = data["failures"]
    failed = sum(failures.values())
    outcomes = f"{count(data['bundles'], 'bundle')}, {count(failed, 'failure')}"
    page.add(Cell("REALISED USE", HEAD), f"  {count(data['compiles'], 'compile')}: {outcomes}")
    if failed:
        codes = sentence(f"{number(times)} {code}" for code, times in failures.items())
        page.add(Cell("failures  ", BAD), codes, indent=2)
    page.add(
        Cell("profiles  ", DIM), sentence(f"{n:,} {name}" for name, n in data["profiles"].items()), indent=2
    )
    if data["bundles"]:
        _bundles(page, data)
    if data["bad_lines"] or data["unfinished"]:
        page.gap()
        bad = f"{count(data['bad_lines'], 'bad line')} of {number(data['lines'])}"
        page.add(Cell(f"passed over: {bad}, {count(data['unfinished'], 'trace')} without a foot", WARN))
    return page


def _bundles(page: Page, data: Mapping[str, Any]) -> None:
    page.gap()
    rows: list[list[Part]] = [
        [
            row["layer"],
            number(row["bundles"]),
            _percent(row["realised_mean"]),
            _percent(row["realised_p95"]),
            number(row["floor_promised"] or None),
            number(row["floor_unmet"] or None),
            _percent(row["surplus_share"]),
        ]
        for row in data["layers"]
    ]
    header = ["Layers", "bundles", "mean share", "p95", "with floor", "unmet", "of surplus"]
    page.table(rows, header=header, align="lrrrrrr")
    page.add(Cell("shares are of the grant base: what a profile divides among layers", DIM), indent=2)
    page.gap()
    cuts = sentence(f"{number(times)} for {rule_of(rule).short}" for rule, times in data["cuts"].items())
    figures: list[list[Part]] = [
        ["floors not met", _percent(data["floor_breach_rate"]), "of bundles"],
        [
            "something was cut",
            _percent(data["cut_rate"]),
            "of bundles" + (f"; candidates: {cuts}" if cuts else ""),
        ],
        [
            "free at the end",
            f"{data['slack_mean']:,.0f}",
            f"tokens on average, {_percent(data['slack_share_mean'])}",
        ],
    ]
    page.table(figures, align="lrl")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"
