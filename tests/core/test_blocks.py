from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadmaster import PLAIN, TAGGED, Candidate, Form
from loadmaster.core.blocks import escape_attribute, escape_body, unescape_body
from loadmaster.core.items import SECTIONS, Item, longer_reference, refer_apart, short_reference

PIECES = st.sampled_from(
    [
        "<",
        "/",
        " ",
        "\n",
        "\t",
        ">",
        "&",
        "amp;",
        "lt;",
        "LT;",
        "\u017f",
        "\u212a",
        "\x00",
        "x",
        *SECTIONS,
        "TASK",
    ]
)
BODIES = st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=30).map("".join)
TAG = re.compile(rf"<\s*/?\s*(?:{'|'.join(SECTIONS)})", re.IGNORECASE)


def item(identifier: str, **fields: object) -> Item:
    return Candidate.model_validate(
        {"id": identifier, "forms": (Form(form="full", text="x"),), **fields}
    ).item


@given(BODIES)
def test_escaping_a_body_loses_nothing_and_leaves_no_tag(text: str) -> None:
    escaped = escape_body(text)
    assert unescape_body(escaped) == text
    assert TAG.search(escaped) is None


@given(BODIES, BODIES)
def test_different_bodies_stay_different(one: str, other: str) -> None:
    assert (escape_body(one) == escape_body(other)) == (one == other)


@given(BODIES)
def test_what_is_no_tag_and_no_escape_stays_as_it_is(text: str) -> None:
    if "lt;" not in text and TAG.search(text) is None:
        assert escape_body(text) == text


@given(BODIES)
def test_an_attribute_stays_on_its_line_and_in_its_quotes(text: str) -> None:
    escaped = escape_attribute(text)
    assert not re.search(
        '["<>\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\u061c]', escaped
    )
    assert len(f"<evidence {escaped}>".splitlines()) == 1


@pytest.mark.parametrize("section", SECTIONS)
def test_a_block_starts_with_its_kind_and_ends_with_a_newline(section: str) -> None:
    made = item("a", section=section)
    assert TAGGED.block(made, made.forms[0], None) == f'<{section} id="a">\nx\n</{section}>\n'


def test_a_plain_block_is_its_body() -> None:
    made = item("a")
    assert PLAIN.block(made, made.forms[0], None) == "x\n\n"
    assert PLAIN.block(made, made.forms[0], "k\n") == "[unresolved conflict: k&#xA;]\nx\n\n"


@pytest.mark.parametrize(
    "identifier",
    [
        "a",
        "doc-1",
        "memory/address-old",
        "v1.10",
        "read_document",
        "terms:2026",
        "m" * 32,
        "user@host",
        "x#3",
        "a+b",
    ],
)
def test_short_and_readable_ids_are_their_own_reference(identifier: str) -> None:
    assert short_reference(identifier) == identifier


@pytest.mark.parametrize(
    "identifier",
    [
        "m" * 33,
        "1st",
        "a b",
        "é",
        "~00000000",
        "",
        "a\n",
        "0123456789abcdef",
        "doc-0123456789abcdef",
        "6ba7b810-9dad-11d1-80b4",
        "call_4fG7hJ2kLmN8pQ",
        'a"b',
        "<a>",
    ],
)
def test_long_odd_or_random_ids_are_referred_to_by_digest(identifier: str) -> None:
    assert short_reference(identifier) == longer_reference(identifier, 8)
    assert re.fullmatch("~[0-9a-f]{8}", short_reference(identifier))


def clashing_ids() -> tuple[str, str]:
    """Find two ids whose short references are equal: about 2 ** 16 tries by the birthday bound."""
    seen: dict[str, str] = {}
    for number in range(1 << 20):
        identifier = f"clash number {number}"
        other = seen.setdefault(longer_reference(identifier, 8), identifier)
        if other != identifier:
            return other, identifier
    raise AssertionError("no clash")


def test_references_that_clash_are_lengthened_until_each_names_one() -> None:
    one, other = clashing_ids()
    first, second = item(one), item(other)
    assert first.ref == second.ref
    items = [first, item("plain"), second]
    refer_apart(items, range(3))
    assert len({made.ref for made in items}) == 3
    assert items[1].ref == "plain"
    assert any(made.ref == longer_reference(made.id, 16) for made in (items[0], items[2]))
    assert (
        items[2].forms[0].digest != second.forms[0].digest
        or items[0].forms[0].digest != first.forms[0].digest
    )


def test_a_clash_with_what_is_absent_changes_nothing() -> None:
    one, other = clashing_ids()
    items = [item(one), item(other)]
    refer_apart(items, [1])
    assert items[1].ref == longer_reference(other, 8)
