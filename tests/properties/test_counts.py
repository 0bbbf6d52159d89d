"""Counts add up exactly: the parts of a bundle, and the bytes that are sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.laws import compiled, law
from tests.properties.strategies import bodies, documents

from loadmaster import Bundle, EncodingCounter
from loadmaster.core.canonical import canonical_json
from loadmaster.core.tokens import REPLY_PRIMING, message_tokens
from loadmaster.defaults import find_encoding

Json = Any
WINDOW = st.integers(20, 600)
ENCODINGS = st.sampled_from(["o200k_base", "cl100k_base"])


def counter(name: str) -> EncodingCounter:
    encoding = find_encoding(name)
    if encoding is None:
        pytest.skip(f"the vocabulary of {name} is not at hand")
    return EncodingCounter(encoding)


def bundle_of(document: Json, encoding: str) -> Bundle:
    document["request"]["tokenizer"] = encoding
    result = compiled(document)
    assume(result.status == "bundle" and result.blocks)
    assert result.status == "bundle"
    assert sum(block.tokens for block in result.blocks) + result.tokens.framing == result.tokens.used
    assert result.tokens.used <= result.tokens.capacity
    return result


@law(documents(flaws=False, body=bodies(chat=False), window=WINDOW), ENCODINGS, fast=60, deep=750)
def test_text_recounts_to_what_is_charged(document: Json, encoding: str) -> None:
    bundle = bundle_of(document, encoding)
    assert counter(encoding).count(bundle.text) == bundle.tokens.used


@law(documents(flaws=False, body=bodies(chat=True), window=WINDOW), ENCODINGS, fast=60, deep=750)
def test_messages_and_tools_recount_to_what_is_charged(document: Json, encoding: str) -> None:
    bundle = bundle_of(document, encoding)
    assume(bundle.chat)
    counts = counter(encoding)
    messages = sum(message_tokens(counts, message) for message in bundle.messages)
    tools = sum(counts.count(canonical_json(tool)) for tool in bundle.tools)
    assert messages + tools + REPLY_PRIMING == bundle.tokens.used
