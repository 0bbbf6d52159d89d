"""Who pays: which layer a bundle's tokens are charged to, and what each layer could use.

A unit's whole marginal cost is charged to the layer of its lead, dependencies included. What a
must-have without a layer brings in is standing content, unless it has a layer of its own. Shared
parts are charged once, to the first that needs them: units without a layer, then by declared layer.
What another must-have unit needs is that unit's.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from loadmaster.core.items import REQUIRED
from loadmaster.core.pool import Pool
from loadmaster.core.profiles import Profile
from loadmaster.core.selection.search import Picks, cheapest

STANDING, TASK = "", " task"
"""Accounts that are no layer; a layer's name is never empty and these are never shown."""

UNIT_WORK = 10_000
ALL_UNITS_WORK = 200_000
"""Form evaluations for the wants of one unit and of all; beyond them they count in the first legal forms."""

UNDECIDED = -1
"""The place of a form that is not chosen yet, and so needs nothing beyond what its candidate needs."""


def charge_to(pool: Pool, musts: Iterable[int], picks: Picks) -> dict[int, str]:
    """Give the account that each candidate of a must-have bundle is charged to."""
    leads = sorted(
        {pool.lead(index) for index in musts if index in picks}, key=lambda lead: _turn(pool, lead)
    )
    account: dict[int, str] = {}
    for lead in leads:
        for member in pool.unit(lead):
            account[member] = _account(pool, lead, member)
    for lead in leads:
        stack = [need for member in pool.unit(lead) for need in _wanted(pool, member, picks[member])]
        while stack:
            index = stack.pop()
            if index not in account and index in picks:
                account[index] = _account(pool, lead, index)
                stack.extend(pool.mates(index))
                stack.extend(_wanted(pool, index, picks[index]))
    return account


def _wanted(pool: Pool, index: int, place: int) -> tuple[int, ...]:
    return pool.needs.get(index, ()) + pool.form_needs.get((index, place), ())


def _turn(pool: Pool, lead: int) -> tuple[int, bool, int]:
    item = pool.items[lead]
    return pool.rank_of_layer(item.layer), item.section == "task", lead


def _account(pool: Pool, lead: int, index: int) -> str:
    layer = pool.items[lead].layer or pool.items[index].layer
    if layer is not None:
        return layer
    return TASK if pool.items[lead].section == "task" else STANDING


def certain(pool: Pool, musts: Sequence[int]) -> dict[int, str]:
    """Give what must-haves bring in whatever forms are chosen, by who pays for it."""
    return charge_to(pool, musts, dict.fromkeys(pool.close(musts), UNDECIDED))


def totals(pool: Pool, picks: Picks, account: Mapping[int, str]) -> dict[str, int]:
    """Sum what each account is charged."""
    sums: dict[str, int] = {}
    for index, place in picks.items():
        payer = account[index]
        sums[payer] = sums.get(payer, 0) + pool.cost[index][place]
    return sums


def eligible_units(pool: Pool, profile: Profile) -> list[int]:
    """Give the leads of the layered units whose wants count: must-haves, and what is relevant enough."""
    items, members, least = pool.items, pool.members, profile.min_relevance
    leads = [index for index in pool.live if items[index].layer is not None]
    if members:
        leads = [index for index in leads if index not in members or pool.lead(index) == index]
    if not least:
        return leads
    return [
        lead
        for lead in leads
        if pool.unit_bands[lead] <= REQUIRED or items[lead].candidate.relevance >= least
    ]


def wants(pool: Pool, leads: Sequence[int], free: Mapping[int, str], layers: Iterable[str]) -> dict[str, int]:
    """Give what each layer's units would cost at their richest forms with closures, shared parts once.

    First all units themselves, then what else they need, in its cheapest forms.

    Args:
        pool: What may be chosen.
        leads: The units that count.
        free: What is in the bundle, by who pays for it: free for every layer but its payer.
        layers: The layers to report.
    """
    total = dict.fromkeys(layers, 0)
    work = ALL_UNITS_WORK
    items, cost, tied = pool.items, pool.cost, pool.tied
    counted: dict[str, set[int]] = {}
    own: dict[int, list[int]] = {}
    for lead in leads:
        layer = items[lead].layer
        if layer is None or layer not in total:
            continue
        if lead not in tied:
            total[layer] += cost[lead][0]
            continue
        if layer not in counted:
            counted[layer] = {index for index, payer in free.items() if payer != layer}
        own[lead] = [member for member in pool.unit(lead) if member not in counted[layer]]
        counted[layer].update(own[lead])
        total[layer] += sum(cost[member][0] for member in own[lead])
    for lead, members in own.items():
        layer = items[lead].layer or ""
        needs = {need for member in members for need in _wanted(pool, member, 0)}
        if not needs <= counted[layer]:
            choice = cheapest(pool, needs, counted[layer], work=min(UNIT_WORK, work))
            work -= choice.work
            total[layer] += sum(cost[index][place] for index, place in choice.picks.items())
            counted[layer].update(choice.picks)
    return total


@dataclass(frozen=True, slots=True)
class Floors:
    """The layers' floors against fixed wants: what must be reserved beyond what must-haves hold."""

    layers: tuple[tuple[str, Fraction, Fraction, int], ...]

    @classmethod
    def of(cls, profile: Profile, wanted: Mapping[str, int]) -> Floors:
        """Collect the floors that are above nothing and are wanted."""
        return cls(
            tuple(
                (layer, Fraction(rule.floor.tokens), rule.floor.share or Fraction(0), wanted[layer])
                for layer, rule in sorted(profile.layers.items())
                if wanted.get(layer) and (rule.floor.tokens or rule.floor.share)
            )
        )

    def among(self, layers: Container[str | None]) -> Floors:
        """Give the floors of these layers alone."""
        return Floors(tuple(floor for floor in self.layers if floor[0] in layers))

    def needed(self, capacity: int, charged: Mapping[str, int]) -> int | Fraction:
        """Give what must-haves and floors need together: the figure that must not exceed the capacity."""
        held = sum(charged.values())
        if not self.layers:
            return held
        base = capacity - charged.get(STANDING, 0) - charged.get(TASK, 0)
        total = Fraction(held)
        for layer, tokens, share, wanted in self.layers:
            floor = min(tokens + share * max(base, 0), Fraction(wanted))
            total += max(Fraction(0), floor - charged.get(layer, 0))
        return int(total) if total.denominator == 1 else total
