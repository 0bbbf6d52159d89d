"""Omissions: for every candidate that may enter and is not in, why, and what would have let it in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from loadmaster.core.draft import Args, Decision
from loadmaster.core.profiles import Profile
from loadmaster.core.selection.coverage import Coverage
from loadmaster.core.selection.offers import Market
from loadmaster.core.selection.room import Room


def left_out(market: Market, coverage: Coverage, room: Room, queued: Collection[int]) -> dict[int, Decision]:
    """Explain what stayed out; ``queued`` are the units that were worth their price."""
    out: dict[int, Decision] = {}
    pool, place = market.pool, market.ledger.place
    items, cost, tied = pool.items, pool.cost, pool.tied
    free = {layer: room.unreserved(layer) for layer in room.layers}
    cap = {layer: room.below_cap(layer) for layer in room.layers}
    lacking: dict[tuple[str | None, int], tuple[str, Args]] = {}
    for index in pool.live:
        if index in place or index in out:
            continue
        item = items[index]
        if index in queued and len(cost[index]) == 1 and not item.covers and index not in tied:
            key = item.layer, cost[index][0]
            if key not in lacking:
                lacking[key] = _lack_of_room(item.layer or "", cost[index][0], free, cap)
            out[index] = Decision("admission", item.id, "omitted", *lacking[key])
            continue
        rule, args = _why_not(market, coverage, room.profile, pool.lead(index), free, cap)
        for member in pool.unit(index):
            out[member] = Decision("admission", items[member].id, "omitted", rule, args)
    return out


def slack_reason(out: Mapping[int, Decision]) -> str:
    """Say in one word why nothing more came in; `wording.SLACK` has the sentence."""
    rules = {decision.rule for decision in out.values()}
    if "no_room" in rules:
        return "nothing_fits"
    if "cap" in rules:
        return "caps_reached"
    return "nothing_earns_admission" if rules - {"dependency_only"} else "everything_is_in"


def _lack_of_room(layer: str, cost: int, free: Mapping[str, int], cap: Mapping[str, int]) -> tuple[str, Args]:
    if cap[layer] < cost <= free[layer]:
        return "cap", {"layer": layer, "cost": cost, "short_by": cost - max(0, cap[layer])}
    room = max(0, min(free[layer], cap[layer]))
    args: dict[str, Any] = {"layer": layer, "cost": cost, "short_by": cost - room}
    return "no_room", {**args, "capped": True} if cap[layer] < cost else args


def _why_not(
    market: Market,
    coverage: Coverage,
    profile: Profile,
    lead: int,
    free: Mapping[str, int],
    cap: Mapping[str, int],
) -> tuple[str, Args]:
    item, worth = market.pool.items[lead], market.worth
    if item.layer is None:
        return "dependency_only", {}
    if item.layer not in profile.layers:
        return "cap", {"layer": item.layer, "cap": 0}
    if item.candidate.relevance < profile.min_relevance:
        return "min_relevance", {
            "relevance": str(item.candidate.relevance),
            "least": str(profile.min_relevance),
        }
    offers = market.offers(lead)
    if not offers:
        return "search_limit", {}
    earning = [offer for offer in offers if offer.net > 0]
    if not earning:
        value, cost = offers[0].option.value, offers[0].delta
        args: dict[str, Any] = {"cost": cost, "value": str(worth.as_decimal(value))}
        if worth.cost_factor and value > 0:
            args["worth_at"] = (value - 1) // worth.cost_factor
        return "net_value", args
    if not coverage.adds(market.pool.unit(lead)):
        return "adds_nothing", {"covers": coverage.named_by(market.pool.unit(lead))}
    return _lack_of_room(item.layer, min(offer.delta for offer in earning), free, cap)
