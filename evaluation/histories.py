"""Agent histories as a test of packers: the points where the model is called, and what must be kept there.

Nothing here is shared with the compiler: tokens are counted anew with the tokenizer itself, so that a figure
that agrees has been derived twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tiktoken

Message = Mapping[str, Any]

SYSTEM = ("system", "developer")
VALUE_LENGTHS = (5, 60)
"""Characters of a string that counts as a value: shorter ones occur anywhere, longer ones are prose."""


class Point(NamedTuple):
    """A moment at which the model was called.

    Attributes:
        messages: The history up to there.
        calls: Whether the model went on to call a tool.
        values: The string arguments of that call that occur earlier in the history, system content
            aside, so that the model had them from there.
    """

    messages: Sequence[Message]
    calls: bool
    values: tuple[str, ...]


def points_of(history: Sequence[Message]) -> Iterator[Point]:
    """Give every point at which a history's model was called."""
    texts = [text_of(message) for message in history]
    for at, message in enumerate(history):
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            known = [
                text for other, text in zip(history[:at], texts, strict=False) if other["role"] not in SYSTEM
            ]
            values = [value for call in calls for value in _values(json.loads(call["function"]["arguments"]))]
            yield Point(history[:at], bool(calls), tuple(value for value in values if _is_in(value, known)))


def values_kept(values: Sequence[str], messages: Sequence[Message]) -> int:
    """Count the values that some message of a bundle holds, system content aside."""
    texts = [text_of(message) for message in messages if message["role"] not in SYSTEM]
    return sum(_is_in(value, texts) for value in values)


def text_of(message: Message) -> str:
    """Give what a message says: its content, and its calls' arguments as they were written."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content or ()]
    return "\n".join([*parts, *(call["function"]["arguments"] for call in message.get("tool_calls") or ())])


def _is_in(value: str, texts: Sequence[str]) -> bool:
    return any(value in text for text in texts)


def _values(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, str):
        if VALUE_LENGTHS[0] <= len(arguments) <= VALUE_LENGTHS[1]:
            yield arguments
    elif isinstance(arguments, dict | list):
        for inner in arguments.values() if isinstance(arguments, dict) else arguments:
            yield from _values(inner)


class Ruler:
    """Counts what would be sent: text, 3 tokens a message, 1 for a name and 3 for the reply, as is published.

    Tool calls and schemas count as compact JSON, since no provider publishes how it renders them.
    """

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self._known: dict[str, int] = {}

    def total(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> int:
        """Count a whole request."""
        return 3 + sum(map(self.message, messages)) + sum(self._text(_compact(tool)) for tool in tools)

    def message(self, message: Message) -> int:
        """Count one message with its frame."""
        count = 3 + ("name" in message)
        for field, value in message.items():
            if field == "content" and isinstance(value, list):
                texts = [part["text"] if part["type"] == "text" else _compact(part) for part in value]
                count += sum(map(self._text, texts))
            elif value is not None:
                count += self._text(value if isinstance(value, str) else _compact(value))
        return count

    def texts(self, message: Message) -> int:
        """Count what a message says alone: its content, and its calls' names and arguments."""
        names = [call["function"]["name"] for call in message.get("tool_calls") or ()]
        return sum(map(self._text, [*names, text_of(message)]))

    def _text(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self._encoding.encode(text, disallowed_special=()))
        return self._known[text]


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def tail(sizes: Sequence[int], room: int) -> int:
    """Give where the longest tail starts that fits the room."""
    start = len(sizes)
    while start and sizes[start - 1] <= room:
        start -= 1
        room -= sizes[start]
    return start
