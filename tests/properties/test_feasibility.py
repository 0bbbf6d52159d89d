"""Whether it fits is decided exactly, and never lost to a larger window or a smaller demand."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.laws import codes_of, compiled, law
from tests.properties.strategies import documents

from loadmaster.evaluation.oracle import judge

Json = Any


@law(documents(), fast=200, deep=2500, found=True)
def test_the_oracle_agrees(document: Json) -> None:
    verdict = judge(document)
    assume(verdict.certain)
    result = compiled(document)
    assert codes_of(result) == verdict.codes
    if result.status == "failure":
        assert result.tokens.capacity == verdict.capacity
        assert result.needed_tokens == verdict.needed
        assert result.excess_tokens == verdict.excess
        assert result.proof == "exact"
    else:
        assert {block.id for block in result.blocks} >= verdict.musts
        assert all(block.form in verdict.legal[block.id] for block in result.blocks)


@law(documents(floors=True, flaws=False), st.integers(1, 60), fast=80, deep=1000)
def test_a_larger_window_never_breaks_what_fits(document: Json, more: int) -> None:
    assume(compiled(document).status == "bundle")
    document["request"]["budget"]["window"] += more
    assert compiled(document).status == "bundle"


@law(documents(floors=False), st.data(), fast=80, deep=1000)
def test_a_dependency_less_never_breaks_what_fits(document: Json, data: st.DataObject) -> None:
    """Floors are left out: a dependency with one payer fewer may then weigh on a layer without room.

    So are forms of candidates with a source, which may become copies of one another.
    """
    entries = [
        holder
        for candidate in document["candidates"]
        for holder in (candidate, *(candidate["forms"] if "source" not in candidate else ()))
        if holder.get("requires")
    ]
    assume(entries and compiled(document).status == "bundle")
    holder = data.draw(st.sampled_from(entries))
    holder["requires"] = holder["requires"][1:]
    assert compiled(document).status == "bundle"


@law(documents(), fast=60, deep=500, found=True)
def test_must_haves_that_are_waived_never_break_what_fits(document: Json) -> None:
    """Without must-haves and floors everything fits that has any room at all."""
    relaxed = copy.deepcopy(document)
    for candidate in relaxed["candidates"]:
        if candidate["band"] in ("mandatory", "required"):
            candidate["band"] = "discretionary"
    relaxed["request"].pop("requires", None)
    for rule in relaxed["profiles"]["profiles"]["p"]["layers"].values():
        rule.pop("floor", None)
    result = compiled(relaxed)
    assert (result.status == "bundle") == (result.tokens.capacity >= 0)
