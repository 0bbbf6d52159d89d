"""Explaining a failure: which codes hold, the proof, the smallest cures, and the window that would do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from loadmaster.core.draft import Blocker, Draft
from loadmaster.core.failures.failure import CODES, CompileFailure, Fact, Relaxation
from loadmaster.core.failures.remedies import remedies_for
from loadmaster.core.failures.shortfall import Demanded, Shortfall
from loadmaster.core.items import BANDS, DISCRETIONARY, REQUIRED, Item
from loadmaster.core.passes.feasibility import prove_feasibility
from loadmaster.core.problem import Problem
from loadmaster.core.result import ProfileUsed, Tokens
from loadmaster.core.selection.accounts import STANDING, TASK, totals
from loadmaster.core.trace import Trace

MOST_RELAXATIONS = 3
_LARGEST_WINDOW = 1 << 60
_OWNER = {
    "source_unavailable": "source",
    "unknown_freshness": "source",
    "no_legal_representation": "evidence",
    "unsatisfied_dependency": "source",
    "unresolved_required_conflict": "human",
    "insufficient_budget": "orchestrator",
}


def explain_failure(
    draft: Draft,
    tokens: Tokens,
    profile: ProfileUsed,
    succeeds: Callable[[Problem], bool],
    trace_of: Callable[[Mapping[str, Any]], Trace],
) -> CompileFailure:
    """Account for a draft that cannot become a bundle.

    Args:
        draft: The draft after the last pass that could run.
        tokens: The budget arithmetic.
        profile: The profile that was applied.
        succeeds: Compiles a relaxed problem, to check a cure.
        trace_of: Gives the trace with this foot.
    """
    assert draft.musts is not None and draft.pool is not None
    capacity = draft.problem.limits.capacity
    by_code: dict[str, list[Blocker]] = defaultdict(list)
    for blocker in draft.blockers:
        by_code[blocker.code].append(blocker)
    needed, proof = _need(draft)
    short = needed > capacity
    held = [code for code in CODES if code in by_code or (code == "insufficient_budget" and short)]
    code = held[0]
    shortfall = Shortfall(draft) if short else None
    irreducible = shortfall.irreducible() if shortfall else []
    if code == "insufficient_budget":
        blocking = tuple(_demand_fact(draft, fact) for fact in irreducible)
    else:
        blocking = tuple(
            sorted((_fact(draft, blocker) for blocker in by_code[code]), key=lambda fact: fact.id)
        )
    window = _smallest_window(draft) if short else None
    also = tuple(
        (other, tuple(sorted({b.item for b in by_code[other]} or {fact.id for fact in irreducible})))
        for other in held[1:]
    )
    return CompileFailure(
        code=code,
        also=also,
        tokens=tokens,
        reserved_output=draft.problem.limits.output,
        needed_tokens=needed,
        excess_tokens=needed - capacity if short else None,
        smallest_window=window,
        proof=proof,
        breakdown=tuple(_breakdown(draft)),
        blocking=blocking,
        relaxations=_relaxations(draft, shortfall, irreducible, succeeds),
        remedies=tuple(remedies_for(draft, by_code, needed, window, len(held) == 1)),
        rejected=_histogram(draft),
        profile=profile,
        public_ids=_public_ids(draft),
        trace=trace_of({"code": code, "tokens": {**tokens.figures(), "needed": needed}}),
    )


def _need(draft: Draft) -> tuple[int, Literal["exact", "bound", "limit"]]:
    assert draft.musts is not None
    musts, capacity = draft.musts, draft.problem.limits.capacity
    if draft.rendered is not None:
        return draft.rendered.used, "exact"
    if musts.bound == musts.needed:
        return ceil(musts.needed), "exact"
    return (ceil(musts.bound), "bound") if musts.bound > capacity else (ceil(musts.needed), "limit")


def _demand_fact(draft: Draft, fact: Demanded) -> Fact:
    if fact.candidate is None:
        return Fact(fact.id, "floor", "floor", "orchestrator", layer=fact.layer, tokens=fact.tokens)
    return Fact(
        id=fact.id,
        kind="requirement",
        rule="budget",
        owner="orchestrator",
        layer=fact.layer,
        band=BANDS[fact.band],
        tokens=fact.tokens,
        source_ref=_source_of(draft.items[fact.candidate]),
    )


def _source_of(item: Item | None) -> str | None:
    return item.source[0] if item and item.source else None


def _fact(draft: Draft, blocker: Blocker) -> Fact:
    index = draft.position.get(blocker.item)
    item = None if index is None else draft.items[index]
    return Fact(
        id=blocker.item,
        kind="requirement",
        rule=blocker.rule,
        owner="human"
        if blocker.rule in ("scope", "authority", "labels", "excluded")
        else _OWNER[blocker.code],
        layer=item.layer if item else None,
        band=None if index is None else BANDS[draft.bands[index]],
        via=blocker.chain,
        source_ref=_source_of(item),
    )


def _breakdown(draft: Draft) -> Iterator[dict[str, Any]]:
    """Give what must-haves need by layer; standing content and the task have none.

    ``band`` is the strongest in it; what must-haves hold above a cap is legal, and shown as ``excess``.
    """
    pool, musts = draft.pool, draft.musts
    assert pool is not None and musts is not None
    charged = Counter(totals(pool, musts.picks, musts.account))
    charged[STANDING] += pool.priming
    count = Counter(musts.account[index] for index in musts.picks if index < len(draft.items))
    base = draft.problem.limits.capacity - charged[STANDING] - charged[TASK]
    bands: dict[str, int] = {}
    for index in musts.roots:
        account = musts.account[index]
        bands[account] = min(draft.bands[index], bands.get(account, DISCRETIONARY))
    for part, account in (("standing", STANDING), ("task", TASK)):
        if charged[account]:
            row = {"layer": None, "part": part, "band": BANDS[bands[account]] if account in bands else None}
            yield {**row, "items": count[account], "needed": charged[account], "cap": None, "excess": 0}
    for layer in draft.problem.policy.profiles.layers:
        rule = draft.problem.policy.profile.layers.get(layer)
        floor = ceil(min(rule.floor.of(base), Fraction(musts.wanted.get(layer, 0)))) if rule else 0
        if charged[layer] or floor:
            needed = max(charged[layer], floor)
            cap = int(rule.cap.of(base)) if rule and rule.cap else None if rule else 0
            row = {"layer": layer, "part": "layer", "band": BANDS[bands[layer]] if layer in bands else None}
            excess = 0 if cap is None else max(0, needed - cap)
            yield {
                **row,
                "items": count[layer],
                "needed": needed,
                "floor": floor,
                "cap": cap,
                "excess": excess,
            }


def _relaxations(
    draft: Draft,
    shortfall: Shortfall | None,
    irreducible: list[Demanded],
    succeeds: Callable[[Problem], bool],
) -> tuple[Relaxation, ...]:
    """Give up to three smallest cures, each tried by compiling without it."""
    faulty = sorted({blocker.item for blocker in draft.blockers})
    cures: list[tuple[list[str], int | None]] = [(faulty, None)]
    if shortfall is not None:
        cures = [
            (sorted({*faulty, *(fact.id for fact in facts)}), frees)
            for facts, frees in shortfall.cures(irreducible)
        ]
    found: list[Relaxation] = []
    for ids, frees in cures:
        if len(found) < MOST_RELAXATIONS and succeeds(_without(draft, frozenset(ids))):
            loses = _bands(draft, ids)
            owner = "human" if loses else "orchestrator"
            found.append(Relaxation(tuple(ids), frees, dict(sorted(loses.items())), owner))
    return tuple(found)


def _bands(draft: Draft, ids: Sequence[str]) -> Counter[str]:
    indices = [draft.position.get(identifier) for identifier in ids if not identifier.startswith("floor:")]
    return Counter("required" if index is None else BANDS[draft.bands[index]] for index in indices)


def _without(draft: Draft, facts: frozenset[str]) -> Problem:
    """Give the problem in which these candidates are no must-haves and these floors do not hold.

    A candidate that stands for merged copies is one under all their ids.
    """
    problem = draft.problem
    merged = (alias for alias, index in draft.position.items() if draft.items[index].id in facts)
    ids = facts.union(merged)
    items = tuple(
        replace(item, band=DISCRETIONARY) if item.id in ids and item.band <= REQUIRED else item
        for item in problem.items
    )
    request = problem.request.model_copy(
        update={"requires": tuple(name for name in problem.request.requires if name not in ids)}
    )
    profile = problem.policy.profile
    layers = {
        layer: rule.model_copy(update={"floor": rule.floor._replace(tokens=0, share=None)})
        if f"floor:{layer}" in ids
        else rule
        for layer, rule in profile.layers.items()
    }
    policy = replace(problem.policy, profile=profile.model_copy(update={"layers": layers}))
    return replace(problem, items=items, request=request, policy=policy)


def _smallest_window(draft: Draft) -> int | None:
    """Find the window that suffices, None where the economic limit binds.

    A reserve that is a share of the window and floors that are shares of the room grow with it, so
    the window is searched for; feasibility is never lost as it grows.
    """
    assert draft.musts is not None
    constant = not any(share for _, _, share, _ in draft.musts.floors.layers)
    needed = draft.rendered.used if draft.rendered is not None else ceil(draft.musts.needed)

    def suffices(window: int) -> bool:
        problem = draft.problem.with_window(window)
        if constant:
            return needed <= problem.limits.capacity
        musts = prove_feasibility(replace(draft, problem=problem)).musts
        return musts is not None and musts.needed <= problem.limits.capacity

    low = draft.problem.limits.window
    high = max(2 * low, 1)
    while not suffices(high):
        if high > _LARGEST_WINDOW:
            return None
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _histogram(draft: Draft) -> dict[str, int]:
    steps = ("eligibility", "freshness", "alternatives", "closure")
    rules = Counter(decision.rule for decision in draft.out.values() if decision.step in steps)
    return dict(sorted(rules.items()))


def _public_ids(draft: Draft) -> frozenset[str]:
    """Ids that the request brought itself, or that are within its scope and clearances."""
    inside = (
        item.id
        for index, item in enumerate(draft.items)
        if index not in draft.out or draft.out[index].rule not in ("scope", "authority", "labels")
    )
    return frozenset((*draft.problem.request.requires, *inside))
