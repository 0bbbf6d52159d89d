from __future__ import annotations

import pytest

from loadmaster.stores.ledger.engine import LedgerError
from loadmaster.stores.ledger.ledger import Ledger
from loadmaster.stores.ledger.records import Record, scope_key

ANA = {"tenant": "acme", "user": "ana"}
BOB = {"tenant": "acme", "user": "bob"}
KEY = scope_key(ANA)


def fill(ledger: Ledger) -> None:
    ledger.append([Record(kind="episode", scope=ANA, text=name, id=name) for name in "ba"])
    ledger.append(
        [Record(kind="fact", scope=ANA, text="c", id="c"), Record(kind="fact", scope=BOB, text="d")]
    )
    ledger.put_vectors(KEY, "one", {"a": b"1", "c": b"3"})
    ledger.put_vectors(KEY, "two", {"b": b"2"})


def test_records_are_seen_with_the_vectors_of_one_embedder(ledger: Ledger) -> None:
    fill(ledger)
    with ledger.write(ANA) as write:
        write.retire(["b"])
    state, rows = ledger.embedded(KEY, "one")
    assert state.version == 3
    assert [(row.id, row.kind, row.live, row.has, row.vector) for row in rows] == [
        ("a", "episode", True, True, b"1"),
        ("c", "fact", True, True, b"3"),
        ("b", "episode", False, False, b""),
    ]
    assert [row.id for row in ledger.embedded(KEY, "one", since=1)[1]] == ["c", "b"]
    assert {row.vector for row in ledger.embedded(KEY, "one", with_vectors=False)[1]} == {b""}
    with pytest.raises(LedgerError, match="no scope"):
        ledger.embedded("nowhere", "one")


def test_records_by_id_keep_to_the_scopes_asked_for(ledger: Ledger) -> None:
    fill(ledger)
    found = ledger.embedded_among(["c", "nobody", "a"], [KEY], "one")
    assert [(row.id, row.vector) for row in found] == [("a", b"1"), ("c", b"3")]
    assert ledger.embedded_among(["a", "c"], [scope_key(BOB)], "one") == []


def test_vectors_of_one_embedder_are_dropped_and_scopes_counted(ledger: Ledger) -> None:
    fill(ledger)
    assert ledger.sizes([KEY, scope_key(BOB), "nowhere"]) == {KEY: 3, scope_key(BOB): 1, "nowhere": 0}
    assert ledger.drop_vectors("one") == 2
    assert ledger.vectors(KEY, "one") == {} and ledger.vectors(KEY, "two") == {"b": b"2"}
