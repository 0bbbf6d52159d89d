"""The output of a compile that succeeds: the bundle, typed, and JSON-plain by ``to_dict``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from loadmaster.core.canonical import canonical_json
from loadmaster.core.draft import Row
from loadmaster.core.trace import Trace


@dataclass(frozen=True, slots=True)
class Block:
    """One candidate in the bundle, exactly as the model sees it.

    Attributes:
        id: The candidate's id.
        ref: The id that the block shows, which is shorter where the candidate's own is long or random.
        section: Where it went; ``layer`` where it came from, ``band`` how badly it was wanted.
        form: The representation that was chosen.
        kind: ``text``, ``message`` or ``tool``.
        tokens: What it is charged.
        stability: How long it stays the same, which decides where a cached prefix ends.
        text: The rendered block; for a message or a tool its canonical JSON.
        value: The message or tool as it was given.
        metadata: The candidate's own, carried through.
    """

    id: str
    ref: str
    section: str
    layer: str | None
    band: str
    form: str
    kind: Literal["text", "message", "tool"]
    tokens: int
    stability: str
    text: str
    value: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give the block as JSON data."""
        data: dict[str, Any] = {
            "id": self.id,
            "section": self.section,
            "layer": self.layer,
            "band": self.band,
            "form": self.form,
            "tokens": self.tokens,
            "stability": self.stability,
            "text": self.text,
        }
        if self.ref != self.id:
            data["ref"] = self.ref
        if self.kind != "text":
            data["kind"] = self.kind
        if self.metadata:
            data["metadata"] = _sorted(self.metadata)
        return data


@dataclass(frozen=True, slots=True)
class Tokens:
    """The budget arithmetic with its results, all in tokens; figures may be negative where a budget is.

    ``used`` is the whole bundle, ``framing`` the part of it that belongs to no block, ``slack`` what
    is left of the capacity, and ``slack_reason`` why nothing more came in.
    """

    window: int
    usable: int
    headroom: int
    capacity: int
    standing: int
    task: int
    used: int
    framing: int
    slack_reason: str | None
    encoding: str
    source: str
    margin: Decimal

    @property
    def allocatable(self) -> int:
        """What is left of the capacity beside standing content."""
        return self.capacity - self.standing

    @property
    def slack(self) -> int:
        """What the bundle leaves of the capacity."""
        return self.capacity - self.used

    def figures(self) -> dict[str, int]:
        """Give the figures alone."""
        return {
            "window": self.window,
            "usable": self.usable,
            "headroom": self.headroom,
            "capacity": self.capacity,
            "standing": self.standing,
            "task": self.task,
            "allocatable": self.allocatable,
            "used": self.used,
            "framing": self.framing,
            "slack": self.slack,
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the figures, where they come from, and why there is slack, as JSON data."""
        return {
            **self.figures(),
            "slack_reason": self.slack_reason,
            "encoding": self.encoding,
            "source": self.source,
            "margin": _number(self.margin),
        }


@dataclass(frozen=True, slots=True)
class Prefix:
    """The leading blocks that a provider's cache may keep: their hash chain, tokens and number."""

    digest: str
    tokens: int
    blocks: int


@dataclass(frozen=True, slots=True)
class ProfileUsed:
    """The profile that was applied, and why: ``explicit``, ``route`` or ``default``."""

    name: str
    version: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """Give it as JSON data."""
        return {"name": self.name, "version": self.version, "why": self.why}


@dataclass(frozen=True, slots=True)
class Omission:
    """A candidate that is not in the bundle: the pass and rule that left it out, and the nearest cure.

    ``cause`` names the candidate that it leans on for that: the one that replaces it or that it was
    merged into, or the missing member of its group, its conflict or its dependencies.
    """

    id: str
    step: str
    rule: str
    would: str
    cause: str | None = None

    def to_dict(self) -> dict[str, str]:
        """Give it as JSON data."""
        data = {"id": self.id, "pass": self.step, "rule": self.rule, "would": self.would}
        return data if self.cause is None else {**data, "cause": self.cause}


@dataclass(frozen=True, slots=True)
class Bundle:
    """The exact ordered context that the model will see, with the record of how it came about."""

    digest: str
    prefix: Prefix
    tokens: Tokens
    profile: ProfileUsed
    policies: Mapping[str, str]
    allocation: tuple[Row, ...]
    blocks: tuple[Block, ...]
    omitted: tuple[Omission, ...]
    chat: bool
    trace: Trace
    status: Literal["bundle"] = "bundle"

    @property
    def text(self) -> str:
        """The text blocks in order: the bundle, if it holds neither messages nor tools."""
        return "".join(block.text for block in self.blocks if block.kind == "text")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages to send: governing text first, then other text in one message, then the run.

        System messages at the start of the run stay ahead of the context, since providers want
        system content first and in one piece.
        """
        governing = "".join(
            block.text for block in self.blocks if block.kind == "text" and block.section == "governing"
        )
        context = "".join(
            block.text for block in self.blocks if block.kind == "text" and block.section != "governing"
        )
        run = [dict(block.value or {}) for block in self.blocks if block.kind == "message"]
        leading = next(
            (at for at, message in enumerate(run) if message["role"] not in ("system", "developer")), len(run)
        )
        messages = [{"role": "system", "content": governing}] if governing else []
        messages += run[:leading]
        messages += [{"role": "user", "content": context}] if context else []
        return messages + run[leading:]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tool schemas to send, ordered by name."""
        return [dict(block.value or {}) for block in self.blocks if block.kind == "tool"]

    @property
    def trace_digest(self) -> str:
        """The digest of the serialised trace."""
        return self.trace.digest

    def unwrap(self) -> Bundle:
        """Give the bundle; a failure raises here."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Give the result of the data contract."""
        data: dict[str, Any] = {
            "status": self.status,
            "digest": self.digest,
            "prefix": {
                "digest": self.prefix.digest,
                "tokens": self.prefix.tokens,
                "blocks": self.prefix.blocks,
            },
            "tokens": self.tokens.to_dict(),
            "profile": self.profile.to_dict(),
            "policies": dict(self.policies),
            "allocation": [row_to_dict(row) for row in self.allocation],
            "blocks": [block.to_dict() for block in self.blocks],
            "omitted": [omission.to_dict() for omission in self.omitted],
            "trace_digest": self.trace_digest,
        }
        if self.chat:
            data["messages"] = [_sorted(message) for message in self.messages]
            data["tools"] = [_sorted(tool) for tool in self.tools]
        return data


def row_to_dict(row: Row) -> dict[str, Any]:
    """Give a layer's row as JSON data."""
    return {
        "layer": row.layer,
        "floor": row.floor,
        "ratio": _number(row.ratio),
        "cap": row.cap,
        "wants": row.wants,
        "floor_grant": row.floor_grant,
        "surplus": row.surplus,
        "granted": row.granted,
        "used": row.used,
        "floor_unmet": row.floor_unmet,
    }


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _sorted(value: Any) -> Any:
    """Bring JSON data into one key order, so that equal results give equal bytes."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_sorted(element) for element in value]
    return value


def block_bytes(block: Block) -> bytes:
    """Give the canonical bytes of a block, over which digests run."""
    return (block.text if block.kind == "text" else canonical_json(block.value)).encode()
