"""Equal inputs give equal bytes: in any order, in any thread, in any process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.properties.laws import compiled, law, output
from tests.properties.strategies import bodies, documents

from loadmaster import Compiler

Json = Any
UNORDERED = {"candidates", "forms", "requires", "labels", "covers", "needs", "clearances", "supersedes"}
REAL = documents(tokenizer="o200k_base", body=bodies(chat=True), window=st.integers(50, 800))
PROCESS = """
import hashlib, json, sys
from loadmaster import Compiler
compiler, digest = Compiler(), hashlib.sha256()
for line in open(sys.argv[1], encoding="utf-8"):
    result = compiler.compile_document(json.loads(line))
    digest.update(json.dumps(result.to_dict(), ensure_ascii=False).encode() + b"".join(result.trace.lines()))
print(digest.hexdigest())
"""


def shuffled(value: Json, dice: random.Random, name: str = "") -> Json:
    """Shuffle the keys of every object, and every array whose order has no meaning."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], dice, key) for key in dice.sample(list(value), len(value))}
    if isinstance(value, list):
        elements = [shuffled(element, dice) for element in value]
        return dice.sample(elements, len(elements)) if name in UNORDERED else elements
    return value


@law(documents(), st.integers(0, 2**32), fast=80, deep=1000)
def test_in_any_order(document: Json, seed: int) -> None:
    assert output(compiled(shuffled(document, random.Random(seed)))) == output(compiled(document))


@law(REAL, st.integers(0, 2**32), fast=30, deep=250)
def test_in_any_order_with_real_counts(document: Json, seed: int) -> None:
    assert output(compiled(shuffled(document, random.Random(seed)))) == output(compiled(document))


@law(st.lists(REAL, min_size=4, max_size=4), fast=8, deep=50)
def test_in_any_thread(batch: list[Json]) -> None:
    alone = [output(Compiler().compile_document(document)) for document in batch]
    shared = Compiler(cache_size=8)  # so small that entries are dropped all the time
    with ThreadPoolExecutor(4) as pool:
        for _ in range(2):
            together = list(pool.map(lambda document: output(shared.compile_document(document)), batch))
            assert together == alone


@pytest.mark.slow
def test_in_any_process(tmp_path: Path) -> None:
    lines: list[str] = []

    @settings(
        max_examples=200,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(documents(), REAL))
    def collect(document: Json) -> None:
        lines.append(json.dumps(document))

    collect()
    batch = tmp_path / "documents.jsonl"
    batch.write_text("\n".join(lines), "utf-8")
    digests = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROCESS, str(batch)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        digests.add(run.stdout)
    assert len(lines) >= 150 and len(digests) == 1
