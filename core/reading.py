"""Reading an input document: from JSON or plain data to typed parts, or every fault that was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from loadmaster.core.contract import MAX_DEPTH, Candidate, Request
from loadmaster.core.faults import Fault, InvalidInput, from_pydantic, json_path
from loadmaster.core.profiles import ProfileSet

SCHEMA = 1
_KEYS = ("schema", "request", "candidates", "profiles")
_M = TypeVar("_M", bound=BaseModel)


class Document(NamedTuple):
    """A valid input document."""

    request: Request
    candidates: tuple[Candidate, ...]
    profiles: ProfileSet


class _Repeating(dict[str, Any]):
    """A JSON object in which a key stood twice."""

    repeated: tuple[str, ...] = ()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON strictly: exact decimals, no NaN, no repeated keys, bounded depth.

    Raises:
        InvalidInput: The text is no such JSON.
    """
    repeating = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeating
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        repeating = True
        marked = _Repeating(built)
        keys = [key for key, _ in pairs]
        marked.repeated = tuple(key for key in built if keys.count(key) > 1)
        return marked

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON value")

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        data = json.loads(text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=build)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput([Fault("$", f"is not JSON: {error.msg} at {at}")]) from None
    except UnicodeDecodeError as error:
        raise InvalidInput([Fault("$", f"is not UTF-8 at byte {error.start}")]) from None
    except RecursionError:
        raise InvalidInput([Fault("$", f"is nested more than {MAX_DEPTH} levels deep")]) from None
    except (ValueError, ArithmeticError) as error:
        raise InvalidInput([Fault("$", f"is not JSON: {error}")]) from None
    if repeating:
        raise InvalidInput(_repeats(data))
    return data


def _repeats(data: Any) -> Iterator[Fault]:
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Repeating):
            yield from (
                Fault(json_path(*path, key), "this key stands twice in its object") for key in value.repeated
            )
        if isinstance(value, dict):
            stack.extend(((*path, key), child) for key, child in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend(((*path, index), child) for index, child in reversed(list(enumerate(value))))


def read_document(data: Any, packaged: ProfileSet) -> Document:
    """Check an input document against schema 1 as a whole; ``packaged`` serves where it brings no profiles.

    Raises:
        InvalidInput: With every fault found, in the order of the document.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput([Fault("$", "must be a JSON object with schema, request and candidates")])
    faults = [Fault(json_path(str(key)), "unknown field") for key in data if key not in _KEYS]
    schema = data.get("schema")
    if "schema" not in data:
        faults.append(Fault("schema", "required field is missing"))
    elif isinstance(schema, bool) or schema != SCHEMA:
        faults.append(Fault("schema", f"must be {SCHEMA}"))
    request = profiles = None
    if "request" not in data:
        faults.append(Fault("request", "required field is missing"))
    else:
        request = _read(Request, data["request"], faults, "request")
    if data.get("profiles") is not None:
        profiles = _read(ProfileSet, data["profiles"], faults, "profiles")
    candidates: dict[int, Candidate] = {}
    raw = data.get("candidates")
    if "candidates" not in data:
        faults.append(Fault("candidates", "required field is missing"))
    elif not isinstance(raw, list | tuple):
        faults.append(Fault("candidates", "must be an array"))
    else:
        declared = _field(data.get("request"), "tokenizer") == "declared"
        for index, element in enumerate(raw):
            candidate = _read(Candidate, element, faults, "candidates", index)
            if candidate is not None:
                candidates[index] = candidate
            faults.extend(_form_faults(element, index, declared))
        faults.extend(_duplicate_ids(raw))
    if profiles is None and data.get("profiles") is None:
        profiles = packaged
    if request is not None and profiles is not None:
        faults.extend(policy_faults(request, candidates, profiles))
    if faults:
        raise InvalidInput(_in_document_order(faults))
    assert request is not None and profiles is not None
    return Document(request, tuple(candidates.values()), profiles)


def _read(model: type[_M], data: Any, faults: list[Fault], *path: str | int) -> _M | None:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults.extend(from_pydantic(error.errors(include_url=False, include_context=False), *path))
    except RecursionError:
        faults.append(Fault(json_path(*path), f"is nested more than {MAX_DEPTH} levels deep"))
    return None


def _field(data: Any, name: str) -> Any:
    return data.get(name) if isinstance(data, Mapping) else None


def _form_faults(element: Any, index: int, declared: bool) -> Iterator[Fault]:
    forms = _field(element, "forms")
    if not isinstance(forms, list | tuple):
        return
    seen = set()
    for position, form in enumerate(forms):
        name = _field(form, "form")
        if isinstance(name, str):
            if name in seen:
                path = json_path("candidates", index, "forms", position, "form")
                yield Fault(path, f"the form {name} stands twice in this candidate")
            seen.add(name)
        if declared and isinstance(form, Mapping) and form.get("tokens") is None:
            path = json_path("candidates", index, "forms", position, "tokens")
            yield Fault(path, "is required under the tokenizer declared")


def _duplicate_ids(raw: Any) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, element in enumerate(raw):
        identifier = _field(element, "id")
        if isinstance(identifier, str):
            if identifier in first:
                path = json_path("candidates", index, "id")
                yield Fault(path, f"duplicate id, first at {json_path('candidates', first[identifier])}")
            else:
                first[identifier] = index


def policy_faults(
    request: Request, candidates: Mapping[int, Candidate], profiles: ProfileSet
) -> Iterator[Fault]:
    """Find the faults that need the profile set: unknown profiles and layers, and times without a clock."""
    if request.profile is not None and request.profile not in profiles.profiles:
        known = ", ".join(sorted(profiles.profiles))
        yield Fault("request.profile", f"no profile {request.profile!r} in this set; it has {known}")
    if request.profile_version is not None and request.profile_version != profiles.version:
        message = f"asks for version {request.profile_version!r}, but the profile set is {profiles.version!r}"
        yield Fault("request.profile_version", message)
    if request.budget.window is None and request.model is None:
        yield Fault("request.budget.window", "is required unless request.model names a model")
    layers = frozenset(profiles.layers)
    for index, candidate in candidates.items():
        if candidate.layer is not None and candidate.layer not in layers:
            names = ", ".join(profiles.layers) or "none"
            message = f"layer {candidate.layer!r} is not declared; this profile set has {names}"
            yield Fault(json_path("candidates", index, "layer"), message)
        if request.as_of is None and candidate.freshness is not None and candidate.freshness.has_times:
            path = json_path("candidates", index, "freshness")
            yield Fault(path, "has times, so request.as_of, the only clock, is required")


def _in_document_order(faults: list[Fault]) -> list[Fault]:
    rank = {"schema": 0, "request": 1, "candidates": 2, "profiles": 3}

    def key(fault: Fault) -> tuple[int, list[tuple[int, str]]]:
        head = fault.path.partition(".")[0].partition("[")[0]
        parts = fault.path.replace("[", ".").replace("]", "").split(".")
        return rank.get(head, -1), [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return sorted(dict.fromkeys(faults), key=key)
