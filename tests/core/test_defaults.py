"""Vocabularies are found on this machine or not at all; nothing is downloaded."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadmaster import Compiler, InvalidInput, defaults

DOCUMENT = {
    "schema": 1,
    "request": {"id": "r", "budget": {"window": 1000, "output": 0}},
    "candidates": [{"id": "a", "band": "mandatory", "forms": [{"form": "full", "text": "some text"}]}],
}


def shipped() -> Path:
    return next(folder for folder in defaults._folders() if folder.name == "tiktoken_cache")


@pytest.fixture(autouse=True)
def _offline_and_unloaded(monkeypatch: pytest.MonkeyPatch) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    defaults._load.cache_clear()
    yield
    defaults._load.cache_clear()


def document(**request: Any) -> dict[str, Any]:
    return {**DOCUMENT, "request": {**DOCUMENT["request"], **request}}  # type: ignore[dict-item]


def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "_folders", list)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_shipped_vocabularies_are_found(name: str) -> None:
    encoding = defaults.find_encoding(name)
    assert encoding is not None and encoding.name == name
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.parametrize("name", ["gpt2", "p50k_base", "", "../o200k_base"])
def test_other_encodings_are_not_looked_for(name: str) -> None:
    assert defaults.find_encoding(name) is None


def test_the_folder_that_tiktoken_caches_in_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = defaults._VOCABULARIES["cl100k_base"]
    (tmp_path / name).write_bytes((shipped() / name).read_bytes())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert defaults._folders()[0] == tmp_path
    monkeypatch.setattr(defaults, "_folders", lambda: [tmp_path])
    assert defaults.find_encoding("cl100k_base") is not None
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)


def test_a_file_with_the_wrong_hash_is_passed_over_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = defaults._VOCABULARIES["cl100k_base"]
    (tmp_path / name).write_bytes(b"aGVsbG8= 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert defaults.find_encoding("cl100k_base") is not None
    assert (tmp_path / name).read_bytes() == b"aGVsbG8= 0\n"
    defaults._load.cache_clear()
    monkeypatch.setattr(defaults, "_folders", lambda: [tmp_path, tmp_path / "none"])
    assert defaults.find_encoding("cl100k_base") is None


def test_a_named_encoding_that_is_not_at_hand_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere(monkeypatch)
    with pytest.raises(InvalidInput) as caught:
        Compiler().compile_document(document(tokenizer="o200k_base"))
    (fault,) = caught.value.faults
    assert fault.path == "request.tokenizer"
    assert "loadmaster[llamaindex]" in fault.message and "TIKTOKEN_CACHE_DIR" in fault.message


def test_only_the_default_falls_back_to_the_labelled_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere(monkeypatch)
    tokens = Compiler().compile_document(document()).to_dict()["tokens"]
    assert (tokens["encoding"], tokens["source"], tokens["margin"]) == ("estimate", "estimated", 0.2)


def test_the_default_is_exact_where_the_vocabulary_is_at_hand() -> None:
    tokens = Compiler().compile_document(document()).to_dict()["tokens"]
    assert (tokens["encoding"], tokens["source"], tokens["margin"]) == ("o200k_base", "exact", 0)


@pytest.mark.slow
def test_the_command_line_exits_2_without_the_named_vocabulary(tmp_path: Path) -> None:
    source = tmp_path / "input.json"
    source.write_text(json.dumps(document(tokenizer="cl100k_base")))
    hide = "import loadmaster.defaults as d; d._folders = list; from loadmaster.cli import app; "
    code = hide + f"import sys; sys.argv = ['loadmaster', 'compile', {str(source)!r}]; app()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 2
    assert json.loads(run.stdout)["faults"][0]["path"] == "request.tokenizer"


def test_the_packaged_tables_load_once() -> None:
    assert defaults.packaged_profiles() is defaults.packaged_profiles()
    assert defaults.packaged_models() is defaults.packaged_models()
    assert defaults.packaged_profiles().default in defaults.packaged_profiles().profiles
