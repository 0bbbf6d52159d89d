"""What the closed words of results mean, for people. The words themselves stay in the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """A rule in a few words, as the heading of a group, and as a sentence."""

    short: str
    why: str


RULES: Mapping[str, Rule] = {
    "scope": Rule("other scope", "it belongs to another scope than the request"),
    "authority": Rule("low authority", "its author may not speak in the section that it asks for"),
    "merged": Rule(
        "a copy", "it says the same from the same source as another candidate, which stands for it"
    ),
    "labels": Rule("not cleared", "it carries a label that the request has no clearance for"),
    "retention": Rule("past retention", "the time for which it may be kept is over"),
    "excluded": Rule("excluded", "its band is excluded, which is never admitted"),
    "superseded": Rule("replaced", "something newer replaces it"),
    "expired": Rule("expired", "its validity ended before the time of the request"),
    "not_yet_valid": Rule("not yet valid", "its validity begins after the time of the request"),
    "max_age": Rule("too old", "it was observed longer ago than the profile allows for its layer"),
    "stale": Rule("stale", "it is known to be out of date, and stale content never enters"),
    "unknown": Rule("unverified", "nobody knows whether it is still true, and it must be known"),
    "no_legal_form": Rule("no legal form", "none of its forms is allowed"),
    "missing_dependency": Rule("lacks a need", "something that it needs to be usable is out or not there"),
    "group": Rule("group broken", "its group enters whole or not at all, and a member is out"),
    "conflict": Rule("other side out", "both sides of an open conflict travel together, and one is out"),
    "dependency_only": Rule(
        "not needed", "without a layer it enters only where something needs it, and nothing does"
    ),
    "min_relevance": Rule("irrelevant", "its relevance is below what the profile asks for"),
    "net_value": Rule(
        "too dear", "its tokens cost more than its relevance is worth under the profile's price"
    ),
    "adds_nothing": Rule("adds nothing", "what it covers is covered already, or is not asked for"),
    "cap": Rule("layer is full", "its layer may not take more under this profile"),
    "no_room": Rule("no room", "what is free cannot hold it with everything that it needs"),
    "search_limit": Rule("not priced", "too many joint choices of forms were priced before its turn"),
    "no_longer_needed": Rule("not needed", "it was in for something that then changed its form or left"),
    "over_after_rendering": Rule("over", "the rendered text was over budget, and it was the least important"),
    "absent": Rule("not there", "it is required, but no candidate has this id"),
    "budget": Rule("budget", "it must be in, and takes tokens that are not there"),
    "floor": Rule("floor", "the profile reserves these tokens for its layer"),
}

BANDS: Mapping[str, str] = {
    "mandatory": "must be in",
    "required": "must be in for this request",
    "supported": "comes before all discretionary candidates",
    "discretionary": "it is worth its tokens, or something that is in needs it",
}
DEPENDENCY = "came along, because something that is in needs it"

WHY_PROFILE: Mapping[str, str] = {
    "explicit": "as requested",
    "route": "by route",
    "default": "the default",
    "rule": "by rule",
}

SECTIONS = ("governing", "task", "state", "evidence", "capability")

CODES: Mapping[str, str] = {
    "insufficient_budget": "what must be in does not fit",
    "unsatisfied_dependency": "something that must be in lacks what it needs",
    "no_legal_representation": "something that must be in has no form that is allowed",
    "unresolved_required_conflict": "two things that must be in contradict each other",
    "source_unavailable": "something that must be in cannot be had",
    "unknown_freshness": "nobody knows whether something that must be in is still true",
}

PROOFS: Mapping[str, str] = {
    "exact": "",
    "bound": "at least; every choice of forms needs more than there is",
    "limit": "the least found before the search limit",
}


def rule_of(name: str) -> Rule:
    """Give a rule's meaning; an unknown one speaks for itself."""
    return RULES.get(name) or Rule(name.replace("_", " "), f"the rule {name} left it out")
