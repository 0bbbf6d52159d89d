"""The compile failure: an explicit, complete account of why there is no legal bundle, and who can cure it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal, NoReturn

from loadmaster.core.accounts import STANDING, TASK, charge_to, totals
from loadmaster.core.draft import Blocker, Draft
from loadmaster.core.items import BANDS, DISCRETIONARY, REQUIRED
from loadmaster.core.passes.feasibility import prove_feasibility
from loadmaster.core.pool import Pool
from loadmaster.core.pricing import price_form
from loadmaster.core.problem import Problem
from loadmaster.core.result import ProfileUsed, Tokens
from loadmaster.core.shortfall import Demanded, Shortfall
from loadmaster.core.trace import Trace, head_of

CODES = (
    "source_unavailable",
    "unknown_freshness",
    "no_legal_representation",
    "unsatisfied_dependency",
    "unresolved_required_conflict",
    "insufficient_budget",
)
"""Every code there is, in order of precedence: a later figure means little while an earlier gate is shut."""

_PASS = {
    "source_unavailable": "eligibility",
    "unknown_freshness": "freshness",
    "no_legal_representation": "alternatives",
    "unsatisfied_dependency": "closure",
    "unresolved_required_conflict": "closure",
    "insufficient_budget": "feasibility",
}
_OWNER = {
    "source_unavailable": "source",
    "unknown_freshness": "source",
    "no_legal_representation": "evidence",
    "unsatisfied_dependency": "source",
    "unresolved_required_conflict": "human",
    "insufficient_budget": "orchestrator",
}
MOST_RELAXATIONS = 3


class CompileError(ValueError):
    """Raised by `CompileFailure.unwrap`; ``failure`` is the whole account, ``str`` its public line."""

    def __init__(self, failure: CompileFailure) -> None:
        self.failure = failure
        super().__init__(str(failure))


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that blocks: a must-have candidate, or the floor of a layer as ``floor:LAYER``.

    ``via`` leads from it to the cause, where the cause is something else.
    """

    id: str
    kind: Literal["requirement", "floor"]
    rule: str
    owner: str
    layer: str | None = None
    band: str | None = None
    tokens: int | None = None
    via: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "id": self.id,
            "kind": self.kind,
            "layer": self.layer,
            "band": self.band,
            "tokens": self.tokens,
            "rule": self.rule,
            "owner": self.owner,
            "via": list(self.via),
        }


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A smallest set of facts without which the compile succeeds; it has been tried."""

    remove: tuple[str, ...]
    frees: int | None
    loses: Mapping[str, int]
    owner: str

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "remove": list(self.remove),
            "frees": self.frees,
            "loses": dict(self.loses),
            "owner": self.owner,
        }


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that an owner can do. ``sufficient`` is computed, never guessed."""

    owner: str
    action: str
    params: Mapping[str, Any]
    frees: int | None = None
    sufficient: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "owner": self.owner,
            "action": self.action,
            "params": dict(self.params),
            "frees": self.frees,
            "sufficient": self.sufficient,
        }


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """No legal bundle exists for this input. An operator's document; ``public()`` is for everybody else.

    ``needed_tokens`` is the least that must-haves and floors need together, ``excess_tokens`` what
    that is above the capacity, ``smallest_window`` the window that would do. ``proof`` says how the
    figure was found: ``exact``, a lower ``bound`` that already exceeds, or search up to a ``limit``.
    """

    code: str
    also: tuple[tuple[str, tuple[str, ...]], ...]
    tokens: Tokens
    reserved_output: int
    needed_tokens: int
    excess_tokens: int | None
    smallest_window: int | None
    proof: Literal["exact", "bound", "limit"]
    breakdown: tuple[Mapping[str, Any], ...]
    blocking: tuple[Fact, ...]
    relaxations: tuple[Relaxation, ...]
    remedies: tuple[Remedy, ...]
    rejected: Mapping[str, int]
    profile: ProfileUsed
    public_ids: frozenset[str]
    trace: Trace
    status: Literal["failure"] = "failure"

    @property
    def trace_digest(self) -> str:
        """The digest of the serialised trace."""
        return self.trace.digest

    def unwrap(self) -> NoReturn:
        """Raise the failure.

        Raises:
            CompileError: Always.
        """
        raise CompileError(self)

    def to_dict(self) -> dict[str, Any]:
        """Give the result of the data contract, for operators: it names candidates of any scope."""
        head = head_of(self.trace.problem, ())
        return {
            "status": self.status,
            "schema": 1,
            "code": self.code,
            "also": [{"code": code, "ids": list(ids)} for code, ids in self.also],
            "pass": _PASS[self.code],
            "needed_tokens": self.needed_tokens,
            "excess_tokens": self.excess_tokens,
            "smallest_window": self.smallest_window,
            "proof": self.proof,
            "capacity": {
                "window": self.tokens.window,
                "reserved_output": self.reserved_output,
                "overhead": self.tokens.headroom,
                "usable": self.tokens.usable,
                "capacity": self.tokens.capacity,
            },
            "tokens": self.tokens.to_dict(),
            "breakdown": [dict(row) for row in self.breakdown],
            "blocking": [fact.to_dict() for fact in self.blocking],
            "relaxations": [relaxation.to_dict() for relaxation in self.relaxations],
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "rejected": dict(self.rejected),
            "profile": self.profile.to_dict(),
            "request_digest": head["request"],
            "inputs_digest": head["inventory"],
            "policy_revision": head["policy"],
            "compiler_version": head["compiler"],
            "tokenizer": head["tokenizer"],
            "trace_digest": self.trace_digest,
        }

    def public(self) -> dict[str, Any]:
        """Give what may enter graph state, an interrupt or a log that users see.

        A candidate of another scope and one that does not exist look the same here; no label, no
        scope value and no id that the request did not bring along itself.
        """
        return {
            "status": self.status,
            "code": self.code,
            "also": [code for code, _ in self.also],
            "needed_tokens": self.needed_tokens,
            "capacity": self.tokens.capacity,
            "excess_tokens": self.excess_tokens,
            "smallest_window": self.smallest_window,
            "blocking": sorted(fact.id for fact in self.blocking if fact.id in self.public_ids),
            "remedies": [
                {"owner": remedy.owner, "action": remedy.action, "sufficient": remedy.sufficient}
                for remedy in self.remedies
            ],
        }

    def __str__(self) -> str:
        if self.excess_tokens is None:
            return f"{self.code}: blocked by {len(self.blocking)} must-have(s); {len(self.remedies)} remedies"
        return (
            f"{self.code}: need {self.needed_tokens:,}, capacity {self.tokens.capacity:,}, over by"
            f" {self.excess_tokens:,}; blocked by {len(self.blocking)} fact(s); {len(self.remedies)} remedies"
        )


def explain_failure(draft: Draft, tokens: Tokens, profile: ProfileUsed, succeeds: Callable[[Problem], bool],
                    trace_of: Callable[[Mapping[str, Any]], Trace]) -> CompileFailure:  # fmt: skip
    """Account for a draft that cannot become a bundle. ``succeeds`` compiles a relaxed problem to check a cure."""
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
        blocking = tuple(_demand_fact(fact) for fact in irreducible)
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
        remedies=tuple(_remedies(draft, by_code, needed, window, len(held) == 1)),
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


def _demand_fact(fact: Demanded) -> Fact:
    if fact.index is None:
        return Fact(fact.id, "floor", "floor", "orchestrator", layer=fact.layer, tokens=fact.tokens)
    owner = "orchestrator"
    return Fact(fact.id, "requirement", "budget", owner, fact.layer, BANDS[fact.band], fact.tokens)


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
    )


def _breakdown(draft: Draft) -> Iterator[dict[str, Any]]:
    """Give what must-haves need by layer; standing content and the task have none."""
    pool, musts = draft.pool, draft.musts
    assert pool is not None and musts is not None
    charged = totals(pool, musts.picks, musts.account)
    count = Counter(musts.account[index] for index in musts.picks if index < len(draft.items))
    base = draft.problem.limits.capacity - charged.get(STANDING, 0) - charged.get(TASK, 0) - pool.priming
    if pool.priming or STANDING in charged:
        yield {
            "layer": None,
            "part": "standing",
            "items": count[STANDING],
            "needed": charged.get(STANDING, 0) + pool.priming,
        }
    if TASK in charged:
        yield {"layer": None, "part": "task", "items": count[TASK], "needed": charged[TASK]}
    for layer in draft.problem.policy.profiles.layers:
        rule = draft.problem.policy.profile.layers.get(layer)
        reserved = ceil(min(rule.floor.of(base), musts.wanted.get(layer, 0))) if rule else 0
        if layer in charged or reserved:
            needed = max(charged.get(layer, 0), reserved)
            yield {
                "layer": layer,
                "part": "layer",
                "items": count[layer],
                "needed": needed,
                "floor": reserved,
            }


def _relaxations(
    draft: Draft,
    shortfall: Shortfall | None,
    irreducible: list[Demanded],
    succeeds: Callable[[Problem], bool],
) -> tuple[Relaxation, ...]:
    """Give up to three smallest cures, each tried by compiling without it."""
    faulty = sorted({blocker.item for blocker in draft.blockers})
    cures: list[tuple[tuple[str, ...], int | None, Counter[str]]] = []
    if shortfall is None:
        cures.append((tuple(faulty), None, _bands(draft, faulty)))
    else:
        for facts, frees in shortfall.cures(irreducible):
            ids = sorted({*faulty, *(fact.id for fact in facts)})
            cures.append((tuple(ids), frees, _bands(draft, ids)))
    found = []
    for ids, frees, loses in cures:
        if succeeds(_without(draft.problem, frozenset(ids))):
            owner = "human" if loses else "orchestrator"
            found.append(Relaxation(ids, frees, dict(sorted(loses.items())), owner))
        if len(found) == MOST_RELAXATIONS:
            break
    return tuple(found)


def _bands(draft: Draft, ids: list[str] | tuple[str, ...]) -> Counter[str]:
    indices = [draft.position.get(identifier) for identifier in ids if not identifier.startswith("floor:")]
    return Counter("required" if index is None else BANDS[draft.bands[index]] for index in indices)


def _without(problem: Problem, ids: frozenset[str]) -> Problem:
    """Give the problem in which these candidates are no must-haves and these floors do not hold."""
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


def _remedies(
    draft: Draft, by_code: Mapping[str, list[Blocker]], needed: int, window: int | None, alone: bool
) -> Iterator[Remedy]:
    """List what each owner can do, the sufficient first."""
    remedies = (
        list(_budget_remedies(draft, needed, window, alone)) if needed > draft.problem.limits.capacity else []
    )
    for code, action, owner in (
        ("source_unavailable", "retry_source", "source"),
        ("unknown_freshness", "supply_verdict", "source"),
        ("no_legal_representation", "supply_form", "evidence"),
        ("unsatisfied_dependency", "supply_dependency", "source"),
        ("unresolved_required_conflict", "decide_conflict", "human"),
    ):
        if code in by_code:
            items = sorted({blocker.item for blocker in by_code[code]})
            remedies.append(Remedy(owner, action, {"ids": items}))
            gated = sorted(
                {b.item for b in by_code[code] if b.rule in ("scope", "authority", "labels", "excluded")}
            )
            if gated:
                remedies.append(Remedy("human", "change_policy", {"ids": gated}))
            stale = sorted(
                {b.item for b in by_code[code] if b.rule in ("stale", "max_age", "expired", "retention")}
            )
            if stale:
                remedies.append(Remedy("source", "revalidate", {"ids": stale}))
    yield from sorted(remedies, key=lambda remedy: not remedy.sufficient)


def _budget_remedies(draft: Draft, needed: int, window: int | None, alone: bool) -> Iterator[Remedy]:
    pool, musts, limits = draft.pool, draft.musts, draft.problem.limits
    assert pool is not None and musts is not None
    excess = needed - limits.capacity
    binding = (
        limits.economic is not None and limits.economic < limits.window - limits.output - limits.reasoning
    )
    if window is not None:
        yield Remedy("runtime", "larger_window", {"window": window}, sufficient=alone)
    if limits.economic is not None and window is None:
        yield Remedy("runtime", "raise_economic", {"economic": limits.economic + excess}, excess)
    if not binding and 0 < excess <= limits.output:
        yield Remedy(
            "runtime",
            "smaller_output_reserve",
            {"output": limits.output - excess},
            excess,
            _sure(draft, alone),
        )
    if 0 < excess <= limits.headroom:
        yield Remedy(
            "runtime", "smaller_headroom", {"headroom": limits.headroom - excess}, excess, _sure(draft, alone)
        )
    parts = _parts(draft)
    if len(parts) > 1:
        yield Remedy(
            "orchestrator", "split_task", {"parts": parts}, sufficient=alone and max(parts) <= limits.capacity
        )
    schemas = sorted(
        ((pool.cost[index][place], draft.items[index].id) for index, place in musts.picks.items()
         if index < len(draft.items) and draft.items[index].section == "capability"),
        reverse=True,
    )  # fmt: skip
    if schemas:
        frees = sum(tokens for tokens, _ in schemas)
        params = {
            "ids": [identifier for _, identifier in schemas],
            "tokens": [tokens for tokens, _ in schemas],
        }
        yield Remedy("tools", "leaner_tools", params, frees)
    shorter = _shorter_forms(draft)
    if shorter:
        frees = sum(shorter.values())
        yield Remedy("evidence", "allow_poorer_form", {"ids": sorted(shorter)}, frees)


def _sure(draft: Draft, alone: bool) -> bool:
    """Whether room for the excess is enough: a floor that is a share of the room would grow with it."""
    assert draft.musts is not None
    return alone and not any(share for _, _, share, _ in draft.musts.floors.layers)


def _parts(draft: Draft) -> list[int]:
    """Give what each independent part of the must-haves needs beside the standing content, largest first."""
    pool, musts = draft.pool, draft.musts
    assert pool is not None and musts is not None
    standing = {index for index, account in musts.account.items() if account == STANDING}
    shared = sum(pool.cost[index][musts.picks[index]] for index in standing) + pool.priming
    parent: dict[int, int] = {index: index for index in musts.picks if index not in standing}

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for index in parent:
        leaning = (*pool.needs.get(index, ()), *pool.form_needs.get((index, musts.picks[index]), ()))
        for other in (*leaning, *pool.members.get(index, ())):
            if other in parent:
                parent[root(other)] = root(index)
    sums: Counter[int] = Counter()
    for index in parent:
        sums[root(index)] += pool.cost[index][musts.picks[index]]
    return sorted((shared + tokens for tokens in sums.values()), reverse=True)


def _shorter_forms(draft: Draft) -> dict[str, int]:
    """Give must-haves that have a poorer form than their limits allow, and what it would free."""
    pool, musts = draft.pool, draft.musts
    assert pool is not None and musts is not None
    shorter = {}
    for index, place in musts.picks.items():
        if index < len(draft.items):
            item = draft.items[index]
            legal = {form.rank for form in item.legal}
            prices = [
                price_form(draft.problem, item, form, pool.tags.get(index))
                for form in item.forms
                if form.rank not in legal and not form.requires
            ]
            frees = pool.cost[index][place] - min(prices, default=pool.cost[index][place])
            if frees > 0:
                shorter[item.id] = frees
    return shorter


def _smallest_window(draft: Draft) -> int | None:
    """Find the window that suffices, share floors and a reserve that is a share counted; None where economic binds."""
    pool: Pool | None = draft.pool
    assert pool is not None and draft.musts is not None
    limits = draft.problem.limits

    def fits(window: int) -> bool:
        musts = prove_feasibility(replace(draft, problem=draft.problem.with_window(window))).musts
        assert musts is not None
        return musts.needed <= draft.problem.with_window(window).limits.capacity

    constant = not draft.musts.floors.layers
    needed = draft.rendered.used if draft.rendered is not None else ceil(draft.musts.needed)

    def suffices(window: int) -> bool:
        if constant:
            return needed <= draft.problem.with_window(window).limits.capacity
        return fits(window)

    low = limits.window
    high = max(2 * low, 1)
    while not suffices(high):
        if high > 1 << 60 or (limits.economic is not None and high > 1 << 40):
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
