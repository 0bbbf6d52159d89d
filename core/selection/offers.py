"""Offers: the ways in which a unit can be in the bundle, at today's price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loadmaster.core.items import OrderKey
from loadmaster.core.pool import Pool
from loadmaster.core.selection.ledger import Ledger
from loadmaster.core.selection.reach import Reach
from loadmaster.core.selection.worth import Worth

PATIENCE = 1_000_000
"""Units named because something that they may need entered or left; beyond it, a round hears all anew."""

EFFORT, EFFORT_A_MOVE = 10_000_000, 20
"""What prices may take whose needs depend on forms, in forms placed, and what each takes beside them.
Beyond it a unit of that kind has no offer; far beyond what any pool but a hostile one takes."""


class Option(NamedTuple):
    """One form level for a unit: the places of its members' forms, and the value of its lead."""

    level: int
    forms: Mapping[int, int]
    value: int


class Offer(NamedTuple):
    """An option with its marginal cost, closure included, and its net value at that price."""

    net: int
    option: Option
    delta: int


Key = tuple[int, int, int, OrderKey, int]
"""A unit's place in the queue, smallest first: urgency, cost, declared layer, place in time, unit."""


class Market:
    """Prices units against a ledger that changes."""

    def __init__(self, pool: Pool, ledger: Ledger, worth: Worth) -> None:
        self.pool = pool
        self.ledger = ledger
        self.worth = worth
        self.reach = Reach(pool)
        self.reach.inside = self.reach.bits(ledger.place)
        self._needed: dict[int, int | None] = {}
        self._options: dict[int, list[Option]] = {}
        self._searched: dict[int, list[Offer]] = {}
        self.behind = False
        self._users = _users(pool)
        self._patience = PATIENCE
        self._effort = EFFORT

    def options(self, lead: int) -> list[Option]:
        """Give a unit's options, richest first: at each level, each member no richer, else its poorest."""
        known = self._options.get(lead)
        if known is None and lead not in self.pool.tied:
            known = self._options[lead] = [
                Option(form.rank, {lead: place}, self.value(lead, place))
                for place, form in enumerate(self.pool.legal[lead])
            ]
        elif known is None:
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

        Where forms have a say in what is needed, the price takes a search; outside the bundle it
        is kept until `note` hears that something related has entered or left.
        """
        known = self._searched.get(lead)
        if known is not None:
            return known
        needed = self._needs(lead)
        costs = [self._own_cost(option) for option in self.options(lead)]
        if needed is None:
            if self._effort < 0:
                return []
            moves = [self.ledger.move(option.forms) for option in self.options(lead)]
            costs = [move.delta for move in moves]
            self._effort -= sum(EFFORT_A_MOVE + len(move.picks) for move in moves)
        elif needed:
            missing = self.reach.cost(needed & ~self.reach.inside)
            costs = [cost + missing for cost in costs]
        net = self.worth.net
        offers = [
            Offer(net(option.value, cost), option, cost)
            for option, cost in zip(self.options(lead), costs, strict=True)
        ]
        if len(offers) > 1:
            offers.sort(key=lambda offer: (-offer.net, offer.option.level))
        if needed is None and lead not in self.ledger.place:
            self._searched[lead] = offers
        return offers

    def _own_cost(self, option: Option) -> int:
        """Give what a unit's own forms add to those that are in."""
        place, cost = self.ledger.place, self.pool.cost
        return sum(
            cost[index][wanted] - (cost[index][place[index]] if index in place else 0)
            for index, wanted in option.forms.items()
        )

    def _needs(self, lead: int) -> int | None:
        if lead not in self.pool.tied:
            return 0
        if lead not in self._needed:
            self._needed[lead] = self.reach.needed_by(self.pool.unit(lead))
        return self._needed[lead]

    def note(self, entered: Sequence[int], gone: Sequence[int]) -> set[int]:
        """Take note of what entered and left; gives the units whose price that may change.

        Above a fixed number of units nobody is named any more, and `behind` asks for the whole
        queue to be made anew in the next round: prices stay exact, their order lags a round.
        """
        self.reach.inside = (self.reach.inside | self.reach.bits(entered)) & ~self.reach.bits(gone)
        touched: set[int] = set()
        stack = [*entered, *gone]
        while stack and not self.behind:
            index = stack.pop()
            if index not in touched:
                touched.add(index)
                stack.extend(self._users.get(index, ()))
                self.behind = len(touched) > self._patience
        if self.behind:
            self._searched.clear()
            return set()
        self._patience -= len(touched)
        named = {self.pool.lead(index) for index in touched}
        for lead in named:
            self._searched.pop(lead, None)
        return named

    def key(self, lead: int) -> Key | None:
        """Give a unit's place in the queue by its best offer; None if it earns nothing."""
        offers = self.offers(lead)
        if not offers or offers[0].net <= 0:
            return None
        best = offers[0]
        item = self.pool.items[lead]
        urgency = -self.worth.urgency(best.option.value, best.delta)
        return urgency, best.delta, self.pool.rank_of_layer(item.layer), item.order, lead

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


def _users(pool: Pool) -> dict[int, list[int]]:
    """Give, for each candidate, those that need it, or may need it for the sake of a form."""
    users: dict[int, list[int]] = defaultdict(list)
    for index, needs in pool.needs.items():
        for need in needs:
            users[need].append(index)
    for (index, _), needs in pool.form_needs.items():
        for need in needs:
            users[need].append(index)
    for index in pool.members:
        for mate in pool.mates(index):
            users[mate].append(index)
    return users
