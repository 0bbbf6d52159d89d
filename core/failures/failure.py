"""The compile failure: an explicit, complete account of why there is no legal bundle, and who can cure it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from loadmaster.core.result import ProfileUsed, Tokens
from loadmaster.core.trace import Trace, head_of

CODES = (
    "source_unavailable",
    "unknown_freshness",
    "no_legal_representation",
    "unsatisfied_dependency",
    "unresolved_required_conflict",
    "insufficient_budget",
)
"""Every code there is, in order of precedence: a later figure means little while an earlier gate is shut."""

_PASS = {
    "source_unavailable": "eligibility",
    "unknown_freshness": "freshness",
    "no_legal_representation": "alternatives",
    "unsatisfied_dependency": "closure",
    "unresolved_required_conflict": "closure",
    "insufficient_budget": "feasibility",
}


class CompileError(ValueError):
    """Raised by `CompileFailure.unwrap`; ``failure`` is the whole account, ``str`` its public line."""

    def __init__(self, failure: CompileFailure) -> None:
        self.failure = failure
        super().__init__(str(failure))


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that blocks: a must-have candidate, or the floor of a layer as ``floor:LAYER``.

    ``via`` leads from it to the cause, where the cause is something else.
    """

    id: str
    kind: Literal["requirement", "floor"]
    rule: str
    owner: str
    layer: str | None = None
    band: str | None = None
    tokens: int | None = None
    via: tuple[str, ...] = ()
    source_ref: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "id": self.id,
            "item": self.id if self.kind == "requirement" else None,
            "kind": self.kind,
            "layer": self.layer,
            "band": self.band,
            "tokens": self.tokens,
            "rule": self.rule,
            "owner": self.owner,
            "via": list(self.via),
            "source_ref": self.source_ref,
        }


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A smallest set of facts without which the compile succeeds; it has been tried."""

    remove: tuple[str, ...]
    frees: int | None
    loses: Mapping[str, int]
    owner: str

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "remove": list(self.remove),
            "frees": self.frees,
            "loses": dict(self.loses),
            "owner": self.owner,
        }


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that an owner can do. ``sufficient`` is computed, never guessed."""

    owner: str
    action: str
    params: Mapping[str, Any]
    frees: int | None = None
    sufficient: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {
            "owner": self.owner,
            "action": self.action,
            "params": dict(self.params),
            "frees": self.frees,
            "sufficient": self.sufficient,
            "confidence": "exact" if self.sufficient or self.frees is not None else "estimate",
        }


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """No legal bundle exists for this input. An operator's document; ``public()`` is for everybody else.

    ``needed_tokens`` is the least that must-haves and floors need together, ``excess_tokens`` what
    that is above the capacity, ``smallest_window`` the window that would do. ``proof`` says how the
    figure was found: ``exact``, a lower ``bound`` that already exceeds, or search up to a ``limit``.
    """

    code: str
    also: tuple[tuple[str, tuple[str, ...]], ...]
    tokens: Tokens
    reserved_output: int
    needed_tokens: int
    excess_tokens: int | None
    smallest_window: int | None
    proof: Literal["exact", "bound", "limit"]
    breakdown: tuple[Mapping[str, Any], ...]
    blocking: tuple[Fact, ...]
    relaxations: tuple[Relaxation, ...]
    remedies: tuple[Remedy, ...]
    rejected: Mapping[str, int]
    profile: ProfileUsed
    public_ids: frozenset[str]
    trace: Trace
    status: Literal["failure"] = "failure"

    @property
    def trace_digest(self) -> str:
        """The digest of the serialised trace."""
        return self.trace.digest

    def unwrap(self) -> NoReturn:
        """Raise the failure.

        Raises:
            CompileError: Always.
        """
        raise CompileError(self)

    def to_dict(self) -> dict[str, Any]:
        """Give the result of the data contract, for operators: it names candidates of any scope."""
        head = head_of(self.trace.problem, ())
        return {
            "status": self.status,
            "schema": 1,
            "code": self.code,
            "also": [{"code": code, "ids": list(ids)} for code, ids in self.also],
            "primary_pass": _PASS[self.code],
            "needed_tokens": self.needed_tokens,
            "excess_tokens": self.excess_tokens,
            "smallest_window": self.smallest_window,
            "proof": self.proof,
            "capacity": {
                "window": self.tokens.window,
                "reserved_output": self.reserved_output,
                "overhead": self.tokens.headroom,
                "usable": self.tokens.usable,
                "capacity": self.tokens.capacity,
            },
            "tokens": self.tokens.to_dict(),
            "breakdown": [dict(row) for row in self.breakdown],
            "blocking": [fact.to_dict() for fact in self.blocking],
            "relaxations": [relaxation.to_dict() for relaxation in self.relaxations],
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "rejected_histogram": dict(self.rejected),
            "masked": [],
            "profile": self.profile.to_dict(),
            "request_digest": head["request"],
            "inputs_digest": head["inventory"],
            "policy_revision": head["policy"],
            "compiler_version": head["compiler"],
            "tokenizer": head["tokenizer"],
            "trace_digest": self.trace_digest,
        }

    def public(self) -> dict[str, Any]:
        """Give what may enter graph state, an interrupt or a log that users see.

        A candidate of another scope and one that does not exist look the same here; no label, no
        scope value and no id that the request did not bring along itself.
        """
        return {
            "status": self.status,
            "code": self.code,
            "also": [code for code, _ in self.also],
            "needed_tokens": self.needed_tokens,
            "capacity": self.tokens.capacity,
            "excess_tokens": self.excess_tokens,
            "smallest_window": self.smallest_window,
            "blocking": sorted(fact.id for fact in self.blocking if fact.id in self.public_ids),
            "remedies": [
                {"owner": remedy.owner, "action": remedy.action, "sufficient": remedy.sufficient}
                for remedy in self._public_remedies()
            ],
        }

    def _public_remedies(self) -> list[Remedy]:
        """Leave out what would tell a refusal from absence: that a policy stands between."""
        return [remedy for remedy in self.remedies if remedy.action != "change_policy"]

    def __str__(self) -> str:
        blocked = f"blocked by {len(self.blocking)}, {len(self._public_remedies())} remedies known"
        if self.excess_tokens is None:
            return f"{self.code}: {blocked}"
        return (
            f"{self.code}: need {self.needed_tokens:,}, capacity {self.tokens.capacity:,}, over by"
            f" {self.excess_tokens:,}; {blocked}"
        )
