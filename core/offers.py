"""Offers: the ways in which a unit can be in the bundle, at today's price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from loadmaster.core.items import OrderKey
from loadmaster.core.ledger import Ledger, Move
from loadmaster.core.pool import Pool
from loadmaster.core.worth import Worth


class Option(NamedTuple):
    """One form level for a unit: the places of its members' forms, and the value of its lead."""

    level: int
    forms: Mapping[int, int]
    value: int


class Offer(NamedTuple):
    """An option with the move that realises it and its net value."""

    net: int
    option: Option
    move: Move


Key = tuple[int, int, int, OrderKey, int]
"""A unit's place in the queue, smallest first: urgency, cost, declared layer, place in time, unit."""


class Market:
    """Prices units against a ledger that changes."""

    def __init__(self, pool: Pool, ledger: Ledger, worth: Worth) -> None:
        self.pool = pool
        self.ledger = ledger
        self.worth = worth
        self._options: dict[int, list[Option]] = {}
        self._offers: dict[int, list[Offer]] = {}

    def options(self, lead: int) -> list[Option]:
        """Give a unit's options, richest first: at each level, each member no richer, else its poorest."""
        known = self._options.get(lead)
        if known is None:
            pool = self.pool
            unit = pool.unit(lead)
            known = []
            for level in sorted({form.rank for index in unit for form in pool.legal[index]}):
                forms = {index: self._at_level(index, level) for index in unit}
                if not known or forms != known[-1].forms:
                    known.append(Option(level, forms, self.value(lead, forms[lead])))
            self._options[lead] = known
        return known

    def value(self, lead: int, place: int) -> int:
        """Give the value of a lead in one of its legal forms."""
        return self.worth.value(self.pool.items[lead], self.pool.legal[lead][place].rank)

    def _at_level(self, index: int, level: int) -> int:
        legal = self.pool.legal[index]
        return next((place for place, form in enumerate(legal) if form.rank >= level), len(legal) - 1)

    def offers(self, lead: int) -> list[Offer]:
        """Give a unit's options at today's price, best first, ties to the richer.

        What is outside the bundle is priced once, until `forget` says that something it may need
        has entered or left.
        """
        known = self._offers.get(lead)
        if known is not None:
            return known
        offers = []
        for option in self.options(lead):
            move = self.ledger.move(option.forms)
            offers.append(Offer(self.worth.net(option.value, move.delta), option, move))
        if len(offers) > 1:
            offers.sort(key=lambda offer: (-offer.net, offer.option.level))
        if lead not in self.ledger.place:
            self._offers[lead] = offers
        return offers

    def forget(self, leads: Iterable[int]) -> None:
        """Price these units anew."""
        for lead in leads:
            self._offers.pop(lead, None)

    def key(self, lead: int) -> Key | None:
        """Give a unit's place in the queue by its best offer; None if it earns nothing."""
        best = self.offers(lead)[0]
        if best.net <= 0:
            return None
        item = self.pool.items[lead]
        urgency = -self.worth.urgency(best.option.value, best.move.delta)
        return urgency, best.move.delta, self.pool.rank_of_layer(item.layer), item.order, lead

    def queue(self, leads: Sequence[int]) -> list[Key]:
        """Order units by their best offers; what earns nothing does not queue."""
        pool, worth = self.pool, self.worth
        items, legal, costs, rank = pool.items, pool.legal, pool.cost, pool.layer_rank
        scale, factor, price, by_density = worth.scale, worth.factor, worth.cost_factor, worth.by_density
        keys: list[Key] = []
        for lead in leads:
            cost = costs[lead]
            if len(cost) > 1 or lead in pool.tied:
                key = self.key(lead)
                if key is not None:
                    keys.append(key)
                continue
            # One form and no relations: the same arithmetic as `key`, without an offer for each of thousands.
            item = items[lead]
            digits, places = item.relevance
            value = digits * scale[places] * factor[legal[lead][0].rank]
            spent = cost[0] * price
            if value > spent:
                urgency = -worth.urgency(value, cost[0]) if by_density else spent - value
                keys.append((urgency, cost[0], rank[item.layer or ""], item.order, lead))
        keys.sort()
        return keys

    def leaning(self, leads: Iterable[int]) -> Mapping[int, Sequence[int]]:
        """Find, for each candidate, the units whose price changes when it enters or leaves."""
        pool = self.pool
        leaning: dict[int, list[int]] = defaultdict(list)
        for lead in leads:
            reached: set[int] = set()
            stack = [lead]
            while stack:
                index = stack.pop()
                if index not in reached:
                    reached.add(index)
                    stack.extend(pool.members.get(index, ()))
                    stack.extend(pool.needs.get(index, ()))
                    for place in range(len(pool.cost[index])):
                        stack.extend(pool.form_needs.get((index, place), ()))
            for index in reached:
                leaning[index].append(lead)
        return leaning
