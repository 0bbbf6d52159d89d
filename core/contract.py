"""The data contract, schema 1: what goes into a compile, as pydantic models.

These are the types that users build or that JSON is read into. They check one value at a time;
what needs the whole document (unique ids, declared layers) is checked in `reading`. Inside the
compiler, candidates travel as the leaner records of `items`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)

from loadmaster.core import items
from loadmaster.core.canonical import canonical_json
from loadmaster.core.instants import parse_instant

FormName = Literal["full", "dense", "compact", "anchor", "reference"]
BandName = Literal["mandatory", "required", "supported", "discretionary", "excluded"]
SectionName = Literal["governing", "task", "state", "evidence", "capability"]
AuthorityName = Literal["system", "developer", "user", "assistant", "tool", "retrieved"]
StabilityName = Literal["static", "tenant", "session", "append", "turn", "volatile"]
TokenizerName = Literal["o200k_base", "cl100k_base", "estimate", "declared"]

MAX_DEPTH = 100
"""How deep JSON data may nest; no message or tool schema comes near it, and recursion stays safe."""

MAX_INTEGER = 10**15
"""Largest integer accepted anywhere: beyond any token count, and inside what every JSON reader keeps exact."""


def _integer(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {type(value).__name__}")
    if not 0 <= value <= MAX_INTEGER:
        raise ValueError(f"must be between 0 and {MAX_INTEGER}")
    return value


def _exact_decimal(value: Any) -> Any:
    """Take a number exactly as it was written; a float stands for its shortest decimal form."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError("must be a number")
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except ArithmeticError:
        raise ValueError(f"{value!r:.60} is no number") from None
    if not number.is_finite():
        raise ValueError("must be a finite number")
    if abs(number.adjusted()) > 1000 or len(number.as_tuple().digits) > 1000:
        raise ValueError("must be written with at most 1,000 digits")
    return number


def _json_value(value: Any, depth: int = 0) -> Any:
    """Check free JSON data and bring it into plain form: no surrogates, no NaN, no odd types."""
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > 10**300:
            raise ValueError("holds a number out of range")
        return value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which no tokenizer or provider accepts") from None
        return value
    if isinstance(value, float | Decimal):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError("holds a number that JSON cannot carry")
        return number
    if isinstance(value, list | tuple):
        return [_json_value(element, depth + 1) for element in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("holds a key that is no string")
        return {
            _json_value(key, depth + 1): _json_value(element, depth + 1) for key, element in value.items()
        }
    raise ValueError(f"holds a {type(value).__name__}, which is no JSON value")


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")
    return _json_value(value)


def _scope_value(value: Any) -> Any:
    if not isinstance(value, str | bool | int):
        raise ValueError("must be a string, a whole number or a boolean")
    return _json_value(value)


def _order_key(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a string or a whole number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"must be between -{MAX_INTEGER} and {MAX_INTEGER}")
    return _json_value(value)


def _instant(value: str) -> str:
    parse_instant(value)
    return value


def _no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    """Lists whose order has no meaning are sets; keep them sorted."""
    return tuple(sorted(set(values)))


Tokens = Annotated[int, BeforeValidator(_integer)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], AfterValidator(_no_repeats)]
Share = Annotated[Decimal, BeforeValidator(_exact_decimal), Field(ge=0, le=1)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object)]
Scope = dict[Name, Annotated[Any, BeforeValidator(_scope_value)]]
Time = Annotated[str, AfterValidator(_instant)]


class Model(BaseModel):
    """Base of every model in the contract: closed and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


class Form(Model):
    """One representation of a candidate; exactly one of ``text``, ``message`` and ``tool`` is its body.

    ``tokens`` counts only under the tokenizer ``declared``. ``requires`` names what this form needs
    beyond the candidate's own requirements, such as the resolver of a reference.
    """

    form: FormName
    text: str | None = None
    message: JsonObject | None = None
    tool: JsonObject | None = None
    tokens: Tokens | None = None
    requires: Names = ()

    @model_validator(mode="after")
    def _one_body(self) -> Form:
        if sum(body is not None for body in (self.text, self.message, self.tool)) != 1:
            raise ValueError("must have exactly one of text, message and tool")
        if self.message is not None and not isinstance(self.message.get("role"), str):
            raise ValueError("message must have a role")
        if self.tool is not None and not items.tool_name(self.tool):
            raise ValueError("tool must have a name, on top or under function")
        return self


class Conflict(Model):
    """Membership in a set of candidates that contradict each other."""

    id: Name
    status: Literal["unresolved", "resolved"]


class Source(Model):
    """Where a candidate comes from. ``provenance`` names the origin that several sources may share."""

    id: Name
    version: str | None = None
    uri: str | None = None
    provenance: str | None = None


class Freshness(Model):
    """What is known about a candidate's validity in time; intervals are half-open."""

    observed_at: Time | None = None
    valid_from: Time | None = None
    valid_until: Time | None = None
    expires_at: Time | None = None
    state: Literal["current", "stale", "unknown"] = "unknown"
    required: StrictBool = False
    supersedes: Names = ()

    @property
    def has_times(self) -> bool:
        """Whether judging this block needs the request's clock."""
        return any((self.observed_at, self.valid_from, self.valid_until, self.expires_at))


class Candidate(Model):
    """One piece of information that might enter the bundle; its ``id`` is its content identity."""

    id: Name
    forms: tuple[Form, ...]
    layer: Name | None = None
    section: SectionName | None = None
    band: BandName = "discretionary"
    relevance: Share = Decimal(0)
    min_form: FormName | None = None
    max_form: FormName | None = None
    exact: StrictBool = False
    requires: Names = ()
    group: Name | None = None
    conflict: Conflict | None = None
    scope: Scope = {}
    authority: AuthorityName = "retrieved"
    source: Source | None = None
    freshness: Freshness | None = None
    labels: Names = ()
    covers: Names = ()
    order: tuple[Annotated[Any, BeforeValidator(_order_key)], ...] = ()
    stability: StabilityName | None = None
    metadata: JsonObject = {}

    @cached_property
    def item(self) -> items.Item:
        """The compiler's own record of this candidate, made once."""
        return items.item_of(self)

    @cached_property
    def digest(self) -> bytes:
        """The digest of everything that is declared about this candidate, whatever order its forms came in."""
        declared = self.model_dump(mode="json", exclude_defaults=True)
        declared["forms"].sort(key=lambda form: form["form"])
        return sha256(canonical_json(declared).encode()).digest()


class Budget(Model):
    """The finite budget, in tokens. ``output`` left out: the profile's reserve. ``economic`` left out: none."""

    window: Tokens | None = None
    output: Tokens | None = None
    reasoning: Tokens = 0
    headroom: Tokens = 0
    economic: Tokens | None = None


class Request(Model):
    """What the bundle is for: budget, scope, clock, and what must be in it."""

    id: Name
    profile: Name | None = None
    profile_version: str | None = None
    route: Name | None = None
    model: Name | None = None
    tokenizer: TokenizerName | None = None
    budget: Budget = Budget()
    scope: Scope = {}
    clearances: Names = ()
    as_of: Time | None = None
    requires: Names = ()
    needs: Names = ()


class Observation(Model):
    """An answer from outside that this compile rests on, recorded so that it can be replayed.

    ``key`` says what was asked (``source:memory``, ``revalidate:doc-7``), ``value`` what came back.
    """

    key: Name
    value: JsonObject = {}


def merge_names(*groups: Iterable[str]) -> tuple[str, ...]:
    """Unite lists of names into one sorted tuple without repeats."""
    return tuple(sorted({name for group in groups for name in group}))
