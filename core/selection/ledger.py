"""The bundle while it is being filled: what is in, in which form, why, and who pays for it.

Every token is paid by one account: a layer, standing content or the task. What leaves is refunded
to whoever paid, so the accounts always sum to the total.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from loadmaster.core.pool import Pool
from loadmaster.core.selection.accounts import STANDING, TASK
from loadmaster.core.selection.search import cheapest


class Move(NamedTuple):
    """A change to the bundle: forms that enter or change, what leaves, and what that costs in all."""

    delta: int
    picks: Mapping[int, int]
    gone: frozenset[int] = frozenset()


_NOTHING: frozenset[int] = frozenset()


MOVE_WORK = 10_000
ALL_MOVES_WORK = 2_000_000
"""Form evaluations for one move and for all: beyond them dependencies enter in the first forms that are
legal together, which are then not proven to be the cheapest."""


@dataclass(frozen=True, slots=True)
class _Except:
    """What is in one collection and not in another, without copying either."""

    whole: Container[int]
    without: Container[int]

    def __contains__(self, index: object) -> bool:
        return index in self.whole and index not in self.without


@dataclass(slots=True)
class Ledger:
    """A bundle under construction; `move` prices a change and `apply` makes it."""

    pool: Pool
    place: dict[int, int] = field(default_factory=dict)
    paid: dict[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    roots: dict[int, None] = field(default_factory=dict)
    asked: Counter[int] = field(default_factory=Counter)
    total: int = 0
    work: int = ALL_MOVES_WORK

    @classmethod
    def start(
        cls, pool: Pool, musts: Iterable[int], picks: Mapping[int, int], account: Mapping[int, str]
    ) -> Ledger:
        """Open the ledger with the must-haves and their dependencies."""
        ledger = cls(pool, held={STANDING: pool.priming}, total=pool.priming)
        ledger.roots = dict.fromkeys(musts)
        for index, place in picks.items():
            ledger.place[index] = place
            ledger._pay(index, account[index], pool.cost[index][place])
        for index in ledger.roots:
            ledger.asked.update(ledger._asks(index, ledger.place[index]))
        return ledger

    def copy(self) -> Ledger:
        """Give a ledger that can change without changing this one."""
        return Ledger(
            self.pool,
            dict(self.place),
            dict(self.paid),
            dict(self.held),
            dict(self.roots),
            Counter(self.asked),
            self.total,
        )

    def move(self, forms: Mapping[int, int]) -> Move:
        """Price bringing a unit into these forms, with what they need, without what nobody needs then."""
        pool, place = self.pool, self.place
        changed = {index: wanted for index, wanted in forms.items() if place.get(index) != wanted}
        if not changed:
            return Move(0, {})
        fresh = not any(index in place for index in changed)
        if fresh and len(changed) == 1:
            ((index, wanted),) = changed.items()
            if index not in pool.needs and (index, wanted) not in pool.form_needs:
                return Move(pool.cost[index][wanted], changed)
        have: Container[int] = place if fresh else _Except(place, changed)
        choice = cheapest(pool, changed, have, fixed=changed, work=min(MOVE_WORK, self.work))
        self.work -= choice.work
        picks = choice.picks
        delta = sum(pool.cost[index][at] for index, at in picks.items())
        if fresh:
            return Move(delta, picks)
        delta -= sum(pool.cost[index][place[index]] for index in changed if index in place)
        gone = _NOTHING
        if self._may_release(changed):
            gone = self._unneeded({**place, **picks}, [*self.roots, *forms])
        return Move(delta - sum(pool.cost[index][place[index]] for index in gone), picks, gone)

    def _may_release(self, changed: Mapping[int, int]) -> bool:
        """Whether new forms let go of anything that is no root and that no root beside them asks for."""
        there = {index: self._asks(index, self.place[index]) for index in changed if index in self.place}
        own = Counter(need for index, needs in there.items() if index in self.roots for need in needs)
        kept = {need for index, wanted in changed.items() for need in self._asks(index, wanted)}
        kept.update(changed)
        return any(
            need not in kept and need not in self.roots and self.asked[need] <= own[need]
            for needs in there.values()
            for need in needs
        )

    def _asks(self, index: int, place: int) -> tuple[int, ...]:
        return self.pool.needs.get(index, ()) + self.pool.form_needs.get((index, place), ())

    def _unneeded(self, place: Mapping[int, int], roots: Iterable[int]) -> frozenset[int]:
        pool = self.pool
        reached: set[int] = set()
        stack = list(roots)
        while stack:
            index = stack.pop()
            if index in reached:
                continue
            reached.add(index)
            stack.extend(pool.mates(index))
            stack.extend(pool.needs.get(index, ()))
            stack.extend(pool.form_needs.get((index, place[index]), ()))
        return frozenset(place) - reached

    def charges(self, move: Move, account: str) -> Counter[str]:
        """Give what a move would charge to each account; negative where it refunds more."""
        sums: Counter[str] = Counter()
        for index, wanted in move.picks.items():
            cost, paid = self.pool.cost[index][wanted], self.paid.get(index, ())
            rest = cost - sum(part for _, part in paid)
            if rest >= 0:
                sums[self._payer(index, account)] += rest
                continue
            for payer, part in paid:
                sums[payer] -= max(0, part - cost)
                cost -= min(part, cost)
        for index in move.gone:
            for payer, part in self.paid[index]:
                sums[payer] -= part
        return sums

    def _payer(self, index: int, account: str) -> str:
        return (self.pool.items[index].layer or account) if account in (STANDING, TASK) else account

    def apply(self, move: Move, roots: Iterable[int], account: str) -> list[int]:
        """Make a move on behalf of a unit; gives what entered, ascending.

        What standing content or the task brings in is charged to its own layer, where it has one.
        """
        entered = []
        rooted = [index for index in move.picks if index in self.roots]
        for index in rooted:
            self.asked.subtract(self._asks(index, self.place[index]))
        for index, wanted in move.picks.items():
            cost = self.pool.cost[index][wanted]
            payer = self._payer(index, account)
            if index in self.place:
                self._reprice(index, payer, cost)
            else:
                entered.append(index)
                self._pay(index, payer, cost)
            self.place[index] = wanted
        for index in sorted(move.gone):
            self._refund(index)
            del self.place[index]
        rooted += (index for index in roots if index not in self.roots)
        self.roots.update(dict.fromkeys(rooted))
        for index in rooted:
            self.asked.update(self._asks(index, self.place[index]))
        return sorted(entered)

    def remove(self, unit: Iterable[int]) -> frozenset[int]:
        """Take a unit out, with what only it needed; gives what left."""
        for index in unit:
            if index in self.roots:
                del self.roots[index]
                self.asked.subtract(self._asks(index, self.place[index]))
        gone = self._unneeded(self.place, list(self.roots))
        for index in gone:
            self._refund(index)
            del self.place[index]
        return gone

    def _pay(self, index: int, account: str, cost: int) -> None:
        self.paid[index] = (*self.paid.get(index, ()), (account, cost))
        self.held[account] = self.held.get(account, 0) + cost
        self.total += cost

    def _refund(self, index: int) -> None:
        for account, cost in self.paid.pop(index):
            self.held[account] -= cost
            self.total -= cost

    def _reprice(self, index: int, account: str, cost: int) -> None:
        """Charge what a richer form adds to the unit that asks for it; a cheaper one refunds its payers."""
        paid = self.paid[index]
        before = sum(part for _, part in paid)
        if cost >= before:
            self._pay(index, account, cost - before)
            return
        self._refund(index)
        for payer, part in paid:
            self._pay(index, payer, min(part, cost))
            cost -= min(part, cost)
