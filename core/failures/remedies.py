"""Remedies: what each owner can do about a failure, with amounts that are computed, never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil

from loadmaster.core.draft import Blocker, Draft
from loadmaster.core.failures.failure import Remedy
from loadmaster.core.pricing import price_form
from loadmaster.core.selection.accounts import STANDING


def remedies_for(
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
    room = limits.window - limits.output - limits.reasoning + excess
    binding = limits.economic is not None and limits.economic < room
    if window is not None:
        yield Remedy("runtime", "larger_window", {"window": window}, sufficient=alone)
    if limits.economic is not None and window is None:
        economic = needed + limits.headroom
        enough = economic <= limits.window - limits.output - limits.reasoning
        more = economic - limits.economic
        sufficient = enough and _sure(draft, alone)
        yield Remedy("runtime", "raise_economic", {"economic": economic}, more, sufficient)
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
    rules = draft.problem.policy.profile.layers.values()
    reserved = ceil(sum(rule.floor.of(limits.capacity) for rule in rules))  # the most that floors can take
    parts = _parts(draft)
    if len(parts) > 1 and max(parts) + reserved <= limits.capacity:
        yield Remedy("orchestrator", "split_task", {"parts": parts}, sufficient=alone)
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
        held = sum(pool.cost[index][place] for index, place in musts.picks.items()) + pool.priming
        enough = alone and held - frees + reserved <= limits.capacity
        yield Remedy("evidence", "allow_poorer_form", {"ids": sorted(shorter)}, frees, enough)


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
        for other in (*leaning, *pool.mates(index)):
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
