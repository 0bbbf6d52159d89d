"""Why must-haves do not fit, and the smallest changes that would make them: proofs over the need function.

The need is monotone: taking a requirement or a floor away never makes it grow. So one pass over
the facts, dropping each that is not needed for the proof, leaves an irreducible set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import NamedTuple

from loadmaster.core.accounts import STANDING, Floors, charge_to, totals
from loadmaster.core.draft import Draft
from loadmaster.core.items import MANDATORY
from loadmaster.core.passes.feasibility import least_need
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
        self.capacity = draft.problem.limits.capacity
        self.floors = draft.musts.floors
        self.picks = draft.musts.picks
        self.account = draft.musts.account
        self.facts = self._facts(draft)
        self._alone = self._loners()

    def _facts(self, draft: Draft) -> list[Demanded]:
        base = self.capacity
        facts: list[Demanded] = []
        for layer, tokens, share, wanted in self.floors.layers:
            size = ceil(min(tokens + share * max(base, 0), Fraction(wanted)))
            facts.append(Demanded(f"floor:{layer}", None, layer, -1, size))
        for index in draft.musts.roots if draft.musts else ():
            if draft.is_must(index):
                item = self.pool.items[index]
                cost = self.pool.cost[index][self.picks[index]]
                facts.append(Demanded(item.id, index, item.layer, draft.bands[index], cost))
        rank = {-1: 0, MANDATORY: 2}
        return sorted(facts, key=lambda fact: (rank.get(fact.band, 1), fact.tokens, fact.id))

    def _loners(self) -> frozenset[int]:
        """Find the must-haves that share nothing with another, whose cost just adds up."""
        pool = self.pool
        needed = Counter(need for needs in pool.needs.values() for need in needs)
        needed.update(need for needs in pool.form_needs.values() for need in needs)
        return frozenset(
            fact.candidate
            for fact in self.facts
            if fact.candidate is not None
            and fact.candidate not in pool.needs
            and fact.candidate not in pool.members
            and not needed[fact.candidate]
            and not any(
                (fact.candidate, place) in pool.form_needs for place in range(len(pool.cost[fact.candidate]))
            )
        )

    def need(self, facts: Iterable[Demanded]) -> int:
        """Give the whole tokens that these facts need together."""
        facts = list(facts)
        floors = Floors(
            tuple(
                entry for entry in self.floors.layers if any(fact.id == f"floor:{entry[0]}" for fact in facts)
            )
        )
        indices = [fact.candidate for fact in facts if fact.candidate is not None]
        tied = tuple(index for index in indices if index not in self._alone)
        charged = dict(self._charged(tied, floors))
        for index in indices:
            if index in self._alone:
                account = self.account[index]
                charged[account] = charged.get(account, 0) + self.pool.cost[index][self.picks[index]]
        return ceil(floors.needed(self.capacity, charged))

    def _charged(self, tied: tuple[int, ...], floors: Floors) -> dict[str, int]:
        musts = least_need(self.pool, tied, floors, self.capacity)
        charged = totals(self.pool, musts.picks, charge_to(self.pool, tied, musts.picks))
        charged[STANDING] = charged.get(STANDING, 0) + self.pool.priming
        return charged

    def irreducible(self) -> list[Demanded]:
        """Drop facts one by one while what is left still does not fit; drop any of the rest and it fits."""
        left = dict.fromkeys(self.facts)
        wanting = self._wanting()
        total = self.need(left)
        for fact in self.facts:
            kept = self._without(fact, left, wanting, total)
            if kept > self.capacity:
                del left[fact]
                total = kept
                wanting.subtract(self._asks_for(fact))
        return list(left)

    def _wanting(self) -> Counter[int]:
        """Count, for each candidate, the facts that ask for it directly."""
        return Counter(index for fact in self.facts for index in self._asks_for(fact))

    def _asks_for(self, fact: Demanded) -> tuple[int, ...]:
        if fact.candidate is None:
            return ()
        mates = tuple(index for index in self.pool.members.get(fact.candidate, ()) if index != fact.candidate)
        return self.pool.needs.get(fact.candidate, ()) + mates

    def _without(self, fact: Demanded, left: dict[Demanded, None], wanting: Counter[int], total: int) -> int:
        """Give the need without one fact, by arithmetic where its cost is its own."""
        index = fact.candidate
        if index is not None:
            if wanting[index]:
                return total  # another fact asks for it anyway
            shared = self.pool.needs.get(index, ())
            plain = not self.floors.layers and not self.pool.form_needs
            if plain and index not in self.pool.members and all(wanting[need] > 1 for need in shared):
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


def _touches(facts: Iterable[Demanded]) -> bool:
    return any(fact.candidate is not None for fact in facts)
