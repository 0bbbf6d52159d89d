"""Pass 8, layout: the order in which the model sees the bundle. Never by score."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.draft import Draft
from loadmaster.core.items import SECTIONS, OrderKey, tool_name
from loadmaster.core.pool import Pool

LAYOUTS = {"canonical": "canonical/1", "cache": "cache/1"}

Place = tuple[OrderKey, str]


def lay_out(draft: Draft) -> Draft:
    """Order text blocks by section, layer and place, then the run of messages, then tools by name.

    Members of a unit stay adjacent, at the place of the least of them. The layout ``cache`` puts
    what changes least first among everything that is not governing.
    """
    pool, packed = draft.pool, draft.packed
    assert pool is not None and packed is not None
    chosen = [index for index in packed.ledger.place if index < len(draft.items)]
    kinds: dict[str, list[int]] = {"text": [], "message": [], "tool": []}
    value_of = {}
    for index in chosen:
        form = pool.legal[index][packed.ledger.place[index]]
        kinds[form.kind].append(index)
        value_of[index] = form.value
    by_stability = draft.problem.policy.profile.layout == "cache"
    least = _least_places(pool, kinds["text"])

    def text_key(index: int) -> tuple[int, int, int, Place, Place]:
        item = pool.items[index]
        section = SECTIONS.index(item.section)
        stability = item.stability if by_stability and section else 0
        layer = pool.rank_of_layer(item.layer)
        return stability, section, layer, least[_corner(pool, index)], _place(pool, index)

    kinds["text"].sort(key=text_key)
    if by_stability:
        kinds["text"].sort(key=lambda index: pool.items[index].section != "governing")
    kinds["message"].sort(key=lambda index: _place(pool, index))
    kinds["tool"].sort(key=lambda index: (tool_name(value_of[index] or {}), pool.items[index].id))
    return replace(draft, order=(*kinds["text"], *kinds["message"], *kinds["tool"]))


def _place(pool: Pool, index: int) -> Place:
    item = pool.items[index]
    return item.order, item.id


def _corner(pool: Pool, index: int) -> tuple[int, str, str | None]:
    item = pool.items[index]
    return pool.unit(index)[0], item.section, item.layer


def _least_places(pool: Pool, chosen: list[int]) -> dict[tuple[int, str, str | None], Place]:
    """Give the place of each unit's least member in one section and layer."""
    least: dict[tuple[int, str, str | None], Place] = {}
    for index in chosen:
        corner, place = _corner(pool, index), _place(pool, index)
        least[corner] = min(place, least.get(corner, place))
    return least
