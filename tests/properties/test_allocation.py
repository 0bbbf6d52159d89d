"""The allocation, against a slow solver that pours token by token."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil, floor

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.laws import law

from loadmaster.core.selection.allocation import Demand, FloorBreach, Surplus, allocate

RATIOS = st.sampled_from([Fraction(0), Fraction(1), Fraction(1), Fraction(2), Fraction(1, 3), Fraction(40)])
AMOUNTS = st.one_of(st.integers(0, 12).map(Fraction), st.fractions(0, 12, max_denominator=7))
AVAILABLE = st.integers(-3, 60)


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    return [
        Demand(
            layer=f"layer {number}",
            floor=draw(AMOUNTS),
            ratio=draw(RATIOS),
            cap=draw(st.one_of(st.none(), AMOUNTS)),
            priority=draw(st.integers(0, 2)),
            wants=draw(st.integers(0, 20)),
            must=draw(st.one_of(st.just(0), st.integers(0, 8))),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


def bounds(demand: Demand) -> tuple[Fraction, Fraction]:
    """Give the least and the most that a layer may get, as the specification has it."""
    lower = max(min(demand.floor, Fraction(demand.wants)), Fraction(demand.must))
    cap = demand.wants if demand.cap is None else min(demand.wants, floor(demand.cap))
    return lower, max(Fraction(cap), lower)


def poured(available: int, wanted: list[Demand]) -> list[Fraction]:
    """Raise one common level over all layers, from one corner of the bounds to the next."""
    limits = [bounds(demand) for demand in wanted]
    grants = [lower for lower, _ in limits]
    rest = available - sum(grants)
    level = Fraction(0)
    while rest > 0:
        moving = [
            at
            for at, demand in enumerate(wanted)
            if demand.ratio and grants[at] < limits[at][1] and grants[at] <= level * demand.ratio
        ]
        corners = [
            corner
            for (lower, upper), demand in zip(limits, wanted, strict=True)
            if demand.ratio
            for corner in (lower / demand.ratio, upper / demand.ratio)
            if corner > level
        ]
        if not corners:
            break
        step = min(corners) - level
        speed = sum((wanted[at].ratio for at in moving), Fraction(0))
        if speed and speed * step > rest:
            step = rest / speed
        for at in moving:
            grants[at] += step * wanted[at].ratio
        level += step
        rest -= step * speed
    return grants


def by_priority(available: int, wanted: list[Demand]) -> list[Fraction]:
    limits = [bounds(demand) for demand in wanted]
    grants = [lower for lower, _ in limits]
    rest = available - sum(grants)
    for at in sorted(range(len(wanted)), key=lambda at: wanted[at].priority):
        extra = min(rest, limits[at][1] - grants[at])
        grants[at] += extra
        rest -= extra
    return grants


def exact(available: int, wanted: list[Demand], surplus: Surplus) -> list[Fraction]:
    return poured(available, wanted) if surplus == "ratio" else by_priority(available, wanted)


SURPLUS = st.sampled_from(["ratio", "priority"])


@law(AVAILABLE, demands(), SURPLUS, fast=250, deep=2500)
def test_grants_are_the_exact_shares_in_whole_tokens(
    available: int, wanted: list[Demand], surplus: Surplus
) -> None:
    grants = allocate(available, wanted, surplus)
    least = sum(bounds(demand)[0] for demand in wanted)
    assert isinstance(grants, FloorBreach) == (least > available)
    if isinstance(grants, FloorBreach):
        assert grants.excess == ceil(least - available) > 0
        return
    shares = exact(available, wanted, surplus)
    assert sum(grants) == floor(sum(shares)) <= available
    remainders = [share - floor(share) for share in shares]
    residual = floor(sum(shares)) - sum(map(floor, shares))
    up = sorted(range(len(shares)), key=lambda at: -remainders[at])[:residual]  # ties to the earlier layer
    assert list(grants) == [floor(share) + (at in up) for at, share in enumerate(shares)]
    for grant, demand in zip(grants, wanted, strict=True):
        lower, upper = bounds(demand)
        assert floor(lower) <= grant <= ceil(upper) and grant >= demand.must


@law(AVAILABLE, demands(), SURPLUS, fast=100, deep=1500)
def test_more_to_share_is_less_for_nobody(available: int, wanted: list[Demand], surplus: Surplus) -> None:
    """Exact shares never fall. Whole tokens by largest remainder may, by one."""
    assume(not isinstance(allocate(available, wanted, surplus), FloorBreach))
    less, more = exact(available, wanted, surplus), exact(available + 1, wanted, surplus)
    assert all(one <= other for one, other in zip(less, more, strict=True))
    fewer, grants = allocate(available, wanted, surplus), allocate(available + 1, wanted, surplus)
    assert not isinstance(fewer, FloorBreach) and not isinstance(grants, FloorBreach)
    assert all(one <= other + 1 for one, other in zip(fewer, grants, strict=True))


@law(AVAILABLE, demands(), st.randoms(use_true_random=False), fast=80, deep=1000)
def test_order_decides_nothing_but_residual_tokens(
    available: int, wanted: list[Demand], dice: random.Random
) -> None:
    grants = allocate(available, wanted, "ratio")
    places = dice.sample(range(len(wanted)), len(wanted))
    others = allocate(available, [wanted[place] for place in places], "ratio")
    if isinstance(grants, FloorBreach) or isinstance(others, FloorBreach):
        assert grants == others
        return
    assert sum(grants) == sum(others)
    assert all(abs(others[at] - grants[place]) <= 1 for at, place in enumerate(places))


@law(AVAILABLE, demands(), fast=60, deep=500)
def test_a_residual_token_goes_to_the_earlier_of_two_equals(available: int, wanted: list[Demand]) -> None:
    first = wanted[0]
    grants = allocate(available, [first, *wanted[1:], first._replace(layer="twin")], "ratio")
    if not isinstance(grants, FloorBreach):
        assert 0 <= grants[0] - grants[-1] <= 1
