from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from loadmaster.stores.clock import ManualClock
from loadmaster.stores.ledger.ledger import Ledger, ScopeState
from loadmaster.stores.ledger.mirror import Mirror
from loadmaster.stores.ledger.records import Record

ANA = {"tenant": "acme", "user": "ana"}


class Texts:
    """A view that keeps every record, and what it was told at each step."""

    def __init__(self, _: ScopeState) -> None:
        self.records: dict[str, Record] = {}
        self.steps: list[list[str]] = []

    def apply(self, changed: Sequence[Record]) -> None:
        self.steps.append([record.text for record in changed])
        self.records.update({record.id: record for record in changed})


def episode(text: str, kind: str = "episode") -> Record:
    return Record(kind=kind, scope=ANA, text=text)


def test_a_view_takes_in_only_what_is_new(ledger: Ledger, clock: ManualClock) -> None:
    mirror = Mirror(ledger, Texts, kinds=["episode"])
    assert mirror.views(ANA) == []
    (first,) = ledger.append([episode("a")])
    ((_, view),) = mirror.views(ANA)
    ledger.append([episode("b"), episode("other", kind="fact")])
    with ledger.write(ANA) as write:
        write.close(first.id, clock())
    assert mirror.views(ANA)[0][1] is view
    mirror.views(ANA)
    assert view.steps[0] == ["a"] and sorted(view.steps[1]) == ["a", "b"] and len(view.steps) == 2
    assert view.records[first.id].valid_until == clock()


def test_after_an_erasure_the_view_is_made_anew(ledger: Ledger) -> None:
    mirror = Mirror(ledger, Texts)
    first, _ = ledger.append([episode("a"), episode("b")])
    before = mirror.views(ANA)[0][1]
    ledger.erase(ANA, [first.id])
    after = mirror.views(ANA)[0][1]
    assert after is not before
    assert [record.text for record in after.records.values()] == ["b"]


def test_the_scope_not_used_for_longest_is_dropped(ledger: Ledger) -> None:
    mirror = Mirror(ledger, Texts, most=1)
    ledger.append([episode("a"), Record(kind="episode", scope={"tenant": "b"}, text="b")])
    before = mirror.views(ANA)[0][1]
    assert mirror.views(ANA)[0][1] is before
    mirror.views({"tenant": "b"})
    assert mirror.views(ANA)[0][1] is not before


def test_readers_beside_writers_end_with_all(ledger: Ledger) -> None:
    mirror = Mirror(ledger, Texts)

    def write(worker: int) -> None:
        for number in range(5):
            ledger.append([episode(f"{worker}/{number}")])
            mirror.views(ANA)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(mirror.views(ANA)[0][1].records) == 40
