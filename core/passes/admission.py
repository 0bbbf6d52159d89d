"""Pass 7, admission: what enters beyond the must-haves, by declared shares and net value.

Band after band, one queue over all layers: each unit enters in its best form that fits what is left
of its layer's grant, or waits. What lumpy units leave unspent is allocated again until nothing fits.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

from loadmaster.core.accounts import STANDING, TASK, eligible_units, wants
from loadmaster.core.allocation import Demand, FloorBreach, allocate
from loadmaster.core.coverage import Coverage
from loadmaster.core.draft import Args, Decision, Draft, MustHaves, Packed, Row
from loadmaster.core.items import BANDS, DISCRETIONARY, REQUIRED, SUPPORTED
from loadmaster.core.ledger import Ledger
from loadmaster.core.offers import Key, Market, Offer
from loadmaster.core.pool import Pool
from loadmaster.core.problem import Problem
from loadmaster.core.worth import Worth


def admit(draft: Draft) -> Draft:
    """Fill the bundle: must-haves, their enrichment, then the bands supported and discretionary."""
    assert draft.pool is not None and draft.musts is not None
    hold = _Hold(draft.problem, draft.pool, draft.musts)
    hold.enrich()
    for band in (SUPPORTED, DISCRETIONARY):
        hold.run(band)
    out = hold.left_out()
    packed = Packed(hold.ledger, tuple(hold.entered), hold.final_rows(), _slack_reason(out))
    return replace(draft, packed=packed, log=(*draft.log, *hold.log, *out.values()), out={**draft.out, **out})


def _slack_reason(out: Mapping[int, Decision]) -> str:
    rules = {decision.rule for decision in out.values()}
    if "no_room" in rules:
        return "nothing_fits"
    if "cap" in rules:
        return "caps_reached"
    return "nothing_earns_admission" if rules - {"dependency_only"} else "everything_is_in"


class _Hold:
    """The state of one admission."""

    def __init__(self, problem: Problem, pool: Pool, musts: MustHaves) -> None:
        self.pool = pool
        self.candidates = len(problem.items)
        self.profile = problem.policy.profile
        self.layers = problem.policy.profiles.layers
        self.capacity = problem.limits.capacity
        self.wanted = musts.wanted
        self.ledger = Ledger.start(pool, musts.roots, musts.picks, musts.account)
        self.market = Market(
            pool, self.ledger, Worth.of(self.profile, [pool.items[index] for index in pool.live])
        )
        self.coverage = Coverage(problem.request.needs, self.profile.corroboration, pool.items)
        self.coverage.enter(self.ledger.place)
        self.entered: list[int] = []
        self.log: list[Decision] = []
        self.rows: tuple[Row, ...] = ()
        self.leaning: Mapping[int, Sequence[int]] = {}
        self.queued: frozenset[int] = frozenset()
        self.touched: set[int] = set()
        self.must_leads = sorted(
            {pool.lead(index) for index in musts.roots},
            key=lambda lead: (pool.items[lead].layer is not None, lead),
        )
        units = eligible_units(pool, self.profile)
        self.tied_units = [lead for lead in units if lead in pool.tied]
        self.lone_wants = self._lone_wants(units)
        self.waiting: dict[int, list[int]] = {SUPPORTED: [], DISCRETIONARY: []}
        for lead in units:
            band = pool.unit_bands[lead]
            if band > REQUIRED and pool.items[lead].layer in self.profile.layers:
                self.waiting[band].append(lead)
        self.waited: set[int] = set()
        for index in self.ledger.place:
            if index in self.ledger.roots:
                self._note(index, "chosen", "must_have", {"tokens": self._cost(index)})
            else:
                self._note(index, "pulled", "dependency", {"tokens": self._cost(index)})

    def _cost(self, index: int) -> int:
        return self.pool.cost[index][self.ledger.place[index]]

    def _note(self, index: int, verdict: str, rule: str, args: Args) -> None:
        if index >= self.candidates:  # an envelope of messages is no candidate
            return
        form = self.pool.legal[index][self.ledger.place[index]].name
        self.log.append(
            Decision("admission", self.pool.items[index].id, verdict, rule, {"form": form, **args})
        )

    # Room: what an account may still take

    def _base(self) -> int:
        held = self.ledger.held
        return self.capacity - held.get(STANDING, 0) - held.get(TASK, 0)

    def _floor(self, layer: str, base: int) -> Fraction:
        """Give a layer's floor as far as it was wanted when feasibility was proven."""
        rule = self.profile.layers.get(layer)
        return min(rule.floor.of(base), Fraction(self.wanted.get(layer, 0))) if rule else Fraction(0)

    def _below_cap(self, layer: str) -> int:
        rule = self.profile.layers.get(layer)
        if rule is None:
            return 0
        held = self.ledger.held.get(layer, 0)
        return self.capacity if rule.cap is None else floor(rule.cap.of(self._base())) - held

    def _unreserved(self, account: str, growth: int = 0) -> int:
        """Give what is free for an account without what other layers' floors still reserve."""
        free = self.capacity - self.ledger.total
        if not self.wanted:
            return free
        base = self._base() - (growth if account in (STANDING, TASK) else 0)
        reserved = Fraction(0)
        for layer in self.wanted:
            missing = self._floor(layer, base) - self.ledger.held.get(layer, 0)
            if layer != account and missing > 0 and self._can_use(layer, free):
                reserved += missing
        return floor(free - reserved)

    def _can_use(self, layer: str, free: int) -> bool:
        """Whether a waiting unit of a layer could still enter: else its floor reserves nothing."""
        room = min(free, self._below_cap(layer))
        return any(
            self.pool.items[lead].layer == layer and self._offer_within(lead, room) is not None
            for leads in self.waiting.values()
            for lead in leads
            if lead not in self.ledger.roots
        )

    def _offer_within(self, lead: int, room: int) -> Offer | None:
        """Give the best offer of a unit that earns admission and fits the room."""
        if (
            self.pool.cost[lead][-1] > room
            and lead not in self.pool.tied
            and min(self.pool.cost[lead]) > room
        ):
            return None
        if not self.coverage.adds(self.pool.unit(lead)):
            return None
        for offer in self.market.offers(lead):
            if offer.net > 0 and offer.move.delta <= room:
                return offer
        return None

    # Bands and rounds

    def run(self, band: int) -> None:
        """Admit one band to exhaustion: rounds of allocation, then enrichment, and again if that made room."""
        leads = [lead for lead in self.waiting[band] if lead not in self.ledger.roots]
        self.queued = frozenset(leads)
        self.leaning = self.market.leaning(lead for lead in leads if lead in self.pool.tied)
        everything = self._wants(DISCRETIONARY)
        grants, rows = self._allocate(everything, everything if band == DISCRETIONARY else self._wants(band))
        if band == DISCRETIONARY:
            self.rows = rows
        queue = self.market.queue(leads)
        self.waiting[band] = [key[-1] for key in queue]
        self.waited.update(self.waiting[band])
        while True:
            if self._round(queue, grants) or self._force(queue):
                queue = self._fitting(self._again(queue))
            elif self.enrich():
                queue = self._fitting(
                    self.market.queue([lead for lead in leads if lead not in self.ledger.roots])
                )
            else:
                return
            self.waiting[band] = [key[-1] for key in queue]
            held = self.ledger.held
            more = wants(self.pool, self.waiting[band], self._payers(), self.layers)
            grants, _ = self._allocate(
                everything, {layer: held.get(layer, 0) + more[layer] for layer in self.layers}
            )

    def _again(self, queue: list[Key]) -> list[Key]:
        """Put the units whose price has changed at their new places, also those that had fallen out."""
        if not self.touched:
            return queue
        keys = self.market.queue(sorted(self.touched - self.ledger.roots.keys()))
        kept = [key for key in queue if key[-1] not in self.touched]
        self.waited.update(key[-1] for key in keys)
        self.touched.clear()
        return sorted(kept + keys)

    def _lone_wants(self, units: list[int]) -> dict[int, dict[str, int]]:
        """Sum by band and layer what units cost that share nothing: no choice ever changes that."""
        sums = {band: dict.fromkeys(self.layers, 0) for band in range(DISCRETIONARY + 1)}
        items, cost, bands, tied = self.pool.items, self.pool.cost, self.pool.unit_bands, self.pool.tied
        for lead in units:
            if lead not in tied:
                sums[bands[lead]][items[lead].layer or ""] += cost[lead][0]
        return sums

    def _wants(self, band: int) -> dict[str, int]:
        """Give what each layer could use for units of this band and above, against the bundle as it is."""
        leads = [lead for lead in self.tied_units if self.pool.unit_bands[lead] <= band]
        tied = (
            wants(self.pool, leads, self._payers(), self.layers) if leads else dict.fromkeys(self.layers, 0)
        )
        return {
            layer: tied[layer] + sum(self.lone_wants[b][layer] for b in range(band + 1))
            for layer in self.layers
        }

    def _payers(self) -> dict[int, str]:
        return {index: paid[0][0] for index, paid in self.ledger.paid.items()}

    def _allocate(
        self, everything: Mapping[str, int], of_band: Mapping[str, int]
    ) -> tuple[dict[str, int], tuple[Row, ...]]:
        """Grant shares: at least what is held and what floors reserve, at most what this band and above want."""
        base = self._base()
        demands = []
        for rank, layer in enumerate(self.layers):
            rule = self.profile.layers.get(layer)
            held = self.ledger.held.get(layer, 0)
            reserve = self._floor(layer, base)
            if self.entered:  # a grant in whole tokens may have taken the fraction of another layer's floor
                reserve = Fraction(floor(reserve))
            if reserve > held and not self._can_use(layer, self.capacity - self.ledger.total):
                reserve = Fraction(0)
            demands.append(
                Demand(
                    layer=layer,
                    floor=reserve,
                    ratio=Fraction(rule.ratio) if rule else Fraction(0),
                    cap=(rule.cap.of(base) if rule.cap else None) if rule else Fraction(0),
                    priority=rank + 1 if rule is None or rule.priority is None else rule.priority,
                    wants=max(of_band[layer], floor(reserve)),
                    must=held,
                )
            )
        grants = allocate(base, demands, self.profile.surplus)
        assert not isinstance(grants, FloorBreach), "a breach of floors after feasibility was proven"
        rows = tuple(
            self._row(demand, grant, everything, base) for demand, grant in zip(demands, grants, strict=True)
        )
        return dict(zip(self.layers, grants, strict=True)), rows

    def _row(self, demand: Demand, grant: int, everything: Mapping[str, int], base: int) -> Row:
        rule = self.profile.layers.get(demand.layer)
        lower = min(grant, floor(demand.lower))
        return Row(
            layer=demand.layer,
            floor=floor(rule.floor.of(base)) if rule else 0,
            ratio=rule.ratio if rule else Decimal(0),
            cap=None if demand.cap is None else floor(demand.cap),
            wants=max(everything[demand.layer], demand.must),
            floor_grant=lower,
            surplus=grant - lower,
            granted=grant,
        )

    def _round(self, queue: list[Key], grants: Mapping[str, int]) -> bool:
        """Walk the queue once; a unit whose price changes on the way is heard again at its new place."""
        again: list[Key] = []
        progress = False
        items, tied, cost = self.pool.items, self.pool.tied, self.pool.cost
        room = self._rooms(grants)
        at = 0
        while at < len(queue) or again:
            if again and (at >= len(queue) or again[0] < queue[at]):
                key = heapq.heappop(again)
            else:
                key = queue[at]
                at += 1
            lead = key[-1]
            free = room[items[lead].layer or ""]
            if key[1] > free and lead not in tied and len(cost[lead]) == 1:
                continue
            offer = None if lead in self.ledger.roots else self._offer_within(lead, free)
            if offer is not None:
                for moved in map(self.market.key, self._enter(lead, offer, "earned")):
                    if moved is not None:
                        heapq.heappush(again, moved)
                progress = True
                room = self._rooms(grants)
        return progress

    def _rooms(self, grants: Mapping[str, int]) -> dict[str, int]:
        held = self.ledger.held
        return {layer: grants[layer] - held.get(layer, 0) for layer in self.layers}

    def _force(self, queue: list[Key]) -> bool:
        """Let the first queued unit in that fits the free total and its cap, regardless of its layer's share."""
        limits: dict[str, int] = {}
        for key in queue:
            lead = key[-1]
            layer = self.pool.items[lead].layer or ""
            if layer not in limits:
                limits[layer] = min(self._unreserved(layer), self._below_cap(layer))
            if lead not in self.ledger.roots:
                offer = self._offer_within(lead, limits[layer])
                if offer is not None:
                    self._enter(lead, offer, "forced")
                    return True
        return False

    def _fitting(self, queue: list[Key]) -> list[Key]:
        """Keep what may still enter: it fits the free total and the cap of its layer."""
        limits = {layer: min(self._unreserved(layer), self._below_cap(layer)) for layer in self.layers}
        items, tied, cost, roots = self.pool.items, self.pool.tied, self.pool.cost, self.ledger.roots
        fitting = []
        for key in queue:
            lead = key[-1]
            limit = limits[items[lead].layer or ""]
            if key[1] > limit and lead not in tied and len(cost[lead]) == 1:
                continue
            if lead not in roots and self._offer_within(lead, limit) is not None:
                fitting.append(key)
        return fitting

    def _enter(self, lead: int, offer: Offer, rule: str) -> list[int]:
        """Bring a unit in, or into another form; gives the waiting units whose price this changed."""
        account = self._account(lead)
        unit = self.pool.unit(lead)
        free = self.capacity - self.ledger.total
        entered = self.ledger.apply(offer.move, unit, account)
        self.coverage.enter(entered)
        self.coverage.leave(offer.move.gone)
        net = str(self.market.worth.as_decimal(offer.net))
        args = {"layer": account.strip(), "cost": offer.move.delta, "net": net, "free_before": free}
        for index in unit:
            verdict = "chosen" if rule == "enriched" else "admitted"
            self._note(index, verdict, rule, {**args, "band": BANDS[self.pool.unit_bands[lead]]})
        for index in entered:
            if index not in unit:
                self._note(
                    index,
                    "pulled",
                    "dependency",
                    {"by": self.pool.items[lead].id, "tokens": self._cost(index)},
                )
        for index in sorted(offer.move.gone):
            if index < self.candidates:
                self.log.append(
                    Decision("admission", self.pool.items[index].id, "omitted", "no_longer_needed")
                )
        if rule != "enriched":
            self.entered.append(lead)
        touched = {self.pool.lead(index) for index in (*entered, *offer.move.gone)}
        touched.update(
            other for index in (*entered, *offer.move.gone) for other in self.leaning.get(index, ())
        )
        touched = touched.intersection(self.queued) - self.ledger.roots.keys()
        self.touched |= touched
        return sorted(touched)

    def _account(self, lead: int) -> str:
        item = self.pool.items[lead]
        return item.layer or (TASK if item.section == "task" else STANDING)

    # Enrichment

    def enrich(self) -> bool:
        """Move must-haves and entered units to better forms where there is room; whether that freed tokens."""
        freed = changed = False
        while True:
            for lead in (*self.must_leads, *self.entered):
                if len(self.market.options(lead)) < 2:
                    continue
                offer = self._better(lead)
                if offer is not None:
                    self._enter(lead, offer, "enriched")
                    freed |= offer.move.delta < 0
                    changed = True
            if not changed:
                return freed
            changed = False

    def _better(self, lead: int) -> Offer | None:
        """Give the best affordable offer that beats a unit's present forms: more net value, or as much and richer."""
        place = self.ledger.place
        account = self._account(lead)
        unit = self.pool.unit(lead)
        now = self.market.value(lead, place[lead])
        richness = sum(place[index] for index in unit)
        for offer in self.market.offers(lead):
            richer = sum(offer.option.forms[index] for index in unit) < richness
            if offer.net < now or (offer.net == now and not richer):
                return None
            delta = offer.move.delta
            capped = account not in (STANDING, TASK) and delta > self._below_cap(account)
            if delta <= 0 or (not capped and delta <= self._unreserved(account, delta)):
                return offer
        return None

    # The record of what stayed out

    def left_out(self) -> dict[int, Decision]:
        """Say for every live candidate that is not in why, and what would have let it in."""
        out: dict[int, Decision] = {}
        pool, place = self.pool, self.ledger.place
        items, cost, tied, layers = pool.items, pool.cost, pool.tied, self.profile.layers
        free = {layer: self._unreserved(layer) for layer in self.layers}
        cap = {layer: self._below_cap(layer) for layer in self.layers}
        waited = self.waited
        for index in pool.live:
            if index in place or index in out:
                continue
            item = items[index]
            if index in waited and len(cost[index]) == 1 and not item.covers and index not in tied:
                rule, args = self._lack_of_room(item.layer or "", cost[index][0], free, cap)
                out[index] = Decision("admission", item.id, "omitted", rule, args)
                continue
            rule, args = self._why_not(pool.lead(index), free, cap)
            for member in pool.unit(index):
                out[member] = Decision("admission", items[member].id, "omitted", rule, args)
        return out

    def _lack_of_room(
        self, layer: str, cost: int, free: Mapping[str, int], cap: Mapping[str, int]
    ) -> tuple[str, Args]:
        if cap[layer] < cost <= free[layer]:
            return "cap", {"layer": layer, "cost": cost, "short_by": cost - max(0, cap[layer])}
        room = min(free[layer], cap[layer])
        return "no_room", {"layer": layer, "cost": cost, "short_by": cost - room if room > 0 else cost}

    def _why_not(self, lead: int, free: Mapping[str, int], cap: Mapping[str, int]) -> tuple[str, Args]:
        pool, item, worth = self.pool, self.pool.items[lead], self.market.worth
        layer = item.layer
        if layer is None:
            return "dependency_only", {}
        if layer not in self.profile.layers:
            return "cap", {"layer": layer, "cap": 0}
        least = self.profile.min_relevance
        if item.candidate.relevance < least:
            return "min_relevance", {"relevance": str(item.candidate.relevance), "least": str(least)}
        offers = self.market.offers(lead)
        earning = [offer for offer in offers if offer.net > 0]
        best = min(earning, key=lambda offer: offer.move.delta) if earning else offers[0]
        value, delta = best.option.value, best.move.delta
        if not earning:
            args: dict[str, Any] = {"cost": delta, "value": str(worth.as_decimal(value))}
            if worth.cost_factor and value > 0:
                args["worth_at"] = (value - 1) // worth.cost_factor
            return "net_value", args
        if not self.coverage.adds(pool.unit(lead)):
            return "adds_nothing", {"covers": self.coverage.named_by(pool.unit(lead))}
        return self._lack_of_room(layer, delta, free, cap)

    def final_rows(self) -> tuple[Row, ...]:
        """Complete the rows of the first full allocation with what was used in the end."""
        held = self.ledger.held
        return tuple(
            row._replace(
                used=held.get(row.layer, 0), floor_unmet=held.get(row.layer, 0) < min(row.floor, row.wants)
            )
            for row in self.rows
        )
