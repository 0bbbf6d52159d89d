"""What may be chosen: the legal forms of live candidates, their prices, and what needs what.

Indices are positions in the canonical order. Most candidates stand alone, so everything that is
about relations is sparse.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from loadmaster.core.items import Item, ItemForm, OrderKey


@dataclass(frozen=True, slots=True)
class Pool:
    """Live candidates with legal forms, richest first, and prices in tokens.

    Attributes:
        items: All candidates, refused ones included, then the message envelopes.
        live: Indices of the candidates that may still enter, ascending.
        legal: Their legal forms; empty for the rest.
        cost: The price of each legal form.
        needs: What a candidate requires whatever its form; live indices.
        form_needs: What one form requires beyond that, by (index, position in ``legal``).
        members: All members of a unit of several, by each of its members.
        leads: The strongest of them, likewise.
        tied: Everything that needs something, is needed, or is a member of a unit of several.
        tags: The unresolved conflict that a candidate is a side of.
        bands: Each candidate's own band, lifts included.
        unit_bands: The band of each candidate's unit.
        priming: Tokens that the message list costs once; nothing for a bundle of text.
        chat: Whether the bundle is sent as messages.
    """

    items: Sequence[Item]
    live: Sequence[int]
    legal: Sequence[tuple[ItemForm, ...]]
    cost: Sequence[tuple[int, ...]]
    needs: Mapping[int, tuple[int, ...]]
    form_needs: Mapping[tuple[int, int], tuple[int, ...]]
    members: Mapping[int, tuple[int, ...]]
    leads: Mapping[int, int]
    tied: frozenset[int]
    tags: Mapping[int, str]
    bands: Sequence[int]
    unit_bands: Sequence[int]
    layer_rank: Mapping[str, int]
    priming: int
    chat: bool

    def unit(self, index: int) -> tuple[int, ...]:
        """Give all members of a candidate's unit, ascending."""
        return self.members.get(index) or (index,)

    def rank_of_layer(self, layer: str | None) -> int:
        """Give a layer's place in the declared array; no layer comes before all."""
        return -1 if layer is None else self.layer_rank[layer]

    def mates(self, index: int) -> tuple[int, ...]:
        """Give the way to a unit's other members: from the first to all, from each other to the first."""
        unit = self.members.get(index)
        return () if unit is None else unit if unit[0] == index else unit[:1]

    def lead(self, index: int) -> int:
        """Give the strongest member of a candidate's unit."""
        return self.leads.get(index, index)

    def close(self, roots: Iterable[int], have: Container[int] = ()) -> set[int]:
        """Give everything that the roots need whatever forms are chosen, without what is there already."""
        found: set[int] = set()
        stack = list(roots)
        while stack:
            index = stack.pop()
            if index in found or index in have:
                continue
            found.add(index)
            stack.extend(self.mates(index))
            stack.extend(self.needs.get(index, ()))
        return found


def leads_of(
    items: Sequence[Item],
    bands: Sequence[int],
    layer_rank: Mapping[str, int],
    members: Mapping[int, tuple[int, ...]],
) -> dict[int, int]:
    """Give each unit's strongest member: by band, relevance, layer, order and id."""

    def strength(index: int) -> tuple[int, Decimal, int, OrderKey, int]:
        item = items[index]
        layer = -1 if item.layer is None else layer_rank[item.layer]
        return bands[index], item.candidate.relevance.copy_negate(), layer, item.order, index

    leads: dict[int, int] = {}
    for index, unit in members.items():
        leads[index] = leads[unit[0]] if unit[0] in leads else min(unit, key=strength)
    return leads
