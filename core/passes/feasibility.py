"""Pass 6, feasibility: whether the must-haves and the floors fit at all, decided exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from loadmaster.core.draft import Draft, MustHaves
from loadmaster.core.items import REQUIRED
from loadmaster.core.pool import Pool
from loadmaster.core.profiles import Profile
from loadmaster.core.selection.accounts import (
    STANDING,
    UNDECIDED,
    Floors,
    certain,
    charge_to,
    eligible_units,
    totals,
    wants,
)
from loadmaster.core.selection.search import Picks, Value, cheapest

NOTHING: Mapping[str, int] = {}


def prove_feasibility(draft: Draft) -> Draft:
    """Find the cheapest joint forms of all must-haves with their closures, floors counted."""
    pool, problem = draft.pool, draft.problem
    assert pool is not None
    roots = tuple(index for index in pool.live if pool.unit_bands[index] <= REQUIRED)
    profile = problem.policy.profile
    wanted = wants_with(pool, profile, roots) if has_floors(profile) else NOTHING
    return replace(
        draft, musts=least_need(pool, roots, Floors.of(profile, wanted), problem.limits.capacity, wanted)
    )


def has_floors(profile: Profile) -> bool:
    """Whether any layer has a floor above nothing."""
    return any(rule.floor.tokens or rule.floor.share for rule in profile.layers.values())


def wants_with(pool: Pool, profile: Profile, roots: tuple[int, ...]) -> dict[str, int]:
    """Give what each layer could use beside what these must-haves bring in anyway."""
    return wants(pool, eligible_units(pool, profile), certain(pool, roots), profile.layers)


def least_need(
    pool: Pool,
    roots: tuple[int, ...],
    floors: Floors,
    capacity: int,
    wanted: Mapping[str, int] = NOTHING,
    beside: Mapping[str, int] = NOTHING,
) -> MustHaves:
    """Minimise what these must-haves and floors need together, over joint form choices.

    Without floors that is the tokens of the cheapest closure. With them, tokens of a layer below
    its floor are free, so a choice is valued by what it leaves to reserve. It is bounded by its
    tokens, and by what is needed if its dependencies were free. ``beside`` is charged as well.
    """
    own = charge_to(pool, roots, dict.fromkeys(roots, UNDECIDED))
    there = Counter(beside)
    there[STANDING] += pool.priming

    def needed(picks: Picks) -> Value:
        charged = there + Counter(totals(pool, picks, charge_to(pool, roots, picks)))
        return floors.needed(capacity, charged), charged.total()

    def bound(picks: Picks) -> int | Fraction:
        tokens = there.total() + sum(pool.cost[index][place] for index, place in picks.items())
        if not floors.layers:
            return tokens
        charged = there + Counter(totals(pool, {index: picks[index] for index in own}, own))
        return max(tokens, floors.needed(capacity, charged))

    choice = cheapest(pool, roots, value=needed, bound=bound)
    return MustHaves(
        roots=roots,
        picks=choice.picks,
        account=charge_to(pool, roots, choice.picks),
        needed=choice.value[0],
        bound=choice.bound,
        wanted=wanted,
        floors=floors,
    )
