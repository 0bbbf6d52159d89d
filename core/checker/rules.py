"""The checker's rules about what is in a bundle, in which form, why, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from loadmaster.core.canonical import canonical_json
from loadmaster.core.checker.case import Case, Violation
from loadmaster.core.checker.gates import data_of, section_of, stability_of
from loadmaster.core.items import (
    BANDS,
    FORMS,
    REQUIRED,
    SECTIONS,
    STABILITIES,
    ItemForm,
    longer_reference,
    order_key,
    short_reference,
    tool_name,
)
from loadmaster.core.result import Block

CHOICES = frozenset(
    {
        "dependency_only",
        "cap",
        "min_relevance",
        "net_value",
        "adds_nothing",
        "no_room",
        "over_after_rendering",
        "search_limit",
    }
)
"""The rules by which a legal candidate may be left out; which of them holds, admission alone can say."""


def check_identity(case: Case) -> Iterator[Violation]:
    """At most one form of a candidate is active, and nothing is in that was not given."""
    counts = Counter(block.id for block in case.bundle.blocks)
    for identifier, count in counts.items():
        if identifier not in case.facts.known.candidates:
            yield Violation("foreign", identifier, "is in the bundle, but no candidate has this id")
        elif count > 1:
            yield Violation("duplicate", identifier, f"stands {count} times in the bundle")
    shown = Counter(block.ref for block in case.blocks.values())
    for identifier, block in case.blocks.items():
        if shown[block.ref] > 1:
            yield Violation("reference", identifier, "shows the same reference as another block")


def check_must_haves(case: Case) -> Iterator[Violation]:
    """What is mandatory, required, or required by the request is in, or there is no bundle."""
    wanted = dict.fromkeys(case.problem.request.requires, "is required by the request, but not in the bundle")
    for identifier, candidate in case.facts.known.candidates.items():
        if candidate.band in ("mandatory", "required"):
            wanted.setdefault(identifier, f"is {candidate.band}, but not in the bundle")
    for identifier, message in wanted.items():
        if case.facts.resolve(identifier) not in case.blocks:
            yield Violation("must_have", identifier, message)


def check_gates(case: Case) -> Iterator[Violation]:
    """No gate and no rule of freshness refuses what is in."""
    for identifier in case.blocks:
        rule = case.facts.known.refused.get(identifier)
        if rule is not None and rule != "no_legal_form":
            yield Violation(rule, identifier, f"is in the bundle, although the rule {rule} refuses it")


def check_forms(case: Case) -> Iterator[Violation]:
    """A block is the exact rendering of one given form within its candidate's limits."""
    items = {item.id: item for item in case.problem.items}
    for block in case.blocks.values():
        candidate, form = case.form(block)
        if form is None:
            yield Violation("form", block.id, f"is in as {block.form}, a form that it does not have")
            continue
        if not case.facts.known.is_legal(block.id, form):
            yield Violation("form", block.id, f"is in as {block.form}, which its limits exclude")
        kind, value = data_of(form)
        if kind != "text":
            if block.text != canonical_json(value) or _plain(block.value) != value:
                yield Violation("text", block.id, f"is not the {kind} of its form {block.form}")
            continue
        item = items[block.id]
        if (item.ref, item.section) != (block.ref, section_of(candidate)):
            item = replace(item, ref=block.ref, section=section_of(candidate))
        shown = ItemForm(
            form.form, FORMS.index(form.form), kind, form.text or "", None, form.tokens, form.requires, b""
        )
        tag = case.facts.tag(block.id)
        if block.text != case.problem.renderer.block(item, shown, tag):
            if tag is not None and block.text == case.problem.renderer.block(item, shown, None):
                yield Violation("conflict", block.id, "does not show that its conflict is unresolved")
            else:
                yield Violation("text", block.id, f"is not the rendering of its form {block.form}")


def _plain(value: Any) -> Any:
    return dict(value) if value is not None else None


def check_governance(case: Case) -> Iterator[Violation]:
    """A block's section, layer, band, stability, kind, reference and metadata are its candidate's."""
    for block in case.blocks.values():
        candidate = case.facts.candidate(block.id)
        effective = {
            "section": section_of(candidate),
            "layer": candidate.layer,
            "band": BANDS[case.facts.known.bands[block.id]],
            "stability": stability_of(candidate),
            "kind": case.kind(block),
        }
        for name, value in effective.items():
            if getattr(block, name) != value:
                yield Violation("governance", block.id, f"has another {name} than its candidate")
        if dict(block.metadata) != candidate.metadata:
            yield Violation("governance", block.id, "has other metadata than its candidate")
        if block.ref != short_reference(block.id):
            # Shortened references that clash among all candidates are lengthened until they differ.
            length = len(block.ref) - 1
            if short_reference(block.id) == block.id or block.ref != longer_reference(block.id, length):
                yield Violation("reference", block.id, "shows a reference that is not made from its id")


def check_closure(case: Case) -> Iterator[Violation]:
    """Whatever is in has everything that it needs, in the form in which it is in."""
    for identifier, block in case.blocks.items():
        for name in dict.fromkeys(case.facts.requires(identifier)):
            if name not in case.blocks:
                yield Violation("closure", identifier, f"requires {name}, which is not in the bundle")
        for name in dict.fromkeys(case.facts.form_requires(identifier, block.form)):
            if name not in case.blocks:
                yield Violation("closure", identifier, f"requires {name} as {block.form}, which is not in")


def check_bonds(case: Case) -> Iterator[Violation]:
    """Groups, and both sides of an unresolved conflict, are in whole; governing must-haves never disagree."""
    facts = case.facts
    for (kind, name), members in facts.bonds.items():
        there = [member for member in members if member in case.blocks]
        if there and len(there) < len(members):
            for member in members:
                if member not in case.blocks:
                    yield Violation(kind, member, f"is not in, but other members of the {kind} {name} are")
        if kind == "conflict":
            ruling = [
                member
                for member in there
                if facts.known.bands[member] <= REQUIRED
                and section_of(facts.candidate(member)) == "governing"
            ]
            if len(ruling) > 1:
                yield Violation(
                    "conflict", ruling[0], f"must govern, and so must {ruling[1]}, in conflict {name}"
                )


def check_reasons(case: Case) -> Iterator[Violation]:
    """Everything is in for a reason: as a must-have, on its own merit, or because something in needs it.

    On its own merit comes only what has a layer that the profile names, and what is relevant enough.
    """
    profile = case.problem.policy.profile
    roots = list(case.musts)
    for identifier in case.blocks:
        candidate = case.facts.candidate(case.facts.lead(identifier))
        if candidate.layer in profile.layers and candidate.relevance >= profile.min_relevance:
            if candidate.relevance > 0:
                roots.append(identifier)
    reached = case.reach(roots)
    for identifier in case.blocks:
        if identifier not in reached:
            candidate = case.facts.candidate(case.facts.lead(identifier))
            if candidate.layer is None:
                yield Violation(
                    "orphan", identifier, "has no layer, is no must-have, and nothing in needs it"
                )
            elif candidate.layer not in profile.layers:
                message = f"comes from layer {candidate.layer}, which the profile does not name"
                yield Violation("layer", identifier, message)
            else:
                yield Violation("relevance", identifier, "is less relevant than whatever may enter")


def check_omissions(case: Case) -> Iterator[Violation]:
    """Blocks and omissions together are the candidates; what is refused is so by the rule that refuses it."""
    facts, known = case.facts, case.facts.known
    counts = Counter(omission.id for omission in case.bundle.omitted)
    for identifier in known.candidates:
        if (identifier in case.blocks) + counts[identifier] != 1:
            yield Violation("omission", identifier, "is not exactly one of in the bundle and omitted")
    for omission in case.bundle.omitted:
        if omission.id not in known.candidates:
            yield Violation("omission", omission.id, "is omitted, but no candidate has this id")
            continue
        if omission.id in known.refused:
            right = {known.refused[omission.id]}
        else:
            right = set(facts.fallen.get(omission.id, CHOICES))
        if omission.rule not in right:
            names = " or ".join(sorted(right))
            yield Violation("omission", omission.id, f"is left out by {omission.rule}, not by {names}")


def check_order(case: Case) -> Iterator[Violation]:
    """Text by section, layer and place, units together; then messages by order; then tools by name."""
    by_kind: dict[str, list[Block]] = {"text": [], "message": [], "tool": []}
    for block in case.blocks.values():
        by_kind[case.kind(block)].append(block)
    right = [
        *_in_text_order(case, by_kind["text"]),
        *sorted((block.id for block in by_kind["message"]), key=lambda name: _place(case, name)),
        *sorted((block.id for block in by_kind["tool"]), key=lambda name: (_tool(case, name), name)),
    ]
    for there, wanted in zip(case.blocks, right, strict=True):
        if there != wanted:
            yield Violation("order", there, f"stands where {wanted} belongs")
            return


def _place(case: Case, identifier: str) -> tuple[Any, ...]:
    return order_key(case.facts.candidate(identifier).order), identifier


def _tool(case: Case, identifier: str) -> str:
    form = case.form(case.blocks[identifier])[1]
    return tool_name((form and form.tool) or {})


def _in_text_order(case: Case, blocks: Sequence[Block]) -> list[str]:
    """Group text by its section, then units by layer and place of their least member, then members alike."""
    cache = case.problem.policy.profile.layout == "cache"
    shelves: dict[tuple[int, ...], dict[tuple[str, ...], list[str]]] = {}
    for block in blocks:
        candidate = case.facts.candidate(block.id)
        section = SECTIONS.index(section_of(candidate))
        # Under `cache`, what changes least comes first among everything that is not governing.
        stability = STABILITIES.index(stability_of(candidate)) if cache and section else 0
        place = (min(section, 1), stability, section)
        shelves.setdefault(place, {}).setdefault(case.facts.unit(block.id), []).append(block.id)
    ids = []
    for shelf in sorted(shelves):
        units = [sorted(unit, key=lambda name: _layered(case, name)) for unit in shelves[shelf].values()]
        for unit in sorted(units, key=lambda unit: _layered(case, unit[0])):
            ids.extend(unit)
    return ids


def _layered(case: Case, identifier: str) -> tuple[Any, ...]:
    layer = case.facts.candidate(identifier).layer
    return case.facts.layer_rank.get(layer, 0), *_place(case, identifier)
