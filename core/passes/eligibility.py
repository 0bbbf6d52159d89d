"""Pass 2, eligibility: the gates of legality, in declared order. Relevance is not read here.

Scope and authority come first, and what they refuse is absent: a member of no group and no
conflict, merged with nothing, superseding nothing. So nobody outside can knock a legal candidate
out. Copies of one record then become one, so that a flag on one copy holds for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from loadmaster.core.contract import merge_names
from loadmaster.core.draft import Blocker, Decision, Draft
from loadmaster.core.items import (
    EXCLUDED,
    LEAST_AUTHORITY,
    REQUIRED,
    Item,
    Validity,
    refer_apart,
    scope_pairs,
)
from loadmaster.core.problem import Problem

_STATES = ("current", "unknown", "stale")


def check_eligibility(draft: Draft) -> Draft:
    """Refuse what this request may not see, by scope, authority, labels, retention or band."""
    problem = draft.problem
    items = list(draft.items)
    bands = list(draft.bands)
    out = dict(draft.out)
    log: list[Decision] = []
    absent: set[int] = set()
    watched = _watched(problem, items)
    for index, decision in _refused_at_the_border(problem, items, watched):
        log.append(decision)
        if out.setdefault(index, decision) is decision:
            absent.add(index)
    position = dict(draft.position)
    wanted = {position[identifier] for identifier in problem.request.requires if identifier in position}
    wanted.update(index for index, band in enumerate(bands) if band <= REQUIRED)
    for index, survivor in _copies(items, watched, absent, problem.meter.declared):
        items[survivor] = _merge(items[survivor], items[index])
        bands[survivor] = (
            EXCLUDED if EXCLUDED in (bands[survivor], bands[index]) else min(bands[survivor], bands[index])
        )
        position[items[index].id] = survivor
        if index in wanted:
            wanted.add(survivor)
        absent.add(index)
        out[index] = Decision(
            "eligibility", items[index].id, "rejected", "merged", {"into": items[survivor].id}
        )
        log.append(out[index])
    for index, decision in _refused_inside(
        problem, items, bands, [index for index in watched if index not in absent]
    ):
        log.append(decision)
        out.setdefault(index, decision)
    refer_apart(items, [index for index in watched if index not in absent])
    blockers = [
        Blocker("source_unavailable", items[index].id, decision.rule)
        for index, decision in sorted(out.items())
        if decision.rule != "merged" and index in wanted
    ]
    return replace(
        draft,
        items=items,
        bands=bands,
        position=position,
        out=out,
        absent=frozenset(absent),
        blockers=draft.blockers + tuple(blockers),
        log=draft.log + tuple(log),
    )


def _watched(problem: Problem, items: list[Item]) -> Sequence[int]:
    """Give the candidates that a gate has anything to look at."""
    if problem.policy.profile.scope_required:
        return range(len(items))
    return [index for index, item in enumerate(items) if not item.plain]


def _refused_at_the_border(
    problem: Problem, items: list[Item], watched: Sequence[int]
) -> Iterator[tuple[int, Decision]]:
    scope = dict(scope_pairs(problem.request.scope))
    transfers = problem.policy.transfers
    keys = problem.policy.profile.scope_required
    for index in watched:
        item = items[index]
        if item.scope:
            wrong = [
                key
                for key, value in item.scope
                if scope.get(key) != value and (key, value, scope.get(key)) not in transfers
            ]
            if wrong:
                yield index, Decision("eligibility", item.id, "rejected", "scope", {"keys": wrong})
        if keys and item.layer is not None:
            missing = sorted(set(keys) - {key for key, _ in item.scope})
            if missing:
                yield index, Decision("eligibility", item.id, "rejected", "scope", {"missing": missing})
        if item.authority < LEAST_AUTHORITY[item.section]:
            args = {"section": item.section}
            yield index, Decision("eligibility", item.id, "rejected", "authority", args)


def _refused_inside(
    problem: Problem, items: list[Item], bands: list[int], present: Sequence[int]
) -> Iterator[tuple[int, Decision]]:
    clearances = frozenset(problem.request.clearances)
    as_of = problem.as_of
    for index in present:
        item = items[index]
        if item.labels and not clearances.issuperset(item.labels):
            lacking = sorted(set(item.labels) - clearances)
            yield index, Decision("eligibility", item.id, "rejected", "labels", {"labels": lacking})
        validity = item.validity
        if (
            validity is not None
            and validity.expires_at is not None
            and as_of is not None
            and validity.expires_at <= as_of
        ):
            yield index, Decision("eligibility", item.id, "rejected", "retention")
        if bands[index] == EXCLUDED:
            yield index, Decision("eligibility", item.id, "rejected", "excluded")


def _copies(
    items: list[Item], watched: Sequence[int], absent: set[int], declared: bool
) -> Iterator[tuple[int, int]]:
    """Find later copies of one record, each with the first; a record without a source is nobody's copy."""
    by_source: dict[object, list[int]] = defaultdict(list)
    for index in watched:
        if items[index].source is not None and index not in absent:
            by_source[items[index].source].append(index)
    first: dict[object, int] = {}
    for index in sorted(index for group in by_source.values() if len(group) > 1 for index in group):
        item = items[index]
        forms = tuple(
            (form.name, form.kind, form.body, form.requires, form.declared if declared else None)
            for form in item.forms
        )
        survivor = first.setdefault((item.source, item.authority, item.scope, forms), index)
        if survivor != index:
            yield index, survivor


def _merge(kept: Item, copy: Item) -> Item:
    """Give the record that stands for both: it is bound by whatever binds either."""
    return replace(
        kept,
        legal=tuple(form for form in kept.legal if form.name in {other.name for other in copy.legal}),
        labels=merge_names(kept.labels, copy.labels),
        requires=merge_names(kept.requires, copy.requires),
        needs_closure=kept.needs_closure or copy.needs_closure,
        group=kept.group or copy.group,
        conflict=kept.conflict or copy.conflict,
        validity=_stricter(kept.validity, copy.validity),
    )


def _stricter(kept: Validity | None, copy: Validity | None) -> Validity | None:
    if kept is None or copy is None:
        return kept or copy
    return Validity(
        observed_at=min((time for time in (kept.observed_at, copy.observed_at) if time), default=None),
        valid_from=max((time for time in (kept.valid_from, copy.valid_from) if time), default=None),
        valid_until=min((time for time in (kept.valid_until, copy.valid_until) if time), default=None),
        expires_at=min((time for time in (kept.expires_at, copy.expires_at) if time), default=None),
        state=max(kept.state, copy.state, key=_STATES.index),
        required=kept.required or copy.required,
        supersedes=merge_names(kept.supersedes, copy.supersedes),
    )
