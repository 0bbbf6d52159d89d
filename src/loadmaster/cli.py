"""The command line: data on stdout, words on stderr.

Exit codes are part of the interface: 0 a bundle, 3 a compile failure, 2 invalid input or usage, 1 a bug.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from loadmaster.compiler import VERSION, Compiler
from loadmaster.core.canonical import canonical_json
from loadmaster.core.failures.failure import CompileFailure
from loadmaster.core.faults import Fault, InvalidInput, from_pydantic, json_path
from loadmaster.core.profiles import ProfileSet, lint
from loadmaster.core.reading import parse_json
from loadmaster.core.result import Bundle
from loadmaster.core.trace import observations_in
from loadmaster.defaults import packaged_profiles, read_toml
from loadmaster.evaluation.realised_use import Usage, log_lines
from loadmaster.screens import profiles as profile_screens
from loadmaster.screens.difference import difference, difference_screen
from loadmaster.screens.explain import explain_screen
from loadmaster.screens.item import item_screen, near_ids
from loadmaster.screens.replay import compare_traces, read_trace, replay_screen
from loadmaster.screens.results import BundleView, FailureView, Result, read_result
from loadmaster.screens.usage import usage_screen
from loadmaster.screens.words import count, safe
from loadmaster.terminal import (
    CannotWrite,
    forget_stdout,
    name_of,
    named,
    read_bytes,
    read_plain_json,
    say,
    say_faults,
    show,
    width,
    write,
    write_file,
    write_json,
)

BUG, INVALID, FAILURE, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141
MOST_BAD_LINES = 10


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
            _reject(error, as_json=ctx.invoked_subcommand == "compile" or not sys.stdout.isatty())
        except CannotWrite as error:
            say(f"error: {error}")
            raise typer.Exit(INVALID) from None
        except BrokenPipeError:
            forget_stdout()
            raise typer.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except typer.Abort:
            raise
        except Exception as error:
            if hasattr(error, "exit_code") or os.environ.get("LOADMASTER_DEBUG"):
                raise
            say(f"internal error: {type(error).__name__}: {error}")
            say("hint: this is a bug; run again with LOADMASTER_DEBUG=1 for the traceback and report it")
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
        write(f"loadmaster {VERSION}\n")
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

    Data on stdout, words on stderr. Exit codes: 0 bundle, 3 compile failure, 2 invalid input or usage, 1 bug.
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
    if trace is not None and str(trace) == "-":
        raise typer.BadParameter("must be a file; stdout carries the result", param_hint="--trace")
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
        write_file(trace, result.trace.lines())
    _show_compiled(result, text)


def _compile_source(source: str, profile: str | None) -> Bundle | CompileFailure:
    document = read_bytes(source)  # the compiler reads the JSON: it reports its faults beside all others
    return named(source, lambda: Compiler().compile_document(document, profile=profile))


def _compile_messages(
    source: str, tools: str | None, budget: int, tokenizer: str | None, profile: str | None
) -> Bundle | CompileFailure:
    from loadmaster.integrations.messages import compile_messages

    if source == "-" and tools == "-":
        raise typer.BadParameter("--messages and --tools cannot both be stdin", param_hint="--tools")
    history = read_plain_json(source)
    schemas = read_plain_json(tools) if tools is not None else None
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
        if text:
            show(explain_screen(read_result(result.to_dict()), width(), "RESULT.json"))
        else:
            write_json(result.to_dict())
        say(f"failed: {result}")
        raise typer.Exit(FAILURE)
    if text:
        write(_text_of(result))
    else:
        write_json(result.to_dict())
    tokens, left = result.tokens, len(result.omitted)
    say(
        f"compiled: {tokens.used:,} of {tokens.capacity:,} tokens in {count(len(result.blocks), 'block')},"
        f" {left:,} left out"
    )


def _text_of(bundle: Bundle) -> str:
    """Give the text blocks; where there are messages and tools, each follows as a line of canonical JSON."""
    lines = [canonical_json(block.value) + "\n" for block in bundle.blocks if block.kind != "text"]
    return bundle.text + "".join(lines)


def _read_result(name: str) -> Result:
    data = read_bytes(name)
    first = data.partition(b"\n")[0]
    whole = first if b'"t":"head"' in first else data  # a trace has many lines: let its first say what it is
    return named(name, lambda: read_result(parse_json(whole)))


# Explain, diff, replay


@app.command()
def explain(
    result: Annotated[str, typer.Argument(metavar="RESULT.json", help="What compile printed; - is stdin.")],
    item: Annotated[
        str | None, typer.Argument(metavar="[ITEM]", help="Explain this candidate alone.")
    ] = None,
) -> None:
    """Explain a result on one screen: the budget, the layers, what is in, what is out and why."""
    read = _read_result(result)
    if item is None:
        show(explain_screen(read, width(), "RESULT.json" if result == "-" else shlex.quote(result)))
        return
    page = item_screen(read, item, width())
    if page is None:
        say(f"error: {name_of(result)} knows no candidate {item}{_hint_of(read)}")
        near = near_ids(read, item)
        if near:
            say(f"hint: did you mean {', '.join(near)}?")
        raise typer.Exit(INVALID)
    show(page)


def _hint_of(read: Result) -> str:
    if isinstance(read, FailureView):
        return "; a failure names only what blocks it"
    return "" if isinstance(read, BundleView) else "; its input was invalid, so nothing was decided"


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A.json", help="A result; - is stdin.")],
    b: Annotated[str, typer.Argument(metavar="B.json", help="Another result.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two results: what changed, the first differing block, and whether a cached prefix survives."""
    _once(a, b)
    data = difference(_read_result(a), _read_result(b))
    if as_json:
        write_json(data)
    else:
        show(difference_screen(data, width()))


@app.command()
def replay(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A trace that compile --trace wrote; - is stdin.")
    ],
    source: Annotated[str, typer.Argument(metavar="INPUT.json", help="The request that it is the trace of.")],
) -> None:
    """Compile a request again with the answers that its trace recorded, and compare the two traces.

    Exits with 0 if the trace is the same, with 3 if it differs.
    """
    _once(trace, source)
    recorded = named(trace, lambda: read_trace(read_bytes(trace)))
    document = read_bytes(source)
    replayed = named(source, lambda: _recompile(recorded, document))
    data = compare_traces(recorded, tuple(replayed.trace.lines()))
    show(replay_screen(data, width()))
    if not data["same"]:
        raise typer.Exit(FAILURE)


def _once(a: str, b: str) -> None:
    if a == b == "-":
        raise typer.BadParameter("only one of the two can be stdin")


def _recompile(recorded: Sequence[bytes], document: bytes) -> Bundle | CompileFailure:
    """Compile as the recorded run did, a profile that was named on its command line included."""
    head = json.loads(recorded[0])
    try:
        observations = observations_in(recorded)
    except ValueError as error:
        raise InvalidInput([Fault("$", f"the trace is malformed: {safe(error)}")]) from None
    compiler = Compiler()
    result = compiler.compile_document(document, observations=observations)
    if json.loads(next(iter(result.trace.lines())))["request"] != head.get("request"):
        with suppress(InvalidInput, KeyError, TypeError):
            named = compiler.compile_document(
                document, profile=head["profile"]["name"], observations=observations
            )
            if json.loads(next(iter(named.trace.lines())))["request"] == head["request"]:
                return named
    return result


# Profiles

profiles_app = typer.Typer(no_args_is_help=True, help="List, show, compare and check profile sets.")
app.add_typer(profiles_app, name="profiles")
SetFile = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE", help="A profile set, TOML or JSON, instead of the packaged one."),
]


@profiles_app.command("list")
def list_profiles(file: SetFile = None) -> None:
    """List the profiles of a set, with the ratio of each layer."""
    show(profile_screens.list_screen(_read_profiles(file), width()))


@profiles_app.command("show")
def show_profile(
    name: Annotated[str, typer.Argument(metavar="P", help="A profile.")], file: SetFile = None
) -> None:
    """Show one profile, with every default."""
    profiles = _read_profiles(file)
    _check_profiles(profiles, name)
    show(profile_screens.show_screen(profiles, name, width()))


@profiles_app.command("diff")
def diff_profiles(
    a: Annotated[str, typer.Argument(metavar="A", help="A profile, or the file of a set.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    file: SetFile = None,
) -> None:
    """Show which numbers differ between two profiles of a set, or between two sets."""
    profiles = _read_profiles(file)
    one: Any
    other: Any
    if a in profiles.profiles or b in profiles.profiles or not (Path(a).exists() and Path(b).exists()):
        _check_profiles(profiles, a, b)
        one, other = profiles.profiles[a], profiles.profiles[b]
    else:
        one, other = _read_profiles(a), _read_profiles(b)
    rows = profile_screens.difference_of(one, other)
    show(profile_screens.difference_screen(a, b, rows, width()))


@profiles_app.command("lint")
def lint_profiles(
    name: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A profile set, TOML or JSON.")] = None,
    file: SetFile = None,
) -> None:
    """Check what a set promises against the smallest window it supports. Exits with 3 if there are errors."""
    profiles = _read_profiles(name if name is not None else file)
    findings = list(lint(profiles))
    show(profile_screens.lint_screen(profiles, findings, width()))
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(FAILURE)


def _check_profiles(profiles: ProfileSet, *names: str) -> None:
    unknown = [name for name in names if name not in profiles.profiles]
    if unknown:
        say(f"error: no profile {', '.join(unknown)} in this set; it has {', '.join(profiles.profiles)}")
        raise typer.Exit(INVALID)


def _read_profiles(name: str | None) -> ProfileSet:
    if name is None:
        return packaged_profiles()
    data = read_bytes(name)
    is_json = name.endswith(".json") or (not name.endswith(".toml") and data.lstrip().startswith(b"{"))
    content = named(name, lambda: parse_json(data) if is_json else _parse_toml(data))
    try:
        return ProfileSet.model_validate(content)
    except ValidationError as error:
        flaws = from_pydantic(ProfileSet, content, error.errors(include_url=False))
        raise InvalidInput(Fault(json_path(*path), message) for path, message in flaws) from None


def _parse_toml(data: bytes) -> Any:
    try:
        return read_toml(data.decode())
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidInput([Fault("$", f"is not TOML: {error}")]) from None


# Metrics


@app.command()
def metrics(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG.jsonl...", help="Traces or results as JSON Lines.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Show what layers really got over many compiles: shares, floors, surplus, cuts and slack.

    Percentiles are exact to 0.1 %: shares are counted in whole permille, so memory does not grow.
    """
    usage = Usage()
    bad = 0
    for name in logs:
        for place, flaw in _read_log(name, usage):
            bad += 1
            if bad <= MOST_BAD_LINES:
                say(f"warning: {name_of(name)}{place}: {flaw}")
    if bad > MOST_BAD_LINES:
        say(f"warning: …and {bad - MOST_BAD_LINES:,} more like these")
    if usage.compiles == 0:
        say("error: no compile was found in the logs")
        raise typer.Exit(INVALID)
    if as_json:
        write_json(usage.to_dict())
    else:
        show(usage_screen(usage.to_dict(), width()))


def _read_log(name: str, usage: Usage) -> Iterator[tuple[str, str]]:
    """Feed a log to the figures; yields what could not be read, with its place."""
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            for at, line in enumerate(log_lines(file), 1):
                flaw = usage.take(line) if line is not None else usage.too_long()
                if flaw is not None:
                    yield f":{at}", flaw
    except (OSError, ValueError) as error:
        yield "", f"cannot be read: {getattr(error, 'strerror', None) or error}"
    usage.end_of_file()


def _reject(error: InvalidInput, as_json: bool) -> NoReturn:
    """Report an invalid input: all faults as JSON on stdout, the first ones in words on stderr."""
    if as_json:
        write_json(error.to_dict())
    say_faults(error.faults)
    raise typer.Exit(INVALID) from None


if __name__ == "__main__":
    app()
