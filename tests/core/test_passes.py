"""One small file for each rule of each pass: `tests/fixtures/passes/<pass>/<case>.json`.

A case is a short form of an input document and what the specification says must come of it; the
README beside the cases explains both. Whatever a case does not name is not compared.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from loadmaster import PLAIN, TAGGED, Bundle, CompileFailure, Compiler

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "passes"
PASSES = (
    "inventory",
    "eligibility",
    "freshness",
    "alternatives",
    "closure",
    "feasibility",
    "admission",
    "layout",
    "render",
    "failures",
)
NAMES = sorted(path.relative_to(CASES).with_suffix("").as_posix() for path in CASES.glob("*/*.json"))
KEYS = frozenset(("why", "request", "profile", "layers", "defaults", "candidates", "renderer"))
KEYS |= {"words", "expect", "never"}
Json = Any


class WordCounter:
    """Counts words, and ``seam`` more for each block after the first, so that counts do not add up."""

    encoding = "words"
    source = "exact"
    margin = Decimal(0)
    additive = False

    def __init__(self, seam: int) -> None:
        self.seam = seam

    def count(self, text: str) -> int:
        blocks = len(re.findall(r"^</\w+>$", text, re.MULTILINE))
        return len(text.split()) + self.seam * max(0, blocks - 1)


def document_of(case: dict[str, Json]) -> dict[str, Json]:
    """Write the short form of a case out as an input document."""
    tokenizer = "estimate" if "words" in case else "declared"
    request = {"id": "request", "tokenizer": tokenizer, "budget": {}, **case.get("request", {})}
    request["budget"] = {"window": 1000, "output": 0, **request["budget"]}
    profile = {"layers": {"rag": {"ratio": 1}, "memory": {"ratio": 1}}, **case.get("profile", {})}
    layers = case.get("layers", ["session", "conversation", "tools", "memory", "graph", "rag"])
    shared = {"layer": "rag", "relevance": Decimal("0.5"), **case.get("defaults", {})}
    candidates = [candidate_of(name, {**shared, **fields}) for name, fields in case["candidates"].items()]
    profiles = {"version": "1", "layers": layers, "default": "only", "profiles": {"only": profile}}
    return {"schema": 1, "request": request, "candidates": candidates, "profiles": profiles}


def candidate_of(name: str, fields: dict[str, Json]) -> dict[str, Json]:
    tokens = fields.pop("tokens", 10)
    forms = fields.pop("forms", {"full": tokens})
    if isinstance(forms, dict):
        forms = [form_of(name, form, value) for form, value in forms.items()]
    return {"id": name, "forms": forms, **fields}


def form_of(name: str, form: str, value: Json) -> dict[str, Json]:
    """A number is the form's tokens, a string its text, an object the form without its name."""
    if isinstance(value, str):
        return {"form": form, "text": value}
    fields = {"tokens": value} if isinstance(value, int) else dict(value)
    if not {"text", "message", "tool"} & fields.keys():
        fields["text"] = f"{form} of {name}"
    return {"form": form, **fields}


def compile_case(case: dict[str, Json]) -> Bundle | CompileFailure:
    renderer = {"tagged": TAGGED, "plain": PLAIN}[case.get("renderer", "tagged")]
    counter = WordCounter(case["words"]) if "words" in case else None
    compiler = Compiler(renderer=renderer, counter=counter)  # type: ignore[arg-type]
    return compiler.compile_document(document_of(case))


def what_came_of(result: Bundle | CompileFailure) -> dict[str, Json]:
    """Bring a result into the words of the cases."""
    data = result.to_dict()
    view: dict[str, Json] = {"status": result.status, "tokens": data["tokens"]}
    rules: dict[str, list[str]] = {}
    for decision in result.trace.decisions:
        rules.setdefault(decision.item, []).append(f"{decision.step}/{decision.rule}")
    view["rules"] = rules
    if isinstance(result, Bundle):
        view["blocks"] = [block_name(block) for block in data["blocks"]]
        view["omitted"] = {item["id"]: item["rule"] for item in data["omitted"]}
        view["would"] = {item["id"]: item["would"] for item in data["omitted"]}
        view["text"] = {block["id"]: block["text"] for block in data["blocks"]}
        view["bands"] = {block["id"]: block["band"] for block in data["blocks"]}
        view["layers"] = {row["layer"]: row for row in data["allocation"]}
        view["messages"] = data.get("messages")
        view["tools"] = [tool["name"] for tool in data.get("tools", [])]
    else:
        view["code"] = data["code"]
        view["also"] = {entry["code"]: entry["ids"] for entry in data["also"]}
        for key in ("needed_tokens", "excess_tokens", "smallest_window", "proof"):
            view[key] = data[key]
        view["rejected"] = data["rejected_histogram"]
        view["blocking"] = {fact["id"]: fact["rule"] for fact in data["blocking"]}
        view["via"] = {fact["id"]: fact["via"] for fact in data["blocking"]}
        view["breakdown"] = {row["layer"] or row["part"]: row["needed"] for row in data["breakdown"]}
        view["relaxations"] = [[*entry["remove"], entry["owner"]] for entry in data["relaxations"]]
        view["remedies"] = {
            f"{entry['owner']}/{entry['action']}": entry["params"] for entry in data["remedies"]
        }
        view["sufficient"] = sorted(entry["action"] for entry in data["remedies"] if entry["sufficient"])
        view["public"] = result.public()
    return view


def block_name(block: dict[str, Json]) -> str:
    return str(block["id"]) if block["form"] == "full" else f"{block['id']}:{block['form']}"


def difference(expected: Json, actual: Json, path: str) -> str | None:
    """Name the first place where ``actual`` does not say what ``expected`` says.

    Objects are compared for the keys that are named, except where what is *not* there matters.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        if path in ("omitted", "blocking", "also") and expected.keys() != actual.keys():
            return f"{path}: expected {expected}, got {actual}"
        for key, value in expected.items():
            found = difference(value, actual.get(key), f"{path}.{key}" if path else key)
            if found:
                return found
        return None
    return None if expected == actual else f"{path}: expected {expected!r}, got {actual!r}"


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text("utf-8"), parse_float=Decimal)
    assert case.keys() <= KEYS
    result = compile_case(case)
    found = difference(case["expect"], what_came_of(result), "")
    assert found is None, f"{found}\n{case['why']}"
    for text in case.get("never", ()):
        assert text not in json.dumps(what_came_of(result)["public"]) + str(result), case["why"]


def test_every_pass_has_cases() -> None:
    assert {name.partition("/")[0] for name in NAMES} == set(PASSES)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_candidates_changes_nothing(name: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text("utf-8"), parse_float=Decimal)
    turned = {**case, "candidates": dict(reversed(case["candidates"].items()))}
    assert what_came_of(compile_case(turned)) == what_came_of(compile_case(case))
