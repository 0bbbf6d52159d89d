"""Why must-haves do not fit, and the smallest changes that would make them: proofs over the need function.

Without floors the need is monotone: taking a requirement away never makes it grow. So one pass over
the facts, dropping each that is not needed for the proof, leaves an irreducible set. Floors break
that in corners, since a dependency that loses one of its payers may be charged to a layer that has
no room below its floor; then passes are repeated until nothing more can be dropped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import NamedTuple

from loadmaster.core.draft import Draft
from loadmaster.core.items import DISCRETIONARY, MANDATORY, REQUIRED
from loadmaster.core.passes.feasibility import least_need, wants_with
from loadmaster.core.pool import Pool, leads_of
from loadmaster.core.selection.accounts import STANDING, TASK, Floors, certain
from loadmaster.core.selection.exclusive import Exclusive
from loadmaster.core.selection.search import cheapest

_PAIRS_UP_TO = 40


class Demanded(NamedTuple):
    """One thing that takes room and could be waived: a must-have, or a layer's floor."""

    id: str
    candidate: int | None
    layer: str | None
    band: int
    tokens: int


class Shortfall:
    """The must-haves and floors of one draft, as facts that can be dropped and tried again."""

    def __init__(self, draft: Draft) -> None:
        assert draft.pool is not None and draft.musts is not None
        self.pool: Pool = draft.pool
        self.profile = draft.problem.policy.profile
        self.capacity = draft.problem.limits.capacity
        self.picks = draft.musts.picks
        self.facts = self._facts(draft)
        self.floors = any(fact.candidate is None for fact in self.facts)
        self._wants: dict[object, dict[str, int]] = {}
        self._leaned_on = frozenset().union(*self.pool.needs.values(), *self.pool.form_needs.values())
        self._additive = not self.floors and not any(
            entry in self.pool.form_needs for entry in self.picks.items()
        )

    def _facts(self, draft: Draft) -> list[Demanded]:
        facts: list[Demanded] = []
        wanted = draft.musts.wanted if draft.musts else {}
        for layer, rule in self.profile.layers.items():
            if rule.floor.tokens or rule.floor.share:
                size = ceil(min(rule.floor.of(self.capacity), Fraction(wanted[layer])))
                facts.append(Demanded(f"floor:{layer}", None, layer, -1, size))
        for index in draft.musts.roots if draft.musts else ():
            if draft.is_must(index):
                item = self.pool.items[index]
                cost = self.pool.cost[index][self.picks[index]]
                facts.append(Demanded(item.id, index, item.layer, draft.bands[index], cost))
        rank = {-1: 0, MANDATORY: 2}
        return sorted(facts, key=lambda fact: (rank.get(fact.band, 1), fact.tokens, fact.id))

    def need(self, facts: Iterable[Demanded]) -> int:
        """Give the whole tokens that these facts need together; the rest are no must-haves and no floors."""
        facts = list(facts)
        kept = [fact.candidate for fact in facts if fact.candidate is not None]
        beside: Counter[str] = Counter()
        for index in kept:
            if index not in self.pool.tied:
                item = self.pool.items[index]
                account = item.layer or (TASK if item.section == "task" else STANDING)
                beside[account] += self.pool.cost[index][self.picks[index]]
        tied = [index for index in kept if index in self.pool.tied]
        roots = tuple(sorted(member for unit in self._units(tied) for member in unit))
        layers = {fact.layer for fact in facts if fact.candidate is None}
        pool, floors = self.pool, Floors(())
        if layers:
            pool = self._with_bands(frozenset(kept))
            floors = Floors.of(self.profile, self._wanted(pool, roots)).among(layers)
        return ceil(least_need(pool, roots, floors, self.capacity, beside=beside).needed)

    def _units(self, indices: Iterable[int]) -> Iterable[tuple[int, ...]]:
        """Give the units of some candidates, each once."""
        units = {unit[0]: unit for unit in map(self.pool.unit, indices)}
        return units.values()

    def _with_bands(self, kept: frozenset[int]) -> Pool:
        """Give the pool in which only these are must-haves: who leads a unit, and so who pays, may change."""
        dropped = [fact.candidate for fact in self.facts if fact.candidate is not None]
        bands, unit_bands = list(self.pool.bands), list(self.pool.unit_bands)
        for index in dropped:
            if index not in kept:
                bands[index] = DISCRETIONARY
        for unit in self._units(dropped):
            strongest = min(bands[member] for member in unit)
            for member in unit:
                unit_bands[member] = strongest
        leads = leads_of(self.pool.items, bands, self.pool.layer_rank, self.pool.members)
        return replace(self.pool, bands=bands, unit_bands=unit_bands, leads=leads)

    def _wanted(self, pool: Pool, roots: tuple[int, ...]) -> dict[str, int]:
        """Give what layers want beside these must-haves; few sets of them make a difference."""
        payers = tuple(sorted(certain(pool, roots).items()))
        changing = pool.members if not self.profile.min_relevance else pool.live
        key = payers, tuple(pool.unit_bands[index] <= REQUIRED for index in changing)
        if key not in self._wants:
            self._wants[key] = wants_with(pool, self.profile, roots)
        return self._wants[key]

    def irreducible(self) -> list[Demanded]:
        """Drop facts one by one while what is left still does not fit; drop any of the rest and it fits."""
        if self._additive:
            return self._irreducible_by_arithmetic()
        left = self.facts
        before = 0
        while before != len(left):
            before = len(left)
            left = self._pass_over(left)
            if not self.floors:
                break
        return left

    def _pass_over(self, left: list[Demanded]) -> list[Demanded]:
        """Drop what can go, in order, by runs that grow while they can go whole."""
        at, run, total = 0, 1, self.need(left)
        while at < len(left):
            if run == 1 and total - self._frees_at_least(left[at]) <= self.capacity:
                at += 1
                continue
            rest = left[:at] + left[at + run :]
            needed = self.need(rest)
            if needed > self.capacity:
                left, run, total = rest, 2 * run, needed
            elif run > 1:
                run //= 2
            else:
                at += 1
        return left

    def _frees_at_least(self, fact: Demanded) -> int:
        """Give what is free without a fact at least: its cheapest form, where nothing else can ask for it."""
        index = fact.candidate
        if self.floors or index is None or index in self._leaned_on or index in self.pool.members:
            return 0
        return min(self.pool.cost[index])

    def _irreducible_by_arithmetic(self) -> list[Demanded]:
        exclusive, total = self._exclusive(), self.need(self.facts)
        kept = []
        for fact in self.facts:
            brought = exclusive.brought_by(fact.candidate) if fact.candidate is not None else 0
            if total - brought > self.capacity:
                total -= brought
                if fact.candidate is not None:
                    exclusive.drop(fact.candidate)
            else:
                kept.append(fact)
        return kept

    def _exclusive(self) -> Exclusive:
        facts = [fact.candidate for fact in self.facts if fact.candidate is not None]
        return Exclusive(self.pool, facts, self.picks)

    def cures(self, blocking: Sequence[Demanded]) -> list[tuple[tuple[Demanded, ...], int]]:
        """Find the smallest sets of facts without which it fits, each with the tokens that it frees.

        Every cure takes at least one fact from each irreducible set, so only those are tried: one
        alone, else two, else as many of the largest as it takes.
        """
        total = self.need(self.facts)
        exclusive = self._exclusive() if self._additive else None
        found: list[tuple[tuple[Demanded, ...], int]] = [
            ((fact,), frees)
            for fact in blocking
            for frees in (self._frees(fact, total, exclusive),)
            if total - frees <= self.capacity
        ]
        if not found and len(self.facts) <= _PAIRS_UP_TO:
            pairs = combinations(self.facts, 2)
            found = [
                (pair, total - after)
                for pair in pairs
                for after in (self._after(pair),)
                if after <= self.capacity
            ]
        if not found:
            return self._greedy(total)
        return sorted(found, key=lambda cure: (_touches(cure[0]), cure[1], [fact.id for fact in cure[0]]))

    def _frees(self, fact: Demanded, total: int, exclusive: Exclusive | None) -> int:
        if exclusive is not None and fact.candidate is not None:
            return exclusive.brought_by(fact.candidate)
        if not self.floors and fact.candidate is not None:
            most = cheapest(self.pool, self.pool.unit(fact.candidate)).value[0]
            if total - most > self.capacity:
                return ceil(most)  # what it costs beside nothing is already too little
        return total - self._after([fact])

    def _greedy(self, total: int) -> list[tuple[tuple[Demanded, ...], int]]:
        """Drop floors, then the largest must-haves, until the rest fits; then put back what may stay."""
        order = sorted(self.facts, key=lambda fact: (fact.candidate is not None, -fact.tokens, fact.id))
        if self._after(order) > self.capacity:
            return []
        enough = bisect_left(
            range(len(order)), True, key=lambda count: self._after(order[: count + 1]) <= self.capacity
        )
        removed = order[: enough + 1]
        for fact in list(removed)[:_PAIRS_UP_TO]:
            rest = [other for other in removed if other is not fact]
            if self._after(rest) <= self.capacity:
                removed = rest
        return [(tuple(removed), total - self._after(removed))]

    def _after(self, removed: Iterable[Demanded]) -> int:
        gone = set(removed)
        return self.need(fact for fact in self.facts if fact not in gone)


def _touches(facts: Iterable[Demanded]) -> bool:
    return any(fact.candidate is not None for fact in facts)
