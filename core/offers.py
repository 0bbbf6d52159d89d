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
    """One form level for a unit: the places of its members' forms, and the value, which is its lead's."""

    level: int
    forms: Mapping[int, int]
    value: int


class Offer(NamedTuple):
    """An option with the move that realises it and its net value."""

    net: int
    option: Option
    move: Move


class Key(NamedTuple):
    """A unit's place in the queue, smallest first."""

    urgency: int
    cost: int
    layer: int
    order: OrderKey
    lead: int


class Market:
    """Prices units against a ledger that changes."""

    def __init__(self, pool: Pool, ledger: Ledger, worth: Worth) -> None:
        self.pool = pool
        self.ledger = ledger
        self.worth = worth
        self._options: dict[int, list[Option]] = {}

    def options(self, lead: int) -> list[Option]:
        """Give a unit's options, richest first: for each form level, each member no richer than that, else its poorest."""
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
        """Give a unit's options at today's price, best first, ties to the richer."""
        offers = []
        for option in self.options(lead):
            move = self.ledger.move(option.forms)
            offers.append(Offer(self.worth.net(option.value, move.delta), option, move))
        return sorted(offers, key=lambda offer: (-offer.net, offer.option.level))

    def is_fixed(self, lead: int) -> bool:
        """Whether a unit has one form, one price, and nothing in the bundle can change it."""
        pool = self.pool
        return (
            len(pool.cost[lead]) == 1
            and lead not in pool.needs
            and lead not in pool.members
            and lead not in self.ledger.place
        )

    def key(self, lead: int) -> Key | None:
        """Give a unit's place in the queue by its best offer; None if it earns nothing."""
        if self.is_fixed(lead):
            value, cost = self.value(lead, 0), self.pool.cost[lead][0]
            net = self.worth.net(value, cost)
        else:
            best = self.offers(lead)[0]
            net, value, cost = best.net, best.option.value, best.move.delta
        if net <= 0:
            return None
        item = self.pool.items[lead]
        urgency = -self.worth.urgency(value, cost)
        return Key(urgency, cost, self.pool.rank_of_layer(item.layer), item.order, lead)

    def leaning(self, leads: Iterable[int]) -> Mapping[int, Sequence[int]]:
        """Find, for each candidate, the units whose price changes when it enters or leaves."""
        pool = self.pool
        leaning: dict[int, list[int]] = defaultdict(list)
        for lead in leads:
            if self.is_fixed(lead):
                leaning[lead].append(lead)
                continue
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
