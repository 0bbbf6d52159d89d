"""The command line: data on stdout, words on stderr.

Exit codes are part of the interface: 0 a bundle, 3 a compile failure, 2 invalid input or usage, 1 a bug.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from loadmaster.compiler import VERSION, Compiler
from loadmaster.core.canonical import canonical_json
from loadmaster.core.failure import CompileFailure
from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.core.reading import parse_json
from loadmaster.core.result import Bundle
from loadmaster.screens.words import count, safe

OK, BUG, INVALID, FAILURE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141
MOST_FAULTS = 50
"""More faults than this are not listed in words; the JSON on stdout holds all."""


class _Commands(TyperGroup):
    """The commands behind one guard, which turns whatever escapes them into an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``--no-color`` wherever it stands."""
        options = args[: args.index("--")] if "--" in args else args
        if "--no-color" in options:
            args = ["--no-color", *(arg for arg in options if arg != "--no-color"), *args[len(options) :]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()
            return value
        except InvalidInput as error:
            _reject(error)
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except typer.Abort:
            raise
        except Exception as error:
            if hasattr(error, "exit_code") or os.environ.get("LOADMASTER_DEBUG"):
                raise
            _say(f"internal error: {type(error).__name__}: {error}")
            _say("hint: this is a bug; run again with LOADMASTER_DEBUG=1 for the traceback and report it")
            raise typer.Exit(BUG) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# Options that every command has


def _version(wanted: bool) -> None:
    if wanted:
        _write(f"loadmaster {VERSION}\n")
        raise typer.Exit


@app.callback()
def main(
    no_color: Annotated[
        bool, typer.Option("--no-color", help="Show no colours (as NO_COLOR=1 does).")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Compile context for LLM agents: the exact bundle that fits the budget, or a provable failure.

    Data goes to stdout, words to stderr. Exit codes: 0 bundle, 3 compile failure, 2 invalid input or
    usage, 1 a bug.
    """
    if no_color:
        os.environ["NO_COLOR"] = "1"


# Compile


@app.command()
def compile(
    source: Annotated[
        str | None, typer.Argument(metavar="INPUT.json", help="The request; - is stdin.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="Use this profile, whatever the request says.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the rendered text instead of JSON.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the decision trace there, as JSON Lines.")
    ] = None,
    messages: Annotated[
        str | None, typer.Option(metavar="H.json", help="Compile an OpenAI-form message history; - is stdin.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=0, help="With --messages: the tokens to send at most.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="T.json", help="With --messages: the tool schemas to send along.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="ENCODING", help="With --messages: how to count, such as o200k_base."),
    ] = None,
) -> None:
    """Compile a request into the bundle that the model will see, or say why there is none."""
    if (source is None) == (messages is None):
        raise typer.BadParameter("give either INPUT.json or --messages H.json", param_hint="INPUT.json")
    if messages is not None:
        if budget is None:
            raise typer.BadParameter("is required with --messages", param_hint="--budget")
        result = _compile_messages(messages, tools, budget, tokenizer, profile)
    else:
        if (budget, tools, tokenizer) != (None, None, None):
            raise typer.BadParameter(
                "--budget, --tools and --tokenizer belong to --messages", param_hint="INPUT.json"
            )
        result = _compile_source(source or "-", profile)
    if trace is not None:
        _write_file(trace, result.trace.lines())
    _show_compiled(result, text)


def _compile_source(source: str, profile: str | None) -> Bundle | CompileFailure:
    document = _read_bytes(source)
    try:  # reading the JSON is the compiler's part: it reports the faults of the text beside all others
        return Compiler().compile_document(document, profile=profile)
    except InvalidInput as error:
        raise _naming(source, error) from None


def _compile_messages(
    source: str, tools: str | None, budget: int, tokenizer: str | None, profile: str | None
) -> Bundle | CompileFailure:
    from loadmaster.integrations.messages import compile_messages

    if source == "-" and tools == "-":
        raise typer.BadParameter("--messages and --tools cannot both be stdin", param_hint="--tools")
    history = _read_json(source)
    schemas = _read_json(tools) if tools is not None else None
    if isinstance(history, dict):
        unknown = [Fault(safe(key), "unknown field") for key in history if key not in ("messages", "tools")]
        if "messages" not in history:
            unknown.append(Fault("messages", "required field is missing"))
        if unknown:
            raise InvalidInput(unknown)
        schemas = history.get("tools") if schemas is None else schemas
        history = history["messages"]
    return compile_messages(
        Compiler(), history, tools=schemas, budget=budget, tokenizer=tokenizer, profile=profile
    )


def _show_compiled(result: Bundle | CompileFailure, text: bool) -> None:
    if isinstance(result, CompileFailure):
        _write_json(result.to_dict())
        _say(f"failed: {result}")
        raise typer.Exit(FAILURE)
    if text:
        _write(_text_of(result))
    else:
        _write_json(result.to_dict())
    tokens, left = result.tokens, len(result.omitted)
    _say(
        f"compiled: {tokens.used:,} of {tokens.capacity:,} tokens in {count(len(result.blocks), 'block')},"
        f" {left:,} left out"
    )


def _text_of(bundle: Bundle) -> str:
    """Give the text blocks; where there are messages and tools, each follows as a line of canonical JSON."""
    lines = [canonical_json(block.value) + "\n" for block in bundle.blocks if block.kind != "text"]
    return bundle.text + "".join(lines)


# Reading and writing


def _read_bytes(name: str) -> bytes:
    """Read a file or stdin whole.

    Raises:
        InvalidInput: It cannot be read, or there is nothing in it.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput([Fault("$", f"cannot read {safe(name)}: {reason}")]) from None
    if not data.strip():
        raise InvalidInput([Fault("$", f"{_name_of(name)} is empty")])
    return data


def _read_json(name: str) -> Any:
    try:
        return parse_json(_read_bytes(name))
    except InvalidInput as error:
        raise _naming(name, error) from None


def _naming(name: str, error: InvalidInput) -> InvalidInput:
    """Name the file where it is no JSON at all."""
    return InvalidInput(
        Fault("$", f"{_name_of(name)} {fault.message}") if fault.message.startswith("is not ") else fault
        for fault in error.faults
    )


def _name_of(name: str) -> str:
    return "stdin" if name == "-" else safe(name)


def _write(text: str) -> None:
    """Write data to stdout as UTF-8, whatever the terminal's encoding and newlines are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def _write_json(data: Any) -> None:
    """Write JSON to stdout: laid out for a person at a terminal, else on one line."""
    layout: dict[str, Any] = {"indent": 2} if sys.stdout.isatty() else {"separators": (",", ":")}
    _write(json.dumps(data, ensure_ascii=False, allow_nan=False, **layout) + "\n")


def _write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that it is never seen half-written; a device or pipe is written as it is."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(chunks)
            return
        try:
            with temporary.open("xb") as file:
                file.writelines(chunks)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        _say(f"error: cannot write {safe(path)}: {error.strerror or error}")
        raise typer.Exit(INVALID) from None


def _say(line: str) -> None:
    """Say a line on stderr."""
    with suppress(BrokenPipeError):
        _console(stderr=True).print(safe(line), soft_wrap=True)


def _console(stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    with suppress(AttributeError, ValueError):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _reject(error: InvalidInput) -> NoReturn:
    """Report an invalid input: all faults as JSON on stdout, the first ones in words on stderr."""
    _write_json(error.to_dict())
    _say_faults(error.faults)
    raise typer.Exit(INVALID) from None


def _say_faults(faults: Sequence[Fault]) -> None:
    _say(f"error: invalid input, {count(len(faults), 'fault')}")
    for fault in faults[:MOST_FAULTS]:
        _say(f"  {fault.path}: {fault.message}")
    if len(faults) > MOST_FAULTS:
        _say(f"  …and {count(len(faults) - MOST_FAULTS, 'more fault')}; the JSON on stdout holds all")


def _forget_stdout() -> None:
    """Let nothing more be written to a pipe that nobody reads, not even at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    app()
