"""What the bench measures: a compile, and what it is compared with, on the same texts."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import tiktoken

from loadmaster import defaults
from loadmaster.compiler import Compiler
from loadmaster.core.blocks import PLAIN
from loadmaster.core.items import item_of
from loadmaster.core.pipeline import run
from loadmaster.core.reading import read_document
from loadmaster.core.result import Bundle
from loadmaster.core.tokens import CountCache, Meter
from loadmaster.evaluation.workload import BUDGET

Work = Callable[[], object]
Measure = Callable[[], Work]
"""Prepares one run, untimed, and gives what is timed."""


@dataclass(frozen=True)
class Times:
    """What a measure took, in milliseconds: of this process in each round, and by the clock on the wall."""

    min: float
    median: float
    wall: float
    rounds: list[float]


def rounds_of(measures: Mapping[str, Measure], repeat: int) -> dict[str, Times]:
    """Run every measure once a round; each starts after a collection and runs with the collector off."""
    samples: dict[str, list[tuple[int, int]]] = {name: [] for name in measures}
    collecting = gc.isenabled()
    gc.collect()
    gc.freeze()  # the workload is no garbage: keep it out of the collections between measures
    try:
        for _ in range(repeat):
            for name, measure in measures.items():
                work = measure()
                gc.collect()
                if not name.endswith("_gc"):
                    gc.disable()
                wall, start = time.perf_counter_ns(), time.process_time_ns()
                kept = work()
                took = time.process_time_ns() - start
                samples[name].append((took, time.perf_counter_ns() - wall))
                gc.enable()
                del kept, work
    finally:
        gc.unfreeze()
        if not collecting:
            gc.disable()
    return {name: _times(*zip(*took, strict=True)) for name, took in samples.items()}


def _times(took: tuple[int, ...], wall: tuple[int, ...]) -> Times:
    rounds = [round(time / 1e6, 4) for time in took]
    return Times(min(rounds), median(rounds), round(median(wall) / 1e6, 4), rounds)


class Ours:
    """Loadmaster on one workload."""

    def __init__(self, document: dict[str, Any]) -> None:
        encoding = defaults.find_encoding("o200k_base")
        if encoding is None:
            raise RuntimeError("the bench needs the o200k_base vocabulary: install loadmaster[llamaindex]")
        self.encoding: tiktoken.Encoding = encoding
        self.document = document
        self.simple = "profiles" in document  # one form each, all legal: the knapsack bound means something
        self.packaged = defaults.packaged_profiles()
        read = read_document(document, self.packaged)
        self.request, self.candidates = read.request, read.candidates
        self.compiler = Compiler(profiles=read.profiles)
        self.problem = self.compiler.problem(self.request, self.candidates)
        bundle = self.compiler.compile(self.request, self.candidates)
        assert isinstance(bundle, Bundle)
        self.bundle = bundle

    def measures(self) -> dict[str, Measure]:
        """Give what is timed, by name."""
        measures: dict[str, Measure] = {
            "tokenise_blocks": self._tokenise_blocks,
            "cold": self._cold,
            "parse": lambda: lambda: read_document(self.document, self.packaged),
            "records": lambda: lambda: [item_of(candidate) for candidate in self.candidates],
            "warm": lambda: lambda: run(self.problem),
            "warm_gc": lambda: lambda: run(self.problem),
            "trace_first": self._trace_first,
            "trace": self._trace,
            "compile": lambda: lambda: self.compiler.compile(self.request, self.candidates),
        }
        check = _checker()
        if check is not None:
            measures["check"] = lambda: lambda: check(self.problem, self.bundle)
        return measures

    def _tokenise_blocks(self) -> Work:
        block, encode = self.problem.renderer.block, self.encoding.encode_ordinary
        blocks = [block(item, form, None) for item in self.problem.items for form in item.forms]
        return lambda: [encode(text) for text in blocks]

    def _cold(self) -> Work:
        problem = replace(self.problem, meter=Meter(self.problem.meter.counter, CountCache()))
        return lambda: run(problem)

    def _trace(self) -> Work:
        trace = replace(self.bundle.trace)
        return lambda: list(trace.lines())

    def _trace_first(self) -> Work:
        for candidate in self.candidates:
            candidate.__dict__.pop("digest", None)  # what a candidate's first trace works out and keeps
        return self._trace()

    def quality(self) -> dict[str, Any]:
        """Count what would be sent again, and compare what was kept with the fractional bound."""
        check = _checker()
        figures: dict[str, Any] = {
            "violations": None if check is None else len(check(self.problem, self.bundle)),
            "reported": self.bundle.tokens.used,
            "recount": len(self.encoding.encode_ordinary(self.bundle.text)),
            "kept": len(self.bundle.blocks),
        }
        if not self.simple:
            return figures
        plain = Compiler(profiles=self.compiler.profiles, renderer=PLAIN).compile(
            self.request, self.candidates
        )
        assert isinstance(plain, Bundle)
        return {
            **figures,
            "bound_percent": self._bound_percent(self.bundle, as_sent=True),
            "bound_percent_bare": self._bound_percent(self.bundle, as_sent=False),
            "plain_reported": plain.tokens.used,
            "plain_recount": len(self.encoding.encode_ordinary(plain.text)),
            "plain_bound_percent_bare": self._bound_percent(plain, as_sent=False),
        }

    def _bound_percent(self, bundle: Bundle, *, as_sent: bool) -> float:
        """Give the relevance kept, in percent of the fractional-knapsack bound.

        ``as_sent`` weighs each candidate by what its block costs, since that is what a choice can
        be made of; else by its text alone, as if a frame were free.
        """
        kept = {block.id for block in bundle.blocks}
        room, total, wares = BUDGET, 0.0, []
        for item in self.problem.items:
            form = item.forms[0]
            text = self.problem.renderer.block(item, form, None) if as_sent else form.body
            cost, score = len(self.encoding.encode_ordinary(text)), float(item.candidate.relevance)
            if item.candidate.band == "mandatory":
                room -= cost
                continue
            wares.append((score / cost, score, cost))
            total += score if item.id in kept else 0.0
        return round(100 * total / fractional_bound(wares, room), 3)


class Baselines:
    """What a compile is compared with, on the same texts: tokenising, a greedy, and langchain-core."""

    def __init__(self, encoding: tiktoken.Encoding, document: dict[str, Any]) -> None:
        self.encoding = encoding
        self.simple = "profiles" in document
        self.texts = [form["text"] for candidate in document["candidates"] for form in candidate["forms"]]
        self.must, *self.rest = [
            (candidate.get("relevance", 1.0), candidate["forms"][0]["text"])
            for candidate in document["candidates"]
        ]
        self.counts = {text: len(encoding.encode_ordinary(text)) for text in self.texts}

    def measures(self) -> dict[str, Measure]:
        """Give what is timed, by name."""
        measures: dict[str, Measure] = {
            "greedy": lambda: self._greedy,
        }
        try:
            messages = importlib.import_module("langchain_core.messages")
        except ImportError:
            return measures
        best_last = [text for _, text in sorted(self.rest)]
        history = [messages.SystemMessage(self.must[1]), *map(messages.HumanMessage, best_last)]
        measures["trim_cold"] = lambda: self._trim(messages, history, {})
        measures["trim_warm"] = lambda: self._trim(messages, history, dict(self.counts))
        return measures

    def tokenise(self) -> Work:
        """Encode every text once."""
        encode, texts = self.encoding.encode_ordinary, self.texts
        return lambda: [encode(text) for text in texts]

    def _greedy(self) -> list[str]:
        """Fill by score per token; one token more for each join."""
        counts = self.counts
        left = BUDGET - counts[self.must[1]]
        kept = [self.must[1]]
        for _, text in sorted(self.rest, key=lambda ware: ware[0] / counts[ware[1]], reverse=True):
            cost = counts[text] + 1
            if cost <= left:
                left -= cost
                kept.append(text)
        return kept

    def _trim(self, messages: Any, history: list[Any], memory: dict[str, int]) -> Work:
        encode = self.encoding.encode_ordinary

        def count(some: Sequence[Any]) -> int:
            total = 0
            for message in some:
                text = message.content
                tokens = memory.get(text)
                if tokens is None:
                    tokens = memory[text] = len(encode(text))
                total += tokens
            return total

        return lambda: messages.trim_messages(
            history, max_tokens=BUDGET, token_counter=count, strategy="last", include_system=True
        )

    def quality(self) -> dict[str, Any]:
        """Give what the greedy keeps, in percent of the bound on bare texts."""
        if not self.simple:
            return {}
        wares = [(score / self.counts[text], score, self.counts[text]) for score, text in self.rest]
        scores = {text: score for score, text in self.rest}
        bound = fractional_bound(wares, BUDGET - self.counts[self.must[1]])
        kept = sum(scores[text] for text in self._greedy()[1:])
        return {"greedy_bound_percent_bare": round(100 * kept / bound, 3)}


def fractional_bound(wares: Sequence[tuple[float, float, int]], room: int) -> float:
    """Give the most score that room can hold if one ware may be cut; wares are (density, score, cost)."""
    best = 0.0
    for _, score, cost in sorted(wares, reverse=True):
        if cost >= room:
            return best + score * max(room, 0) / cost
        best += score
        room -= cost
    return best


def _checker() -> Callable[..., Any] | None:
    try:
        check: Callable[..., Any] = importlib.import_module("loadmaster.core.checker.check").check
    except (ImportError, AttributeError):
        return None
    return check


def installed(package: str) -> str | None:
    """Give a package's version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
