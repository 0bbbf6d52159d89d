"""Copies of scopes in memory, kept up with the ledger by version, so that a read costs what has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, Protocol, TypeVar

from loadmaster.stores.ledger.ledger import Ledger, ScopeState
from loadmaster.stores.ledger.records import Record, Scope


class View(Protocol):
    """What a store makes of one scope's records: a graph, a corpus, …"""

    def apply(self, changed: Sequence[Record]) -> None:
        """Take in records that are new or have changed; retired and closed ones come along too."""


V = TypeVar("V", bound=View)


@dataclass(slots=True)
class _Copy(Generic[V]):
    view: V | None = None
    version: int = 0
    epoch: int = 0
    lock: Lock = field(default_factory=Lock)


class Mirror(Generic[V]):
    """Keeps a view of each scope that was asked for lately. Safe to share between threads.

    A view is changed under its scope's lock alone; stores read views under `Mirror.lock_of` or make
    views whose reads do not mind a change beside them.

    Args:
        ledger: Where the records are.
        make: Makes an empty view of a scope.
        kinds: The kinds of records that the view takes; None for all.
        most: How many scopes are kept; the one not used for longest goes first.
    """

    def __init__(
        self,
        ledger: Ledger,
        make: Callable[[ScopeState], V],
        *,
        kinds: Iterable[str] | None = None,
        most: int = 256,
    ) -> None:
        self._ledger = ledger
        self._make = make
        self._kinds = None if kinds is None else tuple(sorted(set(kinds)))
        self._most = most
        self._copies: OrderedDict[str, _Copy[V]] = OrderedDict()
        self._lock = Lock()

    def views(self, scope: Scope) -> list[tuple[ScopeState, V]]:
        """Give up-to-date views of all scopes that a request with this scope may see, by scope key.

        Raises:
            LedgerUnavailable: The ledger cannot be read.
        """
        return [(state, self.view(state)) for state in self._ledger.visible(scope)]

    def view(self, state: ScopeState) -> V:
        """Give the view of one scope, at least as new as the given state."""
        copy = self._copy(state.key)
        with copy.lock:
            view = copy.view
            if view is None or copy.epoch != state.epoch or copy.version < state.version:
                since = copy.version if view is not None and copy.epoch == state.epoch else 0
                now, changed = self._ledger.changed(state.key, since=since, kinds=self._kinds)
                if view is None or now.epoch != copy.epoch:  # erased in between: only a new view is right
                    if since:
                        now, changed = self._ledger.changed(state.key, kinds=self._kinds)
                    view = self._make(now)
                view.apply(changed)
                copy.view, copy.version, copy.epoch = view, now.version, now.epoch
            return view

    def lock_of(self, key: str) -> Lock:
        """Give the lock under which the view of a scope changes; do not call `view` while holding it."""
        return self._copy(key).lock

    def _copy(self, key: str) -> _Copy[V]:
        with self._lock:
            copy = self._copies.get(key)
            if copy is None:
                copy = self._copies[key] = _Copy()
                while len(self._copies) > self._most:
                    self._copies.popitem(last=False)
            self._copies.move_to_end(key)
            return copy
