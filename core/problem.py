"""A parsed compile: request, candidates, the chosen policy, the meter and the budget, all resolved.

Everything that the passes read comes from here, so a `Problem` and nothing else decides the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from types import MappingProxyType

from loadmaster.core.blocks import TAGGED, Renderer
from loadmaster.core.canonical import canonical_json
from loadmaster.core.contract import Observation, Request
from loadmaster.core.instants import Instant, parse_duration, parse_instant
from loadmaster.core.items import Item
from loadmaster.core.profiles import Profile, ProfileSet
from loadmaster.core.tokens import Meter


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget arithmetic before any content, once and for all. All in tokens; may be negative."""

    window: int
    output: int
    reasoning: int
    headroom: int
    economic: int | None

    @property
    def usable(self) -> int:
        """What the input may hold: the window without reserves, or less where it is not worth more."""
        room = self.window - self.output - self.reasoning
        return room if self.economic is None else min(room, self.economic)

    @property
    def capacity(self) -> int:
        """What the bundle may hold."""
        return self.usable - self.headroom


@dataclass(frozen=True, slots=True)
class Policy:
    """One profile of a set, with its choice explained and its data in the form that passes use."""

    profiles: ProfileSet
    name: str
    why: str
    profile: Profile
    layer_rank: Mapping[str, int]
    max_age: Mapping[str, int]
    transfers: frozenset[tuple[str, str, str]]

    @classmethod
    def of(cls, profiles: ProfileSet, name: str, why: str) -> Policy:
        """Resolve a profile of a set."""
        profile = profiles.profiles[name]
        return cls(
            profiles=profiles,
            name=name,
            why=why,
            profile=profile,
            layer_rank=MappingProxyType({layer: rank for rank, layer in enumerate(profiles.layers)}),
            max_age=MappingProxyType({layer: parse_duration(age) for layer, age in profile.max_age.items()}),
            transfers=frozenset(
                (rule.key, canonical_json(rule.from_), canonical_json(rule.to)) for rule in profile.transfer
            ),
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """One compile, parsed and resolved."""

    request: Request
    items: tuple[Item, ...]
    policy: Policy
    limits: Limits
    meter: Meter
    renderer: Renderer = TAGGED
    observations: tuple[Observation, ...] = ()
    digest_key: bytes | None = field(default=None, repr=False)
    compiler: str = ""

    @property
    def as_of(self) -> Instant | None:
        """The request's clock."""
        return parse_instant(self.request.as_of) if self.request.as_of else None

    def with_window(self, window: int) -> Problem:
        """Give the same compile under another window; a reserve that is a share follows it."""
        output = self.limits.output
        if self.request.budget.output is None:
            output = output_reserve(self.policy.profile, window)
        return replace(self, limits=replace(self.limits, window=window, output=output))


def output_reserve(profile: Profile, window: int) -> int:
    """Give the profile's reserve for the reply, in whole tokens, rounded up: a reserve is a promise."""
    return ceil(profile.output.of(window))


def limits_of(request: Request, profile: Profile, model_window: int | None) -> Limits:
    """Resolve a request's budget against its profile and its model's window; the smaller window counts."""
    budget = request.budget
    windows = [window for window in (budget.window, model_window) if window is not None]
    window = min(windows)
    return Limits(
        window=window,
        output=budget.output if budget.output is not None else output_reserve(profile, window),
        reasoning=budget.reasoning,
        headroom=budget.headroom,
        economic=budget.economic,
    )


def canonical_items(items: Sequence[Item]) -> tuple[Item, ...]:
    """Order items by id, so that nothing downstream depends on the order they came in."""
    return tuple(sorted(items, key=lambda item: item.id))
