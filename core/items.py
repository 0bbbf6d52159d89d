"""Candidates as the passes see them: lean records with everything precomputed that depends on one candidate.

An `Item` is made once for each candidate and reused by every compile, so that a warm compile does
no parsing, no hashing of bodies and no date arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from loadmaster.core.canonical import canonical_json
from loadmaster.core.instants import Instant, parse_instant

if TYPE_CHECKING:
    from loadmaster.core.contract import Candidate, Freshness

FORMS = ("full", "dense", "compact", "anchor", "reference")
BANDS = ("mandatory", "required", "supported", "discretionary", "excluded")
SECTIONS = ("governing", "task", "state", "evidence", "capability")
STABILITIES = ("static", "tenant", "session", "append", "turn", "volatile")
AUTHORITY = {"retrieved": 0, "tool": 1, "assistant": 2, "user": 3, "developer": 4, "system": 5}

LEAST_AUTHORITY = {
    "governing": AUTHORITY["developer"],
    "capability": AUTHORITY["developer"],
    "task": AUTHORITY["user"],
    "state": AUTHORITY["retrieved"],
    "evidence": AUTHORITY["retrieved"],
}
"""The least authority with which a candidate may speak from a section."""

MANDATORY, REQUIRED, SUPPORTED, DISCRETIONARY, EXCLUDED = range(5)

_FORM_RANK = {name: rank for rank, name in enumerate(FORMS)}
_BAND_RANK = {name: rank for rank, name in enumerate(BANDS)}
_LAYER_SECTION = {"session": "state"}
_LAYER_STABILITY = {"session": "session", "conversation": "append", "tools": "append", "memory": "session"}
_SECTION_STABILITY = {"governing": "static", "task": "turn", "capability": "static", "state": "session"}

OrderKey = tuple[tuple[int, int, str], ...]
_VERSION = re.compile(r"\d{1,40}(?:\.\d{1,40}){0,20}", re.ASCII)
_READABLE = re.compile(r"[A-Za-z][A-Za-z0-9_.:/#@+-]{0,31}", re.ASCII)
_RANDOM = re.compile(
    r"[0-9a-fA-F]{10,}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|[A-Za-z]*[0-9]+[A-Za-z]+[0-9]+[A-Za-z0-9]{6,}"
)


class ItemForm(NamedTuple):
    """One representation: ``rank`` 0 is the richest; ``digest`` identifies what its block shows."""

    name: str
    rank: int
    kind: str
    body: str
    value: Mapping[str, Any] | None
    declared: int | None
    requires: tuple[str, ...]
    digest: bytes


class Validity(NamedTuple):
    """A freshness block with its times as instants."""

    observed_at: Instant | None
    valid_from: Instant | None
    valid_until: Instant | None
    expires_at: Instant | None
    state: str
    required: bool
    supersedes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate inside the compiler.

    Bands and forms are ranks; relevance is ``digits / 10**places``; ``legal`` are the forms within
    the candidate's own limits, richest first. ``plain`` says that no gate has anything to look at,
    ``needs_closure`` that the candidate is related to others.
    """

    id: str
    ref: str
    layer: str | None
    section: str
    band: int
    relevance: tuple[int, int]
    forms: tuple[ItemForm, ...]
    legal: tuple[ItemForm, ...]
    requires: tuple[str, ...]
    needs_closure: bool
    plain: bool
    group: str | None
    conflict: tuple[str, bool] | None
    scope: tuple[tuple[str, str], ...]
    authority: int
    source: tuple[str, str | None] | None
    provenance: str | None
    version: tuple[tuple[int, str], ...] | None
    validity: Validity | None
    labels: tuple[str, ...]
    covers: tuple[str, ...]
    order: OrderKey
    stability: int
    candidate: Candidate


def tool_name(tool: Mapping[str, Any]) -> str:
    """Give a tool schema's name, in OpenAI's nested or the flat form; empty if it has none."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else ""


def short_reference(identifier: str) -> str:
    """Give the id that a block shows: the candidate's own if short and readable, else a digest's start.

    A pure function of the id, so a block's bytes do not depend on its neighbours; a clash of two
    references in one pool is settled by `longer_reference`.
    """
    if _READABLE.fullmatch(identifier) and not _RANDOM.search(identifier):
        return identifier
    return longer_reference(identifier, 8)


def longer_reference(identifier: str, length: int) -> str:
    """Give a reference of ``length`` hexadecimal digits."""
    return "~" + sha256(identifier.encode()).hexdigest()[:length]


def scope_pairs(scope: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Give a scope as sorted pairs; values are canonical JSON, so 1, "1" and true differ."""
    return tuple((key, canonical_json(value)) for key, value in sorted(scope.items()))


def order_key(order: tuple[str | int, ...]) -> OrderKey:
    """Give the sort key of an ``order``: integers before strings, strings by code point, a prefix first."""
    return tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in order)


def dotted_version(version: str | None) -> tuple[tuple[int, str], ...] | None:
    """Give a sort key if the version is dotted integers, else None: other strings never order.

    >>> dotted_version("1.10") > dotted_version("1.9")
    True
    >>> dotted_version("2026-draft") is None
    True
    """
    if version is None or not _VERSION.fullmatch(version):
        return None
    numbers = [part.lstrip("0") for part in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple((len(number), number) for number in numbers)


def _forms_of(candidate: Candidate, section: str, ref: str) -> tuple[ItemForm, ...]:
    forms = []
    for form in candidate.forms:
        value = form.message if form.message is not None else form.tool
        kind = "text" if value is None else "message" if form.message is not None else "tool"
        body = form.text or "" if value is None else canonical_json(value)
        rank = _FORM_RANK[form.form]
        shown = f"{kind}\0{section}\0{ref}\0{rank}\0" if kind == "text" else f"{kind}\0"
        digest = sha256((shown + body).encode()).digest()
        forms.append(ItemForm(form.form, rank, kind, body, value, form.tokens, form.requires, digest))
    return tuple(sorted(forms, key=lambda form: form.rank))


def _validity_of(freshness: Freshness) -> Validity:
    def instant(time: str | None) -> Instant | None:
        return parse_instant(time) if time else None

    return Validity(
        observed_at=instant(freshness.observed_at),
        valid_from=instant(freshness.valid_from),
        valid_until=instant(freshness.valid_until),
        expires_at=instant(freshness.expires_at),
        state=freshness.state,
        required=freshness.required,
        supersedes=freshness.supersedes,
    )


def _within_limits(candidate: Candidate, forms: tuple[ItemForm, ...]) -> tuple[ItemForm, ...]:
    """Give the forms between ``min_form`` and ``max_form``; only full where ``exact``."""
    richest = _FORM_RANK[candidate.max_form] if candidate.max_form else 0
    poorest = _FORM_RANK[candidate.min_form] if candidate.min_form else len(FORMS) - 1
    if candidate.exact:
        poorest = 0
    return tuple(form for form in forms if richest <= form.rank <= poorest)


def item_of(candidate: Candidate) -> Item:
    """Make the compiler's record of a candidate."""
    section = candidate.section or _LAYER_SECTION.get(candidate.layer or "", "evidence")
    stability = candidate.stability or (
        _SECTION_STABILITY.get(section, "turn")
        if candidate.layer is None
        else _LAYER_STABILITY.get(candidate.layer, "turn")
    )
    ref = short_reference(candidate.id)
    forms = _forms_of(candidate, section, ref)
    _, digits, exponent = candidate.relevance.as_tuple()
    places = max(0, -int(exponent))
    relevance = (int("".join(map(str, digits))) * 10 ** max(0, int(exponent)), places)
    source, freshness, conflict = candidate.source, candidate.freshness, candidate.conflict
    return Item(
        id=candidate.id,
        ref=ref,
        layer=candidate.layer,
        section=section,
        band=_BAND_RANK[candidate.band],
        relevance=relevance,
        forms=forms,
        legal=_within_limits(candidate, forms),
        requires=candidate.requires,
        needs_closure=bool(
            candidate.requires
            or candidate.group
            or candidate.conflict
            or any(form.requires for form in forms)
        ),
        plain=not (candidate.scope or candidate.labels or source or freshness or ref[0] == "~")
        and candidate.band != "excluded"
        and AUTHORITY[candidate.authority] >= LEAST_AUTHORITY[section],
        group=candidate.group,
        conflict=(conflict.id, conflict.status == "unresolved") if conflict else None,
        scope=scope_pairs(candidate.scope),
        authority=AUTHORITY[candidate.authority],
        source=(source.id, source.version) if source else None,
        provenance=source.provenance if source else None,
        version=dotted_version(source.version) if source else None,
        validity=_validity_of(freshness) if freshness else None,
        labels=candidate.labels,
        covers=candidate.covers,
        order=order_key(candidate.order),
        stability=STABILITIES.index(stability),
        candidate=candidate,
    )


def refer_apart(items: list[Item], present: Sequence[int]) -> None:
    """Lengthen shortened references that clash, so that each names one candidate of those present."""
    length = 8
    while True:
        seen: set[str] = set()
        clashing = []
        for index in present:
            item = items[index]
            if item.ref[0] == "~":
                if item.ref in seen:
                    clashing.append(index)
                seen.add(item.ref)
        if not clashing:
            return
        length += 8
        for index in clashing:
            item = items[index]
            ref = longer_reference(item.id, length)
            forms = _forms_of(item.candidate, item.section, ref)
            names = {form.name for form in item.legal}
            legal = tuple(form for form in forms if form.name in names)
            items[index] = replace(item, ref=ref, forms=forms, legal=legal)
