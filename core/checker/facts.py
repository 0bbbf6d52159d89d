"""What must stand or fall together, worked out a second time for the independent checker.

Nothing is shared with the passes: a rule that is misread in a pass is then not misread here as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from loadmaster.core.checker.gates import Verdicts, judge
from loadmaster.core.contract import Candidate
from loadmaster.core.items import REQUIRED, order_key
from loadmaster.core.problem import Problem

Bond = tuple[str, str]
"""What holds candidates together: ``group`` or ``conflict``, and its name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The candidates with everything that the inputs alone say about them, by id.

    Attributes:
        known: The candidates, and what the gates say about each.
        fallen: What cannot stand with what it needs, and the rules that may be named for it.
        bonds: All members of each group, and the sides that gates and time left of each unresolved conflict.
        bonds_of: The bonds that a candidate is held by.
        units: What is admitted whole, for members of units of several.
        leads: The strongest member of those units: by band, relevance, layer, order, id.
        needs: Everything that the requirements of a candidate and of all its forms name.
        layer_rank: The place of each declared layer; no layer comes before all.
    """

    known: Verdicts
    fallen: Mapping[str, frozenset[str]]
    bonds: Mapping[Bond, tuple[str, ...]]
    bonds_of: Mapping[str, tuple[Bond, ...]]
    units: Mapping[str, tuple[str, ...]]
    leads: Mapping[str, str]
    needs: Mapping[str, tuple[str, ...]]
    layer_rank: Mapping[str | None, int]

    def candidate(self, identifier: str) -> Candidate:
        """Give a candidate."""
        return self.known.candidates[identifier]

    def unit(self, identifier: str) -> tuple[str, ...]:
        """Give everything that is admitted together with a candidate, itself included."""
        return self.units.get(identifier) or (identifier,)

    def lead(self, identifier: str) -> str:
        """Give a unit's strongest member."""
        return self.leads.get(identifier, identifier)

    def is_must(self, identifier: str) -> bool:
        """Whether a candidate's unit must be in the bundle."""
        return self.known.bands[self.lead(identifier)] <= REQUIRED

    def mates(self, identifier: str) -> tuple[str, ...]:
        """Give a candidate's neighbours in its unit; the first member is everyone's, and everyone its."""
        unit = self.units.get(identifier, ())
        return unit if unit and unit[0] == identifier else unit[:1]

    def resolve(self, name: str) -> str:
        """Give the candidate that a name means: for a merged copy the one that is left."""
        return self.known.stands_for.get(name, name)

    def requires(self, identifier: str) -> Iterator[str]:
        """Give what a candidate needs whatever its form; what a copy needs, the one that is left needs."""
        for candidate in self.known.everyone(identifier):
            for name in candidate.requires:
                yield self.resolve(name)

    def form_requires(self, identifier: str, form: str) -> Iterator[str]:
        """Give what one form needs beyond that."""
        for each in self.candidate(identifier).forms:
            if each.form == form:
                for name in each.requires:
                    yield self.resolve(name)

    def tag(self, identifier: str) -> str | None:
        """Give the unresolved conflict whose status a candidate's block must show."""
        names = [name for kind, name in self.bonds_of.get(identifier, ()) if kind == "conflict"]
        return min(names, default=None)


def derive_facts(problem: Problem) -> Facts:
    """Work out from a problem what is legal in any bundle of it."""
    known = judge(problem)
    bonds = _bonds(known)
    bonds_of: dict[str, tuple[Bond, ...]] = {}
    for bond, members in bonds.items():
        for member in members:
            bonds_of[member] = (*bonds_of.get(member, ()), bond)
    ranks: dict[str | None, int] = {layer: rank for rank, layer in enumerate(problem.policy.profiles.layers)}
    facts = Facts(known, {}, bonds, bonds_of, {}, {}, {}, {None: -1, **ranks})
    facts = replace(facts, needs=_needs(facts))
    fallen = _fall(facts)
    units = _units(bonds, bonds_of, known.refused.keys() | fallen.keys())
    return replace(facts, fallen=fallen, units=units, leads=dict(_leads(facts, units)))


def _bonds(known: Verdicts) -> dict[Bond, tuple[str, ...]]:
    """Collect groups with all members, and unresolved conflicts with the sides that gates and time left."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    sides: dict[str, dict[str, None]] = defaultdict(dict)
    unresolved = set()
    for identifier, candidate in known.candidates.items():
        if identifier in known.border or not (candidate.group or candidate.conflict):
            continue
        member = known.stands_for.get(identifier, identifier)
        if candidate.group:
            groups[candidate.group][member] = None
        if candidate.conflict and known.refused.get(member, "no_legal_form") == "no_legal_form":
            sides[candidate.conflict.id][member] = None
            if candidate.conflict.status == "unresolved":
                unresolved.add(candidate.conflict.id)
    bonds: dict[Bond, tuple[str, ...]] = {("group", name): tuple(members) for name, members in groups.items()}
    for name, members in sides.items():
        if name in unresolved and len(members) > 1:
            bonds["conflict", name] = tuple(members)
    return bonds


def _needs(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Collect what the requirements of candidates and of all their forms name."""
    needs = {}
    refused, copies = facts.known.refused, facts.known.copies
    for identifier, candidate in facts.known.candidates.items():
        if identifier not in refused:
            named = [name for form in candidate.forms for name in form.requires]
            if named or candidate.requires or identifier in copies:
                names = (*facts.requires(identifier), *map(facts.resolve, named))
                if names:
                    needs[identifier] = names
    return needs


def _fall(facts: Facts) -> dict[str, frozenset[str]]:
    """Find what cannot stand because of what it needs; everything else can, cycles included."""
    gone = set(facts.known.refused)
    broken = {bond for bond, members in facts.bonds.items() if not gone.isdisjoint(members)}
    leaning: dict[str, list[str]] = defaultdict(list)
    for identifier, names in facts.needs.items():
        for name in names:
            leaning[name].append(identifier)
    asked = [*facts.needs, *facts.bonds_of]
    fell = set()
    while asked:
        identifier = asked.pop()
        if identifier in gone or _stands(facts, identifier, gone, broken):
            continue
        gone.add(identifier)
        fell.add(identifier)
        asked.extend(leaning[identifier])
        for bond in facts.bonds_of.get(identifier, ()):
            if bond not in broken:
                broken.add(bond)
                asked.extend(facts.bonds[bond])
    # A bond may break by its member or its member by the bond: which was first has no meaning.
    return {
        identifier: frozenset(
            [
                "missing_dependency",
                *(kind for kind, name in facts.bonds_of.get(identifier, ()) if (kind, name) in broken),
            ]
        )
        for identifier in sorted(fell)
    }


def _stands(facts: Facts, identifier: str, gone: set[str], broken: set[Bond]) -> bool:
    if any(bond in broken for bond in facts.bonds_of.get(identifier, ())):
        return False
    there = facts.known.candidates
    if any(name in gone or name not in there for name in facts.requires(identifier)):
        return False
    candidate = there[identifier]
    return any(
        facts.known.is_legal(identifier, form)
        and not any(name in gone or name not in there for name in map(facts.resolve, form.requires))
        for form in candidate.forms
    )


def _units(
    bonds: Mapping[Bond, tuple[str, ...]], bonds_of: Mapping[str, tuple[Bond, ...]], gone: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    """Unite what is linked through groups and unresolved conflicts."""
    units: dict[str, tuple[str, ...]] = {}
    for start in bonds_of:
        if start in units or start in gone:
            continue
        found: set[str] = set()
        seen: set[Bond] = set()
        stack = [start]
        while stack:
            identifier = stack.pop()
            if identifier in found or identifier in gone:
                continue
            found.add(identifier)
            for bond in bonds_of[identifier]:
                if bond not in seen:
                    seen.add(bond)
                    stack.extend(bonds[bond])
        units.update(dict.fromkeys(found, tuple(sorted(found))))
    return units


def _leads(facts: Facts, units: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    def strength(identifier: str) -> tuple[Any, ...]:
        candidate = facts.candidate(identifier)
        rank = facts.layer_rank.get(candidate.layer, 0)
        band = facts.known.bands[identifier]
        return band, -candidate.relevance, rank, order_key(candidate.order), identifier

    for identifier, unit in units.items():
        if identifier == unit[0]:
            lead = min(unit, key=strength)
            yield from ((member, lead) for member in unit)
