"""Pass 7, admission: what enters beyond the must-haves, by declared shares and net value.

Band after band, one queue over all layers: each unit enters in its best form that fits what is left
of its layer's grant, or waits. What lumpy units leave unspent is allocated again until nothing fits.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace

from loadmaster.core.draft import Args, Decision, Draft, MustHaves, Packed, Row
from loadmaster.core.items import BANDS, DISCRETIONARY, REQUIRED, SUPPORTED
from loadmaster.core.pool import Pool
from loadmaster.core.problem import Problem
from loadmaster.core.selection.accounts import STANDING, TASK, eligible_units, wants
from loadmaster.core.selection.coverage import Coverage
from loadmaster.core.selection.ledger import Ledger
from loadmaster.core.selection.offers import Key, Market, Offer
from loadmaster.core.selection.omissions import left_out, slack_reason
from loadmaster.core.selection.room import Room
from loadmaster.core.selection.worth import Worth


def admit(draft: Draft) -> Draft:
    """Fill the bundle: must-haves, their enrichment, then the bands supported and discretionary."""
    assert draft.pool is not None and draft.musts is not None
    hold = _Hold(draft.problem, draft.pool, draft.musts)
    hold.enrich()
    hold.run(SUPPORTED)
    hold.run(DISCRETIONARY)
    while hold.has_late():
        hold.run(SUPPORTED)
        hold.run(DISCRETIONARY)
    out = left_out(hold.market, hold.coverage, hold.room, hold.waited)
    packed = Packed(hold.ledger, tuple(hold.entered), hold.final_rows(), slack_reason(out))
    return replace(draft, packed=packed, log=(*draft.log, *hold.log, *out.values()), out={**draft.out, **out})


class _Hold:
    """The state of one admission."""

    def __init__(self, problem: Problem, pool: Pool, musts: MustHaves) -> None:
        profile = problem.policy.profile
        self.pool = pool
        self.candidates = len(problem.items)
        self.layers = problem.policy.profiles.layers
        self.ledger = Ledger.start(pool, musts.roots, musts.picks, musts.account)
        self.market = Market(pool, self.ledger, Worth.of(profile, [pool.items[index] for index in pool.live]))
        self.coverage = Coverage(problem.request.needs, profile.corroboration, pool.items)
        self.coverage.enter(self.ledger.place)
        self.room = Room(
            self.ledger, profile, self.layers, problem.limits.capacity, musts.wanted, self._can_use
        )
        self.must_leads = sorted(
            {pool.lead(index) for index in musts.roots},
            key=lambda lead: (pool.items[lead].layer is not None, lead),
        )
        units = eligible_units(pool, profile)
        self.tied_units = [lead for lead in units if lead in pool.tied]
        self.lone_wants = self._lone_wants(units)
        self.leads: dict[int, list[int]] = {SUPPORTED: [], DISCRETIONARY: []}
        for lead in units:
            band = pool.unit_bands[lead]
            if band > REQUIRED and pool.items[lead].layer in profile.layers:
                self.leads[band].append(lead)
        self.waiting = dict(self.leads)
        self.waited: set[int] = set()
        self.queued: frozenset[int] = frozenset()
        self.touched: set[int] = set()
        self.released = False
        self.entered: list[int] = []
        self.rows: tuple[Row, ...] = ()
        self.log: list[Decision] = []
        for index in self.ledger.place:
            verdict, rule = (
                ("chosen", "must_have") if index in self.ledger.roots else ("pulled", "dependency")
            )
            self._note(index, verdict, rule, {"tokens": self._cost(index)})

    # What could be used

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
        tied = wants(self.pool, leads, self._payers(), self.layers)
        lone = [self.lone_wants[above] for above in range(band + 1)]
        return {layer: tied[layer] + sum(sums[layer] for sums in lone) for layer in self.layers}

    def _payers(self) -> dict[int, str]:
        return {index: paid[0][0] for index, paid in self.ledger.paid.items()}

    def _can_use(self, layer: str, free: int) -> bool:
        """Whether a waiting unit of a layer could still enter within so many tokens."""
        room = min(free, self.room.below_cap(layer))
        return any(
            self.pool.items[lead].layer == layer and self._offer_within(lead, room, alone=True) is not None
            for leads in self.waiting.values()
            for lead in leads
            if lead not in self.ledger.roots
        )

    def _offer_within(self, lead: int, room: int, alone: bool = False) -> Offer | None:
        """Give the best offer of a unit that earns admission and fits the room, others aside if ``alone``."""
        if lead not in self.pool.tied and min(self.pool.cost[lead]) > room:
            return None
        if not self.coverage.adds(self.pool.unit(lead)):
            return None
        for offer in self.market.offers(lead):
            if offer.net > 0 and offer.delta <= room and (alone or self._leaves_others(lead, offer, room)):
                return offer
        return None

    def _leaves_others(self, lead: int, offer: Offer, room: int) -> bool:
        """Whether a unit that is partly in as a dependency neither outgrows its room nor takes from floors.

        Its richer forms may release what other layers have paid for, so the sum alone does not tell.
        """
        if lead not in self.pool.tied or not any(
            index in self.ledger.place for index in self.pool.unit(lead)
        ):
            return True
        account = self._account(lead)
        charges = self.ledger.charges(self.ledger.move(offer.option.forms), account)
        return charges[account] <= room and self.room.allows(charges)

    # Bands and rounds

    def run(self, band: int) -> None:
        """Admit one band to exhaustion: rounds of allocation, then enrichment, again if that made room."""
        leads = [lead for lead in self.leads[band] if lead not in self.ledger.roots]
        self.released = False
        self.queued = frozenset(lead for lead in leads if lead in self.pool.tied)
        everything = self._wants(DISCRETIONARY)
        of_band = everything if band == DISCRETIONARY else self._wants(band)
        grants, rows = self.room.grant(everything, of_band, exact=not self.entered)
        if band == DISCRETIONARY and not self.rows:
            self.rows = rows
        queue = self.market.queue(leads)
        self.waiting[band] = [key[-1] for key in queue]
        self.waited.update(self.waiting[band])
        while True:
            if self._round(queue, grants) or self._force(queue):
                queue = self._again(queue)
            elif self.enrich() or self._has_freed_floors(leads):
                self.market.behind = True
            else:
                return
            if self.market.behind:
                self.market.behind = False
                queue = self.market.queue([lead for lead in leads if lead not in self.ledger.roots])
            queue = self._fitting(queue)
            self.waiting[band] = [key[-1] for key in queue]
            more = wants(self.pool, self.waiting[band], self._payers(), self.layers)
            usable = {layer: self.room.held(layer) + more[layer] for layer in self.layers}
            grants, _ = self.room.grant(everything, usable, exact=False)

    def _has_freed_floors(self, leads: list[int]) -> bool:
        """Whether a unit that had no room for the floors of others has it now that those are used up."""
        if not self.room.wanted:
            return False
        left = [lead for lead in leads if lead not in self.ledger.roots]
        return bool(self._fitting(self.market.queue(left)))

    def has_late(self) -> bool:
        """Whether a supported unit earns admission only now: its needs came in, or room was released."""
        left = [lead for lead in self.leads[SUPPORTED] if lead not in self.ledger.roots]
        if not self.released and not self.room.wanted:
            left = [lead for lead in left if lead in self.pool.tied]
        limits = self.room.limits() if left else {}
        items = self.pool.items
        return any(self._offer_within(lead, limits[items[lead].layer or ""]) is not None for lead in left)

    def _round(self, queue: list[Key], grants: Mapping[str, int]) -> bool:
        """Walk the queue once; a unit whose price changes on the way is heard again at its new place."""
        again: list[Key] = []
        progress = False
        items, tied, cost = self.pool.items, self.pool.tied, self.pool.cost
        left = {layer: grants[layer] - self.room.held(layer) for layer in self.layers}
        mutable = any(key[-1] in tied or len(cost[key[-1]]) > 1 for key in queue)
        least = 0 if mutable else min((key[1] for key in queue), default=0)
        at = 0
        while at < len(queue) or again:
            if max(left.values(), default=0) < least:
                break  # nothing that is left in the queue fits any layer
            if again and (at >= len(queue) or again[0] < queue[at]):
                key = heapq.heappop(again)
            else:
                key = queue[at]
                at += 1
            lead = key[-1]
            room = left[items[lead].layer or ""]
            if key[1] > room and lead not in tied and len(cost[lead]) == 1:
                continue
            offer = None if lead in self.ledger.roots else self._offer_within(lead, room)
            if offer is not None:
                for moved in map(self.market.key, self._enter(lead, offer, "earned")):
                    if moved is not None:
                        heapq.heappush(again, moved)
                progress = True
                left = {layer: grants[layer] - self.room.held(layer) for layer in self.layers}
        return progress

    def _force(self, queue: list[Key]) -> bool:
        """Let the first queued unit in that fits the free total and its cap, whatever its layer's share."""
        limits = self.room.limits() if queue else {}
        for key in queue:
            lead = key[-1]
            if lead not in self.ledger.roots:
                offer = self._offer_within(lead, limits[self.pool.items[lead].layer or ""])
                if offer is not None:
                    self._enter(lead, offer, "forced")
                    return True
        return False

    def _again(self, queue: list[Key]) -> list[Key]:
        """Put the units whose price has changed at their new places, also those that had fallen out."""
        if not self.touched:
            return queue
        keys = self.market.queue(sorted(self.touched - self.ledger.roots.keys()))
        kept = [key for key in queue if key[-1] not in self.touched]
        self.waited.update(key[-1] for key in keys)
        self.touched.clear()
        return sorted(kept + keys)

    def _fitting(self, queue: list[Key]) -> list[Key]:
        """Keep what may still enter: it fits the free total and the cap of its layer."""
        limits = self.room.limits() if queue else {}
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

    # Entering

    def _enter(self, lead: int, offer: Offer, rule: str) -> list[int]:
        """Bring a unit in, or into another form; gives the waiting units whose price this changed."""
        account = self._account(lead)
        unit = self.pool.unit(lead)
        free = self.room.free
        move = self.ledger.move(offer.option.forms)
        entered = self.ledger.apply(move, unit, account)
        gone = sorted(move.gone)
        self.coverage.enter(entered)
        self.coverage.leave(gone)
        self.released |= bool(gone) or offer.delta < 0
        if rule != "enriched":
            self.entered.append(lead)
        self._note_entry(lead, offer, rule, free, entered, gone)
        if lead not in self.pool.tied:
            return []
        named = self.market.note(entered, gone)
        touched = sorted(other for other in named if other in self.queued and other not in self.ledger.roots)
        self.touched.update(touched)
        return touched

    def _account(self, lead: int) -> str:
        item = self.pool.items[lead]
        return item.layer or (TASK if item.section == "task" else STANDING)

    def _note_entry(
        self, lead: int, offer: Offer, rule: str, free: int, entered: list[int], gone: list[int]
    ) -> None:
        unit = self.pool.unit(lead)
        args = {
            "band": BANDS[self.pool.unit_bands[lead]],
            "layer": self.pool.items[lead].layer or "none",
            "cost": offer.delta,
            "net": str(self.market.worth.as_decimal(offer.net)),
            "free_before": free,
        }
        for index in unit:
            self._note(index, "chosen" if rule == "enriched" else "admitted", rule, args)
        for index in entered:
            if index not in unit:
                by = self.pool.items[lead].id
                self._note(index, "pulled", "dependency", {"by": by, "tokens": self._cost(index)})
        for index in gone:
            if index < self.candidates:
                identifier = self.pool.items[index].id
                self.log.append(Decision("admission", identifier, "omitted", "no_longer_needed"))

    def _note(self, index: int, verdict: str, rule: str, args: Args) -> None:
        if index >= self.candidates:  # an envelope of messages is no candidate
            return
        form = self.pool.legal[index][self.ledger.place[index]].name
        self.log.append(
            Decision("admission", self.pool.items[index].id, verdict, rule, {"form": form, **args})
        )

    def _cost(self, index: int) -> int:
        return self.pool.cost[index][self.ledger.place[index]]

    # Enrichment

    def enrich(self) -> bool:
        """Move must-haves and entered units to better forms while there is room; tells if that made room."""
        before, self.released = self.released, False
        changed = True
        while changed:
            changed = False
            for lead in (*self.must_leads, *self.entered):
                offer = self._better(lead) if len(self.market.options(lead)) > 1 else None
                if offer is not None:
                    self._enter(lead, offer, "enriched")
                    changed = True
        made_room, self.released = self.released, self.released or before
        return made_room

    def _better(self, lead: int) -> Offer | None:
        """Give the best affordable offer that is worth more than the present forms, or richer at no loss."""
        place = self.ledger.place
        account = self._account(lead)
        unit = self.pool.unit(lead)
        now = self.market.value(lead, place[lead])
        poverty = sum(place[index] for index in unit)
        for offer in self.market.offers(lead):
            richer = sum(offer.option.forms[index] for index in unit) < poverty
            if offer.net < now or (offer.net == now and not richer):
                return None
            if offer.delta <= self.room.free:
                charges = {account: offer.delta}
                if lead in self.pool.tied:
                    charges = self.ledger.charges(self.ledger.move(offer.option.forms), account)
                if self.room.allows(charges):
                    return offer
        return None

    def final_rows(self) -> tuple[Row, ...]:
        """Complete the rows of the first full allocation with what was used in the end."""
        return tuple(
            row._replace(
                used=self.room.held(row.layer),
                floor_unmet=self.room.held(row.layer) < min(row.floor, row.wants),
            )
            for row in self.rows
        )
