from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from loadmaster.stores.clock import ManualClock
from loadmaster.stores.ledger.engine import LedgerError, LedgerUnavailable
from loadmaster.stores.ledger.ledger import Ledger, Mark
from loadmaster.stores.ledger.records import Record, scope_key
from loadmaster.stores.ledger.writing import IdTaken
from loadmaster.stores.port import SourceUnavailable

ANA = {"tenant": "acme", "user": "ana"}
KEY = scope_key(ANA)


def episode(text: str, **fields: object) -> Record:
    return Record(**{"kind": "episode", "scope": ANA, "text": text, **fields})  # type: ignore[arg-type]


def texts(ledger: Ledger, key: str = KEY) -> list[str]:
    return [record.text for record in ledger.changed(key)[1]]


def test_what_was_written_is_read_back_as_it_was(ledger: Ledger, clock: ManualClock) -> None:
    given = episode("h\0i é", place=(3, "b"), at=clock(), labels=("x",), metadata={"a": [1, {"b": None}]})
    (stored,) = ledger.append([given])
    assert stored.recorded_at == clock() and stored.version == 1
    assert {**stored.to_dict(), "version": 0} == {
        **given.to_dict(),
        "recorded_at": "2026-01-01T00:00:00Z",
        "version": 0,
    }
    assert ledger.get([given.id, "nobody"], ANA) == {given.id: stored}


def test_the_same_record_twice_is_one(ledger: Ledger) -> None:
    assert len(ledger.append([episode("hi"), episode("hi")])) == 1
    assert ledger.append([episode("hi")]) == []
    assert texts(ledger) == ["hi"]


def test_an_id_is_taken_once_for_all(ledger: Ledger) -> None:
    ledger.append([episode("hi", id="one")])
    with pytest.raises(IdTaken, match="'one' is taken with other content"):
        ledger.append([episode("new"), episode("ho", id="one")])
    with pytest.raises(IdTaken, match="'one' is taken in another scope"):
        ledger.append([episode("hi", id="one", scope={"tenant": "other"})])
    with pytest.raises(IdTaken, match="given twice"):
        ledger.append([episode("a", id="two"), episode("b", id="two")])
    assert texts(ledger) == ["hi"], "a refused write keeps nothing"


def test_a_failed_block_keeps_nothing(ledger: Ledger) -> None:
    def fail_late() -> None:
        with ledger.write(ANA) as write:
            write.append([episode("hi")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_late()
    assert ledger.visible(ANA) == []


def test_a_write_is_of_one_scope(ledger: Ledger) -> None:
    wrong = pytest.raises(ValueError, match=r"is of scope \{\"tenant\":\"b\"\}, and this write of")
    with wrong, ledger.write(ANA) as write:
        write.append([episode("hi", scope={"tenant": "b"})])


def test_readers_see_their_own_scope_and_wider_ones(ledger: Ledger) -> None:
    for scope in ({}, {"tenant": "acme"}, ANA, {"tenant": "acme", "user": "bob"}, {"tenant": "other"}):
        ledger.append([episode("hi", scope=scope)])
    seen = [state.scope for state in ledger.visible(ANA)]
    assert sorted(map(len, seen)) == [0, 1, 2]
    assert {"tenant": "other"} not in seen
    others = ledger.append([episode("secret", scope={"tenant": "other"})])
    assert ledger.get([others[0].id], ANA) == {}


def test_versions_let_a_reader_take_only_what_changed(ledger: Ledger, clock: ManualClock) -> None:
    first, second = ledger.append([episode("a"), episode("b")])
    seen = ledger.changed(KEY)[0].version
    clock.advance(days=1)
    with ledger.write(ANA) as write:
        write.close(first.id, clock())
        write.append([episode("c")])
    state, changed = ledger.changed(KEY, since=seen)
    assert [record.text for record in changed] == sorted(["a", "c"], key=lambda text: episode(text).id)
    assert state.version == 2 and state.epoch == 0
    closed = ledger.get([first.id, second.id], ANA)
    assert closed[first.id].valid_until == closed[first.id].closed_at == clock()
    assert closed[second.id].valid_until is None


def test_an_end_before_the_beginning_is_refused(ledger: Ledger, clock: ManualClock) -> None:
    (stored,) = ledger.append([episode("a", valid_from=clock())])
    with pytest.raises(LedgerError, match="cannot end before"), ledger.write(ANA) as write:
        write.close(stored.id, clock() - timedelta(1))
    with pytest.raises(LedgerError, match="has no record 'nobody'"), ledger.write(ANA) as write:
        write.close("nobody", clock())


def test_a_write_cannot_touch_another_scope(ledger: Ledger) -> None:
    (mine,) = ledger.append([episode("a")])
    with ledger.write({"tenant": "other"}) as write:
        write.retire([mine.id])
        write.change([mine.id], pinned=True)
    assert ledger.get([mine.id], ANA)[mine.id] == mine


def test_tier_conflict_pin_and_expiry_may_change(ledger: Ledger, clock: ManualClock) -> None:
    (stored,) = ledger.append([episode("a")])
    with ledger.write(ANA) as write:
        write.change([stored.id], tier="long_term", conflict="c", pinned=True, expires_at=clock())
    changed = ledger.get([stored.id], ANA)[stored.id]
    assert (changed.tier, changed.conflict, changed.pinned, changed.expires_at) == (
        "long_term",
        "c",
        True,
        clock(),
    )
    with ledger.write(ANA) as write:
        write.change([stored.id], conflict="")
    assert ledger.get([stored.id], ANA)[stored.id].conflict is None
    assert ledger.append([episode("a")]) == [], "what a memory decided does not make it other content"


def test_recalls_count_by_session(ledger: Ledger) -> None:
    one, two = ledger.append([episode("a"), episode("b")])
    ledger.recalled([one.id, two.id, "gone"], "s1")
    ledger.recalled([one.id, one.id], "s1")
    ledger.recalled([one.id], "s2")
    assert ledger.recalls([one.id, two.id, "gone"]) == dict(
        sorted({one.id: {"s1": 2, "s2": 1}, two.id: {"s1": 1}}.items())
    )


def test_a_rule_promotes_once(ledger: Ledger, clock: ManualClock) -> None:
    (stored,) = ledger.append([episode("a")])
    for first in (True, False):
        with ledger.write(ANA) as write:
            assert write.promoted(stored.id, rule="r", rules_version="1", because={"sessions": 3}) is first
        clock.advance(days=1)
    (promotion,) = ledger.promotions(ANA)
    assert promotion.at == clock() - timedelta(2) and promotion.because == {"sessions": 3}


def test_vectors_lie_beside_their_records(ledger: Ledger) -> None:
    one, two = ledger.append([episode("a"), episode("b")])
    ledger.put_vectors(KEY, "e1", {one.id: b"\1\2", two.id: b"\3\4", "gone": b""})
    ledger.put_vectors(KEY, "e1", {one.id: b"other"})
    assert ledger.vectors(KEY, "e1") == dict(sorted({one.id: b"\1\2", two.id: b"\3\4"}.items()))
    assert ledger.vectors(KEY, "e1", since=1) == {} == ledger.vectors(KEY, "e2")


def test_erasing_takes_what_was_derived_and_counts(ledger: Ledger) -> None:
    source, other = ledger.append([episode("a"), episode("b")])
    with ledger.write(ANA) as write:
        kept = write.put_body(b"kept by two"), write.put_body(b"kept by one")
        fact, _ = write.append(
            [
                Record(
                    kind="fact",
                    scope=ANA,
                    text="f",
                    derived_from=(source.id, "body:" + kept[0], "body:" + kept[1]),
                ),
                Record(kind="artifact", scope=ANA, text="b", derived_from=("body:" + kept[0],)),
            ]
        )
        write.append([Record(kind="summary", scope=ANA, text="s", derived_from=(fact.id,))])
        write.append([Record(kind="fact", scope=ANA, text="newer", supersedes=(fact.id,))])
    ledger.put_vectors(KEY, "e", {source.id: b"1", other.id: b"2"})
    ledger.recalled([source.id, other.id], "s")
    erased = ledger.erase(ANA, [source.id, "nobody"])
    assert erased.kinds == {"episode": 1, "fact": 1, "summary": 1}
    assert erased.rows == {"recalls": 1, "promotions": 0, "vectors": 1, "links": 5, "records": 3, "bodies": 1}
    assert sorted(texts(ledger)) == ["b", "b", "newer"]
    assert ledger.body(kept[0], ANA) == b"kept by two" and ledger.body(kept[1], ANA) is None
    assert ledger.visible(ANA)[0].epoch == 1


def test_erasing_a_tenant_takes_its_users_alone(ledger: Ledger) -> None:
    ledger.append(
        [
            episode("my secret word"),
            episode("t", scope={"tenant": "acme"}),
            episode("o", scope={"tenant": "b"}),
        ]
    )
    erased = ledger.erase({"tenant": "acme"})
    assert erased.rows["records"] == 2 and len(erased.scope_keys) == 2
    assert ledger.counts()["records"] == 1


def test_erased_text_is_not_left_in_the_file(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([episode("my secret word")])
        ledger.erase({"tenant": "acme"})
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"my secret word" not in left, "secure_delete and the checkpoint leave nothing"
    assert b'"acme"' not in left, "not even whose it was"
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.append([episode("a new beginning")])
        assert [state.scope for state in ledger.scopes(within=ANA)] == [ANA]


def test_bodies_are_seen_within_their_scope(ledger: Ledger) -> None:
    with ledger.write({"tenant": "acme"}) as write:
        digest = write.put_body(b"large")
        assert write.put_body(b"large") == digest
    assert ledger.body(digest, ANA) == b"large"
    assert ledger.body(digest, {"tenant": "other"}) is None


def test_marks_go_forward_and_start_anew_with_an_epoch(ledger: Ledger) -> None:
    ledger.append([episode("a")])
    assert [state.key for state in ledger.behind("i")] == [KEY]
    ledger.set_mark("i", KEY, Mark(1, 0))
    assert ledger.behind("i") == []
    ledger.set_mark("i", KEY, Mark(0, 0))
    assert ledger.mark("i", KEY) == Mark(1, 0)
    ledger.erase(ANA)
    assert len(ledger.behind("i")) == 1
    ledger.set_mark("i", KEY, Mark(2, 1))
    assert ledger.behind("i") == [] and len(ledger.behind("j")) == 1
    ledger.clear_marks("i")
    assert len(ledger.behind("i")) == 1


def test_a_setting_is_settled_by_the_first(ledger: Ledger) -> None:
    assert ledger.setting("e") is None
    assert ledger.settle("e", "a") == "a" == ledger.settle("e", "b")
    assert ledger.settle("e", "c", instead_of="b") == "a"
    assert ledger.settle("e", "c", instead_of="a") == "c" == ledger.setting("e")


def test_export_tells_all(ledger: Ledger) -> None:
    stored = ledger.append(
        [episode("a"), episode("t", scope={"tenant": "acme"}), episode("o", scope={"tenant": "b"})]
    )
    ledger.recalled([stored[0].id], "s")
    told = list(ledger.export({"tenant": "acme"}))
    assert sorted(line["text"] for line in told) == ["a", "t"]
    assert {line["text"]: line["recalls"] for line in told} == {"a": {"s": 1}, "t": {}}


def test_threads_write_one_after_the_other(ledger: Ledger) -> None:
    def work(worker: int) -> None:
        for number in range(10):
            ledger.append([episode(f"{worker}/{number}")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    state, found = ledger.changed(KEY)
    assert len(found) == 80 and state.version == 80
    assert [record.version for record in found] == list(range(1, 81))


def test_a_ledger_lies_in_a_file_or_in_postgresql(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"folder .* does not exist; create it"):
        Ledger(tmp_path / "no" / "ledger.db")
    with pytest.raises(LedgerError, match="not in mysql"):
        Ledger("mysql://x/y")
    with pytest.raises(LedgerError, match="not :memory:"):
        Ledger("sqlite://")
    with pytest.raises(LedgerError, match="neither a path nor a database URL"):
        Ledger("://")


def test_garbage_is_not_a_ledger(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(b"not a database at all " * 100)
    with pytest.raises(LedgerUnavailable, match="restore the ledger file from a backup") as raised:
        Ledger(file)
    failure: SourceUnavailable = raised.value
    assert failure.source == "ledger"
    assert file.read_bytes().startswith(b"not a database")


def test_a_broken_ledger_says_so_when_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.append([episode("a")])
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("DROP TABLE loadmaster_links")
        connection.execute("DROP TABLE loadmaster_vectors")
    with pytest.raises(LedgerUnavailable, match="no such table: loadmaster_vectors"):
        ledger.vectors(KEY, "e")
