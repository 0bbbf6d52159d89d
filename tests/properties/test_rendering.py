"""No body and no id can close a block, open another, or come back changed."""

from __future__ import annotations

import html
import re
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st
from tests.properties.laws import compiled, law
from tests.properties.strategies import bodies, documents, texts

from loadmaster.core.blocks import escape_attribute, escape_body, unescape_body

Json = Any
KINDS = ("governing", "task", "state", "evidence", "capability")
HEAD = re.compile(r'<([a-z]+)((?: [a-z]+="[^"<>\n]*")+)>\n')
ATTRIBUTE = re.compile(r' ([a-z]+)="([^"]*)"')
PIECES = st.lists(
    st.sampled_from(
        ["&", "amp;", "AMP;", "lt;", "LT;", "<", "/", " ", "\n", "task", "TaSk", "\u017ftate", "x"]
    ),
    max_size=12,
).map("".join)


class Parsed(NamedTuple):
    kind: str
    attributes: dict[str, str]
    body: str


def parse(text: str) -> list[Parsed]:
    """Read blocks as a plain reader would: a head, then everything up to the first line that closes it."""
    blocks = []
    while text:
        head = HEAD.match(text)
        assert head is not None and head[1] in KINDS, text[:80]
        close = f"\n</{head[1]}>\n"
        end = text.index(close, head.end())
        attributes = {name: html.unescape(value) for name, value in ATTRIBUTE.findall(head[2])}
        blocks.append(Parsed(head[1], attributes, text[head.end() : end]))
        text = text[end + len(close) :]
    return blocks


@law(st.one_of(texts(), PIECES), fast=400, deep=5000)
def test_bodies_come_back(text: str) -> None:
    escaped = escape_body(text)
    assert unescape_body(escaped) == text
    assert not re.search(rf"<\s*/?\s*(?:{'|'.join(KINDS)})", escaped, re.IGNORECASE)


@law(st.one_of(texts(), PIECES), fast=200, deep=2500)
def test_attributes_stay_attributes(text: str) -> None:
    escaped = escape_attribute(text)
    assert not re.search(r'[<>"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]', escaped)
    assert (
        re.sub(r"&(?:#x([0-9A-F]+)|(\w+));", lambda m: chr(int(m[1], 16)) if m[1] else NAMED[m[2]], escaped)
        == text
    )


NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}


@law(
    documents(flaws=False, tokenizer="estimate", body=bodies(chat=False), window=st.just(2000)),
    fast=60,
    deep=750,
)
def test_text_parses_back_into_its_blocks(document: Json) -> None:
    result = compiled(document)
    assume(result.status == "bundle")
    assert result.status == "bundle"
    given = {
        (candidate["id"], form["form"]): form["text"]
        for candidate in document["candidates"]
        for form in candidate["forms"]
    }
    blocks = parse(result.text)
    assert [(block.kind, block.attributes["id"]) for block in blocks] == [
        (block.section, block.ref) for block in result.blocks
    ]
    for shown, block in zip(blocks, result.blocks, strict=True):
        assert unescape_body(shown.body) == given[block.id, block.form]
        assert shown.attributes.get("form", "full") == block.form
    assert len({block.ref for block in result.blocks}) == len(result.blocks)
