"""Tables and tokenizers that other packages carry: found and read without importing those packages."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from loadmaster.stores.embeddings.embedder import EmbedderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def folder_of(package: str) -> Path | None:
    """Give the folder of an installed package, or None."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def read_tokenizer(file: Path) -> Tokenizer:
    """Read a tokenizer that neither pads nor cuts.

    Raises:
        EmbedderError: The file is missing or cannot be read.
        ImportError: The package ``tokenizers`` is missing.
    """
    from tokenizers import Tokenizer

    if not file.is_file():
        raise EmbedderError(f"the tokenizer {file.name} is missing; reinstall the package that brings it")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises Exception itself
        raise EmbedderError(f"the tokenizer {file.name} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def digest(*files: Path) -> str:
    """Give twelve hex digits that tell the contents of files apart, for an embedder's version."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    return whole.hexdigest()[:12]


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which tokenizers refuse, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
