from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadmaster.stores.ledger.records import Record, includes, scope_key, visible_keys

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_id_is_the_content_whatever_order_keys_and_labels_came_in() -> None:
    one = Record(kind="fact", scope={"tenant": "a", "user": 1}, text="x", labels=("p", "q"))
    other = Record(kind="fact", scope={"user": 1, "tenant": "a"}, text="x", labels=("q", "p", "q"))
    assert one.id == other.id and one.id.startswith("fact:")
    assert one == other


@pytest.mark.parametrize(
    "change",
    [
        {"text": "y"},
        {"scope": {"tenant": "b"}},
        {"scope": {"tenant": True}},
        {"kind": "summary"},
        {"at": NOON},
        {"valid_until": NOON},
        {"author": "Ana"},
        {"metadata": {"k": 1}},
    ],
)
def test_other_content_is_another_id(change: dict[str, Any]) -> None:
    base: dict[str, Any] = {"kind": "fact", "scope": {"tenant": "a"}, "text": "x"}
    assert Record(**base).id != Record(**{**base, **change}).id


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"at": datetime(2026, 1, 1)}, "names no time zone"),
        ({"kind": ""}, "record.kind is empty"),
        ({"author": "A\0na"}, "record.author .* NUL"),
        ({"session": "\ud800"}, "record.session .* lone surrogate"),
        ({"text": "\ud800"}, "holds what JSON cannot"),
        ({"metadata": {"x": float("nan")}}, "holds what JSON cannot"),
        ({"metadata": {"x": object()}}, "holds what JSON cannot"),
        ({"scope": {"tenant": 1.5}}, "scope.tenant must be a string, a whole number or a boolean, not float"),
        ({"scope": {str(n): n for n in range(11)}}, "a scope has 11 keys; at most 10"),
        ({"valid_from": NOON, "valid_until": NOON - timedelta(1)}, "lies before valid_from"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Record(**{"kind": "fact", "scope": {}, "text": "x", **fields})


def test_times_are_kept_in_utc() -> None:
    record = Record(kind="e", scope={}, text="", at=NOON.astimezone(timezone(timedelta(hours=2))))
    assert record.at is not None and record.at.tzinfo is UTC and record.at == NOON


def test_json_and_back() -> None:
    record = Record(
        kind="fact",
        scope={"tenant": "a", "n": 0, "flag": False},
        text="",
        id="mine",
        place=(0, "b"),
        at=NOON,
        valid_from=NOON,
        confidence=Decimal("0.5"),
        derived_from=("e1",),
        pinned=True,
        metadata={"empty": [], "zero": 0},
    )
    assert Record.from_dict(record.to_dict()) == record


scopes = st.dictionaries(
    st.sampled_from("abcd"),
    st.one_of(st.integers(0, 1), st.booleans(), st.sampled_from(["0", "1"])),
    max_size=4,
)


@given(scopes, scopes)
def test_a_request_sees_exactly_the_scopes_that_its_own_includes(request: Any, record: Any) -> None:
    assert (scope_key(record) in set(visible_keys(request))) == includes(request, record)


def test_validity_is_half_open_on_both_axes() -> None:
    day = timedelta(1)
    record = Record(
        kind="fact",
        scope={},
        text="",
        valid_from=NOON,
        valid_until=NOON + 4 * day,
        recorded_at=NOON + day,
        closed_at=NOON + 2 * day,
        retired_at=NOON + 3 * day,
    )
    later = NOON + 10 * day
    assert not record.holds(NOON, NOON), "not known yet"
    assert record.holds(NOON, NOON + day)
    assert record.holds(later, NOON + day), "its end was not known then"
    assert not record.holds(NOON + 4 * day, NOON + 2 * day)
    assert record.holds(NOON + 3 * day, NOON + 2 * day)
    assert not record.holds(NOON - day, NOON + 2 * day)
    assert not record.holds(NOON, NOON + 3 * day), "retired"
    assert not record.holds(NOON)
