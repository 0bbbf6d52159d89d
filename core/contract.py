"""The data contract, schema 1: what goes into a compile, as pydantic models.

These are the types that users build or that JSON is read into. They check one value at a time;
what needs the whole document (unique ids, declared layers) is checked in `reading`. Inside the
compiler, candidates travel as the leaner records of `items`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    model_validator,
)

from loadmaster.core import items
from loadmaster.core.canonical import canonical_json
from loadmaster.core.faults import Flaw, Parts, as_error, get, kind_of, quoted
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
"""Largest integer that counts anything: beyond any token count, and exact in every JSON reader."""

_RANGE = f"must be between 0 and {MAX_INTEGER:,}"

MAX_DIGITS = 1000
"""Most digits of a decimal, before or after its point."""

AS_DOCUMENT: Final = {"as": "document"}
"""The validation context in which data is an input document, where strings do not stand for numbers."""


def _integer(value: Any) -> Any:
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        raise ValueError(_RANGE)  # so many digits that it was not read as an integer
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {kind_of(value)}")
    if not 0 <= value <= MAX_INTEGER:
        raise ValueError(f"{_RANGE}, not {value:,}" if abs(value) < 10 * MAX_INTEGER else _RANGE)
    return value


def _exact_decimal(value: Any, info: ValidationInfo) -> Any:
    """Take a number exactly as it was written; a float stands for its shortest decimal form.

    In Python and in stored models a string may stand for a decimal; in an input document it may not.
    """
    written = isinstance(value, str) and info.context is not AS_DOCUMENT
    if isinstance(value, bool) or not (written or isinstance(value, int | float | Decimal)):
        raise ValueError(f"must be a number, not {kind_of(value)}")
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except ArithmeticError:
        raise ValueError(f"must be a number, not {quoted(value)}") from None
    if not number.is_finite():
        raise ValueError("must be a finite number")
    if abs(number.adjusted()) > MAX_DIGITS or len(number.as_tuple().digits) > MAX_DIGITS:
        raise ValueError(f"must be written with at most {MAX_DIGITS:,} digits")
    return number


_Place = tuple[Any, str | int] | None
"""Where a value stands below a field: the place of its parent and its own key or index."""


def _json_value(value: Any) -> Any:
    """Check free JSON data and bring it into plain form: no surrogates, no NaN, no odd types."""
    flaws: list[Flaw] = []
    plain = _plain(value, None, 0, flaws)
    if flaws:
        raise as_error(flaws)
    return plain


def _plain(value: Any, place: _Place, depth: int, flaws: list[Flaw]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                flaws.append((_path(place), "holds a lone surrogate, which no tokenizer or provider accepts"))
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            flaws.append(
                (_path(place), "is a whole number of more than 64 bits, which JSON readers do not keep")
            )
        return value
    if isinstance(value, float | Decimal):
        number = math.nan if isinstance(value, Decimal) and value.is_snan() else float(value)
        if not math.isfinite(number):
            flaws.append((_path(place), "is a number that JSON cannot carry"))
        return number
    if depth > MAX_DEPTH:
        flaws.append(((), f"is nested more than {MAX_DEPTH} levels deep"))
        return None
    if isinstance(value, list | tuple):
        return [_plain(element, (place, index), depth + 1, flaws) for index, element in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                flaws.append((_path(place), f"has a key that is no string but {kind_of(key)}"))
            elif not key.isascii():
                _plain(key, (place, key), depth, flaws)
        return {key: _plain(element, (place, key), depth + 1, flaws) for key, element in value.items()}
    flaws.append((_path(place), f"is {kind_of(value)}, which is no JSON value"))
    return None


def _path(place: _Place) -> Parts:
    path: list[str | int] = []
    while place is not None:
        place, part = place
        path.append(part)
    return tuple(reversed(path))


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {kind_of(value)}")
    return _json_value(value)


def _scope_value(value: Any) -> Any:
    if not isinstance(value, str | bool | int):
        raise ValueError(f"must be a string, a whole number or a boolean, not {kind_of(value)}")
    return _json_value(value)


def _order_key(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"must be a string or a whole number, not {kind_of(value)}")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"must be between -{MAX_INTEGER:,} and {MAX_INTEGER:,}")
    return _json_value(value)


def _instant(value: str) -> str:
    parse_instant(value)
    return value


def _no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    """Lists whose order has no meaning are sets; keep them sorted."""
    return tuple(sorted(set(values)))


def _text(value: str) -> str:
    """Refuse lone surrogates, which pydantic lets pass in a string without further constraints."""
    return value if value.isascii() else _json_value(value)


Tokens = Annotated[int, BeforeValidator(_integer)]
Text = Annotated[str, AfterValidator(_text)]
Name = Annotated[str, Field(min_length=1), AfterValidator(_text)]
Names = Annotated[tuple[Name, ...], AfterValidator(_no_repeats)]
Share = Annotated[Decimal, BeforeValidator(_exact_decimal), Field(ge=0, le=1)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object)]
Scope = dict[Name, Annotated[Any, BeforeValidator(_scope_value)]]
Time = Annotated[str, AfterValidator(_instant)]


class Model(BaseModel):
    """Base of every model in the contract: closed and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


_M = TypeVar("_M", bound=Model)


def _sound(model: _M, check: Callable[[object], Iterator[Flaw]]) -> _M:
    """Give the model if it passes a check of its fields against each other."""
    flaws = list(check(model))
    if flaws:
        raise as_error(flaws)
    return model


def form_flaws(form: object) -> Iterator[Flaw]:
    """Find what is wrong between the fields of a form, given as data or as a model."""
    bodies = [name for name in ("text", "message", "tool") if get(form, name) is not None]
    if len(bodies) != 1:
        has = " and ".join(bodies) or "none"
        yield (), f"must have exactly one of text, message and tool as its body, and it has {has}"
    message, tool = get(form, "message"), get(form, "tool")
    if isinstance(message, dict) and not isinstance(message.get("role"), str):
        yield ("message", "role"), "must be a string" if "role" in message else "required field is missing"
    if isinstance(tool, dict) and not items.tool_name(tool):
        yield ("tool",), "must have a name, on top or under function"


def candidate_flaws(candidate: object) -> Iterator[Flaw]:
    """Find what is wrong between the fields of a candidate, given as data or as a model."""
    forms = get(candidate, "forms")
    first: dict[str, int] = {}
    for place, form in enumerate(forms if isinstance(forms, list | tuple) else ()):
        name = get(form, "form")
        if isinstance(name, str) and first.setdefault(name, place) != place:
            yield (
                ("forms", place, "form"),
                f"{quoted(name)} stands twice in this candidate, first at forms[{first[name]}]",
            )


class Form(Model):
    """One representation of a candidate; exactly one of ``text``, ``message`` and ``tool`` is its body.

    ``tokens`` counts only under the tokenizer ``declared``. ``requires`` names what this form needs
    beyond the candidate's own requirements, such as the resolver of a reference.
    """

    form: FormName
    text: Text | None = None
    message: JsonObject | None = None
    tool: JsonObject | None = None
    tokens: Tokens | None = None
    requires: Names = ()

    @model_validator(mode="after")
    def _whole(self) -> Form:
        simple = self.text is not None and self.message is None and self.tool is None
        return self if simple else _sound(self, form_flaws)


class Conflict(Model):
    """Membership in a set of candidates that contradict each other."""

    id: Name
    status: Literal["unresolved", "resolved"]


class Source(Model):
    """Where a candidate comes from. ``provenance`` names the origin that several sources may share."""

    id: Name
    version: Text | None = None
    uri: Text | None = None
    provenance: Text | None = None


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

    @model_validator(mode="after")
    def _whole(self) -> Candidate:
        return self if len(self.forms) < 2 else _sound(self, candidate_flaws)

    @cached_property
    def item(self) -> items.Item:
        """The compiler's own record of this candidate, made once."""
        return items.item_of(self)

    @cached_property
    def digest(self) -> bytes:
        """The digest of all that is declared about this candidate, whatever order its forms came in."""
        declared = self.model_dump(mode="json", exclude_defaults=True)
        declared["forms"].sort(key=lambda form: form["form"])
        return sha256(canonical_json(declared).encode()).digest()


class Budget(Model):
    """The finite budget, in tokens. Without ``output`` the profile's reserve holds."""

    window: Tokens | None = None
    output: Tokens | None = None
    reasoning: Tokens = 0
    headroom: Tokens = 0
    economic: Tokens | None = None


class Request(Model):
    """What the bundle is for: budget, scope, clock, and what must be in it."""

    id: Name
    profile: Name | None = None
    profile_version: Text | None = None
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
