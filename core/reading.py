"""Reading an input document: from JSON or plain data to typed parts, or every fault that was found.

Models check one value at a time. What needs the whole document (unique ids, declared layers, a
clock where there are times) is checked on the data itself, so that a fault in one place never
hides one in another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from loadmaster.core.contract import (
    AS_DOCUMENT,
    MAX_DEPTH,
    Candidate,
    Request,
    candidate_flaws,
    form_flaws,
)
from loadmaster.core.faults import (
    Fault,
    Flaw,
    InvalidInput,
    Parts,
    from_pydantic,
    get,
    json_path,
    kind_of,
    listed,
    quoted,
)
from loadmaster.core.profiles import ProfileSet, profile_flaws, set_flaws

SCHEMA = 1
_KEYS = ("schema", "request", "candidates", "profiles")
_EXPECTED = "expected an object with schema, request and candidates"
_PLAIN = "compile_document reads plain data"
_MOST_DIGITS = 4000
"""Integers of more digits are read as decimals: Python refuses to convert them, and no field takes them."""
_TIMES = ("observed_at", "valid_from", "valid_until", "expires_at")
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
    data, flaws = parse_with_flaws(text)
    flaws += _endless(data)
    if flaws:
        raise InvalidInput(in_order(flaws))
    return data


def parse_with_flaws(text: str | bytes) -> tuple[Any, list[Flaw]]:
    """Parse JSON and note repeated keys, the last value standing; NaN and Infinity come out as decimals.

    Raises:
        InvalidInput: The text is not JSON at all.
    """
    repeating = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeating
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        repeating = True
        marked = _Repeating(built)
        seen: set[str] = set()
        marked.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
        return marked

    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        text = text.removeprefix("\ufeff")
        if not text.strip(" \t\r\n"):
            raise InvalidInput([Fault("$", f"is empty; {_EXPECTED}")])
        data = json.loads(
            text, parse_float=_decimal, parse_int=_whole, parse_constant=Decimal, object_pairs_hook=build
        )
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput([Fault("$", f"is not JSON: {error.msg.removesuffix(' at')} at {at}")]) from None
    except UnicodeDecodeError as error:
        at = f"byte {error.start} (line {error.object.count(10, 0, error.start) + 1})"
        raise InvalidInput([Fault("$", f"is not UTF-8 at {at}; save it as UTF-8")]) from None
    except RecursionError:
        raise InvalidInput([Fault("$", f"is nested more than {MAX_DEPTH} levels deep")]) from None
    return data, list(_repeats(data)) if repeating else []


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent beyond all bounds
        return Decimal("-Infinity" if text.startswith("-") else "Infinity")


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)


def _repeats(data: Any) -> Iterator[Flaw]:
    for path, value in _walk(data):
        if isinstance(value, _Repeating):
            yield from (((*path, key), "this key stands twice in its object") for key in value.repeated)


def _endless(data: Any) -> Iterator[Flaw]:
    for path, value in _walk(data):
        if isinstance(value, Decimal) and not value.is_finite():
            yield path, f"{value} is no JSON value"


def _walk(data: Any) -> Iterator[tuple[Parts, Any]]:
    stack: list[tuple[Parts, Any]] = [((), data)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if isinstance(value, dict):
            stack.extend(((*path, key), child) for key, child in value.items())
        elif isinstance(value, list):
            stack.extend(((*path, index), child) for index, child in enumerate(value))


def read_document(data: Any, packaged: ProfileSet, flaws: Iterable[Flaw] = ()) -> Document:
    """Check an input document against schema 1 as a whole; ``packaged`` serves where it brings no profiles.

    Args:
        data: The document as plain data.
        packaged: The profile set for documents that bring none.
        flaws: What parsing found already.

    Raises:
        InvalidInput: With every fault found, in the order of the document.
    """
    found = list(flaws)
    if not isinstance(data, Mapping):
        message = f"is {kind_of(data)}; {_EXPECTED}"
        raise InvalidInput(in_order([*found, ((), message)]))
    document, more = _read_parts(data, packaged)
    if more:
        mended = _Mended()
        if (sound := mended.copy(data, (), 0)) and mended.flaws:
            more = mended.merge(_read_parts(sound, packaged)[1])
    found += more
    if found or document is None:
        raise InvalidInput(in_order(found))
    return document


def _read_parts(data: Mapping[Any, Any], packaged: ProfileSet) -> tuple[Document | None, list[Flaw]]:
    flaws: list[Flaw] = [((str(key),), "unknown field") for key in data if key not in _KEYS]
    schema = data.get("schema")
    if "schema" not in data:
        flaws.append((("schema",), f"required field is missing; it is {SCHEMA}"))
    elif type(schema) is not int or schema != SCHEMA:
        flaws.append((("schema",), f"must be {SCHEMA}, the only schema there is"))
    request = profiles = None
    candidates: list[Candidate] = []
    if "request" not in data:
        flaws.append((("request",), "required field is missing"))
    else:
        request = _read(Request, data["request"], flaws, "request")
    given = data.get("profiles")
    if given is None:
        profiles, given = packaged, packaged
    else:
        profiles = _read(ProfileSet, given, flaws, "profiles")
        flaws += _below(("profiles",), _profile_set_flaws(given))
    raw = data.get("candidates")
    if "candidates" not in data:
        flaws.append((("candidates",), "required field is missing"))
        raw = ()
    elif not isinstance(raw, list | tuple):
        flaws.append((("candidates",), f"must be an array, not {kind_of(raw)}"))
        raw = ()
    for index, element in enumerate(raw):
        candidate = _read(Candidate, element, flaws, "candidates", index)
        if candidate is not None:
            candidates.append(candidate)
        else:
            flaws += _below(("candidates", index), _candidate_flaws(element))
    flaws += across_flaws(data.get("request"), raw, given)
    if flaws or request is None or profiles is None:
        return None, flaws
    return Document(request, tuple(candidates), profiles), []


def _read(model: type[_M], data: Any, flaws: list[Flaw], *path: str | int) -> _M | None:
    try:
        return model.model_validate(data, context=AS_DOCUMENT)
    except ValidationError as error:
        flaws += from_pydantic(model, data, error.errors(include_url=False), *path)
    except RecursionError:
        flaws.append((path, f"is nested more than {MAX_DEPTH} levels deep"))
    return None


def _below(path: Parts, flaws: Iterable[Flaw]) -> Iterator[Flaw]:
    return (((*path, *below), message) for below, message in flaws)


def _candidate_flaws(element: Any) -> Iterator[Flaw]:
    yield from candidate_flaws(element)
    forms = get(element, "forms")
    for place, form in enumerate(forms if isinstance(forms, list | tuple) else ()):
        if isinstance(form, Mapping):
            yield from _below(("forms", place), form_flaws(form))


def _profile_set_flaws(profiles: Any) -> Iterator[Flaw]:
    yield from set_flaws(profiles)
    named = get(profiles, "profiles")
    for name, profile in named.items() if isinstance(named, Mapping) else ():
        yield from _below(("profiles", name), profile_flaws(profile))


def across_flaws(request: Any, candidates: Sequence[Any], profiles: Any) -> Iterator[Flaw]:
    """Find what is wrong between the parts of a document, each given as data or as a model."""
    yield from _request_flaws(request, profiles)
    layers = get(profiles, "layers")
    known = frozenset(layer for layer in layers if isinstance(layer, str)) if _is_array(layers) else None
    declared_tokens = get(request, "tokenizer") == "declared"
    needs_clock = get(request, "as_of") is None
    first: dict[str, int] = {}
    for index, candidate in enumerate(candidates):
        identifier, layer, forms = get(candidate, "id"), get(candidate, "layer"), get(candidate, "forms")
        if isinstance(identifier, str) and first.setdefault(identifier, index) != index:
            yield ("candidates", index, "id"), f"duplicate id, first at candidates[{first[identifier]}]"
        if isinstance(layer, str) and known is not None and layer not in known:
            message = f"layer {quoted(layer)} is not declared; this profile set has {listed(layers)}"
            yield ("candidates", index, "layer"), message
        if declared_tokens and _is_array(forms):
            for place, form in enumerate(forms):
                if isinstance(form, Mapping | BaseModel) and get(form, "tokens") is None:
                    path = ("candidates", index, "forms", place, "tokens")
                    yield path, "is required under the tokenizer declared"
        if needs_clock:
            freshness = get(candidate, "freshness")
            given = [name for name in _TIMES if get(freshness, name) is not None]
            if given and isinstance(request, Mapping | BaseModel):
                at = json_path("candidates", index, "freshness", given[0])
                yield ("request", "as_of"), f"is required, being the only clock, because {at} is given"
                needs_clock = False


def _request_flaws(request: Any, profiles: Any) -> Iterator[Flaw]:
    if not isinstance(request, Mapping | BaseModel):
        return
    profile, known = get(request, "profile"), get(profiles, "profiles")
    if isinstance(profile, str) and isinstance(known, Mapping) and profile not in known:
        names = listed(sorted(map(str, known)))
        yield ("request", "profile"), f"no profile {quoted(profile)} in this set; it has {names}"
    asked, version = get(request, "profile_version"), get(profiles, "version")
    if isinstance(asked, str) and isinstance(version, str) and asked != version:
        message = f"asks for version {quoted(asked)}, but the profile set is {quoted(version)}"
        yield ("request", "profile_version"), message
    budget = get(request, "budget")
    if budget is None or isinstance(budget, Mapping | BaseModel):
        if get(budget, "window") is None and get(request, "model") is None:
            yield ("request", "budget", "window"), "is required unless request.model names a model"


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple)


def check_parts(request: Any, candidates: Sequence[Any], profiles: ProfileSet) -> None:
    """Check what only request, candidates and profiles together show, for parts that were built in Python.

    Raises:
        InvalidInput: With every fault found.
    """
    flaws: list[Flaw] = []
    if not isinstance(request, Request):
        flaws.append((("request",), f"must be a Request, not {kind_of(request)}; {_PLAIN}"))
    for index, candidate in enumerate(candidates):
        if not isinstance(candidate, Candidate):
            flaws.append((("candidates", index), f"must be a Candidate, not {kind_of(candidate)}; {_PLAIN}"))
    flaws += across_flaws(request, candidates, profiles)
    if flaws:
        raise InvalidInput(in_order(flaws))


class _Mended:
    """A copy of a document without lone surrogates, so that everything else in it can be checked too.

    pydantic gives up on an object that has one in a key. Each becomes a private character that
    names it, and is put back into the paths and messages that come out.
    """

    def __init__(self) -> None:
        self.flaws: list[Flaw] = []

    def copy(self, value: Any, path: Parts, depth: int) -> Any:
        """Copy data down to the depth that is checked, noting every lone surrogate."""
        if isinstance(value, str):
            return self._text(value, path, "holds")
        if depth > MAX_DEPTH + 4:
            return value
        if isinstance(value, Mapping):
            return {
                self._text(key, (*path, key), "the key holds") if isinstance(key, str) else key: self.copy(
                    child, (*path, key), depth + 1
                )
                for key, child in value.items()
            }
        if _is_array(value):
            return [self.copy(child, (*path, index), depth + 1) for index, child in enumerate(value)]
        return value

    def _text(self, text: str, path: Parts, what: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.flaws.append((path, f"{what} a lone surrogate, which no tokenizer or provider accepts"))
            return text.translate(_OUT)
        return text

    def merge(self, flaws: Iterable[Flaw]) -> list[Flaw]:
        """Give these flaws of the copy, as flaws of the original, beside the surrogates themselves."""
        blamed = {path for path, _ in self.flaws}
        back = [
            (tuple(part.translate(_BACK) if isinstance(part, str) else part for part in path), message)
            for path, message in flaws
        ]
        named = ((path, message.replace("\\U0010d", "\\ud")) for path, message in back if path not in blamed)
        return [*self.flaws, *named]


_OUT = {code: 0x100000 + code for code in range(0xD800, 0xE000)}
_BACK = {private: code for code, private in _OUT.items()}


def in_order(flaws: Iterable[Flaw]) -> list[Fault]:
    """Make flaws faults, each once, in the order of the document: fields by name, elements by place."""
    rank = {key: place for place, key in enumerate(_KEYS)}

    def key(flaw: Flaw) -> tuple[int, list[tuple[int, str]], str]:
        path, message = flaw
        steps = [(part, "") if isinstance(part, int) else (-1, part) for part in path]
        return rank.get(str(path[0]), -1) if path else -2, steps, message

    return [Fault(json_path(*path), message) for path, message in sorted(dict.fromkeys(flaws), key=key)]
