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

from loadmaster.core.accounts import STANDING, TASK, Floors, certain
from loadmaster.core.draft import Draft
from loadmaster.core.items import DISCRETIONARY, MANDATORY, REQUIRED
from loadmaster.core.passes.feasibility import least_need, wants_with
from loadmaster.core.pool import Pool

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
        self._leaned_on = self._needed_by_others()

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

    def _needed_by_others(self) -> frozenset[int]:
        """Find what is needed by something that is no fact itself, or by single forms."""
        facts = {fact.candidate for fact in self.facts}
        leaned_on = {need for index, needs in self.pool.needs.items() if index not in facts for need in needs}
        return frozenset(leaned_on.union(*self.pool.form_needs.values()))

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
        roots = tuple(sorted({member for index in tied for member in self.pool.unit(index)}))
        layers = {fact.layer for fact in facts if fact.candidate is None}
        pool, floors = self.pool, Floors(())
        if layers:
            pool = self._with_bands(frozenset(kept))
            floors = Floors.of(self.profile, self._wanted(pool, roots)).among(layers)
        return ceil(least_need(pool, roots, floors, self.capacity, beside=beside).needed)

    def _with_bands(self, kept: frozenset[int]) -> Pool:
        """Give the pool in which only these are must-haves: who leads a unit, and so who pays, may change."""
        dropped = [fact.candidate for fact in self.facts if fact.candidate is not None]
        bands, unit_bands = list(self.pool.bands), list(self.pool.unit_bands)
        for index in dropped:
            if index not in kept:
                bands[index] = DISCRETIONARY
        for index in dropped:
            for member in self.pool.unit(index):
                unit_bands[member] = min(bands[other] for other in self.pool.unit(index))
        return replace(self.pool, bands=bands, unit_bands=unit_bands)

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
        left = dict.fromkeys(self.facts)
        wanting = self._wanting()
        total = self.need(left)
        before = 0
        while before != len(left):
            before = len(left)
            for fact in list(left):
                kept = self._without(fact, left, wanting, total)
                if kept > self.capacity:
                    del left[fact]
                    total = kept
                    wanting.subtract(self._asks_for(fact))
            if not self.floors:
                break
        return list(left)

    def _wanting(self) -> Counter[int]:
        """Count, for each candidate, the facts that ask for it directly, and the facts of each unit."""
        return Counter(index for fact in self.facts for index in self._asks_for(fact))

    def _asks_for(self, fact: Demanded) -> tuple[int, ...]:
        if fact.candidate is None:
            return ()
        unit = self.pool.members.get(fact.candidate)
        return self.pool.needs.get(fact.candidate, ()) + (() if unit is None else (_of_unit(unit),))

    def _without(self, fact: Demanded, left: dict[Demanded, None], wanting: Counter[int], total: int) -> int:
        """Give the need without one fact, by arithmetic where its cost is its own."""
        index = fact.candidate
        if index is not None and not self.floors:
            unit = self.pool.members.get(index)
            if wanting[index] or (unit and wanting[_of_unit(unit)] > 1):
                return total  # another fact asks for it anyway
            alone = index not in self.pool.members and index not in self._leaned_on
            shared = self.pool.needs.get(index, ())
            if alone and not self.pool.form_needs and all(wanting[need] > 1 for need in shared):
                return total - self.pool.cost[index][self.picks[index]]
        return self.need(other for other in left if other is not fact)

    def cures(self, blocking: Sequence[Demanded]) -> list[tuple[tuple[Demanded, ...], int]]:
        """Find the smallest sets of facts without which it fits, each with the tokens that it frees.

        Every cure takes at least one fact from each irreducible set, so only those are tried: one
        alone, else two, else as many of the largest as it takes.
        """
        total = self.need(self.facts)
        everything, wanting = dict.fromkeys(self.facts), self._wanting()
        found: list[tuple[tuple[Demanded, ...], int]] = [
            ((fact,), total - after)
            for fact in blocking
            for after in (self._without(fact, everything, wanting, total),)
            if after <= self.capacity
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


def _of_unit(unit: tuple[int, ...]) -> int:
    """Give the key under which the facts of a unit are counted; no candidate has a negative index."""
    return -1 - unit[0]


def _touches(facts: Iterable[Demanded]) -> bool:
    return any(fact.candidate is not None for fact in facts)
