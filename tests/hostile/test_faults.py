"""Malformed input: every fault is reported at its path, whatever else is wrong beside it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import loadmaster
from loadmaster import Budget, Candidate, Compiler, Form, Freshness, InvalidInput, ProfileSet, Request
from loadmaster.core.reading import parse_json

DATA = Path(__file__).resolve().parent / "data"
EVERY = DATA / "every-fault.json"
DEEP = 100_000


def faults_of(document: Any) -> list[list[str]]:
    with pytest.raises(InvalidInput) as caught:
        loadmaster.compile_document(document)
    return [[fault.path, fault.message] for fault in caught.value.faults]


def document(**changes: Any) -> dict[str, Any]:
    form = {"form": "full", "text": "x", "tokens": 1}
    request = {"id": "r", "tokenizer": "declared", "budget": {"window": 100}}
    whole = {"schema": 1, "request": request, "candidates": [{"id": "a", "forms": [form]}]}
    return {**whole, **changes}


def with_candidate(**fields: Any) -> dict[str, Any]:
    form = {"form": "full", "text": "x", "tokens": 1}
    return document(candidates=[{"id": "a", "forms": [form], **fields}])


def test_all_faults_of_one_file_are_reported_together() -> None:
    expected = json.loads((DATA / "every-fault.faults.json").read_bytes())
    assert faults_of(EVERY.read_bytes()) == expected


def test_messages_stay_on_one_line_and_paths_show_nothing_of_pydantic() -> None:
    for path, message in faults_of(EVERY.read_bytes()):
        assert message.isprintable() and path.isascii() and path.isprintable()
        assert len(message) < 200
        assert not re.search(
            r"\[key\]|Value error|Input should|dictionary|tuple|instance of|function-", path + message
        )


@pytest.mark.slow
def test_command_line_gives_the_same_faults_and_exit_2() -> None:
    command = [sys.executable, "-m", "loadmaster.cli", "compile", str(EVERY)]
    run = subprocess.run(command, capture_output=True, check=False)
    assert run.returncode == 2
    result = json.loads(run.stdout)
    assert result["status"] == "invalid"
    assert [[fault["path"], fault["message"]] for fault in result["faults"]] == faults_of(EVERY.read_bytes())


TEXTS = {
    "empty": (b"", "is empty; expected an object with schema, request and candidates"),
    "blank": (b" \r\n\t", "is empty; expected an object with schema, request and candidates"),
    "only a BOM": (b"\xef\xbb\xbf", "is empty; expected an object with schema, request and candidates"),
    "cut": (b'{"schema": 1,\n "request"', "is not JSON: Expecting ':' delimiter at line 2, column 11"),
    "two documents": (b"{}\n{}", "is not JSON: Extra data at line 2, column 1"),
    "array": (b"[]", "is an array; expected an object with schema, request and candidates"),
    "null": (b"null", "is null; expected an object with schema, request and candidates"),
    "string": (b'"{}"', "is a string; expected an object with schema, request and candidates"),
    "latin-1": (b'{\n"schema": "\xe9"}', "is not UTF-8 at byte 13 (line 2); save it as UTF-8"),
    "utf-16": ("{}".encode("utf-16"), "is not UTF-8 at byte 0 (line 1); save it as UTF-8"),
    "deep array": (b"[" * DEEP + b"]" * DEEP, "is nested more than 100 levels deep"),
    "deep object": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "is nested more than 100 levels deep"),
    "control character": (b'{"schema\n": 1}', "is not JSON: Invalid control character at line 1, column 9"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_no_document(name: str) -> None:
    text, message = TEXTS[name]
    assert faults_of(text) == [["$", message]]


def test_a_byte_order_mark_is_no_fault() -> None:
    text = json.dumps(document())
    for marked in (b"\xef\xbb\xbf" + text.encode(), "\ufeff" + text):
        assert loadmaster.compile_document(marked).status == "bundle"


def test_missing_parts() -> None:
    assert faults_of({}) == [
        ["schema", "required field is missing; it is 1"],
        ["request", "required field is missing"],
        ["candidates", "required field is missing"],
    ]
    assert faults_of(document(candidates={"a": 1})) == [["candidates", "must be an array, not an object"]]
    assert faults_of(document(schema=2)) == [["schema", "must be 1, the only schema there is"]]
    assert faults_of(document(schema=True)) == [["schema", "must be 1, the only schema there is"]]
    assert faults_of(document(request=[])) == [["request", "must be an object, not an array"]]
    assert faults_of(document(profiles=[])) == [["profiles", "must be an object, not an array"]]


def test_a_duplicate_is_reported_at_each_later_place() -> None:
    one = {"id": "a", "forms": [{"form": "full", "text": "x", "tokens": 1}]}
    assert faults_of(document(candidates=[one, {**one, "id": "b"}, one, one])) == [
        ["candidates[2].id", "duplicate id, first at candidates[0]"],
        ["candidates[3].id", "duplicate id, first at candidates[0]"],
    ]


def test_times_need_a_clock_and_that_is_said_once() -> None:
    timed = [
        {"id": name, "forms": [], "freshness": {"state": "current", "valid_until": "2026-01-01T00:00:00Z"}}
        for name in "abc"
    ]
    message = "is required, being the only clock, because candidates[0].freshness.valid_until is given"
    assert faults_of(document(candidates=timed)) == [["request.as_of", message]]
    untimed = with_candidate(freshness={"state": "unknown"})
    assert loadmaster.compile_document(untimed).status == "bundle"


HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (HUGE, "must be between 0 and 1,000,000,000,000,000"),
        ("-" + HUGE, "must be between 0 and 1,000,000,000,000,000"),
        ("1000000000000001", "must be between 0 and 1,000,000,000,000,000, not 1,000,000,000,000,001"),
        ("-1", "must be between 0 and 1,000,000,000,000,000, not -1"),
        ("1.0", "must be a whole number, not 1.0"),
        ("1e3", "must be a whole number, not 1E+3"),
        ("1e99999999999999999999", "must be a whole number, not Infinity"),
        ("NaN", "must be a whole number, not NaN"),
        ("-Infinity", "must be a whole number, not -Infinity"),
        ("true", "must be a whole number, not a boolean"),
        ('"1"', "must be a whole number, not a string"),
        ("[1]", "must be a whole number, not an array"),
    ],
)
def test_what_is_no_count_of_tokens(number: str, message: str) -> None:
    text = json.dumps(document()).replace('"tokens": 1', f'"tokens": {number}')
    assert faults_of(text) == [["candidates[0].forms[0].tokens", message]]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (HUGE, "must be written with at most 1,000 digits"),
        ("0." + HUGE, "must be written with at most 1,000 digits"),
        ("1e-2000", "must be written with at most 1,000 digits"),
        ("1e99999999999999999999", "must be a finite number"),
        ("NaN", "must be a finite number"),
        ("1.0000000000000000000000000000001", "must be less than or equal to 1"),
        ("-1e-1000", "must be greater than or equal to 0"),
        ("false", "must be a number, not a boolean"),
        ('"0.5"', "must be a number, not a string"),
        ("null", "must be a number, not null"),
    ],
)
def test_what_is_no_relevance(number: str, message: str) -> None:
    text = json.dumps(with_candidate(relevance="here")).replace('"here"', number)
    assert faults_of(text) == [["candidates[0].relevance", message]]


@pytest.mark.parametrize("number", [HUGE, "-" + HUGE, "1e400", "NaN", "Infinity"])
def test_numbers_that_metadata_cannot_carry(number: str) -> None:
    text = json.dumps(with_candidate(metadata={"a": [0, "here"]})).replace('"here"', number)
    assert faults_of(text) == [["candidates[0].metadata.a[1]", "is a number that JSON cannot carry"]]


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63), 1.5, 1e308])
def test_numbers_that_metadata_carries(number: float) -> None:
    result = loadmaster.compile_document(json.dumps(with_candidate(metadata={"a": number}, band="required")))
    assert result.to_dict()["blocks"][0]["metadata"] == {"a": number}


def nested(levels: int) -> Any:
    value: Any = "deepest"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [101, 500, DEEP])
def test_data_nested_too_deep_anywhere(levels: int) -> None:
    deep = nested(levels)
    too_deep = "is nested more than 100 levels deep"
    body = {"form": "full", "message": {"role": "user", "content": deep}, "tokens": 1}
    tool = {"form": "full", "tool": {"name": "t", "parameters": deep}, "tokens": 1}
    assert faults_of(with_candidate(metadata={"a": deep})) == [["candidates[0].metadata", too_deep]]
    assert faults_of(with_candidate(forms=[body])) == [["candidates[0].forms[0].message", too_deep]]
    assert faults_of(with_candidate(forms=[tool])) == [["candidates[0].forms[0].tool", too_deep]]
    for field in ("id", "covers", "order", "scope", "relevance", "conflict", "unheard_of"):
        faults = faults_of(with_candidate(**{field: deep}))
        assert [path.partition("[0]")[2].strip(".[0]") for path, _ in faults] == [field]
    assert [path for path, _ in faults_of(document(candidates=deep))] == ["candidates[0]"]
    assert [path for path, _ in faults_of(document(profiles=deep))] == ["profiles"]
    with pytest.raises(InvalidInput):
        loadmaster.compile_document(deep)


def test_nesting_up_to_the_limit_is_carried_through() -> None:
    metadata = {"a": nested(99)}
    result = loadmaster.compile_document(with_candidate(metadata=metadata, band="required"))
    assert result.to_dict()["blocks"][0]["metadata"] == metadata


@pytest.mark.parametrize("place", ["id", "group", "labels", "covers", "requires", "order", "layer"])
def test_lone_surrogate_in_a_field(place: str) -> None:
    value: Any = "a\ud800" if place in ("id", "group", "layer") else ["a\ud800"]
    index = "" if isinstance(value, str) else "[0]"
    for given in (with_candidate(**{place: value}), json.dumps(with_candidate(**{place: value}))):
        ((path, message),) = [
            fault for fault in faults_of(given) if "declared" not in fault[1]
        ]  # fmt: skip
        assert path == f"candidates[0].{place}{index}"
        assert message == "holds a lone surrogate, which no tokenizer or provider accepts"


def test_a_surrogate_pair_is_a_character() -> None:
    text = json.dumps(with_candidate(id="\U0001f600", band="required"))
    assert "\\ud83d" in text
    assert loadmaster.compile_document(text).to_dict()["blocks"][0]["id"] == "\U0001f600"


def test_odd_keys_make_unmistakable_paths() -> None:
    scope = dict.fromkeys(("a.b", "a[0]", 'a"b', "a\nb", "\u202e", "7", "²", "[key]", "é", "x" * 500))
    paths = {path for path, _ in faults_of(with_candidate(scope=scope))}
    shown = [
        r"a.b",
        r"a[0]",
        r"a\"b",
        r"a\nb",
        r"\u202e",
        "7",
        r"\u00b2",
        "[key]",
        r"\u00e9",
        "x" * 120 + r"\u2026",
    ]
    assert paths == {f'candidates[0].scope["{key}"]' for key in shown}


def test_very_many_faults() -> None:
    many = 20_000
    faults = faults_of(document(candidates=[{"id": "a", "forms": []}] * many))
    assert len(faults) == many - 1
    assert faults[-1][0] == f"candidates[{many - 1}].id"


def test_a_key_that_stands_very_often() -> None:
    text = json.dumps(document())[:-1] + ', "x": 1' * 100_000 + "}"
    assert faults_of(text) == [["x", "this key stands twice in its object"], ["x", "unknown field"]]


def test_profile_sets_are_checked_whole() -> None:
    profiles = {
        "version": "1",
        "layers": ["rag"],
        "default": "a",
        "profiles": {
            "a": {"layers": {"rag": {"cap": "101%"}, "memory": {}}},
            "b": {"max_age": {"graph": "1d"}},
        },
    }
    request = {"id": "r", "budget": {"window": 100}, "profile": "c", "profile_version": "2"}
    assert faults_of({"schema": 1, "request": request, "candidates": [], "profiles": profiles}) == [
        ["request.profile", "no profile 'c' in this set; it has 'a', 'b'"],
        ["request.profile_version", "asks for version '2', but the profile set is '1'"],
        ["profiles.profiles.a.layers.memory", "layer 'memory' is not declared; layers has 'rag'"],
        [
            "profiles.profiles.a.layers.rag.cap",
            'must be a whole number of tokens or a share from "0%" to "100%", not \'101%\'',
        ],
        ["profiles.profiles.b.max_age.graph", "layer 'graph' is not declared; layers has 'rag'"],
    ]
    del profiles["profiles"]["a"]["layers"]["rag"]  # type: ignore[index]
    with pytest.raises(ValidationError, match="layer 'memory' is not declared"):
        ProfileSet.model_validate(profiles)


def test_the_python_face_reports_parts_that_do_not_go_together() -> None:
    request = Request(id="r", tokenizer="declared", profile="c")
    freshness = Freshness(observed_at="2026-01-01T00:00:00Z")
    one = Candidate(id="a", layer="attic", forms=(Form(form="full", text="x"),), freshness=freshness)
    with pytest.raises(InvalidInput) as caught:
        Compiler().compile(request, [one, one, {"id": "b"}])  # type: ignore[list-item]
    assert [fault.path for fault in caught.value.faults] == [
        "request.as_of",
        "request.budget.window",
        "request.profile",
        "candidates[0].forms[0].tokens",
        "candidates[0].layer",
        "candidates[1].forms[0].tokens",
        "candidates[1].id",
        "candidates[1].layer",
        "candidates[2]",
    ]
    assert caught.value.faults[-1].message == (
        "must be a Candidate, not an object; compile_document reads plain data"
    )
    with pytest.raises(InvalidInput, match="request: must be a Request, not an object"):
        Compiler().compile({"id": "r"}, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 5},
        {"id": ""},
        {"id": "\ud800"},
        {"relevance": "much"},
        {"relevance": float("nan")},
        {"relevance": 2},
        {"band": "must"},
        {"exact": 1},
        {"covers": "abc"},
        {"scope": {"a": None}},
        {"metadata": {"a": object()}},
        {"metadata": {1: 2}},
        {"forms": (Form(form="full", text="x"), Form(form="full", text="y"))},
        {"colour": "red"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_models_refuse_wrong_values_when_they_are_made(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Candidate.model_validate({"id": "a", "forms": (Form(form="full", text="x"),), **fields})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "x", "tool": {"name": "t"}},
        {"message": {"content": "no role"}},
        {"message": {"role": 1}},
        {"tool": {"function": {"name": 1}}},
        {"text": b"\xff"},
    ],
    ids=str,
)
def test_a_form_has_one_sound_body(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Form.model_validate({"form": "full", **body})


def test_stored_models_come_back_as_they_were() -> None:
    candidate = Candidate(
        id="a", forms=(Form(form="full", text="x"),), relevance=Decimal("0.125"), order=(1, "b")
    )
    for stored in (candidate.model_dump(), candidate.model_dump(mode="json")):
        assert Candidate.model_validate(stored) == candidate
    assert Candidate.model_validate_json(candidate.model_dump_json()) == candidate
    assert Budget.model_validate_json(Budget(window=5).model_dump_json()) == Budget(window=5)


def test_strict_parsing_for_other_readers() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_json('{"a": [1, NaN], "b": 1, "b": Infinity}')
    assert [(fault.path, fault.message) for fault in caught.value.faults] == [
        ("a[1]", "NaN is no JSON value"),
        ("b", "Infinity is no JSON value"),
        ("b", "this key stands twice in its object"),
    ]
    assert parse_json(b'{"a": 0.10}') == {"a": Decimal("0.10")}
