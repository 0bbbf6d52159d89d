"""Pass 3, freshness: what holds at the request's clock. Stale never enters, however cheap it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from loadmaster.core.draft import Blocker, Decision, Draft
from loadmaster.core.instants import Instant
from loadmaster.core.items import Item, Validity

Args = dict[str, object]
Version = tuple[tuple[int, str], ...]


def check_freshness(draft: Draft) -> Draft:
    """Refuse what is superseded, expired, not yet valid, too old, stale, or of unknown freshness."""
    as_of = draft.problem.as_of
    items = draft.items
    live = [
        index
        for index, item in enumerate(items)
        if (item.validity is not None or item.version is not None) and index not in draft.out
    ]
    if not live:
        return draft
    superseded = dict(_superseded(draft, live, as_of))
    live = sorted({*live, *superseded})
    out = dict(draft.out)
    log = list(draft.log)
    blockers = list(draft.blockers)
    max_age = draft.problem.policy.max_age
    for index in live:
        item = items[index]
        rule: str | None
        if index in superseded:
            rule, args = "superseded", superseded[index]
        else:
            rule, args = _verdict(item.validity, as_of, max_age.get(item.layer or ""))
        if rule is None:
            continue
        out[index] = Decision("freshness", item.id, "rejected", rule, args)
        log.append(out[index])
        if draft.is_must(index):
            code = "unknown_freshness" if rule == "unknown" else "source_unavailable"
            blockers.append(Blocker(code, item.id, rule))
    return replace(draft, out=out, log=tuple(log), blockers=tuple(blockers))


def _verdict(
    validity: Validity | None, as_of: Instant | None, max_age: int | None
) -> tuple[str | None, Args]:
    """Give the first rule that refuses, in the order of the specification."""
    if validity is None:
        return None, {}
    if as_of is not None:
        if validity.valid_until is not None and validity.valid_until <= as_of:
            return "expired", {}
        if validity.valid_from is not None and validity.valid_from > as_of:
            return "not_yet_valid", {}
        if max_age is not None and validity.observed_at is not None:
            seconds, fraction = validity.observed_at
            if (seconds + max_age, fraction) < as_of:
                return "max_age", {"max_age_seconds": max_age}
    if validity.state == "stale":
        return "stale", {}
    if validity.state == "unknown" and validity.required:
        return "unknown", {}
    return None, {}


def _superseded(draft: Draft, live: list[int], as_of: Instant | None) -> Iterator[tuple[int, Args]]:
    """Find what an eligible candidate of at least its authority replaces: by name, or as a newer version."""
    latest: dict[str, dict[int, tuple[Version, str]]] = defaultdict(dict)
    for index in live:
        item = draft.items[index]
        if not _has_begun(item, as_of):
            continue
        for identifier in item.validity.supersedes if item.validity else ():
            target = draft.position.get(identifier)
            if target is None or target == index or target in draft.out:
                continue
            if draft.items[target].authority <= item.authority:
                yield target, {"by": item.id}
        if item.version is not None and item.source is not None:
            of_source = latest[item.source[0]]
            mine = item.version, item.source[1] or ""
            of_source[item.authority] = max(mine, of_source.get(item.authority, mine))
    for index in live:
        item = draft.items[index]
        if item.version is None or item.source is None:
            continue
        better = [
            newest
            for authority, newest in latest[item.source[0]].items()
            if authority >= item.authority and newest[0] > item.version
        ]
        if better:
            yield index, {"by_version": max(better)[1]}


def _has_begun(item: Item, as_of: Instant | None) -> bool:
    start = item.validity.valid_from if item.validity else None
    return start is None or (as_of is not None and start <= as_of)
