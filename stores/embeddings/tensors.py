"""Arrays inside a safetensors file, mapped into memory by numpy alone.

The format: a little-endian 64-bit length, that many bytes of JSON (name to type, shape and offsets
into the rest), then the arrays in row order. https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loadmaster.stores.embeddings.embedder import EmbedderError

_TYPES = {"F16": "<f2", "F32": "<f4", "I64": "<i8"}
_LENGTH_BYTES = 8


def read_tensors(file: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Map the arrays of a file, by name; they are read-only and read from disk as they are used.

    Raises:
        EmbedderError: The file is missing, cut off, no safetensors file, or holds types not known here.
    """
    try:
        content = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
        header = json.loads(content[_LENGTH_BYTES:start].tobytes())
        header.pop("__metadata__", None)
        return {
            name: content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
            .view(_TYPES[entry["dtype"]])
            .reshape(entry["shape"])
            for name, entry in header.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise EmbedderError(
            f"{file.name} cannot be read as safetensors ({error}); reinstall the package that brings it"
        ) from error
