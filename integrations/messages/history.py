"""The structure of a chat history: what stands alone, what belongs to a call, and what no provider takes.

The rules of legality are those of the chat interfaces of OpenAI, Anthropic and Gemini together: system
content first; then a user message first; every call answered once, by the results directly after it; no
result without its call; no empty text. Call ids repeat in real histories, so results are paired by position
first (the contiguous run directly after the call message) and by id inside that run only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Message = Mapping[str, Any]
Kind = Literal["system", "human", "assistant", "calls", "orphan"]
Reason = Literal["empty", "unanswered_call", "orphan_result", "no_user_before", "arguments_no_object"]

SYSTEM_ROLES = ("system", "developer")


class Segment(NamedTuple):
    """What travels together: one message, or a call message with its results.

    Attributes:
        kind: What it is.
        members: The places of its messages in the history.
        answers: The place of the user message that it follows; it may not come without one.
        reason: Why no provider takes it, or None.
    """

    kind: Kind
    members: tuple[int, ...]
    answers: int | None = None
    reason: Reason | None = None


def segments_of(messages: Sequence[Message]) -> list[Segment]:
    """Cut a history into segments, in the order of their first messages.

    System messages are sent ahead of everything, so they part nothing: a call's results may stand behind one.
    """
    segments = [
        Segment("system", (at,), reason=_blank(message))
        for at, message in enumerate(messages)
        if message["role"] in SYSTEM_ROLES
    ]
    run = [at for at, message in enumerate(messages) if message["role"] not in SYSTEM_ROLES]
    human: int | None = None
    place = 0
    while place < len(run):
        at = run[place]
        message = messages[at]
        place += 1
        if message["role"] == "tool":
            segments.append(Segment("orphan", (at,), reason="orphan_result"))
        elif message["role"] == "user":
            segments.append(Segment("human", (at,), reason=_blank(message)))
            human = human if _blank(message) else at
        elif not message.get("tool_calls"):
            early: Reason | None = "no_user_before" if human is None else None
            segments.append(Segment("assistant", (at,), human, _blank(message) or early))
        else:
            results = _results(messages, run[place:])
            place += len(results)
            segments.extend(_block(messages, at, results, human, place == len(run)))
    return sorted(segments, key=lambda segment: segment.members)


def _results(messages: Sequence[Message], rest: Sequence[int]) -> list[int]:
    results = []
    for at in rest:
        if messages[at]["role"] != "tool":
            break
        results.append(at)
    return results


def _block(
    messages: Sequence[Message], at: int, results: Sequence[int], human: int | None, at_end: bool
) -> list[Segment]:
    """Pair a call message with the results directly after it; results that no call asked for are orphans."""
    calls = messages[at]["tool_calls"]
    waiting = Counter(call["id"] for call in calls)
    members, orphans = [at], []
    for place in results:
        asked = messages[place]["tool_call_id"]
        if waiting[asked]:
            waiting[asked] -= 1
            members.append(place)
        else:
            orphans.append(Segment("orphan", (place,), reason="orphan_result"))
    reason: Reason | None = None
    if human is None:
        reason = "no_user_before"
    elif waiting.total() and not at_end:
        reason = "unanswered_call"
    elif not all(_is_object(call["function"]["arguments"]) for call in calls):
        reason = "arguments_no_object"
    return [Segment("calls", tuple(members), human, reason), *orphans]


def _is_object(arguments: str) -> bool:
    """Whether a call's arguments are a JSON object, as Anthropic and Gemini need; blank is none."""
    try:
        return not arguments.strip() or isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _blank(message: Message) -> Reason | None:
    """Whether a message that makes no call is empty, in whole or in a part, which some providers refuse."""
    content = message.get("content")
    parts = (
        [content or ""] if content is None or isinstance(content, str) else [_text(part) for part in content]
    )
    return None if parts and all(part.strip() for part in parts) else "empty"


def _text(part: Mapping[str, Any]) -> str:
    text: str = part[part["type"]]
    return text
