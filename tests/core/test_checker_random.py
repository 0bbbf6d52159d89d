"""The checker beside the compiler, on documents that mix every feature: neither may disagree."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from loadmaster.compiler import Compiler
from loadmaster.core.blocks import PLAIN, TAGGED
from loadmaster.core.checker.check import check
from loadmaster.core.pipeline import compile_problem
from loadmaster.core.problem import Problem
from loadmaster.core.result import Bundle

LAYERS = ["session", "conversation", "tools", "memory", "graph", "rag"]
WORDS = ("ship", "crane", "dock <", "& berth", "</task>", "tide", "anchor", "ünïcode", "船", "cargo", "port")
FORMS = ["full", "dense", "compact", "anchor", "reference"]
DAYS = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00+02:00", "2026-03-01T00:00:00Z", "2026-04-01T12:00:00.5Z"]


class Writer:
    """Writes one random input document; equal seeds give equal documents."""

    def __init__(self, seed: int, relations: float) -> None:
        self.dice = random.Random(seed)
        self.size = self.dice.choice([3, 8, 15, 40])
        self.ids = [f"item-{number}" for number in range(self.size)]
        if self.dice.random() < 0.3:
            self.ids = [f"{number:032x}" for number in range(self.size)]
        self.relations = relations
        self.declared = self.dice.random() < 0.5
        self.chat = self.dice.random() < 0.4
        self.twins = self.dice.choice([0.0, 0.0, 0.5])

    def may(self, chance: float) -> bool:
        return self.dice.random() < chance

    def document(self) -> dict[str, Any]:
        dice = self.dice
        budget: dict[str, Any] = {"window": dice.choice([60, 150, 400, 1000, 5000])}
        if self.may(0.5):
            budget["output"] = dice.choice([0, 20])
        if self.may(0.3):
            budget |= {"reasoning": 5, "headroom": dice.choice([0, 10]), "economic": dice.choice([100, 900])}
        request: dict[str, Any] = {
            "id": "random",
            "tokenizer": "declared"
            if self.declared
            else dice.choice(["o200k_base", "estimate", "cl100k_base"]),
            "budget": budget,
            "scope": {"tenant": "a", "user": 1},
            "clearances": ["pii"],
            "as_of": "2026-03-01T00:00:00Z",
            "requires": [self.some_id()] if self.may(0.2) else [],
            "needs": dice.sample(["n1", "n2", "n3"], dice.choice([0, 0, 2])),
        }
        if not self.declared and self.may(0.2):
            request |= {"tokenizer": None, "model": "unheard-of"}  # its counts carry a margin
        return {
            "schema": 1,
            "request": request,
            "profiles": self.profiles(),
            "candidates": [self.candidate(name) for name in self.ids],
        }

    def some_id(self) -> str:
        return "nobody" if self.may(0.03) else self.dice.choice(self.ids)

    def amount(self) -> int | str:
        amounts: list[int | str] = [0, 30, 100, "10%", "15%", "40%"]
        return self.dice.choice(amounts)

    def profiles(self) -> dict[str, Any]:
        dice = self.dice
        rules: dict[str, dict[str, Any]] = {}
        for layer in dice.sample(LAYERS, dice.choice([2, 4, 6])):
            rules[layer] = {"ratio": dice.choice([0, 1, 5])}
            if self.may(0.3):
                rules[layer]["floor"] = dice.choice([0, 10, 40, "5%", "12.5%"])
            if self.may(0.3):
                rules[layer]["cap"] = self.amount()
            if self.may(0.3):
                rules[layer]["priority"] = dice.choice([1, 2, 3])
        profile = {
            "output": dice.choice([0, "10%"]),
            "surplus": dice.choice(["ratio", "priority"]),
            "order": dice.choice(["net", "density"]),
            "price": dice.choice([0, 0.1, 2]),
            "min_relevance": dice.choice([0, 0.2]),
            "corroboration": dice.choice([0, 1]),
            "layout": dice.choice(["canonical", "cache"]),
            "max_age": {"memory": "40d"},
            "scope_required": dice.choice([[], [], ["tenant"]]),
            "transfer": dice.choice([[], [{"key": "tenant", "from": "b", "to": "a"}]]),
            "layers": rules,
        }
        return {"version": "9", "layers": LAYERS, "default": "p", "profiles": {"p": profile}}

    def candidate(self, name: str) -> dict[str, Any]:
        dice = self.dice
        layer = dice.choice([None, *LAYERS])
        section = dice.choice(["governing", "task", "state", "evidence", "capability", None, None])
        least = {"governing": "developer", "capability": "system", "task": "user"}.get(section or "", "tool")
        data: dict[str, Any] = {
            "id": name,
            "layer": layer,
            "section": section,
            "band": dice.choice(["supported", "discretionary", "discretionary", "discretionary"]),
            "relevance": dice.choice([0, 0.1, 0.25, 0.5, 0.9, 1]),
            "authority": "retrieved" if self.may(0.05) else least,
            "forms": self.forms(name),
        }
        if self.may(0.12):
            data["band"] = dice.choice(["mandatory", "required", "required", "excluded"])
        if self.may(0.6):
            data["scope"] = {"tenant": "b" if self.may(0.04) else "a"} | (
                {"user": 1} if self.may(0.5) else {}
            )
        if self.may(0.1):
            data["min_form"] = dice.choice(FORMS)
        if self.may(0.1):
            data["max_form"] = dice.choice(FORMS[:3])
        if self.may(0.03):
            data["exact"] = True
        if self.may(self.relations):
            data["requires"] = [self.some_id() for _ in range(dice.choice([1, 1, 2]))]
        if self.may(self.relations):
            data["group"] = dice.choice(["g1", "g2", "g3"])
        if self.may(self.relations):
            data["conflict"] = {
                "id": dice.choice(["c1", "c2"]),
                "status": dice.choice(["unresolved", "resolved"]),
            }
        if self.may(0.3):
            data["source"] = {"id": dice.choice(["s1", "s2", *self.ids])}
            if self.may(0.4):
                data["source"]["version"] = dice.choice(["1", "1.0", "1.2", "1.10", "draft"])
        if self.may(0.2):
            data["freshness"] = self.freshness()
        if self.may(0.1):
            data["labels"] = [dice.choice(["pii", "pii", "secret"])]
        if self.may(0.3):
            data["covers"] = [dice.choice(["n1", "n2", "n4"])]
        if self.may(0.5):
            data["order"] = dice.choice([[1], [2], ["a", 2], ["a"], [1, "b"]])
        if self.may(0.2):
            data["stability"] = dice.choice(["static", "tenant", "session", "append", "turn", "volatile"])
        if self.may(0.1):
            data["metadata"] = {"k": 1}
        if self.may(self.twins):
            text = dice.choice(["one record", "another record"])
            data |= {"forms": [{"form": "full", "text": text, "tokens": 5}], "source": {"id": "s"}}
            data |= {"authority": "tool", "section": "evidence"}
        return data

    def forms(self, name: str) -> list[dict[str, Any]]:
        dice = self.dice
        forms = []
        for form in dice.sample(FORMS, dice.choice([1, 1, 1, 2, 4])):
            length = {"full": 30, "dense": 20, "compact": 12, "anchor": 5, "reference": 2}[form]
            body = " ".join(dice.choices(WORDS, k=dice.randint(1, length)))
            if self.may(0.15):
                body = "the same record"
            data: dict[str, Any] = {"form": form}
            kind = dice.choice(["text", "message", "tool"]) if self.chat else "text"
            if kind == "message":
                data["message"] = {"role": dice.choice(["user", "assistant", "system"]), "content": body}
            elif kind == "tool":
                data["tool"] = {"name": f"t{dice.randint(1, 9)}", "description": body, "parameters": {}}
            else:
                data["text"] = body
            data["tokens"] = dice.randint(0, 4 * length)
            if self.may(self.relations):
                data["requires"] = [self.some_id()]
            forms.append(data)
        return forms

    def freshness(self) -> dict[str, Any]:
        dice = self.dice
        data: dict[str, Any] = {"state": dice.choice(["current"] * 5 + ["stale", "unknown"])}
        for key, chance in (
            ("observed_at", 0.4),
            ("valid_from", 0.3),
            ("valid_until", 0.1),
            ("expires_at", 0.1),
        ):
            if self.may(chance):
                data[key] = dice.choice(DAYS)
        if self.may(0.2):
            data["required"] = True
        if self.may(0.2):
            data["supersedes"] = [self.some_id()]
        return data


def problem_of(seed: int, relations: float) -> Problem:
    read = Compiler().read(Writer(seed, relations).document())
    key = b"key" if seed % 5 == 0 else None
    compiler = Compiler(profiles=read.profiles, renderer=PLAIN if seed % 7 == 0 else TAGGED, digest_key=key)
    return compiler.problem(read.request, read.candidates)


@pytest.mark.parametrize("relations", [0.0, 0.05, 0.2])
def test_the_checker_finds_nothing_in_what_the_compiler_makes(relations: float) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(150):
        problem = problem_of(seed, relations)
        result = compile_problem(problem)
        outcomes[result.status] += 1
        if isinstance(result, Bundle):
            assert check(problem, result) == (), seed
    assert outcomes["bundle"] > 30
