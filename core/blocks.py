"""The text of a block: a tagged section that no body can close and no attribute can break.

A block starts with ``<`` and ends with a newline. Under cl100k_base and o200k_base a token never
spans such a seam, so counts of blocks add up exactly and a block can be priced by itself.
This guarantees structure, not a model's obedience.
"""

from __future__ import annotations

import re
from typing import Protocol

from loadmaster.core.items import FORMS, SECTIONS, Item, ItemForm

_TAG_LIKE = re.compile(rf"&((?:amp;)*+)lt;|<(?=(?:\s*+/)?+\s*+(?i:{'|'.join(SECTIONS)}))")
_ESCAPED = re.compile(r"&((?:amp;)*+)lt;")
_UNSAFE = re.compile('[&<>"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]')
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def escape_body(text: str) -> str:
    """Escape every ``<`` that could open or close a block; nothing else changes.

    An ``&lt;`` that is there already gains one ``amp;``, so `unescape_body` gives the text back.

    >>> escape_body("a < b, </Evidence> and &lt;")
    'a < b, &lt;/Evidence> and &amp;lt;'
    """
    if "<" not in text and "&" not in text:
        return text
    return _TAG_LIKE.sub(lambda match: "&lt;" if match[0] == "<" else f"&amp;{match[1]}lt;", text)


def unescape_body(text: str) -> str:
    """Undo `escape_body`."""
    return _ESCAPED.sub(lambda match: f"&{match[1].removeprefix('amp;')}lt;" if match[1] else "<", text)


def escape_attribute(text: str) -> str:
    """Escape what could end an attribute, break its line or turn its direction."""
    return _UNSAFE.sub(lambda match: _NAMED.get(match[0]) or f"&#x{ord(match[0]):X};", text)


class Renderer(Protocol):
    """Turns a chosen text form into the block that the model sees."""

    @property
    def name(self) -> str: ...
    @property
    def additive(self) -> bool: ...
    def block(self, item: Item, form: ItemForm, conflict: str | None) -> str: ...


class TaggedRenderer:
    """The default: ``<kind id="…">``, body, ``</kind>``."""

    name = "tagged/1"
    additive = True

    def block(self, item: Item, form: ItemForm, conflict: str | None) -> str:
        """Render one block. ``conflict`` is the id of an unresolved conflict that the item is a side of."""
        attributes = f'id="{escape_attribute(item.ref)}"'
        if form.rank:
            attributes += f' form="{FORMS[form.rank]}"'
        if conflict is not None:
            attributes += f' conflict="{escape_attribute(conflict)}" status="unresolved"'
        return f"<{item.section} {attributes}>\n{escape_body(form.body)}\n</{item.section}>\n"


class PlainRenderer:
    """Bodies alone, a blank line between them, for pipelines that number their sources themselves.

    Such joins are not additive: the whole text is counted again after rendering.
    """

    name = "plain/1"
    additive = False

    def block(self, item: Item, form: ItemForm, conflict: str | None) -> str:
        """Render one body; an unresolved conflict is said in words, since there is no tag to say it."""
        note = "" if conflict is None else f"[unresolved conflict: {escape_attribute(conflict)}]\n"
        return f"{note}{form.body}\n\n"


TAGGED = TaggedRenderer()
PLAIN = PlainRenderer()
