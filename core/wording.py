"""Sentences for what passes record as data. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from loadmaster.core.draft import Args, Decision


def would(decision: Decision) -> str:
    """Say what would have let a candidate in: the nearest change, with one figure where there is one."""
    word = _WOULD.get(decision.rule)
    return word(decision.args) if word else "a change of the rule"


def cause_of(decision: Decision) -> str | None:
    """Give the id of the other candidate that a decision turned on, if there is one."""
    for key in ("into", "by", "cause"):
        if key in decision.args:
            return str(decision.args[key])
    return None


def _names(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _scope(args: Args) -> str:
    if "missing" in args:
        return f"a scope on the candidate that names {_names(args['missing'])}"
    return f"a request of the same {_names(args['keys'])}, or a declared transfer"


def _net_value(args: Args) -> str:
    if args.get("worth_at"):
        return f"a cost of at most {args['worth_at']:,} tokens instead of {args['cost']:,}, or more relevance"
    worthless = Decimal(args["value"]) == 0
    return "a relevance above zero" if worthless else "a lower price in the profile"


def _no_room(args: Args) -> str:
    capped = f", and a cap on layer {args['layer']} that lets it have them" if args.get("capped") else ""
    return f"{args['short_by']:,} more tokens that nothing before it takes{capped}"


def _cap(args: Args) -> str:
    if args.get("cap") == 0:
        return f"a profile that gives layer {args['layer']} tokens"
    return f"a cap on layer {args['layer']} that is {args['short_by']:,} tokens higher"


_WOULD: dict[str, Callable[[Args], str]] = {
    "scope": _scope,
    "authority": lambda args: f"an authority that section {args['section']} accepts",
    "merged": lambda args: f"nothing: {args['into']}, its copy, stands for it",
    "labels": lambda args: f"a clearance for {_names(args['labels'])}",
    "retention": lambda args: "a later expires_at",
    "excluded": lambda args: "another band than excluded",
    "superseded": lambda args: (
        f"nothing: {args.get('by', 'a newer version')} replaces it"
        if "by" in args
        else f"nothing: version {args['by_version']} replaces it"
    ),
    "expired": lambda args: "a later valid_until, or a new observation",
    "not_yet_valid": lambda args: "a request at or after its valid_from",
    "max_age": lambda args: f"an observation no older than {args['max_age_seconds']:,} seconds",
    "stale": lambda args: "a revalidation that finds it current",
    "unknown": lambda args: "a verdict on its freshness",
    "no_legal_form": lambda args: (
        "a form between min_form and max_form" if args["given"] else "a form: it was given none"
    ),
    "missing_dependency": lambda args: f"{args['cause']}, which it needs",
    "group": lambda args: f"{args['cause']}, which its group needs",
    "conflict": lambda args: f"{args['cause']}, the other side of its conflict",
    "dependency_only": lambda args: "a choice that requires it; without a layer it does not compete",
    "min_relevance": lambda args: f"a relevance of {args['least']} instead of {args['relevance']}",
    "net_value": _net_value,
    "adds_nothing": lambda args: (
        f"an independent source for {_names(args['covers'])}, or a need that nothing covers yet"
    ),
    "cap": _cap,
    "no_room": _no_room,
    "search_limit": lambda args: "a smaller pool: too many joint choices of forms were priced before it",
    "no_longer_needed": lambda args: "a choice that requires it",
    "over_after_rendering": lambda args: "more room: the rendered text was over budget",
}

SLACK = {
    "everything_is_in": "every candidate that may enter is in",
    "nothing_earns_admission": "nothing more earns admission",
    "nothing_fits": "nothing that is left fits",
    "caps_reached": "what is left is stopped by the cap of its layer",
}
"""What the slack reasons mean."""
