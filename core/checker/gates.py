"""The gates of legality, applied a second time for the independent checker.

Scope, authority, copies, labels, retention, the band excluded, freshness and form limits are worked
out again from the candidates as they were given, by plain loops over dictionaries keyed by id. Copies
are not merged into a new record as pass 2 does: a question is asked of a candidate and of its copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loadmaster.core.canonical import canonical_json
from loadmaster.core.contract import Candidate, Form, Freshness
from loadmaster.core.instants import Instant, parse_duration, parse_instant
from loadmaster.core.items import (
    AUTHORITY,
    BANDS,
    DISCRETIONARY,
    EXCLUDED,
    FORMS,
    REQUIRED,
    SUPPORTED,
    dotted_version,
)
from loadmaster.core.problem import Problem

LEAST_AUTHORITY = {"governing": "developer", "capability": "developer", "task": "user"}
LAYER_STABILITY = {"session": "session", "conversation": "append", "tools": "append", "memory": "session"}
SECTION_STABILITY = {"governing": "static", "capability": "static", "task": "turn", "state": "session"}


@dataclass(slots=True)
class Verdicts:
    """The candidates by id with their standing, filled gate by gate.

    ``stands_for`` leads from a merged copy to the candidate that is left, ``copies`` back. ``border``
    holds what scope and authority refused, ``refused`` the first rule against each that may not enter.
    """

    candidates: dict[str, Candidate]
    bands: dict[str, int]
    border: frozenset[str]
    refused: dict[str, str]
    stands_for: dict[str, str]
    copies: dict[str, list[Candidate]]

    def everyone(self, identifier: str) -> tuple[Candidate, ...]:
        """Give a candidate with its copies."""
        return (self.candidates[identifier], *self.copies.get(identifier, ()))

    def is_legal(self, identifier: str, form: Form) -> bool:
        """Whether a form lies within the limits of a candidate and of its copies."""
        return all(_is_within_limits(each, form) for each in self.everyone(identifier))


def judge(problem: Problem) -> Verdicts:
    """Ask every gate about every candidate."""
    candidates = {each.id: each for each in sorted((item.candidate for item in problem.items), key=_by_id)}
    ranks = {band: rank for rank, band in enumerate(BANDS)}
    bands = {identifier: ranks[candidate.band] for identifier, candidate in candidates.items()}
    for identifier in problem.request.requires:
        if bands.get(identifier) in (SUPPORTED, DISCRETIONARY):
            bands[identifier] = REQUIRED
    refused = dict(_refused_at_the_border(problem, candidates))
    known = Verdicts(candidates, bands, frozenset(refused), refused, {}, {})
    for copy, first in _copies(known, problem.meter.declared):
        known.stands_for[copy] = first
        known.copies.setdefault(first, []).append(candidates[copy])
        refused[copy] = "merged"
        both = bands[first], bands[copy]
        bands[first] = EXCLUDED if EXCLUDED in both else min(both)
    clock = _Clock(problem.request.as_of)
    inside = [identifier for identifier in candidates if identifier not in refused]
    refused.update(_refused_inside(problem, clock, known, inside))
    inside = [identifier for identifier in inside if identifier not in refused]
    refused.update(_refused_by_time(problem, clock, known, inside))
    for identifier in inside:
        candidate = candidates[identifier]
        unlimited = candidate.min_form is None and candidate.max_form is None and not candidate.exact
        if (unlimited and candidate.forms and identifier not in known.copies) or identifier in refused:
            continue
        if not any(known.is_legal(identifier, form) for form in candidate.forms):
            refused[identifier] = "no_legal_form"
    return known


def _by_id(candidate: Candidate) -> str:
    return candidate.id


def section_of(candidate: Candidate) -> str:
    """Give where a candidate goes: where it says, else by its layer."""
    return candidate.section or ("state" if candidate.layer == "session" else "evidence")


def stability_of(candidate: Candidate) -> str:
    """Give how long a candidate's block stays the same: as it says, else by layer, else by section."""
    if candidate.stability:
        return candidate.stability
    if candidate.layer is not None:
        return LAYER_STABILITY.get(candidate.layer, "turn")
    return SECTION_STABILITY.get(section_of(candidate), "turn")


def _is_within_limits(candidate: Candidate, form: Form) -> bool:
    """Whether a form lies between ``min_form`` and ``max_form``; only full where ``exact``."""
    rank = FORMS.index(form.form)
    if candidate.exact and rank:
        return False
    if candidate.min_form is not None and rank > FORMS.index(candidate.min_form):
        return False
    return candidate.max_form is None or rank >= FORMS.index(candidate.max_form)


def data_of(form: Form) -> tuple[str, Mapping[str, Any] | None]:
    """Give a form's kind and, for a message or a tool, its data."""
    if form.message is not None:
        return "message", form.message
    return ("text", None) if form.tool is None else ("tool", form.tool)


def body_of(form: Form) -> tuple[str, str]:
    """Give a form's kind and its body as text."""
    kind, value = data_of(form)
    return kind, form.text or "" if value is None else canonical_json(value)


class _Clock:
    """The request's time; each text of a time is read once."""

    def __init__(self, as_of: str | None) -> None:
        self._read: dict[str, Instant] = {}
        self.now = None if as_of is None else self.read(as_of)

    def read(self, text: str) -> Instant:
        instant = self._read.get(text)
        if instant is None:
            instant = self._read[text] = parse_instant(text)
        return instant

    def has_come(self, text: str | None) -> bool:
        """Whether a time is given and is now or past: intervals are half-open."""
        return text is not None and self.now is not None and self.read(text) <= self.now

    def is_ahead(self, text: str | None) -> bool:
        """Whether a time is given and is not known to have come."""
        return text is not None and not self.has_come(text)


def _same(one: object, other: object) -> bool:
    """Whether two scope values are equal; 1, "1" and true are three values."""
    return type(one) is type(other) and one == other


def _refused_at_the_border(
    problem: Problem, candidates: Mapping[str, Candidate]
) -> Iterator[tuple[str, str]]:
    """Apply scope and authority. What they refuse is absent: a member of nothing, merged with nothing."""
    here = problem.request.scope
    profile = problem.policy.profile
    needed = profile.scope_required
    for identifier, candidate in candidates.items():
        scope = candidate.scope
        legal = not needed or candidate.layer is None or all(key in scope for key in needed)
        for key, value in scope.items():
            if legal and not (key in here and _same(here[key], value)):
                legal = key in here and any(
                    rule.key == key and _same(rule.from_, value) and _same(rule.to, here[key])
                    for rule in profile.transfer
                )
        if not legal:
            yield identifier, "scope"
            continue
        least = LEAST_AUTHORITY.get(section_of(candidate))
        if least is not None and AUTHORITY[candidate.authority] < AUTHORITY[least]:
            yield identifier, "authority"


def _copies(known: Verdicts, declared: bool) -> Iterator[tuple[str, str]]:
    """Find the copies of one record among what passed the border, each with the first by id of its equals."""
    seen: dict[object, Candidate] = {}
    alike: dict[object, list[Candidate]] = {}
    for identifier, candidate in known.candidates.items():
        source = candidate.source
        if source is not None and identifier not in known.border:
            # Many chunks share a source: one text tells most of them apart, without looking further.
            hint = candidate.forms[0].text if len(candidate.forms) == 1 else len(candidate.forms)
            key = source.id, source.version, candidate.authority, hint
            other = seen.setdefault(key, candidate)
            if other is not candidate:
                alike.setdefault(key, [other]).append(candidate)
    for likely in alike.values():
        first: dict[object, str] = {}
        for candidate in likely:
            forms = frozenset(
                (form.form, *body_of(form), form.requires, form.tokens if declared else None)
                for form in candidate.forms
            )
            survivor = first.setdefault((canonical_json(candidate.scope), forms), candidate.id)
            if survivor != candidate.id:
                yield candidate.id, survivor


def _refused_inside(
    problem: Problem, clock: _Clock, known: Verdicts, inside: list[str]
) -> Iterator[tuple[str, str]]:
    """Apply labels, retention and the band excluded; a flag on one copy holds for all."""
    cleared = frozenset(problem.request.clearances)
    for identifier in inside:
        candidate = known.candidates[identifier]
        everyone = (candidate,) if identifier not in known.copies else known.everyone(identifier)
        if not (candidate.labels or candidate.freshness or len(everyone) > 1):
            if known.bands[identifier] == EXCLUDED:
                yield identifier, "excluded"
        elif any(label not in cleared for candidate in everyone for label in candidate.labels):
            yield identifier, "labels"
        elif any(each.freshness and clock.has_come(each.freshness.expires_at) for each in everyone):
            yield identifier, "retention"
        elif known.bands[identifier] == EXCLUDED:
            yield identifier, "excluded"


def _refused_by_time(problem: Problem, clock: _Clock, known: Verdicts, inside: list[str]) -> dict[str, str]:
    """Apply freshness: what an eligible candidate of no less authority replaces, then each one's state."""
    out = dict.fromkeys(_replaced(clock, known, inside), "superseded")
    for identifier in inside:
        candidate = known.candidates[identifier]
        if (candidate.freshness or identifier in known.copies) and identifier not in out:
            rule = _own_state(problem, clock, candidate.layer, _freshness(known, identifier))
            if rule is not None:
                out[identifier] = rule
    return out


def _replaced(clock: _Clock, known: Verdicts, inside: list[str]) -> Iterator[str]:
    """Find what another names as superseded, or what is older than another version of its source."""
    versions: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for identifier in inside:
        candidate = known.candidates[identifier]
        source = candidate.source
        if source is not None and source.version is not None:
            versions[source.id].setdefault(source.version, []).append(identifier)
        if candidate.freshness or identifier in known.copies:
            for name in (name for each in _freshness(known, identifier) for name in each.supersedes):
                target = known.stands_for.get(name, name)
                if (
                    target == identifier
                    or target in known.refused
                    or not _has_begun(clock, known, identifier)
                ):
                    continue
                if target in known.candidates and _rank(known, target) <= _rank(known, identifier):
                    yield target
    for of_source in versions.values():
        if len(of_source) < 2:
            continue
        best: dict[int, Any] = {}
        for text, identifiers in of_source.items():
            version = dotted_version(text)
            for identifier in identifiers:
                if version is not None and _has_begun(clock, known, identifier):
                    rank = _rank(known, identifier)
                    best[rank] = max(version, best.get(rank, version))
        for text, identifiers in of_source.items():
            version = dotted_version(text)
            for identifier in identifiers:
                least = _rank(known, identifier)
                if version is not None and any(best[rank] > version for rank in best if rank >= least):
                    yield identifier


def _rank(known: Verdicts, identifier: str) -> int:
    return AUTHORITY[known.candidates[identifier].authority]


def _has_begun(clock: _Clock, known: Verdicts, identifier: str) -> bool:
    """Whether a candidate is valid already; before that it replaces nothing."""
    return not any(clock.is_ahead(each.valid_from) for each in _freshness(known, identifier))


def _freshness(known: Verdicts, identifier: str) -> list[Freshness]:
    return [each.freshness for each in known.everyone(identifier) if each.freshness]


def _own_state(problem: Problem, clock: _Clock, layer: str | None, freshness: list[Freshness]) -> str | None:
    if not freshness:
        return None
    if any(clock.has_come(each.valid_until) for each in freshness):
        return "expired"
    if clock.now is not None and any(clock.is_ahead(each.valid_from) for each in freshness):
        return "not_yet_valid"
    age = problem.policy.profile.max_age.get(layer or "")
    if age is not None and clock.now is not None:
        for seconds, fraction in (clock.read(each.observed_at) for each in freshness if each.observed_at):
            if (seconds + parse_duration(age), fraction) < clock.now:
                return "max_age"
    states = {each.state for each in freshness}
    if "stale" in states:
        return "stale"
    return "unknown" if "unknown" in states and any(each.required for each in freshness) else None
