"""What a form is worth, exactly: value, price and the order of the queue in whole numbers.

Relevance, fidelity and price are decimals. Scaled by powers of ten they become integers, so that
comparisons are exact and cheap: ``worth`` of one unit is one relevance point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from loadmaster.core.items import Item
from loadmaster.core.profiles import Profile

_INFINITE = 1 << 20_000


def _places(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _scaled(number: Decimal, places: int) -> int:
    _, digits, exponent = number.as_tuple()
    scale: int = 10 ** (places + int(exponent))
    return int("".join(map(str, digits))) * scale


@dataclass(frozen=True, slots=True)
class Worth:
    """Scaled arithmetic for one pool under one profile.

    Net value is ``relevance * fidelity - price * cost / 1000``, times a common positive factor.
    """

    fidelity_places: int
    relevance_places: int
    scale: tuple[int, ...]
    factor: tuple[int, ...]
    value_factor: int
    cost_factor: int
    by_density: bool

    @classmethod
    def of(cls, profile: Profile, items: Iterable[Item]) -> Worth:
        """Choose the scales for these candidates."""
        fidelity = profile.fidelity_of()
        fidelity_places = max(_places(number) for number in fidelity)
        price_places = _places(profile.price)
        relevance_places = max((item.relevance[1] for item in items), default=0)
        value_factor = 1000 * 10**price_places
        scaled = tuple(_scaled(number, fidelity_places) for number in fidelity)
        return cls(
            scale=tuple(10 ** (relevance_places - places) for places in range(relevance_places + 1)),
            factor=tuple(number * value_factor for number in scaled),
            fidelity_places=fidelity_places,
            relevance_places=relevance_places,
            value_factor=value_factor,
            cost_factor=_scaled(profile.price, price_places) * 10 ** (relevance_places + fidelity_places),
            by_density=profile.order == "density",
        )

    def value(self, item: Item, rank: int) -> int:
        """Give the value of an item in the form of this rank, times the common factor."""
        digits, places = item.relevance
        return digits * self.scale[places] * self.factor[rank]

    def price(self, cost: int) -> int:
        """Give what tokens cost, times the common factor."""
        return cost * self.cost_factor

    def urgency(self, value: int, cost: int) -> int:
        """Give the figure by which the queue is ordered, greatest first.

        For ``density``, two different quotients of such sizes differ by more than the shift keeps.
        """
        if not self.by_density:
            return value - cost * self.cost_factor
        return (value << 128) // cost if cost > 0 else _INFINITE

    def net(self, value: int, cost: int) -> int:
        """Give the net value, times the common factor."""
        return value - cost * self.cost_factor

    def as_decimal(self, scaled: int) -> Decimal:
        """Give a scaled figure in relevance points, to nine places, for people to read."""
        unit = self.value_factor * 10 ** (self.relevance_places + self.fidelity_places)
        return Decimal(scaled * 10**9 // unit).scaleb(-9)
