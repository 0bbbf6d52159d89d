"""The cheapest joint choice of forms for a set of candidates with everything that they need.

Forms whose dependencies are shared make this a covering problem, so it is solved by branch and
bound over the dependencies that only some forms need: at each node every candidate takes its
cheapest form, as if undecided dependencies were free. If that choice needs one of them, the first
is once forbidden and once taken in; else it is the best below this node, unless what is minimised
is not the tokens alone: then the forms that need something are tried one by one.
Work is limited by a count, never by time, so that equal inputs end alike.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from loadmaster.core.pool import Pool

Picks = Mapping[int, int]
"""The place of the chosen form in ``pool.legal``, by candidate."""

Value = tuple[int | Fraction, int]
"""What is minimised: the tokens needed, then the tokens of the choice itself."""

WORK_LIMIT = 1_000_000
"""Form evaluations after which the search stops and reports a bound."""


class Choice(NamedTuple):
    """The best choice found, the least that any choice can need, and the form evaluations it took.

    ``exact`` says that the choice is proven to be the best.
    """

    picks: Picks
    value: Value
    bound: int | Fraction
    exact: bool
    work: int = 0


@dataclass(frozen=True, slots=True)
class _Node:
    taken: frozenset[int]
    barred: frozenset[int]
    fixed: Picks


@dataclass(frozen=True, slots=True)
class _Either:
    """What is in one of two collections, without uniting them."""

    one: Container[int]
    other: Container[int]

    def __contains__(self, index: object) -> bool:
        return index in self.one or index in self.other


def cheapest(
    pool: Pool,
    roots: Iterable[int],
    have: Container[int] = frozenset(),
    value: Callable[[Picks], Value] | None = None,
    bound: Callable[[Picks], int | Fraction] | None = None,
    fixed: Mapping[int, int] | None = None,
    work: int = WORK_LIMIT,
) -> Choice:
    """Choose forms for the roots and their closure so that they need the fewest tokens.

    Args:
        pool: What may be chosen.
        roots: The candidates that must be in.
        have: What is in the bundle already and costs nothing more.
        value: What a complete choice needs; by default its tokens. Must not fall when a form grows.
        bound: What a choice needs at least, also when its dependencies are incomplete.
        fixed: Forms that are decided already.
        work: Form evaluations to spend.

    Returns:
        The choice for everything that is not in ``have``.
    """
    given, given_work = fixed or {}, work
    start = _start(pool, roots, have, given)
    first = _dive(pool, start, have, given)
    reached = value(first) if value else _tokens(pool, first)
    if not any(
        (index, place) in pool.form_needs for index in start for place in range(len(pool.cost[index]))
    ):
        return Choice(first, reached, reached[0], True)

    best, picks_of_best = reached, first
    stack = [_Node(frozenset(start), frozenset(), given)]
    open_bounds: list[int | Fraction] = []
    while stack:
        node = stack.pop()
        relaxed = _relax(pool, node, have)
        if relaxed is None:
            continue
        picks, missing = relaxed
        work -= len(picks)
        tokens = _tokens(pool, picks)[0]
        least = max(tokens, bound(picks) if bound else 0)
        if (least, tokens) >= best:
            continue
        undecided = None
        if not missing:
            picks = _without_spare(pool, start, picks)
            reached = value(picks) if value else (tokens, int(tokens))
            if reached < best:
                best, picks_of_best = reached, picks
            undecided = _undecided(pool, node) if reached[0] > least else None
            if undecided is None:
                continue
        if work <= 0:
            open_bounds.append(least)
        elif undecided is not None:
            for place in reversed(range(len(pool.cost[undecided]))):
                stack.append(_Node(node.taken, node.barred, {**node.fixed, undecided: place}))
        else:
            pivot = min(missing)
            closure = pool.close([pivot], _Either(node.taken, have))
            if not closure & node.barred:
                stack.append(_Node(node.taken | closure, node.barred, node.fixed))
            stack.append(_Node(node.taken, node.barred | {pivot}, node.fixed))
    least = min([best[0], *open_bounds])
    return Choice(picks_of_best, best, least, least == best[0], given_work - work)


def _start(pool: Pool, roots: Iterable[int], have: Container[int], fixed: Picks) -> set[int]:
    """Close the roots, with what forms need that are decided already."""
    start = pool.close(roots, have)
    decided = [need for index, place in fixed.items() for need in pool.form_needs.get((index, place), ())]
    return start | pool.close(decided, have) if decided else start


def _undecided(pool: Pool, node: _Node) -> int | None:
    """Find a candidate whose choice of form may still change who needs what."""
    return next(
        (
            index
            for index in sorted(node.taken - node.fixed.keys())
            if len(pool.cost[index]) > 1
            and any((index, place) in pool.form_needs for place in range(len(pool.cost[index])))
        ),
        None,
    )


def _without_spare(pool: Pool, start: Iterable[int], picks: dict[int, int]) -> dict[int, int]:
    """Leave out what was taken in for a form that was not chosen after all."""
    reached: set[int] = set()
    stack = list(start)
    while stack:
        index = stack.pop()
        if index in picks and index not in reached:
            reached.add(index)
            stack.extend(pool.mates(index))
            stack.extend(pool.needs.get(index, ()))
            stack.extend(pool.form_needs.get((index, picks[index]), ()))
    return (
        picks if len(reached) == len(picks) else {index: picks[index] for index in picks if index in reached}
    )


def _dive(pool: Pool, start: set[int], have: Container[int], fixed: Picks) -> dict[int, int]:
    """Choose greedily, in one pass: a first answer, and the whole one where forms need nothing."""
    picks: dict[int, int] = {}
    taken = set(start)
    queue = sorted(start)
    while queue:
        following: set[int] = set()
        for index in queue:
            costs = pool.cost[index]
            if index in fixed:
                place = fixed[index]
            elif len(costs) == 1:
                place = 0
            else:
                lacking = [
                    sum(
                        need not in taken and need not in have
                        for need in pool.form_needs.get((index, place), ())
                    )
                    for place in range(len(costs))
                ]
                place = min(range(len(costs)), key=lambda place: (lacking[place], costs[place], place))
            picks[index] = place
            wanted = pool.form_needs.get((index, place))
            if wanted:
                following |= pool.close(wanted, have) - taken
                taken |= following
        queue = sorted(following)
    return dict(sorted(picks.items()))


def _tokens(pool: Pool, picks: Picks) -> Value:
    total = sum(pool.cost[index][place] for index, place in picks.items())
    return total, total


def _relax(pool: Pool, node: _Node, have: Container[int]) -> tuple[dict[int, int], set[int]] | None:
    """Let each candidate take its cheapest form, undecided dependencies being free."""
    picks: dict[int, int] = {}
    missing: set[int] = set()
    for index in sorted(node.taken):
        best: tuple[int, int, int] | None = None
        wanted: tuple[int, ...] = ()
        places = (node.fixed[index],) if index in node.fixed else range(len(pool.cost[index]))
        for place in places:
            needs = pool.form_needs.get((index, place), ())
            lacking = tuple(need for need in needs if need not in node.taken and need not in have)
            if any(need in node.barred for need in lacking):
                continue
            key = (pool.cost[index][place], len(lacking), place)
            if best is None or key < best:
                best, wanted = key, lacking
        if best is None:
            return None
        picks[index] = best[2]
        missing.update(wanted)
    return picks, missing
