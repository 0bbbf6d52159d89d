"""What core may not do: read packaged data and find tokenizers' vocabularies. Never a download."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
import tomllib
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import tiktoken

from loadmaster.core.capabilities import ModelTable
from loadmaster.core.profiles import ProfileSet

_VOCABULARIES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""The file names under which tiktoken caches vocabularies, and the SHA-256 that it checks them with."""

_lock = threading.Lock()


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML with exact decimals.

    Raises:
        tomllib.TOMLDecodeError: The text is no TOML.
    """
    return tomllib.loads(text, parse_float=Decimal)


def _packaged(name: str) -> dict[str, Any]:
    return read_toml(resources.files("loadmaster.core").joinpath(name).read_text("utf-8"))


@cache
def packaged_profiles() -> ProfileSet:
    """Give the packaged profile set."""
    return ProfileSet.model_validate(_packaged("profiles.toml"))


@cache
def packaged_models() -> ModelTable:
    """Give the packaged capability table."""
    return ModelTable.model_validate(_packaged("capabilities.toml"))


def find_encoding(name: str) -> tiktoken.Encoding | None:
    """Give a tokenizer whose vocabulary is on this machine, or None; nothing is downloaded.

    Looked for in ``TIKTOKEN_CACHE_DIR``, then in the copies that llama-index-core ships. A file
    with the wrong hash is passed over, since tiktoken would delete it and fetch another.
    """
    if name not in _VOCABULARIES:
        return None
    with _lock:
        return _load(name)


@cache
def _load(name: str) -> tiktoken.Encoding | None:
    file, digest = _VOCABULARIES[name]
    for folder in _folders():
        path = folder / file
        try:
            genuine = hashlib.sha256(path.read_bytes()).hexdigest() == digest
        except OSError:
            continue
        if genuine:
            before = os.environ.get("TIKTOKEN_CACHE_DIR")
            os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
            try:
                return tiktoken.get_encoding(name)
            finally:
                if before is None:
                    del os.environ["TIKTOKEN_CACHE_DIR"]
                else:
                    os.environ["TIKTOKEN_CACHE_DIR"] = before
    return None


def _folders() -> list[Path]:
    folders = []
    if os.environ.get("TIKTOKEN_CACHE_DIR"):
        folders.append(Path(os.environ["TIKTOKEN_CACHE_DIR"]))
    spec = importlib.util.find_spec("llama_index")
    for place in (spec.submodule_search_locations if spec else None) or ():
        folders.append(Path(place) / "core" / "_static" / "tiktoken_cache")
    return folders
