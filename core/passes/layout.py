"""Pass 8, layout: the order in which the model sees the bundle. Never by score."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.draft import Draft
from loadmaster.core.items import SECTIONS, OrderKey, tool_name
from loadmaster.core.pool import Pool

LAYOUTS = {"canonical": "canonical/1", "cache": "cache/1"}

Place = tuple[int, OrderKey, str]


def lay_out(draft: Draft) -> Draft:
    """Order text blocks by section, layer and place, then the run of messages, then tools by name.

    Members of a unit in one section stay adjacent, at the place of the least of them. The layout
    ``cache`` puts what changes least first among everything that is not governing.
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

    def shelf(index: int) -> tuple[bool, int, int]:
        item = pool.items[index]
        governing = item.section == "governing"
        stability = item.stability if by_stability and not governing else 0
        return not governing, stability, SECTIONS.index(item.section)

    least: dict[tuple[object, int], Place] = {}
    for index in kinds["text"]:
        corner, place = (shelf(index), pool.unit(index)[0]), _place(pool, index)
        least[corner] = min(place, least.get(corner, place))
    kinds["text"].sort(
        key=lambda index: (shelf(index), least[shelf(index), pool.unit(index)[0]], _place(pool, index))
    )
    kinds["message"].sort(key=lambda index: _place(pool, index)[1:])
    kinds["tool"].sort(key=lambda index: (tool_name(value_of[index] or {}), pool.items[index].id))
    return replace(draft, order=(*kinds["text"], *kinds["message"], *kinds["tool"]))


def _place(pool: Pool, index: int) -> Place:
    item = pool.items[index]
    return pool.rank_of_layer(item.layer), item.order, item.id
