"""Canonical JSON and digests: equal values give equal bytes, whatever order their keys came in."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Any


def canonical_json(value: Any) -> str:
    """Serialise JSON data compactly with sorted keys and unescaped non-ASCII text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def sha256(data: bytes) -> str:
    """Give the labelled digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """Give the labelled digest of JSON data in canonical form."""
    return sha256(canonical_json(value).encode())


def digest_of_sequence(parts: Iterable[bytes], key: bytes | None = None) -> str:
    """Give the digest of byte strings in order, each preceded by its length.

    With a key it is an HMAC: a plain digest of a short text can be guessed by trying texts.
    """
    state = hashlib.sha256() if key is None else hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return ("sha256:" if key is None else "hmac-sha256:") + state.hexdigest()
