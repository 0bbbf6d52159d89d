"""Screens of profile sets: the list, one profile, what differs between two, and what lint found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from loadmaster.core.profiles import Finding, Profile, ProfileSet
from loadmaster.screens.page import BAD, DIM, GOOD, HEAD, WARN, Cell, Page, Part
from loadmaster.screens.words import count, listing, number, sentence

_ORDER = {"net": "greatest net value first", "density": "most value per token first"}
_SURPLUS = {"ratio": "shared by ratio", "priority": "by priority"}


def list_screen(profiles: ProfileSet, width: int) -> Page:
    """List a set: each profile with its reserve and ratios, and the routes that lead to it."""
    page = Page(width)
    page.add(
        Cell(f"{count(len(profiles.profiles), 'profile')}", HEAD),
        f" in set version {profiles.version}; without a route the default, {profiles.default}",
    )
    page.gap()
    narrow = page.width < 100
    rows: list[list[Part]] = [
        [
            Cell(name, HEAD),
            *(_ratio(profile, layer) for layer in profiles.layers),
            "" if narrow else _text(profile.output),
            ", ".join(route for route, target in profiles.routes.items() if target == name),
        ]
        for name, profile in profiles.profiles.items()
    ]
    short = [layer if len(layer) < 9 or not narrow else f"{layer[:7]}." for layer in profiles.layers]
    header = ["", *short, "reply", "routes"]
    page.table(rows, header=header, align="l" + "r" * (len(profiles.layers) + 1) + "l", widest=20)
    page.add(Cell("ratios by layer, of what must-haves and floors leave; - gets nothing", DIM), indent=2)
    return page


def _ratio(profile: Profile, layer: str) -> str:
    rule = profile.layers.get(layer)
    return "-" if rule is None else _text(rule.ratio)


def _text(value: Any) -> str:
    """Give a value of a profile as it is written in one."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if hasattr(value, "share"):
        if value.share is None:
            return number(value.tokens)
        percent = value.share * 100
        return f"{float(percent):g}%"
    return str(value)


def show_screen(profiles: ProfileSet, name: str, width: int) -> Page:
    """Show one profile, defaults included."""
    profile = profiles.profiles[name]
    page = Page(width)
    routes = [route for route, target in profiles.routes.items() if target == name]
    how = sentence(
        [*(["the default"] if name == profiles.default else []), *(f"route {route}" for route in routes)]
    )
    page.add(Cell(name, HEAD), f"  of profile set {profiles.version}" + (f"; {how}" if how else ""))
    page.gap()
    if profile.layers:
        rows: list[list[Part]] = []
        for layer in profiles.layers:
            rule = profile.layers.get(layer)
            if rule is not None:
                rows.append(
                    [
                        layer,
                        _text(rule.floor),
                        _text(rule.ratio),
                        _text(rule.cap) or "none",
                        _text(rule.priority),
                    ]
                )
        page.table(rows, header=["Layers", "floor", "ratio", "cap", "priority"], align="lrrrr")
        silent = [layer for layer in profiles.layers if layer not in profile.layers]
        if silent:
            page.add(Cell(f"gets nothing: {listing(silent, width - 18)}", DIM), indent=2)
    else:
        page.add("no layer gets anything: only what has no layer and must be in enters", indent=2)
    page.gap()
    page.table([[Cell(key, DIM), value] for key, value in _settings(profile)], align="ll")
    return page


def _settings(profile: Profile) -> list[tuple[str, str]]:
    rows = [
        ("output", f"{_text(profile.output)} kept for the reply where the request names no figure"),
        ("surplus", f"{profile.surplus}: {_SURPLUS[profile.surplus]}"),
        ("order", f"{profile.order}: {_ORDER[profile.order]}"),
        ("price", f"{_text(profile.price)} of relevance per 1,000 tokens"),
        ("min_relevance", _text(profile.min_relevance)),
        (
            "corroboration",
            f"{number(profile.corroboration)} more independent source for each need that is covered",
        ),
        ("layout", profile.layout),
        ("fidelity", ", ".join(f"{form} {_text(value)}" for form, value in _fidelity(profile))),
    ]
    if profile.max_age:
        rows.append(
            ("max_age", ", ".join(f"{layer} {age}" for layer, age in sorted(profile.max_age.items())))
        )
    if profile.scope_required:
        rows.append(("scope_required", sentence(profile.scope_required)))
    rows += [("transfer", f"{rule.key}: {rule.from_} may serve {rule.to}") for rule in profile.transfer]
    return rows


def _fidelity(profile: Profile) -> Iterable[tuple[str, Decimal]]:
    return zip(("full", "dense", "compact", "anchor", "reference"), profile.fidelity_of(), strict=True)


def difference_of(a: Any, b: Any, path: str = "") -> list[tuple[str, str, str]]:
    """Give what differs between two profiles or sets: path, first and second value."""
    one, other = (
        value.model_dump(by_alias=True) if hasattr(value, "model_dump") else value for value in (a, b)
    )
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for key in dict.fromkeys([*one, *other]):
            below = f"{path}.{key}" if path else str(key)
            found += difference_of(one.get(key), other.get(key), below)
        return found
    if one is None and isinstance(other, dict):
        return [(path, "not there", _summary(other))]
    if other is None and isinstance(one, dict):
        return [(path, _summary(one), "not there")]
    return [] if one == other else [(path, _plain(one), _plain(other))]


def _summary(value: dict[str, Any]) -> str:
    kept = [f"{key} {_plain(part)}" for key, part in value.items() if part not in (None, 0, {}, (), "")]
    return ", ".join(kept) or "as by default"


def _plain(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(_plain(part) for part in value) or "none"
    if isinstance(value, dict):
        return _summary(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return _text(value) or "none"


def difference_screen(one: str, other: str, rows: Sequence[tuple[str, str, str]], width: int) -> Page:
    """Show what differs between two profiles or sets."""
    page = Page(width)
    if not rows:
        page.add(Cell("SAME", GOOD), f"  {one} and {other} say the same")
        return page
    page.add(Cell("DIFFERENT", WARN), f"  {count(len(rows), 'value')}")
    page.gap()
    page.table(rows, header=["", one, other], align="lll")
    return page


def lint_screen(profiles: ProfileSet, findings: Sequence[Finding], width: int) -> Page:
    """Show what lint found, errors first."""
    page = Page(width)
    errors = sum(finding.severity == "error" for finding in findings)
    if not findings:
        page.add(
            Cell("FINE", GOOD),
            f"  profile set {profiles.version}: {count(len(profiles.profiles), 'profile')}, nothing found",
        )
        return page
    title = Cell("ERRORS", BAD) if errors else Cell("WARNINGS", WARN)
    warnings = len(findings) - errors
    page.add(
        title, f"  profile set {profiles.version}: {count(errors, 'error')}, {count(warnings, 'warning')}"
    )
    page.gap()
    rows: list[list[Part]] = [
        [
            Cell(finding.severity, BAD if finding.severity == "error" else WARN),
            finding.profile or "the set",
            finding.message,
        ]
        for finding in sorted(findings, key=lambda finding: finding.severity != "error")
    ]
    page.table(rows, align="lll")
    return page
