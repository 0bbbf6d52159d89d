"""Faults of the compiler that the independent checker found; each was once a wrong bundle or a crash."""

from __future__ import annotations

from typing import Any

from loadmaster.compiler import Compiler
from loadmaster.core.blocks import PLAIN
from loadmaster.core.result import Bundle

PROFILES = {
    "version": "1",
    "layers": ["session", "tools"],
    "default": "only",
    "profiles": {"only": {"layers": {"session": {"ratio": 1}, "tools": {"floor": 10, "ratio": 1}}}},
}


def bundle_of(*candidates: dict[str, Any], **compiler: Any) -> Bundle:
    request = {"id": "r", "tokenizer": "declared", "budget": {"window": 1000}}
    document = {"schema": 1, "request": request, "profiles": PROFILES, "candidates": list(candidates)}
    result = Compiler(**compiler).compile_document(document)
    assert isinstance(result, Bundle)
    return result


def form(name: str, tokens: int, **body: Any) -> dict[str, Any]:
    return {
        "form": name,
        "tokens": tokens,
        **(body if {"tool", "message"} & body.keys() else {"text": name, **body}),
    }


def test_declared_tokens_are_a_sum_under_every_renderer() -> None:
    must = {"id": "a", "band": "required", "forms": [form("full", 30)]}
    more = {"id": "b", "band": "required", "forms": [form("full", 12)]}
    assert bundle_of(must, more, renderer=PLAIN).tokens.used == 42


def test_tools_are_ordered_by_the_form_that_is_in() -> None:
    late = [form("full", 5000), form("compact", 5, tool={"name": "zip"})]
    early = [form("full", 5, tool={"name": "abs"})]
    bundle = bundle_of(
        {"id": "a", "layer": "tools", "relevance": 1, "forms": late},
        {"id": "b", "layer": "tools", "relevance": 1, "forms": early},
    )
    assert [block.id for block in bundle.blocks] == ["b", "a"]


def test_a_dependency_of_a_form_that_was_not_chosen_does_not_come_along() -> None:
    # A floor makes more than tokens count, so the search goes on to forms that need less than it took in:
    # here the message that carries text, once for the dense form and once for the dependency.
    must = [form("dense", 22), form("reference", 3, message={"role": "user"}, requires=["d"])]
    spare = [form("full", 11), form("compact", 17, tool={"name": "t"}, requires=["c"])]
    bundle = bundle_of(
        {"id": "c", "layer": "session", "band": "required", "forms": must},
        {"id": "d", "layer": "tools", "forms": spare},
    )
    assert [(block.id, block.form) for block in bundle.blocks] == [("c", "dense")]


def test_standing_content_does_not_pay_for_a_member_with_a_layer_when_that_is_enriched() -> None:
    bundle = bundle_of(
        {"id": "lead", "band": "required", "relevance": 1, "group": "g", "forms": [form("full", 34)]},
        {
            "id": "member",
            "layer": "session",
            "relevance": 1,
            "group": "g",
            "forms": [form("compact", 7), form("full", 39)],
        },
    )
    assert [block.form for block in bundle.blocks] == ["full", "full"]
    assert bundle.tokens.standing == 34
    assert bundle.allocation[0].used == 39


def test_a_merged_copy_leaves_its_group_to_the_record_that_stands_for_it() -> None:
    record = {"layer": "tools", "relevance": 0.5, "source": {"id": "crm"}, "forms": [form("full", 10)]}
    bundle = bundle_of(
        {"id": "a", "group": "one", **record},
        {"id": "b", "group": "two", **record},
        {"id": "c", "group": "two", "layer": "tools", "relevance": 0.9, "forms": [form("full", 10)]},
        {"id": "d", "group": "one", "layer": "tools", "forms": [form("full", 10)]},
    )
    # All or nothing holds across both groups: c needs b, which is in as a, which needs d.
    assert [block.id for block in bundle.blocks] == ["a", "c", "d"]


def test_an_unresolved_copy_makes_its_conflict_unresolved() -> None:
    record = {"layer": "tools", "relevance": 0.5, "source": {"id": "crm"}, "forms": [form("full", 10)]}
    bundle = bundle_of(
        {"id": "a", "conflict": {"id": "k", "status": "resolved"}, **record},
        {"id": "b", "conflict": {"id": "k", "status": "unresolved"}, **record},
        {
            "id": "c",
            "layer": "tools",
            "relevance": 0.9,
            "conflict": {"id": "k", "status": "resolved"},
            "forms": [form("full", 10)],
        },
    )
    assert ['status="unresolved"' in block.text for block in bundle.blocks] == [True, True]
