"""Faults of an input document: what is wrong, and where, as data.

A compile that cannot be carried out because the *input* is malformed is neither a bundle nor a
compile failure. It is reported with every fault found, each with its JSON path, so that one round
of corrections is enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

Parts = tuple[str | int, ...]
"""A path as keys and indices, from the document down."""

Flaw = tuple[Parts, str]
"""What is wrong, by path, before it is a `Fault`."""

MOST_LISTED = 20
_LONGEST_KEY = 120
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
        elif len(part) <= _LONGEST_KEY and _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(_shortened(part, _LONGEST_KEY))}]"
    return text or "$"


def quoted(value: object) -> str:
    """Give a value as a message shows it: short, on one line, and free of anything that a terminal obeys.

    >>> quoted("x" * 90)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'"
    """
    return ascii(_shortened(value, 60)).replace("\\u2026", "…") if isinstance(value, str) else kind_of(value)


def kind_of(value: object) -> str:
    """Say what a value is instead of what it should be, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float | Decimal):
        return _shortened(str(value), 30)
    return f"a Python {type(value).__name__}"


def listed(names: Iterable[object]) -> str:
    """Give names as a message shows them; anything that is no name is said elsewhere."""
    given = list(dict.fromkeys(quoted(name) for name in names if isinstance(name, str)))
    return ", ".join(given[:MOST_LISTED]) + (", …" if len(given) > MOST_LISTED else "") or "none"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def get(part: object, name: str) -> Any:
    """Give a field of a JSON object or of a model; None of anything else."""
    if isinstance(part, Mapping):
        return part.get(name)
    return getattr(part, name, None) if isinstance(part, BaseModel) else None


def as_error(flaws: Sequence[Flaw]) -> PydanticCustomError:
    """Make several flaws about one value one pydantic error, which `from_pydantic` takes apart again."""
    text = "; ".join(f"{json_path(*path)}: {message}" if path else message for path, message in flaws)
    return PydanticCustomError("flaws", "{text}", {"text": text, "flaws": list(flaws)})


def from_pydantic(
    model: type[BaseModel], data: object, errors: Sequence[ErrorDetails], *prefix: str | int
) -> list[Flaw]:
    """Translate pydantic's errors about ``data``, read as ``model`` and standing at the path ``prefix``."""
    flaws: list[Flaw] = []
    for error in errors:
        path, about_key = _path_in(error, data)
        if error["type"] == "flaws":
            flaws += (((*prefix, *path, *below), message) for below, message in error["ctx"]["flaws"])
            continue
        message = f"the key {_message(error)}" if about_key else _message(error)
        if error["type"] == "extra_forbidden":
            close = get_close_matches(str(path[-1])[:_LONGEST_KEY], _fields_at(model, path[:-1]), 1, 0.7)
            message += f"; did you mean {close[0]}?" if close else ""
        flaws.append(((*prefix, *path), message))
    return flaws


def _path_in(error: ErrorDetails, data: object) -> tuple[Parts, bool]:
    """Give the path, and whether the last key itself is at fault: pydantic then adds a part ``[key]``."""
    path = error["loc"]
    if not path or path[-1] != "[key]" or error["type"] == "extra_forbidden":
        return path, False
    for part in path[:-1]:
        data = get(data, part) if isinstance(part, str) else None
    genuine = isinstance(data, Mapping) and "[key]" in data
    return (path, False) if genuine else (path[:-1], True)


def _fields_at(model: type[BaseModel], path: Parts) -> list[str]:
    """Give the names of the fields that an object may have."""
    found: type[BaseModel] | None = model
    in_container = False  # the next part is an index or a free key
    for part in path:
        field = found.model_fields.get(str(part)) if found and not in_container else None
        in_container = field is not None and getattr(field.annotation, "__origin__", None) in (tuple, dict)
        found = _model_in(field.annotation) if field else found
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model in an annotation such as ``tuple[Form, ...]`` or ``Conflict | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


_WORDING = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "invalid_key": "has a key that is no string",
    "missing": "required field is missing",
    "model_type": "must be an object",
    "string_too_short": "must not be empty",
    "string_type": "must be a string",
    "string_unicode": "holds a lone surrogate, which no tokenizer or provider accepts",
    "tuple_type": "must be an array",
}


def _message(error: ErrorDetails) -> str:
    kind, message = error["type"], error["msg"]
    if kind == "literal_error":
        return f"must be one of {error['ctx']['expected']}, not {quoted(error['input'])}"
    if kind == "extra_forbidden":
        return "unknown field"
    if kind in ("bool_type", "dict_type", "model_type", "string_type", "tuple_type"):
        return f"{_WORDING[kind]}, not {kind_of(error['input'])}"
    if message.startswith("Input should be "):
        message = f"must be {message.removeprefix('Input should be ')}"
    return _WORDING.get(kind) or message.removeprefix("Value error, ")
