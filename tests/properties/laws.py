"""Stating laws: each is tested on a few generated inputs, and slowly on many.

The inputs are the same in every run. ``LOADMASTER_FUZZ=20`` draws others, and that many times more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from loadmaster import Bundle, CompileFailure, Compiler

Json = Any
FUZZ = int(os.environ.get("LOADMASTER_FUZZ", "0"))
COMPILER = Compiler()


FOUND = Path(__file__).with_name("found.json")
"""The smallest documents in which a law was once broken, each with the reason."""


def law(
    *inputs: st.SearchStrategy[Any], fast: int, deep: int, found: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function of generated inputs a test, run on ``fast`` examples and, marked slow, on ``deep``.

    With ``found`` it is also run on the documents that once broke a law.
    """

    def state(function: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", [fast, pytest.param(deep, marks=pytest.mark.slow)])
        def test(examples: int) -> None:
            limits = settings(
                max_examples=examples * max(FUZZ, 1),
                deadline=None,
                derandomize=not FUZZ,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            generated = given(*inputs)(function)
            for case in json.loads(FOUND.read_bytes()) if found else ():
                generated = example(case["document"])(generated)
            limits(generated)()

        test.__doc__ = function.__doc__
        return test

    return state


def compiled(document: Json) -> Bundle | CompileFailure:
    return COMPILER.compile_document(document)


def codes_of(result: Bundle | CompileFailure) -> tuple[str, ...]:
    """Give all failure codes that hold, none for a bundle."""
    return () if result.status == "bundle" else (result.code, *(code for code, _ in result.also))


def output(result: Bundle | CompileFailure) -> bytes:
    """Give everything that a compile puts out, byte for byte."""
    return json.dumps(result.to_dict(), ensure_ascii=False).encode() + b"".join(result.trace.lines())
