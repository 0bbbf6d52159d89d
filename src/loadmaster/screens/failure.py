"""The screens of a compile failure, and of an input that broke the data contract."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadmaster.screens.meanings import CODES, PROOFS, WHY_PROFILE, rule_of
from loadmaster.screens.page import BAD, DIM, GOOD, HEAD, HINT, WARN, Cell, Page, Part
from loadmaster.screens.results import (
    CapacityView,
    FactView,
    FailureView,
    InvalidView,
    RelaxationView,
    RemedyView,
)
from loadmaster.screens.words import count, listing, number, sentence

MOST_FACTS = 6
"""More blocking facts than this are shown by layer, with the largest of them."""
LARGEST = 5
MOST_FAULTS = 16


def failure_screen(result: FailureView, width: int, name: str = "RESULT") -> Page:
    """Explain a failure on one screen: how much is missing, the cures, who can apply them, and why."""
    page = Page(width)
    _figures(page, result)
    if result.excess_tokens is not None:
        _breakdown(page, result)
    _relaxations(page, result.relaxations)
    _remedies(page, result.remedies)
    _blocking(page, result, name)
    if result.rejected:
        most = sorted(result.rejected.items(), key=lambda entry: (-entry[1], entry[0]))
        reasons = [f"{number(times)} {rule_of(rule).short}" for rule, times in most]
        total = sum(result.rejected.values())
        page.gap()
        page.add(Cell(f"Refused before any choice, {number(total)}", HEAD), f": {sentence(reasons)}")
    return page


def _figures(page: Page, result: FailureView) -> None:
    page.add(Cell("FAILED", BAD), Cell(f"  {result.code}", HEAD), f": {CODES.get(result.code, '')}")
    room = result.capacity
    if result.excess_tokens is not None:
        proof = PROOFS.get(result.proof, result.proof)
        page.add(
            f"need {number(result.needed_tokens)}" + (f" ({proof})" if proof else ""),
            f"   capacity {number(room.capacity)}   ",
            Cell(f"over by {number(result.excess_tokens)}", BAD),
        )
    why = WHY_PROFILE.get(result.profile.why, result.profile.why)
    page.add(_arithmetic(room), f"; profile {result.profile.name} {result.profile.version}, {why}")
    for other in result.also:
        ids = listing(other.ids, max(page.width - len(other.code) - 10, 20))
        page.add(Cell("also", WARN), f"  {other.code}: {ids}")


def _arithmetic(room: CapacityView) -> str:
    economic = room.window - room.reserved_output - room.usable
    return (
        f"window {number(room.window)}"
        + (f" - {number(room.reserved_output)} reply" if room.reserved_output else "")
        + (f" - {number(economic)} reasoning or economy" if economic else "")
        + (f" - {number(room.overhead)} headroom" if room.overhead else "")
    )


def _breakdown(page: Page, result: FailureView) -> None:
    if not result.breakdown:
        return
    page.gap()
    rows: list[list[Part]] = [
        [
            part.layer or part.part,
            number(part.items or None),
            Cell(number(part.needed), HEAD),
            number(part.floor or None),
            "its floor is what counts" if part.floor and part.floor >= part.needed else "",
        ]
        for part in result.breakdown
    ]
    page.table(rows, header=["What must be in", "items", "tokens", "floor", ""], align="lrrrl")


def _relaxations(page: Page, relaxations: Sequence[RelaxationView]) -> None:
    if not relaxations:
        return
    page.gap()
    page.add(Cell("Smallest changes that make it compile", HEAD), Cell(", each was tried", DIM))
    rows: list[list[Part]] = []
    for at, cure in enumerate(relaxations):
        lost = sentence(f"{number(times)} {band}" for band, times in sorted(cure.loses.items()))
        price = f"gives up {lost}; a human decides" if lost else "gives up nothing that must be in"
        freed = f"frees {number(cure.frees)}, " if cure.frees is not None else ""
        rows.append([f"{at + 1}", f"without {listing(cure.remove, page.width // 2)}: {freed}{price}"])
    page.table(rows, align="ll")


def _remedies(page: Page, remedies: Sequence[RemedyView]) -> None:
    if not remedies:
        return
    page.gap()
    page.add(Cell("Who can cure it", HEAD))
    rows: list[list[Part]] = [
        [
            Cell(remedy.owner, HINT),
            Cell("enough" if remedy.sufficient else "may help", GOOD if remedy.sufficient else DIM),
            action_words(remedy, page.width - 29),
        ]
        for remedy in remedies
    ]
    page.table(rows, align="lll")


def action_words(remedy: RemedyView, width: int) -> str:
    """Say what an owner can do."""
    word = _ACTIONS.get(remedy.action)
    try:
        text = word(remedy.params, width) if word else ""
    except (KeyError, TypeError, ValueError):
        text = ""
    if not text:
        text = (
            f"{remedy.action.replace('_', ' ')} {json.dumps(remedy.params, ensure_ascii=False, default=str)}"
        )
    freed = f", frees {number(remedy.frees)}" if remedy.frees is not None else ""
    return text + freed


def _ids(before: str) -> Callable[[Mapping[str, Any], int], str]:
    def words(params: Mapping[str, Any], width: int) -> str:
        return f"{before} {listing([str(name) for name in params['ids']], max(width - len(before), 20))}"

    return words


def _leaner_tools(params: Mapping[str, Any], width: int) -> str:
    schemas = [
        f"{name} {number(tokens)}" for name, tokens in zip(params["ids"], params["tokens"], strict=True)
    ]
    return f"drop or shorten tool schemas: {listing(schemas, max(width - 48, 20))}"


_ACTIONS: Mapping[str, Callable[[Mapping[str, Any], int], str]] = {
    "larger_window": lambda params, _: f"a model with a window of {number(params['window'])} tokens or more",
    "raise_economic": lambda params, _: f"an economic limit of {number(params['economic'])}",
    "smaller_output_reserve": lambda params, _: f"reserve {number(params['output'])} for the reply",
    "smaller_headroom": lambda params, _: f"a headroom of {number(params['headroom'])}",
    "split_task": lambda params, width: (
        "split the task; its parts take "
        + listing([number(part) for part in params["parts"]], max(width - 31, 20))
    ),
    "leaner_tools": _leaner_tools,
    "allow_poorer_form": _ids("allow a shorter form of"),
    "retry_source": _ids("ask the source again for"),
    "supply_verdict": _ids("find out whether it is current:"),
    "supply_form": _ids("supply an allowed form of"),
    "supply_dependency": _ids("supply what is needed by"),
    "decide_conflict": _ids("decide between"),
    "change_policy": _ids("decide whether the rule should let in"),
    "revalidate": _ids("check again, as it may be current:"),
}


def _blocking(page: Page, result: FailureView, name: str) -> None:
    facts = result.blocking
    if not facts:
        return
    page.gap()
    if result.excess_tokens is not None and result.code == "insufficient_budget":
        which = "any one of them" if len(facts) > 1 else "it"
        note = f", {count(len(facts), 'fact')} that do not fit by themselves, but would without {which}"
        page.add(Cell("Why", HEAD), Cell(note, DIM))
    else:
        page.add(Cell("Why", HEAD), Cell(f", {count(len(facts), 'must-have')} cannot be had", DIM))
    shown = sorted(facts, key=lambda fact: (-(fact.tokens or 0), fact.id))
    if len(facts) <= MOST_FACTS:
        _facts(page, shown)
        return
    layers = [
        f"{layer} {number(len(group))}"
        + (f" ({number(total)} tokens)" if (total := sum(fact.tokens or 0 for fact in group)) else "")
        for layer, group in _by_layer(facts)
    ]
    page.add(f"by layer: {listing(layers, 2 * page.width)}", indent=2)
    page.add(
        Cell(f"the largest {LARGEST} of {number(len(facts))}; on one: loadmaster explain {name} ITEM", DIM),
        indent=2,
    )
    _facts(page, shown[:LARGEST])


def _by_layer(facts: Sequence[FactView]) -> list[tuple[str, list[FactView]]]:
    groups: dict[str, list[FactView]] = {}
    for fact in facts:
        groups.setdefault(fact.layer or "no layer", []).append(fact)
    return sorted(groups.items(), key=lambda entry: (-sum(fact.tokens or 0 for fact in entry[1]), entry[0]))


def _facts(page: Page, facts: Sequence[FactView]) -> None:
    rows: list[list[Part]] = []
    for fact in facts:
        kind = "floor" if fact.kind == "floor" else fact.band or "required"
        why = _why(fact)
        rows.append([fact.id, Cell(kind, DIM), Cell(fact.layer or "", DIM), number(fact.tokens), why])
    page.table(rows, align="lllrl")


def _why(fact: FactView) -> str:
    if fact.rule in ("budget", "floor"):
        return ""
    rule, _, detail = fact.rule.partition(":")
    if rule == "conflict" and detail:
        return f"contradicts {sentence(name for name in fact.via if name != fact.id) or detail}"
    chain = f": {' -> '.join(fact.via)}" if fact.via else ""
    return rule_of(rule).short + chain


def invalid_screen(result: InvalidView, width: int) -> Page:
    """List what is wrong with an input, by path."""
    page = Page(width)
    page.add(Cell("INVALID", BAD), Cell(f"  {count(len(result.faults), 'fault')} in the input", HEAD))
    page.gap()
    rows = [[Cell(fault.path, WARN), Cell(fault.message)] for fault in result.faults[:MOST_FAULTS]]
    page.table(rows, align="ll", widest=40)
    if len(result.faults) > MOST_FAULTS:
        page.add(
            Cell(f"…and {number(len(result.faults) - MOST_FAULTS)} more, in the result's JSON", DIM), indent=2
        )
    return page
