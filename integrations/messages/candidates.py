"""A chat history as candidates: what must be there, what competes, and what travels together.

System content, tool schemas and the latest user message are mandatory, the last assistant block with its
results is required. Everything older competes by recency. What no provider takes gets no form, so that it is
left out with a reason or, where it is a must-have, is an explicit failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from loadmaster.core.contract import AuthorityName, BandName, Candidate, Form, Source
from loadmaster.core.faults import InvalidInput
from loadmaster.core.items import tool_name
from loadmaster.integrations.messages.checks import faults_of
from loadmaster.integrations.messages.history import Message, Segment, segments_of

LATEST_HUMAN = "message:latest-user"
"""The id that stands for the latest user message where a history has none."""

_HALF_AGE = Decimal(30)
"""The age in messages at which half of what recency adds is gone. Hand-set; 10 to 100 measured alike."""
_STEP = Decimal("1e-12")
"""Fine enough to tell ages apart up to some three million messages."""
_ARITHMETIC = Context(prec=28, rounding=ROUND_HALF_EVEN)

_AUTHORITY: Mapping[str, AuthorityName] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def candidates_of(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, *, checked: bool = False
) -> list[Candidate]:
    """Give the candidates that stand for an OpenAI-form history and its tool schemas.

    Ids are ``message:0012`` and ``block:0012`` by the place of the first message, ``tool:NAME`` for schemas.
    ``checked`` says that the input is known to have no fault.

    Raises:
        InvalidInput: With every fault of the input (`checks`).
    """
    faults = [] if checked else faults_of(messages, tools)
    if faults:
        raise InvalidInput(faults)
    history = _History(messages)
    candidates = [candidate for segment in history.segments for candidate in history.candidates(segment)]
    candidates += [_tool(tool) for tool in tools or ()]
    return candidates


class _History:
    """A checked history on its way to candidates."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.segments = segments_of(messages)
        self._width = max(4, len(str(len(messages) - 1)))
        humans = [segment for segment in self.segments if segment.kind == "human"]
        blocks = [segment for segment in self.segments if segment.kind in ("assistant", "calls")]
        preceded = [segment for segment in blocks if segment.reason != "no_user_before"]
        self._task = humans[-1] if humans else None
        self._last = preceded[-1] if preceded else None
        sendable = [s for s in preceded if s.kind == "calls" and (s.reason is None or s is self._last)]
        self._last_calls = sendable[-1] if sendable else None

    def candidates(self, segment: Segment) -> Iterator[Candidate]:
        """Give a segment's candidates, one for each message."""
        for at in segment.members:
            message = dict(self.messages[at])
            governing, task = segment.kind == "system", segment is self._task
            first = at == segment.members[0]
            yield Candidate(
                id=self._id(at),
                forms=() if segment.reason else (Form(form="full", message=message),),
                layer=None if governing or task else self._layer(segment),
                section="governing" if governing else "task" if task else None,
                band=self._band(segment),
                relevance=Decimal(0) if governing or task else self._recency(at),
                requires=(self._id(segment.answers),) if first and segment.answers is not None else (),
                group=f"block:{segment.members[0]:0{self._width}}" if len(segment.members) > 1 else None,
                authority=_AUTHORITY[message["role"]],
                source=Source(id=self._id(at)),
                order=(0 if governing else 1, at),
                stability="static" if governing else "append",
                metadata={"unsendable": segment.reason} if segment.reason else {},
            )

    def _id(self, at: int) -> str:
        return f"message:{at:0{self._width}}"

    def _layer(self, segment: Segment) -> str:
        return "tools" if segment.kind in ("calls", "orphan") else "conversation"

    def _band(self, segment: Segment) -> BandName:
        if segment.kind == "system" or segment is self._task:
            return "mandatory"
        if segment is self._last_calls:
            return "required"
        return "supported" if segment is self._last else "discretionary"

    def _recency(self, at: int) -> Decimal:
        """Give the relevance of a place in time: 1 for the last, falling strictly towards a half with age.

        It depends on the age alone, not on the length of the history, and starts at a half so that a
        profile's price, which is declared against relevances up to 1, keeps no ordinary old turn out.
        """
        age = len(self.messages) - 1 - at
        bonus = _ARITHMETIC.divide(_HALF_AGE, _HALF_AGE + age) / 2
        return Decimal("0.5") + _ARITHMETIC.quantize(bonus, _STEP)


def _tool(tool: Mapping[str, Any]) -> Candidate:
    name = tool_name(tool)
    return Candidate(
        id=f"tool:{name}",
        forms=(Form(form="full", tool=dict(tool)),),
        section="capability",
        band="mandatory",
        authority="developer",
        source=Source(id=f"tool:{name}"),
        order=(name,),
    )
