"""Pass 6, feasibility: whether the must-haves and the floors fit at all, decided exactly."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.accounts import STANDING, Floors, charge_to, eligible_units, totals, wants
from loadmaster.core.draft import Draft, MustHaves
from loadmaster.core.items import REQUIRED
from loadmaster.core.pool import Pool
from loadmaster.core.search import Picks, Value, cheapest


def prove_feasibility(draft: Draft) -> Draft:
    """Find the cheapest joint forms of all must-haves with their closures, floors counted."""
    pool, problem = draft.pool, draft.problem
    assert pool is not None
    roots = tuple(index for index in pool.live if pool.unit_bands[index] <= REQUIRED)
    profile = problem.policy.profile
    wanted: dict[str, int] = {}
    if any(rule.floor.tokens or rule.floor.share for rule in profile.layers.values()):
        standing = pool.close(index for index in roots if pool.items[pool.lead(index)].layer is None)
        wanted = wants(pool, eligible_units(pool, profile), dict.fromkeys(standing, STANDING), profile.layers)
    return replace(
        draft, musts=least_need(pool, roots, Floors.of(profile, wanted), problem.limits.capacity, wanted)
    )


def least_need(
    pool: Pool, roots: tuple[int, ...], floors: Floors, capacity: int, wanted: dict[str, int] | None = None
) -> MustHaves:
    """Minimise what these must-haves and floors need together, over joint form choices.

    Without floors that is the tokens of the cheapest closure. With them, tokens of a layer below
    its floor are free, so a choice is valued by what it leaves to reserve, and bounded by its tokens.
    """

    def needed(picks: Picks) -> Value:
        charged = totals(pool, picks, charge_to(pool, roots, picks))
        charged[STANDING] = charged.get(STANDING, 0) + pool.priming
        return floors.needed(capacity, charged), sum(charged.values())

    def bound(picks: Picks) -> int:
        return pool.priming + sum(pool.cost[index][place] for index, place in picks.items())

    choice = cheapest(pool, roots, value=needed, bound=bound)
    return MustHaves(
        roots=roots,
        picks=choice.picks,
        account=charge_to(pool, roots, choice.picks),
        needed=choice.value[0],
        bound=choice.bound,
        wanted=wanted or {},
        floors=floors,
    )
