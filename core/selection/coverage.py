"""Coverage: which needs the bundle meets, and whether one more candidate adds anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from loadmaster.core.items import Item

Witness = tuple[str | None, str | None]


class Coverage:
    """The needs that are covered, by whom. A candidate without ``covers`` counts as covering itself."""

    def __init__(self, needs: Iterable[str], corroboration: int, items: Sequence[Item]) -> None:
        self._needs = frozenset(needs)
        self._corroboration = corroboration
        self._items = items
        self._witnesses: dict[str, dict[int, Witness]] = defaultdict(dict)

    def enter(self, indices: Iterable[int]) -> None:
        """Count what came into the bundle, dependencies included."""
        for index in indices:
            for need in self._items[index].covers:
                self._witnesses[need][index] = _witness(self._items[index])

    def leave(self, indices: Iterable[int]) -> None:
        """Take back what left it."""
        for index in indices:
            for need in self._items[index].covers:
                self._witnesses[need].pop(index, None)

    def adds(self, unit: Iterable[int]) -> bool:
        """Whether a unit meets an uncovered need, or is an independent witness to a covered one.

        Witnesses are independent if they differ in source and, where both name it, in provenance;
        beyond the first, a need takes ``corroboration`` of them. A source that is not named is
        independent of nothing.
        """
        declared = False
        for index in unit:
            for need in self._items[index].covers:
                declared = True
                if self._needs and need not in self._needs:
                    continue
                witnesses = {witness for other, witness in self._witnesses[need].items() if other != index}
                if not witnesses:
                    return True
                mine = _witness(self._items[index])
                if len(witnesses) <= self._corroboration and all(
                    _independent(mine, other) for other in witnesses
                ):
                    return True
        return not declared

    def named_by(self, unit: Iterable[int]) -> list[str]:
        """Give the needs a unit names, for explaining why it adds nothing."""
        return sorted({need for index in unit for need in self._items[index].covers})


def _witness(item: Item) -> Witness:
    return item.source[0] if item.source else None, item.provenance


def _independent(one: Witness, other: Witness) -> bool:
    if one[0] is None or other[0] is None or one[0] == other[0]:
        return False
    return one[1] is None or other[1] is None or one[1] != other[1]
