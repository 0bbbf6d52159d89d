"""What an OpenAI-form history and its tool schemas must look like to be read at all; faults have paths.

Refused is what has no declared cost or no meaning here: images, audio and files, whose tokens depend on
model and size; the legacy ``function`` role and ``function_call``; roles and call types that nobody
defined. What has the right shape but is taken by no provider, such as a call without its result, is no
fault: it is left out with a reason (`history`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from loadmaster.core.contract import MAX_DEPTH, JsonObject
from loadmaster.core.faults import Fault, json_path
from loadmaster.core.items import tool_name

ROLES = ("system", "developer", "user", "assistant", "tool")
_LEGACY = {"function": "role function is legacy; give the result as a tool message with its tool_call_id"}
_NO_COST = ("image_url", "input_audio", "file")

_MISSING = "required field is missing"
_TEXT_OR_PARTS = "must be text or an array of parts"

_Path = tuple[str | int, ...]
_JSON: TypeAdapter[dict[str, Any]] = TypeAdapter(JsonObject)


def faults_of(messages: Any, tools: Any = None) -> list[Fault]:
    """Give every fault of a history and its tool schemas, in the order of the input."""
    faults: list[Fault] = []
    if not isinstance(messages, list | tuple):
        faults.append(Fault("messages", "must be an array of chat messages"))
    else:
        for at, message in enumerate(messages):
            faults.extend(_message_faults(message, ("messages", at)))
    if isinstance(tools, list | tuple):
        faults.extend(_tool_faults(tools))
    elif tools is not None:
        faults.append(Fault("tools", "must be an array of tool schemas"))
    return faults


def _message_faults(message: Any, path: _Path) -> Iterator[Fault]:
    if not isinstance(message, dict):
        yield Fault(json_path(*path), f"must be a chat message, which is a JSON object, not {_kind(message)}")
        return
    yield from _json_faults(message, path)
    role = message.get("role")
    if "role" not in message:
        yield Fault(json_path(*path, "role"), _MISSING)
    elif not isinstance(role, str) or role not in ROLES:
        legacy = _LEGACY.get(role) if isinstance(role, str) else None
        yield Fault(json_path(*path, "role"), legacy or f"must be one of {', '.join(ROLES)}")
    yield from _content_faults(message, path)
    yield from _field_faults(message, path)
    if role == "tool":
        yield from _name_faults(message, (*path, "tool_call_id"))
    if message.get("tool_calls") is not None:
        yield from _calls_faults(message, path)


def _field_faults(message: dict[str, Any], path: _Path) -> Iterator[Fault]:
    """Check the fields beside role, content and calls. Null stands for an absent field, as SDKs write it."""
    if message.get("function_call") is not None:
        yield Fault(json_path(*path, "function_call"), "is legacy; give the call in tool_calls")
    if message.get("audio") is not None:
        yield Fault(json_path(*path, "audio"), "has no declared cost; give its transcript as text")
    for field in ("name", "refusal"):
        if message.get(field) is not None and not isinstance(message[field], str):
            yield Fault(json_path(*path, field), f"must be a string, not {_kind(message[field])}")


def _content_faults(message: dict[str, Any], path: _Path) -> Iterator[Fault]:
    content = message.get("content")
    path = (*path, "content")
    if content is None:
        if message.get("role") != "assistant":
            problem = _TEXT_OR_PARTS if "content" in message else _MISSING
            yield Fault(json_path(*path), problem)
    elif isinstance(content, list | tuple):
        for at, part in enumerate(content):
            yield from _part_faults(part, message.get("role"), (*path, at))
    elif not isinstance(content, str):
        yield Fault(json_path(*path), f"{_TEXT_OR_PARTS}, not {_kind(content)}")


def _part_faults(part: Any, role: Any, path: _Path) -> Iterator[Fault]:
    if not isinstance(part, dict):
        yield Fault(json_path(*path), f"must be a content part, which is a JSON object, not {_kind(part)}")
        return
    kind = part.get("type")
    if "type" not in part:
        yield Fault(json_path(*path, "type"), _MISSING)
    elif isinstance(kind, str) and kind in _NO_COST:
        yield Fault(json_path(*path, "type"), f"a part of type {kind} has no declared cost; give it as text")
    elif kind == "refusal" and role != "assistant":
        yield Fault(json_path(*path, "type"), "only an assistant refuses")
    elif kind not in ("text", "refusal"):
        yield Fault(json_path(*path, "type"), "must be text or refusal")
    elif kind not in part:
        yield Fault(json_path(*path, kind), _MISSING)
    elif not isinstance(part[kind], str):
        yield Fault(json_path(*path, kind), f"must be a string, not {_kind(part[kind])}")


def _calls_faults(message: dict[str, Any], path: _Path) -> Iterator[Fault]:
    calls = message["tool_calls"]
    path = (*path, "tool_calls")
    if message.get("role") != "assistant":
        yield Fault(json_path(*path), "only an assistant calls tools")
    elif not isinstance(calls, list | tuple):
        yield Fault(json_path(*path), f"must be an array of tool calls, not {_kind(calls)}")
    elif not calls:
        yield Fault(json_path(*path), "must not be empty; leave it out where there is no call")
    else:
        for at, call in enumerate(calls):
            yield from _call_faults(call, (*path, at))


def _call_faults(call: Any, path: _Path) -> Iterator[Fault]:
    if not isinstance(call, dict):
        yield Fault(json_path(*path), f"must be a tool call, which is a JSON object, not {_kind(call)}")
        return
    yield from _name_faults(call, (*path, "id"))
    yield from _type_faults(call, path)
    function = call.get("function")
    path = (*path, "function")
    if not isinstance(function, dict):
        problem = "must be a JSON object" if "function" in call else _MISSING
        yield Fault(json_path(*path), problem)
        return
    yield from _name_faults(function, (*path, "name"))
    if "arguments" not in function:
        yield Fault(json_path(*path, "arguments"), _MISSING)
    elif not isinstance(function["arguments"], str):
        kind = _kind(function["arguments"])
        yield Fault(json_path(*path, "arguments"), f"must be a string that holds JSON, not {kind}")


def _tool_faults(tools: Any) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for at, tool in enumerate(tools):
        path: _Path = ("tools", at)
        if not isinstance(tool, dict):
            yield Fault(json_path(*path), f"must be a tool schema, which is a JSON object, not {_kind(tool)}")
            continue
        yield from _json_faults(tool, path)
        yield from _type_faults(tool, path)
        inner = (*path, "function") if "function" in tool else path
        function = tool.get("function", tool)
        name = tool_name(tool)
        if not name:
            yield Fault(json_path(*inner, "name"), "must be a tool's name")
        elif name in first:
            yield Fault(
                json_path(*inner, "name"), f"duplicate name, first at {json_path('tools', first[name])}"
            )
        first.setdefault(name, at)
        if isinstance(function, dict) and not isinstance(function.get("parameters", {}), dict):
            yield Fault(json_path(*inner, "parameters"), "must be a JSON Schema object")


def _type_faults(data: dict[str, Any], path: _Path) -> Iterator[Fault]:
    if "type" not in data:
        yield Fault(json_path(*path, "type"), _MISSING)
    elif data["type"] != "function":
        yield Fault(json_path(*path, "type"), "must be function; no other type is taken by every provider")


def _name_faults(data: dict[str, Any], path: _Path) -> Iterator[Fault]:
    field = str(path[-1])
    if field not in data:
        yield Fault(json_path(*path), _MISSING)
    elif not isinstance(data[field], str) or not data[field]:
        yield Fault(json_path(*path), "must be a string that is not empty")


def _json_faults(value: dict[str, Any], path: _Path) -> Iterator[Fault]:
    """Find where data is no plain JSON: lone surrogates, NaN, odd types, too deep. The contract rules."""
    problem = _problem(value)
    if problem is not None:
        yield from _deeper(value, path, problem, 0)


def _deeper(value: Any, path: _Path, problem: str, depth: int) -> Iterator[Fault]:
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict) and depth < MAX_DEPTH:
        children = [
            (key, child) for key, child in value.items() if isinstance(key, str) and _problem(key) is None
        ]
    elif isinstance(value, list | tuple) and depth < MAX_DEPTH:
        children = list(enumerate(value))
    found = False
    for key, child in children:
        below = _problem(child)
        if below is not None:
            found = True
            yield from _deeper(child, (*path, key), below, depth + 1)
    if not found:
        yield Fault(json_path(*path), problem)


def _problem(value: Any) -> str | None:
    try:
        _JSON.validate_python({"": value})
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)[0]["msg"].removeprefix("Value error, ")
    return None


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
