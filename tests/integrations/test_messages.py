"""Chat histories: legal for every provider or an explicit failure, counted exactly, kept as they were.

The cases are data: a history, a budget, and what must come out. ``kept`` are places in the history in the
order in which they are sent, ``left_out`` rules by candidate id.
"""

from __future__ import annotations

import json
import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadmaster import Bundle, CompileFailure, Compiler, InvalidInput, defaults
from loadmaster.evaluation import taubench
from loadmaster.evaluation.histories import Ruler
from loadmaster.evaluation.legality import PROVIDERS, violations
from loadmaster.integrations.messages import candidates_of, compile_messages

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "messages"
NAMES = sorted(path.stem for path in CASES.glob("*.json"))
DATA = Path(
    os.environ.get("LOADMASTER_DATA") or Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
)
ROOMY = 1_000_000

Json = Any


@cache
def compiler() -> Compiler:
    return Compiler()


@cache
def ruler() -> Ruler:
    encoding = defaults.find_encoding("o200k_base")
    if encoding is None:
        pytest.skip("the vocabulary of o200k_base is not on this machine")
    return Ruler(encoding)


def load(name: str) -> Json:
    return json.loads((CASES / f"{name}.json").read_bytes())


def check(result: Bundle, messages: list[Json], tools: list[Json], budget: int) -> None:
    """Check what holds for every bundle."""
    for provider in PROVIDERS:
        assert violations(result.messages, provider) == []
    assert ruler().total(result.messages, result.tools) == result.tokens.used <= budget
    assert sorted(result.tools, key=str) == sorted(tools, key=str)
    places = [int(block.id.partition(":")[2]) for block in result.blocks if block.kind == "message"]
    assert result.messages == [messages[place] for place in places]
    later = [place for place in places if messages[place]["role"] not in ("system", "developer")]
    assert later == sorted(later)
    assert [place for place in places if place not in later] == [
        place for place, message in enumerate(messages) if message["role"] in ("system", "developer")
    ]
    left_out = {omission.id for omission in result.omitted}
    assert len(places) + len(left_out) == len(messages)


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    case = load(name)
    messages, tools, budget, expect = case["messages"], case.get("tools", []), case["budget"], case["expect"]
    if expect["status"] == "invalid":
        with pytest.raises(InvalidInput) as caught:
            compile_messages(compiler(), messages, tools, budget=budget)
        assert sorted(fault.path for fault in caught.value.faults) == sorted(expect["faults"])
        return
    result = compile_messages(compiler(), messages, tools, budget=budget, tokenizer="o200k_base")
    assert result.status == expect["status"]
    if isinstance(result, Bundle):
        check(result, messages, tools, budget)
        assert result.messages == [messages[place] for place in expect["kept"]]
        assert {omission.id: omission.rule for omission in result.omitted} == expect["left_out"]
    else:
        assert result.code == expect["code"]
        assert sorted(fact.id for fact in result.blocking) == expect["blocking"]


def test_faults_come_in_the_order_of_the_messages() -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_messages(compiler(), load("faults")["messages"], budget=100)
    places = [int(fault.path.split("[")[1].split("]")[0]) for fault in caught.value.faults]
    assert places == sorted(places)


def test_options_are_checked_together_with_the_messages() -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_messages(
            compiler(), [{"role": "x", "content": ""}], budget=-1, tokenizer="declared", profile=""
        )
    assert [fault.path for fault in caught.value.faults] == [
        "budget",
        "tokenizer",
        "profile",
        "messages[0].role",
    ]
    with pytest.raises(InvalidInput) as caught:
        compile_messages(compiler(), "hello", {"name": "f"}, budget=1)  # type: ignore[arg-type]
    assert [fault.path for fault in caught.value.faults] == ["messages", "tools"]


def test_the_profile_and_why_it_was_chosen_are_visible() -> None:
    history = [{"role": "user", "content": "Hello"}]
    chosen = compile_messages(compiler(), history, budget=100)
    assert (chosen.profile.name, chosen.profile.why) == ("history", "route")
    named = compile_messages(compiler(), history, budget=100, profile="chat")
    assert (named.profile.name, named.profile.why) == ("chat", "explicit")


def test_a_long_history_keeps_its_end() -> None:
    history: list[Json] = [{"role": "system", "content": "Be brief."}]
    for turn in range(600):
        history.append({"role": "user", "content": f"Question {turn}: what is {turn} times {turn}?"})
        history.append({"role": "assistant", "content": f"It is {turn * turn}."})
    history.append({"role": "user", "content": "And the sum of all?"})
    result = compile_messages(compiler(), history, budget=2_000, tokenizer="o200k_base").unwrap()
    check(result, history, [], 2_000)
    assert result.messages[-3:] == history[-3:]
    assert result.tokens.slack < 40
    assert result.messages[1:] == history[-len(result.messages) + 1 :], "equal turns: the most recent ones"


def test_relevance_rises_strictly_with_time() -> None:
    for length in (1, 2, 10, 100, 5_000):
        history = [{"role": "user", "content": "x"}, *[{"role": "assistant", "content": "x"}] * length]
        relevance = [candidate.relevance for candidate in candidates_of(history) if candidate.layer]
        assert all(earlier < later for earlier, later in pairwise(relevance))
        assert all(0.5 <= value <= 1 for value in relevance)


def test_ids_sort_by_time() -> None:
    ids = [candidate.id for candidate in candidates_of([{"role": "user", "content": "x"}] * 10_001)]
    assert ids == sorted(ids)


# Random histories

texts = st.one_of(
    st.sampled_from(["", " ", "yes", "no\r\n", "\0", "<|endoftext|>", "</evidence>"]), st.text(max_size=40)
).filter(
    lambda text: text.isascii() or text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == text
)
ids = st.sampled_from(["a", "b", "c"])


@st.composite
def messages(draw: st.DrawFn) -> Json:
    role = draw(
        st.sampled_from(
            ["user", "user", "assistant", "assistant", "calls", "calls", "tool", "tool", "system"]
        )
    )
    content: Json = draw(texts)
    if draw(st.integers(0, 9)) == 0:
        content = [{"type": "text", "text": draw(texts)} for _ in range(draw(st.integers(0, 3)))]
    if role == "calls":
        called = draw(st.lists(ids, min_size=1, max_size=3))
        arguments = st.sampled_from(['{"n":1}', "{}", "{}", "", "[]", "nonsense"])
        calls = [
            {"id": one, "type": "function", "function": {"name": "f", "arguments": draw(arguments)}}
            for one in called
        ]
        return {"role": "assistant", "content": draw(st.sampled_from([None, content])), "tool_calls": calls}
    message = {"role": role, "content": content}
    if role == "tool":
        message["tool_call_id"] = draw(ids)
    if role == "user" and draw(st.booleans()):
        message["name"] = "ann"
    return message


@st.composite
def blocks(draw: st.DrawFn) -> list[Json]:
    """Messages at random, or a call block that is mostly sound."""
    if draw(st.booleans()):
        return draw(st.lists(messages(), max_size=3))
    called = draw(st.lists(ids, min_size=1, max_size=3))
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in called]
    answered = draw(st.permutations(called))[: draw(st.integers(0, 3)) or None]
    results = [{"role": "tool", "tool_call_id": one, "content": draw(texts)} for one in answered]
    ask = {"role": "user", "content": draw(st.text("ab ", min_size=1).filter(str.strip))}
    return [
        *([ask] if draw(st.booleans()) else []),
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]


histories = st.lists(blocks(), max_size=8).map(lambda parts: [message for part in parts for message in part])
schemas = st.sampled_from(
    [[], [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]]
)


@settings(max_examples=200, deadline=None)
@given(histories, schemas, st.integers(0, 600))
def test_legal_everywhere_and_exactly_counted_or_a_failure(
    history: list[Json], tools: list[Json], budget: int
) -> None:
    result = compile_messages(compiler(), history, tools, budget=budget, tokenizer="o200k_base")
    if isinstance(result, Bundle):
        check(result, history, tools, budget)
    else:
        assert isinstance(result, CompileFailure)
        assert result.code in (
            "source_unavailable",
            "no_legal_representation",
            "unsatisfied_dependency",
            "insufficient_budget",
        )


@settings(max_examples=60, deadline=None)
@given(histories)
def test_enough_room_keeps_all_that_can_be_sent(history: list[Json]) -> None:
    result = compile_messages(compiler(), history, budget=ROOMY, tokenizer="o200k_base")
    if isinstance(result, Bundle):
        assert {omission.rule for omission in result.omitted} <= {"no_legal_form"}
        sendable = {candidate.id for candidate in candidates_of(history) if candidate.forms}
        assert {block.id for block in result.blocks} == sendable
    else:
        assert result.code != "insufficient_budget"


@settings(max_examples=60, deadline=None)
@given(histories)
def test_a_sound_history_with_enough_room_comes_out_whole(history: list[Json]) -> None:
    """What the judge of legality finds nothing in, the compiler takes as it is: neither is stricter."""
    if any(violations(history, provider) for provider in PROVIDERS) or not any(
        m["role"] == "user" for m in history
    ):
        return
    result = compile_messages(compiler(), history, budget=ROOMY, tokenizer="o200k_base").unwrap()
    assert result.messages == history


@settings(max_examples=60, deadline=None)
@given(histories, st.integers(100, 600))
def test_the_order_of_keys_changes_nothing(history: list[Json], budget: int) -> None:
    turned = [dict(reversed(list(message.items()))) for message in history]
    one = compile_messages(compiler(), history, budget=budget)
    two = compile_messages(Compiler(), turned, budget=budget)
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())


@settings(max_examples=25, deadline=None)
@given(histories)
def test_once_it_fits_it_fits_in_more(history: list[Json]) -> None:
    fits = [
        isinstance(compile_messages(compiler(), history, budget=budget), Bundle)
        for budget in range(0, 400, 40)
    ]
    assert fits == sorted(fits)


# The judge of legality itself


def violated(history: list[Json]) -> set[str]:
    return {provider for provider in PROVIDERS if violations(history, provider)}


def test_the_judge_finds_each_kind_of_violation() -> None:
    user, text = {"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}
    function = {"name": "f", "arguments": "{}"}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    result = {"role": "tool", "tool_call_id": "a", "content": ""}
    system = {"role": "system", "content": "x"}
    every, strict = set(PROVIDERS), {"anthropic", "gemini"}
    assert violated([system, system, user, call, result, text, user]) == set()
    assert violated([user, call]) == set()
    assert violated([user, call, user]) == every
    assert violated([user, result]) == every
    assert violated([user, call, result, result]) == every
    assert violated([user, call, text, result]) == every
    assert violated([user, {**call, "tool_calls": []}]) == every
    assert violated([user, {"role": "assistant", "content": None}]) == every
    assert violated([]) == every
    assert violated([text, user]) == strict
    assert violated([call, result, user]) == strict
    assert violated([user, system]) == strict
    assert violated([system]) == strict
    assert violated([user, {"role": "assistant", "content": " "}]) == strict


# Real histories


@pytest.mark.slow
def test_real_histories() -> None:
    if not (DATA / "taubench" / taubench.HISTORIES).is_file():
        pytest.skip("no taubench data: set LOADMASTER_DATA to a folder that has it")
    traces, tools = taubench.load(DATA)
    rows = taubench.report_of(taubench.measure(traces[::20], tools, (1_000, 4_000)))
    for row in rows:
        if row["packer"] == "loadmaster":
            assert row["compiled"] + sum(row["failed"].values()) == row["points"] > 0
            assert set(row["failed"]) <= {"insufficient_budget"}
            assert row["fits"] == row["counted_right"] == row["compiled"]
            assert not any(row["illegal"].values())
