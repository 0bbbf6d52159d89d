"""Nobody outside can change what those inside get."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from tests.properties.laws import codes_of, compiled, law
from tests.properties.strategies import ABSENT, CLASHING, IDS, candidates, documents

Json = Any
NAMES = [CLASHING[1], "0", "a0", "zz", ABSENT]
DIFFERS = {"omitted", "trace_digest", "inputs_digest", "rejected_histogram"}


@st.composite
def outsiders(draw: st.DrawFn) -> Json:
    """Give a candidate that scope or authority refuses, with every tie to others that there is."""
    ids = tuple(IDS)
    body = st.sampled_from([{"text": "one"}, {"text": "two"}, {"tool": {"name": "t"}}])
    outsider = draw(candidates(draw(st.sampled_from(NAMES)), ids, body, True))
    if outsider["band"] in ("mandatory", "required"):
        outsider["band"] = "supported"  # a must-have that is refused fails by itself, as it should
    if draw(st.booleans()):
        outsider["scope"] = {"tenant": "elsewhere"}
    else:
        outsider |= {"section": "governing", "authority": "retrieved"}
    for key, value in (
        ("group", st.just("g1")),
        ("conflict", st.just({"id": "c1", "status": "unresolved"})),
        ("source", st.just({"id": "s1", "version": "9"})),
        ("freshness", st.just({"state": "current", "supersedes": list(ids)})),
        ("covers", st.just(["n1", "n2"])),
    ):
        if draw(st.booleans()):
            outsider[key] = draw(value)
    return outsider


@law(documents(), outsiders(), fast=150, deep=1500)
def test_an_outsider_changes_nothing(document: Json, outsider: Json) -> None:
    alone = compiled(document)
    crowded = copy.deepcopy(document)
    crowded["candidates"].append(outsider)
    together = compiled(crowded)
    assert codes_of(together) == codes_of(alone)
    if alone.status == "failure" and together.status == "failure":
        assert together.needed_tokens == alone.needed_tokens
        return
    before, after = alone.to_dict(), together.to_dict()
    assert {key: after[key] for key in after if key not in DIFFERS} == {
        key: before[key] for key in before if key not in DIFFERS
    }
    rest = [item for item in after["omitted"] if item["id"] != outsider["id"]]
    assert rest == before["omitted"]
    assert len(after["omitted"]) == len(rest) + 1
