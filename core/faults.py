"""Faults of an input document: what is wrong, and where, as data.

A compile that cannot be carried out because the *input* is malformed is neither a bundle nor a
compile failure. It is reported with every fault found, each with its JSON path, so that one round
of corrections is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic_core import ErrorDetails

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong with an input.

    Attributes:
        path: JSON path of the offending value, such as ``candidates[1].forms[0].tokens``;
            ``$`` is the document itself.
        message: What is wrong and what would be right.
    """

    path: str
    message: str


class InvalidInput(ValueError):
    """The input breaks the data contract; ``faults`` holds every fault found.

    Common causes: a misspelt field, a duplicate id, a layer that the profile set does not declare,
    a form without ``tokens`` under the tokenizer ``declared``. Correct the paths that are named.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))

    def to_dict(self) -> dict[str, object]:
        """Give the ``invalid`` result of the data contract."""
        return {
            "status": "invalid",
            "faults": [{"path": fault.path, "message": fault.message} for fault in self.faults],
        }


def json_path(*parts: str | int) -> str:
    """Join keys and indices to a JSON path.

    >>> json_path("candidates", 1, "forms", 0, "tokens")
    'candidates[1].forms[0].tokens'
    >>> json_path("request", "scope", "a b")
    'request.scope["a b"]'
    """
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            escaped = part.encode("unicode_escape").decode("ascii").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text or "$"


_WORDING = {
    "extra_forbidden": "unknown field",
    "missing": "required field is missing",
    "string_unicode": "holds a lone surrogate, which no tokenizer or provider accepts",
}


def from_pydantic(errors: Sequence[ErrorDetails], *prefix: str | int) -> list[Fault]:
    """Translate pydantic's errors to faults below the path ``prefix``."""
    faults = []
    for error in errors:
        message = _WORDING.get(error["type"])
        if message is None:
            message = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            if error["msg"].startswith("Input should be "):
                message = f"must be {message}"
        faults.append(Fault(json_path(*prefix, *error["loc"]), message))
    return faults
