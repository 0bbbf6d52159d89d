"""Token accounting: counters, the framing of messages, and counts cached by content.

No count is universal. Every figure carries its source, the encoding and a margin, and the budget is
charged ``ceil(count * (1 + margin))`` for each block, message and tool schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol

import tiktoken

from loadmaster.core.canonical import canonical_json

CountSource = Literal["exact", "calibrated", "estimated", "declared"]

MESSAGE_FRAME = 3
"""Tokens around each message, besides its role, as OpenAI's chat template is publicly described."""
REPLY_PRIMING = 3
"""Tokens that open the reply, once a request."""


class TokenCount(NamedTuple):
    """A count with what it is worth."""

    value: int
    source: CountSource
    encoding: str
    margin: Decimal


class TokenCounter(Protocol):
    """Counts the tokens of a text. Must be pure: equal texts give equal counts, in every thread.

    ``additive`` promises that counts of text blocks sum to the count of their concatenation, given
    that a block starts with ``<`` and ends with a newline; without the promise the whole text is
    counted again after rendering.
    """

    @property
    def encoding(self) -> str: ...
    @property
    def source(self) -> CountSource: ...
    @property
    def margin(self) -> Decimal: ...
    @property
    def additive(self) -> bool: ...
    def count(self, text: str) -> int: ...


LONGEST_SPACE = 100_000
"""Longest run of blanks that is left to tiktoken's splitting: from a million on it panics, for o200k_base."""

_BLANKS = re.compile(r"[\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]++")
"""White space as the encodings' patterns see it, without what ends a line."""


def _in_safe_pieces(tokenizer: tiktoken.Encoding, text: str) -> Iterator[list[int]]:
    """Encode a text in pieces that its encoding would make itself, so that no long run reaches the splitter.

    Both patterns take a run of two or more blanks as one piece, whatever stands before it, and leave
    its last blank to what follows, if anything does. A run that a line end follows splits with that
    and needs no care.
    """
    start = 0
    for run in _BLANKS.finditer(text):
        if run.end() - run.start() > LONGEST_SPACE and text[run.end() : run.end() + 1] not in ("\r", "\n"):
            end = run.end() if run.end() == len(text) else run.end() - 1
            yield tokenizer.encode_ordinary(text[start : run.start()])
            yield tokenizer._encode_single_piece(text[run.start() : end])
            start = end
    yield tokenizer.encode_ordinary(text[start:])


@dataclass(frozen=True)
class EncodingCounter:
    """Counts with a tiktoken encoding. Special-token text in a body is ordinary text."""

    tokenizer: tiktoken.Encoding
    source: CountSource = "exact"
    margin: Decimal = Decimal(0)

    @property
    def encoding(self) -> str:
        """The encoding's name."""
        return self.tokenizer.name

    @property
    def additive(self) -> bool:
        """Proven and tested for these encodings; for another one the whole text is counted again."""
        return self.tokenizer.name in ("cl100k_base", "o200k_base", "o200k_harmony")

    def count(self, text: str) -> int:
        """Count the tokens of ``text``."""
        if len(text) <= LONGEST_SPACE or not self.additive:
            return len(self.tokenizer.encode_ordinary(text))
        return sum(map(len, _in_safe_pieces(self.tokenizer, text)))


@dataclass(frozen=True)
class EstimateCounter:
    """The labelled estimate for when no vocabulary is at hand: a token for every four bytes of UTF-8.

    Measured text runs at 3.6 (JSON) to 4.7 (prose) characters a token under o200k; the margin covers that.
    """

    encoding: str = "estimate"
    source: CountSource = "estimated"
    margin: Decimal = Decimal("0.2")
    additive: bool = True

    def count(self, text: str) -> int:
        """Estimate the tokens of ``text``."""
        return -(-len(text.encode()) // 4)


@dataclass(frozen=True)
class DeclaredCounter:
    """Takes each form's declared ``tokens`` and counts no framing; for fixtures."""

    encoding: str = "declared"
    source: CountSource = "declared"
    margin: Decimal = Decimal(0)
    additive: bool = True

    def count(self, text: str) -> int:
        """Count nothing: a declared form never gets here."""
        return 0


class CountCache:
    """A bounded cache from content digests to counts; safe to share between threads.

    Two generations: when the young one is full it becomes the old one, and what is still used is
    copied back on its next hit. So a lookup is one or two dictionary reads and nothing is locked;
    two threads that miss together count the same text twice, to the same result.
    """

    def __init__(self, size: int = 1 << 18) -> None:
        self._half = max(1, size // 2)
        self.young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def get(self, key: bytes) -> int | None:
        """Give the count for ``key``, or None."""
        count = self.young.get(key)
        if count is None:
            count = self._old.get(key)
            if count is not None:
                self.put(key, count)
        return count

    def put(self, key: bytes, count: int) -> None:
        """Remember a count."""
        if len(self.young) >= self._half:
            self._old, self.young = self.young, {}
        self.young[key] = count


class Meter:
    """Counts what a budget is charged, through one counter and one cache.

    The cache must not be shared between meters that count or render differently: its keys are
    digests of content alone.
    """

    def __init__(self, counter: TokenCounter, cache: CountCache | None = None) -> None:
        self.counter = counter
        self.declared = counter.encoding == "declared"
        self.cache = CountCache() if cache is None else cache
        self._scale = 1 + counter.margin

    def charge_text(self, text: str) -> int:
        """Give the charge for a text, uncached."""
        return self._with_margin(self.counter.count(text))

    def charge_message(self, message: Mapping[str, Any]) -> int:
        """Give the charge for one message in the form that is sent, with its frame.

        Text counts as text, a name one token more, and every other field as the compact JSON that
        carries it: tool calls, their ids and what a provider adds.
        """
        return 0 if self.declared else self._with_margin(message_tokens(self.counter, message))

    @property
    def priming(self) -> int:
        """The charge that a message list pays once."""
        return 0 if self.declared else self._with_margin(REPLY_PRIMING)

    def _with_margin(self, count: int) -> int:
        return count if self._scale == 1 else ceil(count * self._scale)


def message_tokens(counter: TokenCounter, message: Mapping[str, Any]) -> int:
    """Count one chat message as it is sent, by the rule of `Meter.charge_message`, before any margin."""
    total = MESSAGE_FRAME
    for key, value in message.items():
        if value is None:
            continue
        if isinstance(value, str):
            total += counter.count(value) + (key == "name")
        elif key == "content" and isinstance(value, list):
            total += sum(_part_tokens(counter, part) for part in value)
        else:
            total += counter.count(canonical_json(value))
    return total


def _part_tokens(counter: TokenCounter, part: Any) -> int:
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return counter.count(part["text"])
    return counter.count(canonical_json(part))
