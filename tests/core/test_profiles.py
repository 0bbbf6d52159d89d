from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from loadmaster import LayerRule, Profile, ProfileSet, defaults
from loadmaster.core.problem import output_reserve
from loadmaster.core.profiles import Amount, lint


def profile_set(**changes: Any) -> ProfileSet:
    fields: dict[str, Any] = {
        "version": "7",
        "layers": ("memory", "rag"),
        "default": "a",
        "routes": {"/b": "b"},
        "smallest_window": 1000,
        "standing_max": 100,
        "profiles": {"a": {"layers": {"rag": {"ratio": 1}}}, "b": {"layers": {"memory": {"ratio": 1}}}},
    }
    return ProfileSet.model_validate({**fields, **changes})


def test_keys_that_are_left_out_take_the_defaults() -> None:
    profile = Profile()
    assert profile.output == Amount(0)
    assert (profile.surplus, profile.order, profile.layout) == ("ratio", "net", "canonical")
    assert [profile.price, profile.min_relevance, Decimal(profile.corroboration)] == [0, 0, 1]
    assert profile.fidelity_of() == tuple(map(Decimal, ("1", "0.95", "0.85", "0.5", "0.3")))
    assert LayerRule() == LayerRule(floor=Amount(0), ratio=Decimal(0), cap=None, priority=None)
    assert (profile.max_age, profile.scope_required, profile.transfer, profile.layers) == ({}, (), (), {})


def test_declared_fidelity_replaces_form_by_form() -> None:
    profile = Profile.model_validate({"fidelity": {"dense": 0.5}})
    assert profile.fidelity_of() == tuple(map(Decimal, ("1", "0.5", "0.85", "0.5", "0.3")))


@pytest.mark.parametrize(
    ("profile", "route", "chosen"),
    [
        (None, None, ("a", "default")),
        (None, "/b", ("b", "route")),
        (None, "/nowhere", ("a", "default")),
        ("b", None, ("b", "explicit")),
        ("a", "/b", ("a", "explicit")),
    ],
)
def test_choice_of_a_profile(profile: str | None, route: str | None, chosen: tuple[str, str]) -> None:
    assert profile_set().choose(profile, route) == chosen


def test_an_unknown_profile_is_no_choice() -> None:
    with pytest.raises(KeyError):
        profile_set().choose("c", None)


@pytest.mark.parametrize(
    ("written", "whole", "amount"),
    [
        (300, 10, 300),
        ("40%", 1000, 400),
        ("12.5%", 1000, 125),
        ("0.001%", 1000, Fraction(1, 100)),
        ("33.333333%", 3, Fraction(33333333, 33333333) * Fraction(99999999, 100000000)),
        ("100%", 7, 7),
        ("0%", 7, 0),
        ("50 %", 7, Fraction(7, 2)),
        ("40%", -1000, 0),
    ],
)
def test_amounts_are_exact(written: int | str, whole: int, amount: int | Fraction) -> None:
    assert LayerRule.model_validate({"floor": written}).floor.of(whole) == amount


@pytest.mark.parametrize(
    "written",
    [
        -1,
        1.0,
        True,
        "40",
        "%",
        "-1%",
        "101%",
        "100.1%",
        "1e2%",
        " 40%",
        "40%%",
        "٤%",
        None,
        [],
        "0.0000001%",
        10**16,
    ],
)
def test_what_is_no_amount(written: Any) -> None:
    with pytest.raises(ValidationError):
        LayerRule.model_validate({"floor": written})


def test_an_output_reserve_is_rounded_up() -> None:
    assert output_reserve(Profile.model_validate({"output": "20%"}), 1001) == 201


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": ("rag", "rag", "memory")},
        {"default": "c"},
        {"routes": {"/c": "c"}},
        {"profiles": {"a": {"layers": {"graph": {}}}, "b": {}}},
        {"profiles": {"a": {"max_age": {"graph": "1d"}}, "b": {}}},
        {"profiles": {"a": {"layers": {"rag": {"floor": "60%"}, "memory": {"floor": "41%"}}}, "b": {}}},
        {"profiles": {"a": {"price": -1}, "b": {}}},
        {"version": ""},
        {"comment": "x"},
    ],
    ids=str,
)
def test_sets_that_do_not_hold_together(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        profile_set(**changes)


def test_share_floors_may_sum_to_all() -> None:
    layers = {"rag": {"floor": "60%"}, "memory": {"floor": "40%"}}
    profile_set(profiles={"a": {"layers": layers}, "b": {}})


def test_a_set_survives_being_written_and_read() -> None:
    profiles = defaults.packaged_profiles()
    stored = profiles.model_dump(mode="json", by_alias=True)
    assert ProfileSet.model_validate(stored) == profiles


def findings(profiles: ProfileSet) -> list[tuple[str | None, str]]:
    return [(finding.profile, finding.severity) for finding in lint(profiles)]


def test_the_packaged_set_is_clean() -> None:
    assert [finding for finding in lint(defaults.packaged_profiles()) if finding.severity == "error"] == []


def test_lint_checks_floors_standing_and_reserves_against_the_smallest_window() -> None:
    fits = {"a": {"output": "20%", "layers": {"rag": {"floor": 700}}}, "b": {"layers": {"rag": {"ratio": 1}}}}
    assert findings(profile_set(profiles=fits)) == []
    over = {"a": {"output": "20%", "layers": {"rag": {"floor": 701}}}, "b": {"layers": {"rag": {"ratio": 1}}}}
    assert findings(profile_set(profiles=over)) == [("a", "error")]
    assert findings(profile_set(profiles=fits, standing_max=101)) == [("a", "error")]


def test_lint_flags_what_cannot_be_meant() -> None:
    crossed = {"a": {"layers": {"rag": {"floor": 300, "cap": 200}}}, "b": {"layers": {"memory": {}}}}
    assert findings(profile_set(profiles=crossed)) == [("a", "error"), ("b", "warning")]
    assert findings(profile_set(smallest_window=None)) == [(None, "warning")]
    many = {name: {"layers": {"rag": {"ratio": 1}}} for name in "abcdefghi"}
    assert findings(profile_set(profiles=many)) == [(None, "warning")]
