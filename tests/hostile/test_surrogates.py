"""A lone surrogate is a fault wherever a string may stand, with nothing else wrong beside it."""

from __future__ import annotations

from typing import Any

import pytest

from loadmaster import InvalidInput, compile_document

PLACES: dict[str, dict[str, Any]] = {
    "candidates[0].forms[0].text": {"forms": [{"form": "full", "text": "\ud800", "tokens": 1}]},
    "candidates[0].source.version": {"source": {"id": "s", "version": "\ud800"}},
    "candidates[0].source.uri": {"source": {"id": "s", "uri": "\ud800"}},
    "candidates[0].source.provenance": {"source": {"id": "s", "provenance": "\ud800"}},
    "candidates[0].group": {"group": "\ud800"},
    "candidates[0].layer": {"layer": "\ud800"},
}


@pytest.mark.parametrize("path", PLACES)
def test_a_lone_surrogate_is_a_fault_at_its_path(path: str) -> None:
    candidate: dict[str, Any] = {
        "id": "a",
        "layer": "rag",
        "forms": [{"form": "full", "text": "x", "tokens": 1}],
    }
    request = {"id": "r", "tokenizer": "declared", "budget": {"window": 100, "output": 0}}
    document = {"schema": 1, "request": request, "candidates": [{**candidate, **PLACES[path]}]}
    with pytest.raises(InvalidInput) as caught:
        compile_document(document)
    assert [fault.path for fault in caught.value.faults] == [path]
