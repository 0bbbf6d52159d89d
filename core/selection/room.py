"""Room: what an account may still take, given the budget, its cap, and what floors reserve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

from loadmaster.core.draft import Row
from loadmaster.core.profiles import Profile
from loadmaster.core.selection.accounts import STANDING, TASK
from loadmaster.core.selection.allocation import Demand, FloorBreach, allocate
from loadmaster.core.selection.ledger import Ledger


@dataclass(slots=True)
class Room:
    """The space left in a bundle under construction.

    ``wanted`` is what each layer could use when feasibility was proven, so floors reserve no more
    than was proven to fit. ``can_use`` tells whether a waiting unit of a layer could still enter
    within some tokens: a floor whose units can no longer fit it reserves nothing.
    """

    ledger: Ledger
    profile: Profile
    layers: tuple[str, ...]
    capacity: int
    wanted: Mapping[str, int]
    can_use: Callable[[str, int], bool]

    @property
    def free(self) -> int:
        """Tokens that nobody holds."""
        return self.capacity - self.ledger.total

    @property
    def base(self) -> int:
        """The grant base: the capacity without standing content and the task."""
        held = self.ledger.held
        return self.capacity - held.get(STANDING, 0) - held.get(TASK, 0)

    def held(self, layer: str) -> int:
        """Tokens charged to a layer."""
        return self.ledger.held.get(layer, 0)

    def below_cap(self, layer: str) -> int:
        """Tokens that a layer may still take under its cap; a layer that is not named takes none."""
        return max(0, self._cap(layer, self.base) - self.held(layer))

    def _cap(self, layer: str, base: int) -> int:
        rule = self.profile.layers.get(layer)
        if rule is None:
            return 0
        return self.capacity if rule.cap is None else floor(rule.cap.of(base))

    def allows(self, charges: Mapping[str, int]) -> bool:
        """Whether charges and refunds fit, push no layer above its cap and take nothing that floors reserve.

        Standing content makes the grant base, and with it caps and floors that are shares, smaller.
        """
        base = self.base - charges.get(STANDING, 0) - charges.get(TASK, 0)
        free = self.free - sum(charges.values())
        if free < 0:
            return False
        for layer in self.layers:
            held = self.held(layer)
            then = held + charges.get(layer, 0)
            if then > self._cap(layer, base) and (then > held or held <= self._cap(layer, self.base)):
                return False
        owing = self._reserved(base, charges) - free
        return owing <= max(Fraction(0), self._reserved(self.base, {}) - self.free)

    def _reserved(self, base: int, charges: Mapping[str, int], but: str | None = None) -> Fraction:
        """Give what floors still reserve, after some charges, for layers that can use it."""
        reserved = Fraction(0)
        for layer in self.wanted:
            missing = self._floor(layer, base) - self.held(layer) - charges.get(layer, 0)
            if layer != but and missing > 0 and self.can_use(layer, self.free):
                reserved += missing
        return reserved

    def unreserved(self, layer: str) -> int:
        """Tokens free for a layer without what the floors of other layers still reserve."""
        return max(0, floor(self.free - self._reserved(self.base, {}, layer)))

    def limit(self, layer: str) -> int:
        """Tokens that a layer may take at most: unreserved ones, below its cap."""
        return min(self.unreserved(layer), self.below_cap(layer))

    def limits(self) -> dict[str, int]:
        """Give every layer's limit."""
        return {layer: self.limit(layer) for layer in self.layers}

    def _floor(self, layer: str, base: int) -> Fraction:
        rule = self.profile.layers.get(layer)
        return min(rule.floor.of(base), Fraction(self.wanted.get(layer, 0))) if rule else Fraction(0)

    def grant(
        self, everything: Mapping[str, int], of_band: Mapping[str, int], exact: bool
    ) -> tuple[dict[str, int], tuple[Row, ...]]:
        """Allocate: at least what is held and what floors reserve, at most what a band and those above want.

        Floors are exact fractions in the first allocation. After it, a grant in whole tokens may
        have taken the fraction of another layer's floor, so they count in whole tokens; and a floor
        that could not be used for a while may find its room taken, so they count as far as there is room.
        """
        base, free = self.base, Fraction(self.free)
        demands = []
        for rank, layer in enumerate(self.layers):
            rule = self.profile.layers.get(layer)
            reserve = self._floor(layer, base)
            if not exact:
                reserve = Fraction(floor(reserve))
            if reserve > self.held(layer) and not self.can_use(layer, self.free):
                reserve = Fraction(0)
            if not exact:
                reserve = min(reserve, self.held(layer) + free)
                free -= max(Fraction(0), reserve - self.held(layer))
            demands.append(
                Demand(
                    layer=layer,
                    floor=reserve,
                    ratio=Fraction(rule.ratio) if rule else Fraction(0),
                    cap=(rule.cap.of(base) if rule.cap else None) if rule else Fraction(0),
                    priority=rank + 1 if rule is None or rule.priority is None else rule.priority,
                    wants=max(of_band[layer], floor(reserve)),
                    must=self.held(layer),
                )
            )
        grants = allocate(base, demands, self.profile.surplus)
        assert not isinstance(grants, FloorBreach), "a breach of floors after feasibility was proven"
        rows = tuple(
            self._row(demand, grant, everything[demand.layer])
            for demand, grant in zip(demands, grants, strict=True)
        )
        return dict(zip(self.layers, grants, strict=True)), rows

    def _row(self, demand: Demand, grant: int, wants: int) -> Row:
        rule = self.profile.layers.get(demand.layer)
        lower = min(grant, floor(demand.lower))
        return Row(
            layer=demand.layer,
            floor=floor(rule.floor.of(self.base)) if rule else 0,
            ratio=rule.ratio if rule else Decimal(0),
            cap=None if demand.cap is None else floor(demand.cap),
            wants=max(wants, demand.must),
            floor_grant=lower,
            surplus=grant - lower,
            granted=grant,
        )
