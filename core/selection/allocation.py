"""Allocation: how many tokens each layer is granted. One pure, exact function."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Literal, NamedTuple

Surplus = Literal["priority", "ratio"]


class Demand(NamedTuple):
    """What one layer may claim, in declared order.

    Attributes:
        layer: The layer's name.
        floor: Tokens it is guaranteed if it wants them; a share is an exact fraction of tokens.
        ratio: Its weight in sharing the surplus, >= 0.
        cap: Most tokens it may hold, or None.
        priority: Its turn under the surplus ``priority``; the lowest comes first.
        wants: Tokens that everything it could use would cost.
        must: Tokens that it holds already.
    """

    layer: str
    floor: Fraction
    ratio: Fraction
    cap: Fraction | None
    priority: int
    wants: int
    must: int

    @property
    def lower(self) -> Fraction:
        """The least it must be granted."""
        return max(min(Fraction(self.floor), Fraction(self.wants)), Fraction(self.must))

    @property
    def upper(self) -> Fraction:
        """The most it can use; whole tokens below its cap, unless the lower bound wins."""
        capped = self.wants if self.cap is None else min(self.wants, floor(self.cap))
        return max(Fraction(capped), self.lower)


class FloorBreach(NamedTuple):
    """The lower bounds alone exceed what is available, by ``excess`` whole tokens."""

    excess: int


def allocate(available: int, demands: Sequence[Demand], surplus: Surplus) -> tuple[int, ...] | FloorBreach:
    """Grant whole tokens to layers.

    Each layer gets at least its lower bound and at most its upper. What is left goes, under
    ``priority``, to each layer up to its upper bound in turn; under ``ratio``, to all in proportion
    to their weights, where what a bounded layer cannot use is shared again by the others. Fractions
    become whole tokens by largest remainder, ties to the earlier layer.

    Args:
        available: Tokens to grant; may be negative.
        demands: One for each layer, in the declared order.
        surplus: The rule for what the lower bounds leave.

    Returns:
        The grants in the order of the demands, or the breach if the lower bounds do not fit.
    """
    lowers = [demand.lower for demand in demands]
    needed = sum(lowers, Fraction(0))
    if needed > available:
        return FloorBreach(ceil(needed - available))
    uppers = [demand.upper for demand in demands]
    if surplus == "priority":
        grants = list(lowers)
        rest = available - needed
        for index in sorted(range(len(demands)), key=lambda index: (demands[index].priority, index)):
            extra = min(uppers[index] - lowers[index], rest)
            grants[index] += extra
            rest -= extra
    else:
        grants = _share([Fraction(demand.ratio) for demand in demands], lowers, uppers, Fraction(available))
    return _whole(grants)


def _share(
    ratios: list[Fraction], lowers: list[Fraction], uppers: list[Fraction], available: Fraction
) -> list[Fraction]:
    """Find ``clamp(level * ratio, lower, upper)`` with the level that spends all or fills every upper.

    The spent total grows with the level, piecewise linearly, with corners where a layer leaves its
    lower or reaches its upper bound; so the level is found between two corners and is exact.
    """

    def at(level: Fraction) -> list[Fraction]:
        return [
            min(max(level * ratio, lower), upper) if ratio else lower
            for ratio, lower, upper in zip(ratios, lowers, uppers, strict=True)
        ]

    corners = sorted(
        {
            bound / ratio
            for ratio, *bounds in zip(ratios, lowers, uppers, strict=True)
            if ratio
            for bound in bounds
        }
    )
    below = Fraction(0)
    for corner in corners:
        if sum(at(corner), Fraction(0)) >= available:
            slope = sum(
                (
                    ratio
                    for ratio, lower, upper in zip(ratios, lowers, uppers, strict=True)
                    if ratio and lower <= below * ratio < upper
                ),
                Fraction(0),
            )
            missing = available - sum(at(below), Fraction(0))
            return at(below + missing / slope) if slope else at(corner)
        below = corner
    return at(below)


def _whole(grants: list[Fraction]) -> tuple[int, ...]:
    """Round to whole tokens that sum to the whole part of the total, by largest remainder."""
    whole = [floor(grant) for grant in grants]
    residual = floor(sum(grants, Fraction(0))) - sum(whole)
    by_remainder = sorted(range(len(grants)), key=lambda index: (whole[index] - grants[index], index))
    for index in by_remainder[:residual]:
        whole[index] += 1
    return tuple(whole)
