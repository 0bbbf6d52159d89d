"""The state that passes hand on: what is still in play, what was decided, and what blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from loadmaster.core.items import REQUIRED, Item
from loadmaster.core.pool import Pool
from loadmaster.core.problem import Problem
from loadmaster.core.selection.accounts import Floors
from loadmaster.core.selection.ledger import Ledger

Args = Mapping[str, Any]
NO_ARGS: Args = {}


class Decision(NamedTuple):
    """One change of an item's standing. ``args`` holds strings, whole numbers and lists of them."""

    step: str
    item: str
    verdict: str
    rule: str
    args: Args = NO_ARGS


class Blocker(NamedTuple):
    """A must-have that cannot be had, whatever the budget. ``chain`` leads from it to the cause."""

    code: str
    item: str
    rule: str
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MustHaves:
    """The cheapest legal choice for the must-haves, and what it proves.

    ``needed`` is the least that must-haves and floors need together; ``bound`` the least that any
    choice can need, below ``needed`` only where the search stopped at its limit. ``wanted`` is what
    each layer could use, against which floors are reserved.
    """

    roots: tuple[int, ...]
    picks: Mapping[int, int]
    account: Mapping[int, str]
    needed: int | Fraction
    bound: int | Fraction
    wanted: Mapping[str, int]
    floors: Floors


class Row(NamedTuple):
    """What one layer was granted and used, in tokens."""

    layer: str
    floor: int
    ratio: Decimal
    cap: int | None
    wants: int
    floor_grant: int
    surplus: int
    granted: int
    used: int = 0
    floor_unmet: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """What was admitted: the ledger, the units in the order they entered, and the layers' accounts."""

    ledger: Ledger
    entered: tuple[int, ...]
    rows: tuple[Row, ...]
    slack_reason: str


class Rendered(NamedTuple):
    """The exact serialisation: block texts in order, and what they cost in all."""

    texts: tuple[str, ...]
    used: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A compile in progress.

    Candidates are known by their index in ``items``, which are in canonical order. ``position``
    finds the index of an id, aliases of merged candidates included. ``out`` holds what was refused
    or left out, and by which decision; ``absent`` those refused by scope, authority or merging,
    which are members of nothing.
    """

    problem: Problem
    items: Sequence[Item] = ()
    bands: Sequence[int] = ()
    position: Mapping[str, int] = field(default_factory=dict)
    out: Mapping[int, Decision] = field(default_factory=dict)
    absent: frozenset[int] = frozenset()
    blockers: tuple[Blocker, ...] = ()
    log: tuple[Decision, ...] = ()
    pool: Pool | None = None
    musts: MustHaves | None = None
    packed: Packed | None = None
    order: tuple[int, ...] = ()
    rendered: Rendered | None = None

    def find(self, identifier: str) -> int | None:
        """Give the candidate of an id; None for what is absent, whether or not it was handed in."""
        index = self.position.get(identifier)
        return None if index in self.absent else index

    def is_must(self, index: int) -> bool:
        """Whether a candidate is a must-have by its own band, lifts included."""
        return self.bands[index] <= REQUIRED
