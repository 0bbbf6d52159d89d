"""The worked cases: readable inputs whose results were derived by hand, from the design alone.

An expectation is a partial document. Objects are compared key by key, for the keys that it names;
lists, and the candidates that were left out, are compared whole.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import loadmaster

REQUESTS = Path(__file__).resolve().parents[1] / "examples" / "requests"
EXPECTED = REQUESTS / "expected"
UNPAIRED = {"getting-started"}
CASES = sorted(path.stem for path in REQUESTS.glob("*.json") if path.stem not in UNPAIRED)
EXIT = {"bundle": 0, "failure": 3}
UNORDERED = {"candidates", "forms", "requires", "labels", "covers", "needs", "clearances", "supersedes"}
"""Arrays whose order has no meaning; the others, such as a profile set's layers, declare one."""

Json = Any


def load(path: Path) -> Json:
    return json.loads(path.read_bytes())


def encode(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def compile_document(document: bytes | dict[str, Json]) -> dict[str, Json]:
    result: dict[str, Json] = loadmaster.compile_document(document).to_dict()
    return result


def compile_file(name: str) -> dict[str, Json]:
    return compile_document((REQUESTS / f"{name}.json").read_bytes())


def comparable(result: dict[str, Json]) -> dict[str, Json]:
    """Bring a result into the shape of the expectations."""
    view = dict(result)
    if result["status"] == "bundle":
        view["allocation"] = {row["layer"]: row for row in result["allocation"]}
        view["blocks"] = [[block["id"], block["form"]] for block in result["blocks"]]
        view["omitted"] = {item["id"]: item for item in result["omitted"]}
        view["tag_shows"] = {block["id"]: block["text"].partition("\n")[0] for block in result["blocks"]}
    if result["status"] == "failure":
        view["blocking"] = sorted(fact["id"] for fact in result["blocking"])
    return view


def first_difference(expected: Json, actual: Json, path: str = "$") -> str | None:
    """Name the first place where ``actual`` does not say what ``expected`` says."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if path == "$.omitted" and expected.keys() != actual.keys():
            return f"{path}: expected {sorted(expected)}, got {sorted(actual)}"
        for key, value in expected.items():
            if key not in actual:
                return f"{path}.{key}: expected {value!r}, but it is not there"
            if difference := first_difference(value, actual[key], f"{path}.{key}"):
                return difference
        return None
    if isinstance(expected, list) and isinstance(actual, list):
        for index, (want, have) in enumerate(zip(expected, actual, strict=False)):
            if difference := first_difference(want, have, f"{path}[{index}]"):
                return difference
        if len(expected) != len(actual):
            return f"{path}: expected {len(expected)} elements, got {len(actual)}: {actual!r}"
        return None
    if path.startswith("$.tag_shows."):
        return None if expected in actual else f"{path}: expected {expected!r} in the tag {actual!r}"
    return None if expected == actual else f"{path}: expected {expected!r}, got {actual!r}"


def rearranged(value: Json, turn: Any, name: str = "") -> Json:
    """Apply ``turn`` to the keys of every object and to every array whose order has no meaning."""
    if isinstance(value, dict):
        return {key: rearranged(value[key], turn, key) for key in turn(list(value))}
    if isinstance(value, list):
        elements = [rearranged(element, turn) for element in value]
        return turn(elements) if name in UNORDERED else elements
    return value


def reverse(values: list[Json]) -> list[Json]:
    return values[::-1]


def rotate(values: list[Json]) -> list[Json]:
    return values[1:] + values[:1]


def test_each_case_has_an_expectation_and_a_line_in_the_readme() -> None:
    assert sorted(path.stem for path in EXPECTED.glob("*.json")) == CASES
    assert {int(name[:2]) for name in CASES} == set(range(1, 16))
    lines = (REQUESTS / "README.md").read_text("utf-8").splitlines()
    listed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert sorted(listed) == sorted(path.name for path in REQUESTS.glob("*.json"))


@pytest.mark.parametrize("name", CASES)
def test_case_comes_out_as_derived(name: str) -> None:
    expected = load(EXPECTED / f"{name}.json")
    why = expected.pop("why")
    difference = first_difference(expected, comparable(compile_file(name)))
    assert difference is None, f"{difference}\n{why}"


@pytest.mark.parametrize("name", [*CASES, *sorted(UNPAIRED)])
def test_order_of_the_input_changes_nothing(name: str) -> None:
    document = load(REQUESTS / f"{name}.json")
    result = compile_file(name)
    for turn in (reverse, rotate, list):
        assert encode(compile_document(encode(rearranged(document, turn)))) == encode(result)
    assert encode(compile_document(document)) == encode(result)


@pytest.mark.parametrize("name", ["13-residual-token", "13-residual-token-array-swapped"])
def test_residual_token_under_every_permutation(name: str) -> None:
    document = load(REQUESTS / f"{name}.json")
    results = {
        encode(compile_document(document | {"candidates": list(order)}))
        for order in itertools.permutations(document["candidates"])
    }
    assert len(results) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_command_line_says_the_same(name: str) -> None:
    command = [sys.executable, "-m", "loadmaster.cli", "compile", str(REQUESTS / f"{name}.json")]
    run = subprocess.run(command, capture_output=True, check=False)
    result = compile_file(name)
    assert run.returncode == EXIT[result["status"]], run.stderr.decode()
    assert json.loads(run.stdout) == json.loads(encode(result))


def test_roomy_case_says_why_it_stops() -> None:
    assert compile_file("12-roomy-and-it-stops")["tokens"]["slack_reason"]


def test_getting_started_shows_a_bit_of_everything() -> None:
    result = compile_file("getting-started")
    assert result["status"] == "bundle"
    layers = {block["layer"] for block in result["blocks"]}
    assert layers >= {None, "session", "conversation", "memory", "graph", "rag"}
    rules = {item["id"]: item["rule"] for item in result["omitted"]}
    assert rules["memory/address-old"] == "superseded"
    assert rules["memory/card-digits"] == "labels"
    assert rules["rival/terms"] == "scope"
    assert rules["terms/changes-2024"] == "stale"
    assert rules["newsletter/spring"] == "net_value"
    assert "no_room" in rules.values()


def test_first_difference_names_the_place() -> None:
    actual = {"tokens": {"used": 5}, "blocks": [["a", "full"]], "omitted": {"b": {"rule": "cap"}}}
    differences = [
        ({"tokens": {"used": 5}}, None),
        ({"tokens": {"used": 4}}, "$.tokens.used: expected 4, got 5"),
        ({"tokens": {"slack": 0}}, "$.tokens.slack: expected 0, but it is not there"),
        ({"blocks": [["a", "anchor"]]}, "$.blocks[0][1]: expected 'anchor', got 'full'"),
        ({"blocks": []}, "$.blocks: expected 0 elements, got 1: [['a', 'full']]"),
        ({"omitted": {}}, "$.omitted: expected [], got ['b']"),
    ]
    for expected, difference in differences:
        assert first_difference(expected, actual) == difference
