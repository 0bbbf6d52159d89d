"""What holds in every bundle: its arithmetic, its limits and its must-haves."""

from __future__ import annotations

import json
from fractions import Fraction
from math import ceil, floor
from typing import Any

from hypothesis import assume
from tests.properties.laws import compiled, law
from tests.properties.strategies import documents

from loadmaster import Bundle

Json = Any


def bundle_of(document: Json) -> Bundle:
    result = compiled(document)
    assume(result.status == "bundle")
    assert result.status == "bundle"
    return result


@law(documents(flaws=False), fast=150, deep=1500, found=True)
def test_the_books_balance(document: Json) -> None:
    bundle = bundle_of(document)
    tokens = bundle.tokens
    assert 0 <= tokens.used <= tokens.capacity
    assert sum(block.tokens for block in bundle.blocks) + tokens.framing == tokens.used
    assert sum(row.used for row in bundle.allocation) + tokens.standing + tokens.task == tokens.used
    assert [row.layer for row in bundle.allocation] == document["profiles"]["layers"]


def amount(given: int | str, base: int) -> Fraction:
    """Give tokens, or a share of the grant base, in tokens."""
    return Fraction(given.rstrip("%")) / 100 * base if isinstance(given, str) else Fraction(given)


@law(documents(flaws=False), fast=150, deep=1500, found=True)
def test_no_layer_grows_above_its_cap(document: Json) -> None:
    """Must-haves at their cheapest may be above it, and a floor may; beyond them nothing comes in."""
    bundle = bundle_of(document)
    base = bundle.tokens.allocatable - bundle.tokens.task
    rules = document["profiles"]["profiles"]["p"]["layers"]
    grown = {
        line["args"]["layer"]
        for line in map(json.loads, bundle.trace.lines())
        if line.get("rule") in ("earned", "forced", "enriched") and line["args"]["cost"] > 0
    }
    for row in bundle.allocation:
        rule = rules.get(row.layer, {"cap": 0})
        if row.layer in grown and "cap" in rule:
            highest = max(floor(amount(rule["cap"], base)), ceil(amount(rule.get("floor", 0), base)))
            assert row.used <= highest, row.layer


@law(documents(floors=True, flaws=False), fast=150, deep=1500, found=True)
def test_a_floor_is_met_or_flagged(document: Json) -> None:
    bundle = bundle_of(document)
    for row in bundle.allocation:
        assert row.floor_unmet == (row.used < min(row.floor, row.wants))
        assert row.granted == row.floor_grant + row.surplus


@law(documents(flaws=False), fast=150, deep=1500, found=True)
def test_nothing_stays_out_for_lack_of_room_that_fits(document: Json) -> None:
    bundle = bundle_of(document)
    for line in map(json.loads, bundle.trace.lines()):
        if line.get("rule") in ("no_room", "cap") and "short_by" in line["args"]:
            assert line["args"]["short_by"] > 0, line


@law(documents(), fast=150, deep=1500, found=True)
def test_must_haves_are_in(document: Json) -> None:
    bundle = bundle_of(document)
    inside = {block.id for block in bundle.blocks}
    merged = {
        line["item"]: line["args"]["into"]
        for line in map(json.loads, bundle.trace.lines())
        if line.get("rule") == "merged"
    }
    excluded = {omission.id for omission in bundle.omitted if omission.rule == "excluded"}
    required = document["request"].get("requires", ())
    for candidate in document["candidates"]:
        if candidate["band"] in ("mandatory", "required") or candidate["id"] in required:
            name = merged.get(candidate["id"], candidate["id"])
            assert name in inside or name in excluded
