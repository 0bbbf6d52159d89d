"""Pass 5, closure: what must accompany a choice for it to be usable and legal.

Legality is the greatest fixpoint: everything starts legal, and whatever needs something illegal
falls, so cycles are allowed. Then groups and unresolved conflicts make units of several members,
and every legal form gets its price.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loadmaster.core.draft import Blocker, Decision, Draft
from loadmaster.core.items import Item, ItemForm
from loadmaster.core.pool import Pool, leads_of
from loadmaster.core.pricing import envelopes, price

_LINKS = 50
"""Links after which a chain may end at another must-have, and sides of a conflict that each side names."""


@dataclass(slots=True)
class _Bond:
    """Members that fall together, and whether they have."""

    rule: str
    members: Sequence[int]
    broken: bool = False


@dataclass(slots=True)
class _Web:
    """What leans on what, while candidates fall."""

    legal: list[tuple[ItemForm, ...]]
    out: dict[int, Decision]
    leaning: dict[int, list[tuple[int, int | None]]] = field(default_factory=lambda: defaultdict(list))
    mates: dict[int, list[_Bond]] = field(default_factory=lambda: defaultdict(list))
    cause: dict[int, str] = field(default_factory=dict)


def close(draft: Draft) -> Draft:
    """Find what is legal together, and price it."""
    items = draft.items
    legal = [item.legal for item in items]
    for index in draft.out:
        legal[index] = ()
    web = _Web(legal, dict(draft.out))
    related = [index for index, item in enumerate(items) if item.needs_closure and index not in draft.absent]
    log = list(draft.log)
    # What a merged copy was a member of, the record that stands for it is a member of.
    named = [(items[index], index) for index in related]
    named += [
        (items[index], draft.position[items[index].id])
        for index in sorted(draft.absent)
        if draft.out[index].rule == "merged" and items[index].needs_closure
    ]
    groups = _sets(named, lambda item: item.group)
    conflicts = _sets(named, lambda item: item.conflict[0] if item.conflict else None)
    unresolved = {(item.conflict[0], index) for item, index in named if item.conflict and item.conflict[1]}
    sides = {}
    for name, members in sorted(conflicts.items()):
        there = tuple(
            index
            for index in members
            if draft.out.get(index) is None or draft.out[index].step == "alternatives"
        )
        if len(there) < 2:
            if there and len(members) > 1:
                log.append(
                    Decision("closure", items[there[0]].id, "kept", "conflict_dissolved", {"conflict": name})
                )
        elif any((name, index) in unresolved for index in there):
            sides[name] = there
    log.extend(_fall(draft, web, related, groups, sides))
    blockers = list(draft.blockers)
    blockers.extend(_blockers(draft, web, sides))
    pool = _pool(draft, web, related, groups, sides)
    return replace(draft, out=web.out, log=tuple(log), blockers=tuple(blockers), pool=pool)


def _sets(named: Sequence[tuple[Item, int]], key: Callable[[Item], str | None]) -> dict[str, list[int]]:
    sets: dict[str, set[int]] = defaultdict(set)
    for item, index in named:
        name = key(item)
        if name:
            sets[name].add(index)
    return {name: sorted(members) for name, members in sets.items()}


def _fall(
    draft: Draft,
    web: _Web,
    related: list[int],
    groups: Mapping[str, list[int]],
    sides: Mapping[str, tuple[int, ...]],
) -> Iterator[Decision]:
    """Let everything fall that cannot stand, each with the rule and what it leaned on."""
    items = draft.items
    for rule, sets in (("group", groups), ("conflict", sides)):
        for _, members in sorted(sets.items()):
            bond = _Bond(rule, members)
            for index in members:
                web.mates[index].append(bond)
    falling: deque[tuple[int, str, str]] = deque()
    for index in related:
        for identifier in items[index].requires:
            target = draft.find(identifier)
            if target is None:
                falling.append((index, "missing_dependency", identifier))
            else:
                web.leaning[target].append((index, None))
        for form in web.legal[index]:
            for identifier in form.requires:
                target = draft.find(identifier)
                if target is None:
                    _drop_form(web, falling, index, form.rank, identifier)
                else:
                    web.leaning[target].append((index, form.rank))
    gone = deque(sorted(set(web.leaning) | set(web.mates)) if web.leaning or web.mates else ())
    gone = deque(index for index in gone if index in web.out)
    while gone or falling:
        while gone:
            index = gone.popleft()
            for dependent, rank in web.leaning.get(index, ()):
                if rank is None:
                    falling.append((dependent, "missing_dependency", items[index].id))
                else:
                    _drop_form(web, falling, dependent, rank, items[index].id)
            for bond in web.mates.get(index, ()):
                if not bond.broken:
                    bond.broken = True
                    falling.extend((mate, bond.rule, items[index].id) for mate in bond.members)
        if falling:
            index, rule, cause = falling.popleft()
            if index not in web.out:
                decision = Decision("closure", items[index].id, "rejected", rule, {"cause": cause})
                web.out[index] = decision
                web.legal[index] = ()
                web.cause[index] = cause
                gone.append(index)
                yield decision


def _drop_form(web: _Web, falling: deque[tuple[int, str, str]], index: int, rank: int, cause: str) -> None:
    left = tuple(form for form in web.legal[index] if form.rank != rank)
    if not left and web.legal[index]:
        falling.append((index, "missing_dependency", cause))
    web.legal[index] = left


def _blockers(draft: Draft, web: _Web, sides: Mapping[str, tuple[int, ...]]) -> Iterator[Blocker]:
    for index in sorted(web.cause):
        if draft.is_must(index):
            chain = [draft.items[index].id]
            at: int | None = index
            while at is not None and at in web.cause:
                chain.append(web.cause[at])
                at = draft.position.get(web.cause[at])
                if len(chain) > _LINKS and at is not None and at in web.cause and draft.is_must(at):
                    break  # a must-have itself, whose own chain goes on
            yield Blocker("unsatisfied_dependency", draft.items[index].id, web.out[index].rule, tuple(chain))
    for name, members in sorted(sides.items()):
        governing = [
            index
            for index in members
            if index not in web.out and draft.is_must(index) and draft.items[index].section == "governing"
        ]
        if len(governing) > 1:
            ids = [draft.items[index].id for index in governing]
            for identifier in ids:
                parties = (identifier, *[other for other in ids[:_LINKS] if other != identifier])
                yield Blocker("unresolved_required_conflict", identifier, f"conflict:{name}", parties)


def _pool(
    draft: Draft,
    web: _Web,
    related: list[int],
    groups: Mapping[str, list[int]],
    sides: Mapping[str, tuple[int, ...]],
) -> Pool:
    items = draft.items
    live = [index for index, forms in enumerate(web.legal) if forms]
    members = _units(web, groups, sides)
    unit_bands = draft.bands
    if members:
        unit_bands = list(draft.bands)
        for index, unit in members.items():
            first = unit[0] == index
            unit_bands[index] = min(draft.bands[member] for member in unit) if first else unit_bands[unit[0]]
    tags = {
        index: name
        for name, there in sorted(sides.items(), reverse=True)
        for index in there
        if index not in web.out
    }
    needs: dict[int, tuple[int, ...]] = {}
    form_needs: dict[tuple[int, int], tuple[int, ...]] = {}
    for index in related:
        forms = web.legal[index]
        if not forms:
            continue
        alone = forms[0].requires if len(forms) == 1 else ()
        required = _resolve(draft, items[index].requires + alone, index)
        if required:
            needs[index] = required
        for place, form in enumerate(forms if len(forms) > 1 else ()):
            required = _resolve(draft, form.requires, index)
            if required:
                form_needs[index, place] = required
    chat = any(form.kind != "text" for forms in web.legal for form in forms)
    pool = Pool(
        items=items,
        live=live,
        legal=web.legal,
        cost=price(draft.problem, items, web.legal, tags),
        needs=needs,
        form_needs=form_needs,
        members=members,
        leads=leads_of(items, draft.bands, draft.problem.policy.layer_rank, members),
        tied=_tied(needs, form_needs, members),
        tags=tags,
        bands=draft.bands,
        unit_bands=unit_bands,
        layer_rank=draft.problem.policy.layer_rank,
        priming=draft.problem.meter.priming if chat else 0,
        chat=chat,
    )
    return envelopes(draft.problem, pool) if chat else pool


def _tied(
    needs: Mapping[int, tuple[int, ...]],
    form_needs: Mapping[tuple[int, int], tuple[int, ...]],
    members: Mapping[int, tuple[int, ...]],
) -> frozenset[int]:
    tied = {*needs, *members, *(index for index, _ in form_needs)}
    tied.update(*needs.values(), *form_needs.values())
    return frozenset(tied)


def _resolve(draft: Draft, identifiers: tuple[str, ...], index: int) -> tuple[int, ...]:
    return tuple(sorted({draft.position[identifier] for identifier in identifiers} - {index}))


def _units(
    web: _Web, groups: Mapping[str, list[int]], sides: Mapping[str, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Unite the members of groups and conflicts that are linked through one another."""
    parent: dict[int, int] = {}

    def root(index: int) -> int:
        while parent.setdefault(index, index) != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for sets in (groups, sides):
        for members in sets.values():
            standing = [index for index in members if index not in web.out]
            for index in standing[1:]:
                first, other = sorted((root(standing[0]), root(index)))
                parent[other] = first
    units: dict[int, list[int]] = defaultdict(list)
    for index in sorted(parent):
        units[root(index)].append(index)
    whole = [tuple(unit) for unit in units.values()]
    return {index: unit for unit in whole for index in unit}
