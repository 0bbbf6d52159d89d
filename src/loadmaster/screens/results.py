"""Results as they are read back from JSON: typed, tolerant of fields that a screen does not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from loadmaster.core.faults import Fault, InvalidInput, json_path


class View(BaseModel):
    """Base of what is read from a result: unknown fields are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class TokensView(View):
    """The budget's figures."""

    window: int
    usable: int
    headroom: int
    capacity: int
    standing: int
    task: int
    allocatable: int
    used: int
    slack: int
    framing: int = 0
    slack_reason: str | None = None
    encoding: str = "?"
    source: str = "?"


class ProfileView(View):
    """The profile that was applied."""

    name: str
    version: str
    why: str


class PrefixView(View):
    """The leading blocks that a cache may keep."""

    digest: str
    tokens: int
    blocks: int


class RowView(View):
    """A layer's account."""

    layer: str
    floor: int = 0
    ratio: float = 0
    cap: int | None = None
    wants: int = 0
    floor_grant: int = 0
    surplus: int = 0
    granted: int = 0
    used: int = 0
    floor_unmet: bool = False


class BlockView(View):
    """A candidate in the bundle."""

    id: str
    section: str
    layer: str | None = None
    band: str
    form: str
    tokens: int
    stability: str
    text: str
    kind: str = "text"
    ref: str | None = None


class OmissionView(View):
    """A candidate that is not in the bundle."""

    id: str
    step: Annotated[str, Field(alias="pass")]
    rule: str
    would: str
    cause: str | None = None


class BundleView(View):
    """A bundle."""

    status: Literal["bundle"]
    digest: str
    prefix: PrefixView
    tokens: TokensView
    profile: ProfileView
    policies: dict[str, str] = {}
    allocation: tuple[RowView, ...]
    blocks: tuple[BlockView, ...]
    omitted: tuple[OmissionView, ...]
    trace_digest: str = ""


class PartView(View):
    """What the must-haves of one layer need."""

    layer: str | None = None
    part: str = "layer"
    items: int = 0
    needed: int = 0
    floor: int = 0


class FactView(View):
    """Something that blocks."""

    id: str
    kind: str = "requirement"
    layer: str | None = None
    band: str | None = None
    tokens: int | None = None
    rule: str = ""
    owner: str = ""
    via: tuple[str, ...] = ()


class RelaxationView(View):
    """A smallest set of facts without which it would fit."""

    remove: tuple[str, ...]
    frees: int | None = None
    loses: dict[str, int] = {}
    owner: str = ""


class RemedyView(View):
    """What an owner can do."""

    owner: str
    action: str
    params: dict[str, Any] = {}
    frees: int | None = None
    sufficient: bool = False


class AlsoView(View):
    """A further code that holds."""

    code: str
    ids: tuple[str, ...] = ()


class CapacityView(View):
    """The room of a compile that failed."""

    window: int
    reserved_output: int = 0
    overhead: int = 0
    usable: int
    capacity: int


class FailureView(View):
    """A compile failure."""

    status: Literal["failure"]
    code: str
    also: tuple[AlsoView, ...] = ()
    step: Annotated[str, Field(alias="primary_pass")] = ""
    needed_tokens: int
    excess_tokens: int | None = None
    smallest_window: int | None = None
    proof: str = "exact"
    capacity: CapacityView
    tokens: TokensView | None = None
    breakdown: tuple[PartView, ...] = ()
    blocking: tuple[FactView, ...] = ()
    relaxations: tuple[RelaxationView, ...] = ()
    remedies: tuple[RemedyView, ...] = ()
    rejected: Annotated[dict[str, int], Field(alias="rejected_histogram")] = {}
    profile: ProfileView
    trace_digest: str = ""


class FaultView(View):
    """Something wrong with an input."""

    path: str
    message: str


class InvalidView(View):
    """An input that broke the data contract."""

    status: Literal["invalid"]
    faults: tuple[FaultView, ...] = ()


Result = BundleView | FailureView | InvalidView
_RESULT: TypeAdapter[Result] = TypeAdapter(Annotated[Result, Field(discriminator="status")])
_STATUSES = ("bundle", "failure", "invalid")


def read_result(data: Any) -> Result:
    """Read a result of `loadmaster compile`.

    Raises:
        InvalidInput: The data is something else, or a result with a part missing.
    """
    if isinstance(data, Mapping) and data.get("t") == "head":
        raise InvalidInput([Fault("$", "is a trace, not a result; compile prints the result on stdout")])
    if isinstance(data, Mapping) and "candidates" in data and "status" not in data:
        raise InvalidInput([Fault("$", "is a request, not a result; run loadmaster compile on it first")])
    if not isinstance(data, Mapping) or data.get("status") not in _STATUSES:
        message = "is no result of loadmaster compile: it has no status bundle, failure or invalid"
        raise InvalidInput([Fault("$", message)])
    try:
        return _RESULT.validate_python(data)
    except ValidationError as error:
        faults = [
            Fault(json_path(*flaw["loc"][1:]), _message(flaw["type"], flaw["msg"]))
            for flaw in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise InvalidInput(faults) from None


def _message(kind: str, message: str) -> str:
    return "is missing, so this is no whole result" if kind == "missing" else message
