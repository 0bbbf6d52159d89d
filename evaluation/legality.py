"""Whether a provider takes a message list: an independent judge of what packers give out.

It reads a list from front to back and knows nothing of how it was made. What it judges is the list in
OpenAI's form, before an adapter turns it into the provider's own: adapters may rename call ids (Anthropic
wants them unique) and join neighbours of one role, but none can invent a result, a first user message or a
text.

Sources, by rule: providers refuse an unanswered call, an orphan result and a wrong order. Anthropic's
adapters raise on system content that is not contiguous; Gemini's drop it, and an orphan result, without a
word. Both want a user message first, text that is not empty, and arguments that are a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

Provider = Literal["openai", "anthropic", "gemini"]
PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini")

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool")


def violations(messages: Sequence[Mapping[str, Any]], provider: Provider) -> list[str]:
    """Say everything for which a provider would refuse a message list, or would not read it as it stands.

    A call that is not yet answered at the very end is legal: its results are still to be appended.
    """
    found = list(_run(messages))
    for at, message in enumerate(messages):
        found += [f"{at}: {problem}" for problem in _message(message, provider)]
    found += _order(messages, provider)
    return found


def _run(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Check that each call is answered once, directly after it, and that nothing else is answered."""
    caller = -1
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            asked = message.get("tool_call_id")
            if asked in open_ids:
                open_ids.remove(asked)
            else:
                yield f"{at}: a result of {asked!r}, which is not waiting for one"
            continue
        if open_ids:
            yield f"{caller}: no result directly after it for {', '.join(open_ids)}"
        caller, open_ids = at, [call.get("id") for call in message.get("tool_calls") or ()]


def _order(messages: Sequence[Mapping[str, Any]], provider: Provider) -> Iterator[str]:
    roles = [str(message.get("role")) for message in messages]
    rest = [at for at, role in enumerate(roles) if role not in _SYSTEM]
    if not messages:
        yield "no message at all"
    if provider == "openai":
        return
    if not rest:
        yield "no message beside system content"
        return
    yield from (
        f"{at}: system content after other messages" for at in range(rest[0], len(roles)) if at not in rest
    )
    if roles[rest[0]] != "user":
        yield f"{rest[0]}: the first message is of role {roles[rest[0]]}, not user"


def _message(message: Mapping[str, Any], provider: Provider) -> Iterator[str]:
    role, calls = message.get("role"), message.get("tool_calls")
    if role not in _ROLES:
        yield f"unknown role {role!r}"
    if calls is not None and (role != "assistant" or not calls):
        yield "calls where none may stand"
    yield from (problem for call in calls or () for problem in _call(call, provider))
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [_text(part) for part in content or ()]
    if any(text is None for text in texts):
        yield "a part that is no text"
    if not calls and role != "tool":
        if not texts:
            yield "no content"
        elif provider != "openai" and not all(text and text.strip() for text in texts):
            yield "empty text"
    if role == "tool" and content is None:
        yield "a result without content"


def _text(part: Mapping[str, Any]) -> str | None:
    text = part.get(part.get("type", "")) if part.get("type") in ("text", "refusal") else None
    return text if isinstance(text, str) else None


def _call(call: Mapping[str, Any], provider: Provider) -> Iterator[str]:
    function = call.get("function") or {}
    if not call.get("id") or call.get("type") != "function" or not function.get("name"):
        yield "a call without an id, a type or a name"
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield "arguments that are no string"
    elif provider != "openai" and arguments.strip():
        try:
            if not isinstance(json.loads(arguments), dict):
                yield "arguments that are no JSON object"
        except (ValueError, RecursionError):
            yield "arguments that are no JSON"
