"""What a failure over the budget claims can be checked by compiling: its proof, its cures, its window."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.laws import codes_of, compiled, law
from tests.properties.strategies import documents

from loadmaster import CompileFailure

Json = Any
SHORT = ("insufficient_budget",)
TIGHT = documents(flaws=False, window=st.integers(0, 18))


def aliases(failure: CompileFailure) -> dict[str, str]:
    """Give the id under which each merged copy goes."""
    lines = [json.loads(line) for line in failure.trace.lines()]
    return {line["item"]: line["args"]["into"] for line in lines if line.get("rule") == "merged"}


def demands(document: Json) -> set[str]:
    """Give all that takes room: must-haves, what the request requires, and floors."""
    layers = document["profiles"]["profiles"]["p"]["layers"]
    musts = [item["id"] for item in document["candidates"] if item["band"] in ("mandatory", "required")]
    floors = [f"floor:{layer}" for layer, rule in layers.items() if rule.get("floor")]
    return {*musts, *document["request"].get("requires", ()), *floors}


def waived(document: Json, facts: Collection[str], merged: dict[str, str]) -> Json:
    """Give the document without these demands; a copy goes with the candidate that stands for it."""
    relaxed = copy.deepcopy(document)
    request = relaxed["request"]
    for candidate in relaxed["candidates"]:
        name = merged.get(candidate["id"], candidate["id"])
        if name in facts and candidate["band"] in ("mandatory", "required"):
            candidate["band"] = "discretionary"
    required = request.get("requires", ())
    request["requires"] = [name for name in required if merged.get(name, name) not in facts]
    for layer, rule in relaxed["profiles"]["profiles"]["p"]["layers"].items():
        if f"floor:{layer}" in facts:
            rule["floor"] = 0
    return relaxed


def failing(document: Json) -> CompileFailure:
    """Give a document's failure, tightening its window until it has one."""
    result = compiled(document)
    if result.status == "bundle":
        document["request"]["budget"]["window"] //= 3
        result = compiled(document)
    assume(codes_of(result) == SHORT)
    assert result.status == "failure"
    return result


@law(TIGHT, fast=150, deep=2000, found=True)
def test_the_proof_is_irreducible(document: Json) -> None:
    failure = failing(document)
    merged = aliases(failure)
    rest = {merged.get(name, name) for name in demands(document)} - {fact.id for fact in failure.blocking}
    assert codes_of(compiled(waived(document, rest, merged))) == SHORT
    for fact in failure.blocking:
        assert compiled(waived(document, {*rest, fact.id}, merged)).status == "bundle", fact.id


@law(TIGHT, fast=80, deep=1000, found=True)
def test_cures_cure(document: Json) -> None:
    failure = failing(document)
    for relaxation in failure.relaxations:
        relaxed = waived(document, relaxation.remove, aliases(failure))
        assert compiled(relaxed).status == "bundle", relaxation.remove
        assert (relaxation.owner == "human") == any(
            not name.startswith("floor:") for name in relaxation.remove
        )


@law(TIGHT, fast=80, deep=1000, found=True)
def test_the_smallest_window_is_the_smallest(document: Json) -> None:
    failure = failing(document)
    assert failure.excess_tokens == failure.needed_tokens - failure.tokens.capacity > 0
    budget = document["request"]["budget"]
    if failure.smallest_window is None:
        assert "economic" in budget
        budget["window"] = 10**9
        assert codes_of(compiled(document)) == SHORT
        return
    budget["window"] = failure.smallest_window
    assert compiled(document).status == "bundle"
    budget["window"] -= 1
    assert codes_of(compiled(document)) == SHORT


@law(documents(window=st.integers(0, 18)), fast=80, deep=1500, found=True)
def test_remedies_called_sufficient_suffice(document: Json) -> None:
    field = {"larger_window": "window", "smaller_output_reserve": "output", "smaller_headroom": "headroom"}
    for remedy in failing(document).remedies:
        changed = copy.deepcopy(document)
        if remedy.action in field:
            changed["request"]["budget"][field[remedy.action]] = remedy.params[field[remedy.action]]
        elif remedy.action == "allow_poorer_form":
            for candidate in changed["candidates"]:
                if candidate["id"] in remedy.params["ids"]:
                    candidate.pop("min_form", None)
                    candidate.pop("exact", None)
        else:
            continue
        assert not remedy.sufficient or compiled(changed).status == "bundle", remedy.action
