"""The decision trace: every change of an item's standing, as JSON Lines, byte-equal for equal runs.

It is kept as records and serialised on demand. It holds no clock, no random id, no path, no float
and no text of an item. The models below are its schema, for readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, TypeAdapter

from loadmaster.core.canonical import digest_of, sha256
from loadmaster.core.contract import JsonObject, Model, Observation
from loadmaster.core.draft import Decision
from loadmaster.core.problem import Problem

SCHEMA = 1


class Head(Model):
    """The first line: what was compiled, by which policy, under which budget."""

    t: Literal["head"] = "head"
    schema_: Annotated[int, Field(alias="schema")] = SCHEMA
    compiler: str
    request: str
    inventory: str
    policy: str
    profile: dict[str, str]
    tokenizer: dict[str, str]
    as_of: str | None
    budget: dict[str, int | None]
    passes: tuple[str, ...]


class ObservationLine(Model):
    """An answer from outside; a replay uses these and asks nobody."""

    t: Literal["obs"] = "obs"
    n: int
    key: str
    digest: str
    value: JsonObject


class DecisionLine(Model):
    """One change of one item's standing. ``args`` explain it; ``would`` is the nearest counterfactual."""

    t: Literal["dec"] = "dec"
    n: int
    step: Annotated[str, Field(alias="pass")]
    item: str
    verdict: str
    rule: str
    args: JsonObject = {}


class PassLine(Model):
    """What one pass did to the whole: items and tokens in and out, and how often each rule spoke."""

    t: Literal["pass"] = "pass"
    step: Annotated[str, Field(alias="pass")]
    in_: Annotated[int, Field(alias="in")]
    out: int
    tokens: int | None = None
    histogram: dict[str, int] = {}


class Foot(Model):
    """The last line: the outcome, its digest or code, the budget as it came out, and the trace's own digest.

    ``allocation`` has a row for each layer, as in the result; ``tokens`` the figures of the budget.
    The digest ``trace`` covers all lines, this one without it.
    """

    t: Literal["foot"] = "foot"
    outcome: Literal["bundle", "failure"]
    digest: str | None = None
    code: str | None = None
    tokens: dict[str, int | None] = {}
    allocation: tuple[dict[str, int | str | bool | None], ...] = ()
    trace: str


Line = Annotated[Head | ObservationLine | DecisionLine | PassLine | Foot, Field(discriminator="t")]
LINE: TypeAdapter[Head | ObservationLine | DecisionLine | PassLine | Foot] = TypeAdapter(Line)
"""Reads one line: ``LINE.validate_json(line)``."""


@dataclass(frozen=True, slots=True)
class PassCount:
    """Items in play before and after a pass, and the tokens that it settled."""

    step: str
    before: int
    after: int
    tokens: int | None


@dataclass(frozen=True)
class Trace:
    """The record of one compile. ``lines`` serialises it; ``digest`` identifies the serialisation."""

    problem: Problem
    decisions: tuple[Decision, ...]
    passes: tuple[PassCount, ...]
    outcome: Literal["bundle", "failure"]
    foot: Mapping[str, Any]

    @cached_property
    def _lines(self) -> tuple[bytes, ...]:
        lines = [_dump(line) for line in self._records()]
        foot: dict[str, Any] = {"t": "foot", "outcome": self.outcome, **self.foot}
        foot["trace"] = sha256(b"".join([*lines, _dump(foot)]))
        return (*lines, _dump(foot))

    def _records(self) -> Iterator[Mapping[str, Any]]:
        yield head_of(self.problem, [count.step for count in self.passes])
        for number, observation in enumerate(self.problem.observations):
            value = dict(observation.value)
            yield {
                "t": "obs",
                "n": number,
                "key": observation.key,
                "digest": digest_of(value),
                "value": value,
            }
        for number, (step, item, verdict, rule, args) in enumerate(self.decisions):
            line: dict[str, Any] = {
                "t": "dec", "n": number, "pass": step, "item": item, "verdict": verdict, "rule": rule
            }  # fmt: skip
            if args:
                line["args"] = args
            yield line
        rules: dict[str, Counter[str]] = {}
        for decision in self.decisions:
            rules.setdefault(decision.step, Counter())[decision.rule] += 1
        for count in self.passes:
            line = {"t": "pass", "pass": count.step, "in": count.before, "out": count.after}
            if count.tokens is not None:
                line["tokens"] = count.tokens
            if count.step in rules:
                line["histogram"] = dict(rules[count.step])
            yield line

    def lines(self) -> Iterable[bytes]:
        """Give the trace as JSON lines, each with its newline."""
        return self._lines

    @property
    def digest(self) -> str:
        """The digest that the foot carries."""
        foot: str = orjson.loads(self._lines[-1])["trace"]
        return foot


def head_of(problem: Problem, passes: Iterable[str]) -> dict[str, Any]:
    """Give the head line: digests of everything that decided the result."""
    limits, counter = problem.limits, problem.meter.counter
    return {
        "t": "head",
        "schema": SCHEMA,
        "compiler": problem.compiler,
        "request": digest_of(problem.request.model_dump(mode="json")),
        "inventory": sha256(
            b"".join(item.candidate.digest for item in sorted(problem.items, key=lambda i: i.id))
        ),
        "policy": digest_of(problem.policy.profiles.model_dump(mode="json", by_alias=True)),
        "profile": {
            "name": problem.policy.name,
            "version": problem.policy.profiles.version,
            "why": problem.policy.why,
        },
        "tokenizer": {"encoding": counter.encoding, "source": counter.source, "margin": str(counter.margin)},
        "as_of": problem.request.as_of,
        "budget": {
            "window": limits.window,
            "output": limits.output,
            "reasoning": limits.reasoning,
            "headroom": limits.headroom,
            "economic": limits.economic,
            "usable": limits.usable,
            "capacity": limits.capacity,
        },
        "passes": list(passes),
    }


def observations_in(lines: Iterable[bytes | str]) -> tuple[Observation, ...]:
    """Give the observations that a trace recorded, for a replay."""
    parsed = (LINE.validate_json(line) for line in lines if line.strip())
    return tuple(
        Observation(key=line.key, value=line.value) for line in parsed if isinstance(line, ObservationLine)
    )


def _dump(line: Mapping[str, Any]) -> bytes:
    return orjson.dumps(line, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
