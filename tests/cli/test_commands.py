"""The command line as a public interface: exit codes, what goes to stdout and what to stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import loadmaster
from loadmaster import cli

REQUESTS = Path(__file__).resolve().parents[2] / "examples" / "requests"
START = REQUESTS / "getting-started.json"
OVER = REQUESTS / "01-must-haves-over-budget.json"

Json = Any


def run(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.app, [str(arg) for arg in args], input=stdin)


def process(*args: str | Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "loadmaster.cli", *map(str, args)]
    return subprocess.run(command, capture_output=True, env={**os.environ, **env}, check=False)


def parsed(result: Result) -> Json:
    return json.loads(result.stdout)


def faults(result: Result) -> list[str]:
    assert result.exit_code == 2
    data = parsed(result)
    assert data["status"] == "invalid"
    return [fault["path"] for fault in data["faults"]]


@pytest.fixture
def results(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name in ("getting-started", "15-voice", "01-must-haves-over-budget"):
        path = tmp_path / f"{name}.json"
        path.write_text(
            run("compile", REQUESTS / f"{name}.json", "--trace", tmp_path / f"{name}.trace").stdout, "utf-8"
        )
        found[name] = path
    return found


# compile


def test_a_bundle_is_json_on_stdout_and_words_on_stderr() -> None:
    result = run("compile", START)
    assert result.exit_code == 0
    assert parsed(result) == json.loads(json.dumps(loadmaster.compile_document(START.read_bytes()).to_dict()))
    assert result.stdout.endswith("}\n") and result.stdout.count("\n") == 1
    assert result.stderr == "compiled: 1,091 of 1,100 tokens in 20 blocks, 9 left out\n"


def test_stdin_gives_the_same_bytes_as_a_file() -> None:
    assert run("compile", "-", stdin=START.read_bytes()).stdout_bytes == run("compile", START).stdout_bytes


def test_a_failure_exits_with_3() -> None:
    result = run("compile", OVER)
    assert result.exit_code == 3
    assert parsed(result)["code"] == "insufficient_budget"
    assert result.stderr.startswith("failed: insufficient_budget: need 4,600, capacity 4,000, over by 600")


def test_profile_overrides_the_request() -> None:
    assert parsed(run("compile", START, "--profile", "voice"))["profile"]["name"] == "voice"
    assert faults(run("compile", START, "--profile", "nope")) == ["request.profile"]


def test_text_of_a_bundle_and_of_a_chat() -> None:
    text = run("compile", REQUESTS / "12-roomy-and-it-stops.json", "--text").stdout
    assert text.startswith("<governing id=") and text.endswith(">\n") and not text.endswith("\n\n")
    chat = run("compile", START, "--text").stdout
    lines = chat.splitlines()
    assert [json.loads(line) for line in lines[-2:]] == parsed(run("compile", START))["tools"]
    assert '{"content":"Do you also take the old wardrobe to the dump?","role":"user"}' in lines


def test_text_of_a_failure_is_its_screen() -> None:
    result = run("compile", OVER, "--text")
    assert result.exit_code == 3
    assert result.stdout.startswith("FAILED  insufficient_budget") and "Who can cure it" in result.stdout


@pytest.mark.parametrize(("source", "code"), [(START, 0), (OVER, 3)])
def test_the_trace_is_written_and_the_result_still_printed(tmp_path: Path, source: Path, code: int) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("an older and longer file")
    result = run("compile", source, "--trace", path)
    assert result.exit_code == code
    expected = loadmaster.compile_document(source.read_bytes())
    assert path.read_bytes() == b"".join(expected.trace.lines())
    assert parsed(result)["trace_digest"] == expected.trace_digest
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.jsonl"]


def test_a_trace_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "folder", tmp_path, START / "x"):
        result = run("compile", START, "--trace", path)
        assert result.exit_code == 2 and result.stdout == ""
        assert result.stderr.startswith("error: cannot write ")
    assert run("compile", START, "--trace", "-").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_trace_to_a_device_leaves_the_device() -> None:
    assert run("compile", START, "--trace", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_trace_to_a_pipe() -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "loadmaster.cli", "compile", str(OVER), "--trace", f"/dev/fd/{writing}"]
    done = subprocess.run(command, capture_output=True, pass_fds=(writing,), check=False)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"".join(loadmaster.compile_document(OVER.read_bytes()).trace.lines())
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (b"", "stdin is empty"),
        (b"  \n", "stdin is empty"),
        (b"{nonsense", "stdin is not JSON"),
        (b"\xff\xfe", "stdin is not UTF-8"),
        (b"[1]", "stdin is an array"),
    ],
)
def test_stdin_that_is_no_document(stdin: bytes, says: str) -> None:
    result = run("compile", "-", stdin=stdin)
    assert faults(result) == ["$"]
    assert result.stderr.startswith(f"error: {says}") and result.stderr.count("\n") == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        for command in ("compile", "explain"):
            result = run(command, path)
            assert faults(result) == ["$"] and "cannot read" in result.stderr
    assert faults(run("compile", "nul\0byte.json")) == ["$"]


def test_every_fault_is_in_the_json_and_the_first_in_words() -> None:
    candidates = [{"id": f"c{n}", "forms": [{"form": "full", "text": "a"}], "bogus": 1} for n in range(75)]
    document = {"schema": 1, "request": {"id": "r", "budget": {"window": 10}}, "candidates": candidates}
    result = run("compile", "-", stdin=json.dumps(document))
    assert faults(result) == [f"candidates[{n}].bogus" for n in range(75)]
    lines = result.stderr.splitlines()
    assert lines[0] == "error: invalid input, 75 faults" and lines[1].startswith("  candidates[0].bogus: ")
    assert len(lines) == 52 and "25 more faults" in lines[-1]


def test_hostile_faults_stay_on_their_line() -> None:
    document = {"schema": 1, "request": {"id": "r", "[red]x\n\x1b[31m": 1}, "candidates": []}
    result = run("compile", "-", stdin=json.dumps(document))
    assert len(faults(result)) == result.stderr.count("\n") - 1
    assert "\x1b" not in result.stderr and "[red]" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["compile"],
        ["compile", str(START), "--messages", "h.json", "--budget", "5"],
        ["compile", "--messages", "h.json"],
        ["compile", str(START), "--budget", "5"],
        ["compile", "--messages", "-", "--tools", "-", "--budget", "5"],
        ["compile", "--messages", "h.json", "--budget", "-1"],
        ["compile", str(START), "--bogus"],
        ["bogus"],
        ["diff", "-", "-"],
        ["replay", "-", "-"],
        ["explain"],
        ["metrics"],
    ],
)
def test_wrong_usage_exits_with_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


# compile --messages


HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which day is it?"},
    {"role": "assistant", "content": "Tuesday."},
    {"role": "user", "content": "And tomorrow?"},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "today",
            "parameters": {"type": "object", "properties": {"x": {"minimum": 0.5}}},
        },
    }
]


def test_messages_come_out_unchanged(tmp_path: Path) -> None:
    history, tools = tmp_path / "h.json", tmp_path / "t.json"
    history.write_text(json.dumps(HISTORY))
    tools.write_text(json.dumps(TOOLS))
    options = ("--budget", "500", "--tokenizer", "o200k_base")
    result = run("compile", "--messages", history, "--tools", tools, *options)
    assert result.exit_code == 0
    data = parsed(result)
    assert data["messages"] == HISTORY and data["tools"] == TOOLS
    assert data["tokens"]["used"] <= 500 == data["tokens"]["usable"]
    whole = json.dumps({"messages": HISTORY, "tools": TOOLS})
    again = run("compile", "--messages", "-", *options, stdin=whole)
    assert again.stdout_bytes == result.stdout_bytes


def test_messages_that_do_not_fit_fail() -> None:
    result = run("compile", "--messages", "-", "--budget", "5", stdin=json.dumps(HISTORY))
    assert result.exit_code == 3 and parsed(result)["code"] == "insufficient_budget"


@pytest.mark.parametrize(
    "document",
    [{}, {"messages": HISTORY, "bogus": 1}, {"messages": [{"role": "nobody"}]}, [1], 5, {"messages": 7}],
)
def test_messages_that_are_none(document: Json) -> None:
    assert faults(run("compile", "--messages", "-", "--budget", "500", stdin=json.dumps(document)))


def test_messages_with_an_unknown_tokenizer() -> None:
    args = ("compile", "--messages", "-", "--budget", "500", "--tokenizer", "bogus")
    assert len(faults(run(*map(str, args), stdin=json.dumps(HISTORY)))) == 1


# explain, diff


def test_explain_from_a_file_and_from_stdin(results: dict[str, Path]) -> None:
    path = results["getting-started"]
    shown = run("explain", path)
    assert shown.exit_code == 0 and shown.stderr == ""
    assert "insurance/cover" in shown.stdout and "100 more tokens" in shown.stdout
    piped = run("explain", "-", stdin=path.read_bytes()).stdout
    assert piped.partition("More on one")[0] == shown.stdout.partition("More on one")[0]


def test_explain_an_item(results: dict[str, Path]) -> None:
    shown = run("explain", results["getting-started"], "insurance/cover")
    assert shown.exit_code == 0 and shown.stdout.startswith("insurance/cover is out: no room")
    unknown = run("explain", results["getting-started"], "insurance")
    assert unknown.exit_code == 2 and unknown.stdout == ""
    assert "did you mean insurance/cover?" in unknown.stderr
    assert run("explain", results["01-must-haves-over-budget"], "constraints").exit_code == 0
    assert run("explain", results["01-must-haves-over-budget"], "nope").exit_code == 2


def test_explain_a_failure_and_an_invalid_result(results: dict[str, Path]) -> None:
    assert run("explain", results["01-must-haves-over-budget"]).stdout.startswith("FAILED")
    invalid = run("compile", "-", stdin=b"{}").stdout
    shown = run("explain", "-", stdin=invalid)
    assert shown.exit_code == 0 and shown.stdout.startswith("INVALID")


def test_explain_what_is_no_result(results: dict[str, Path]) -> None:
    for path, says in (
        (START, "is a request"),
        (results["getting-started"].with_suffix(".trace"), "is a trace"),
    ):
        result = run("explain", path)
        assert faults(result) == ["$"] and says in result.stderr


def test_diff(results: dict[str, Path]) -> None:
    a, b = results["getting-started"], results["15-voice"]
    same = run("diff", a, a)
    assert same.exit_code == 0 and same.stdout.startswith("SAME")
    other = run("diff", a, b)
    assert other.exit_code == 0 and other.stdout.startswith("DIFFERENT")
    data = parsed(run("diff", a, b, "--json"))
    assert data["first_difference"]["block"] == 0 and not data["prefix"]["survives"]
    assert run("diff", a, START).exit_code == 2


def test_diff_finds_an_inserted_and_a_moved_block(results: dict[str, Path], tmp_path: Path) -> None:
    data = json.loads(results["getting-started"].read_bytes())
    data["blocks"][6], data["blocks"][7] = data["blocks"][7], data["blocks"][6]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(data))
    found = parsed(run("diff", results["getting-started"], changed, "--json"))
    assert len(found["moved"]) == 1 and found["first_difference"]["kind"] == "reordered"
    assert found["prefix"]["survives"] and not found["entered"] and not found["changed"]


# replay


def test_replay_repeats_a_trace(results: dict[str, Path]) -> None:
    for name in ("getting-started", "01-must-haves-over-budget"):
        result = run("replay", results[name].with_suffix(".trace"), REQUESTS / f"{name}.json")
        assert result.exit_code == 0 and result.stdout.startswith("SAME")


def test_replay_knows_a_profile_from_the_command_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run("compile", START, "--profile", "voice", "--trace", trace)
    assert run("replay", trace, START).exit_code == 0


def test_replay_uses_the_recorded_observations(tmp_path: Path) -> None:
    observed = loadmaster.Observation(key="revalidate:doc-7", value={"state": "current"})
    compiled = loadmaster.Compiler().compile_document(START.read_bytes(), observations=[observed])
    trace = tmp_path / "trace"
    trace.write_bytes(b"".join(compiled.trace.lines()))
    assert run("replay", trace, START).exit_code == 0


def test_replay_names_the_first_difference_and_what_differs_before(results: dict[str, Path]) -> None:
    trace = results["getting-started"].with_suffix(".trace")
    document = START.read_text().replace('"window": 3000', '"window": 3100')
    result = run("replay", trace, "-", stdin=document)
    assert result.exit_code == 3
    assert "warning: another request" in result.stdout and "warning: another budget" in result.stdout
    assert "First difference, line" in result.stdout


def test_replay_of_what_is_no_trace(results: dict[str, Path], tmp_path: Path) -> None:
    trace = results["getting-started"].with_suffix(".trace")
    cut = tmp_path / "cut"
    cut.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:-1]))
    nested = tmp_path / "odd"
    nested.write_bytes(trace.read_bytes().replace(b'{"in"', b'{"key":5,"t":"obs"}\n{"in"', 1))
    for path in (START, results["getting-started"], cut, nested):
        assert faults(run("replay", path, START)) == ["$"]
    assert run("replay", trace, "-", stdin=b"{}").exit_code == 2


# profiles


def test_profiles(tmp_path: Path) -> None:
    assert "document_question" in run("profiles", "list").stdout
    assert run("profiles", "show", "voice").exit_code == 0
    assert run("profiles", "show", "nope").exit_code == 2
    assert "ratio" in run("profiles", "diff", "chat", "voice").stdout
    assert run("profiles", "diff", "chat", "nope").exit_code == 2
    assert run("profiles", "lint").exit_code == 0


def test_profiles_of_a_file(tmp_path: Path) -> None:
    toml, other, broken = tmp_path / "set.toml", tmp_path / "set.json", tmp_path / "broken.toml"
    toml.write_text(
        'version = "7"\nlayers = ["rag"]\ndefault = "one"\nsmallest_window = 1000\n'
        '[profiles.one]\nprice = 0.10\n[profiles.one.layers]\nrag = { floor = 5000, cap = "10%" }\n'
    )
    other.write_text(
        json.dumps({"version": "8", "layers": ["rag"], "default": "one", "profiles": {"one": {}}})
    )
    broken.write_text('version = "7"\nlayers = [')
    assert "one" in run("profiles", "list", "--file", toml).stdout
    assert "10%" in run("profiles", "show", "one", "--file", toml).stdout
    lint = run("profiles", "lint", toml)
    assert lint.exit_code == 3 and "the floor exceeds the cap" in lint.stdout
    assert run("profiles", "lint", "--file", other).exit_code == 0
    shown = run("profiles", "diff", toml, other)
    assert shown.exit_code == 0 and "version" in shown.stdout and "profiles.one.price" in shown.stdout
    assert "SAME" in run("profiles", "diff", toml, toml).stdout
    assert faults(run("profiles", "lint", broken)) == ["$"]
    assert faults(run("profiles", "lint", tmp_path / "missing.toml")) == ["$"]
    assert "layers" in faults(
        run("profiles", "lint", "-", stdin='{"version":"1","default":"a","profiles":{"a":{}}}')
    )


# metrics


def test_metrics_of_traces_and_of_results_agree(results: dict[str, Path], tmp_path: Path) -> None:
    traces, lines = tmp_path / "traces.jsonl", tmp_path / "results.jsonl"
    traces.write_bytes(b"".join(path.with_suffix(".trace").read_bytes() for path in results.values()))
    lines.write_bytes(b"".join(path.read_bytes() for path in results.values()))
    figures = [parsed(run("metrics", path, "--json")) for path in (traces, lines)]
    for figure in figures:
        del figure["lines"]
    assert figures[0] == figures[1]
    assert figures[0]["compiles"] == 3 and figures[0]["failures"] == {"insufficient_budget": 1}
    rag = next(row for row in figures[0]["layers"] if row["layer"] == "rag")
    assert rag["realised_p95"] == 0.318  # 295 of 965 - 39
    assert figures[0]["cuts"] == {"cap": 3, "no_room": 3} and figures[0]["cut_rate"] == 1
    assert run("metrics", traces).stdout.startswith("REALISED USE  3 compiles: 2 bundles, 1 failure")


def test_metrics_pass_over_bad_lines(results: dict[str, Path], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    trace = results["getting-started"].with_suffix(".trace").read_bytes()
    foot = trace.splitlines(keepends=True)[-1]
    log.write_bytes(
        b"nonsense\n[]\n" + foot + trace + b'{"status":"bundle"}\n' + trace.splitlines(keepends=True)[0]
    )
    result = run("metrics", log, tmp_path / "missing", "--json")
    assert result.exit_code == 0
    data = parsed(result)
    assert (data["compiles"], data["bad_lines"], data["unfinished"]) == (1, 4, 1)
    assert f"{log}:1: is not JSON" in result.stderr and "missing: cannot be read" in result.stderr


def test_metrics_of_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"nonsense\n" * 100)
    result = run("metrics", log)
    assert result.exit_code == 2 and result.stdout == ""
    assert "90 more like these" in result.stderr
    assert run("metrics", tmp_path / "missing").exit_code == 2


# The frame


def test_version_and_help() -> None:
    assert run("--version").stdout == f"loadmaster {loadmaster.__version__}\n"
    for args in (["--help"], ["compile", "-h"], ["profiles", "--help"]):
        assert run(*args).exit_code == 0


def test_a_bug_exits_with_1_and_says_how_to_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a [red]wire\nis loose")

    monkeypatch.setattr(loadmaster.Compiler, "compile_document", broken)
    monkeypatch.delenv("LOADMASTER_DEBUG", raising=False)
    result = run("compile", START)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.splitlines()[0] == "internal error: RuntimeError: a [red]wire\\nis loose"
    assert "LOADMASTER_DEBUG=1" in result.stderr
    monkeypatch.setenv("LOADMASTER_DEBUG", "1")
    assert isinstance(run("compile", START).exception, RuntimeError)


def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loadmaster.Compiler, "compile_document", interrupted)
    assert run("compile", START).exit_code == 130


def test_colour_is_for_terminals_and_can_be_refused(results: dict[str, Path]) -> None:
    path = results["getting-started"]
    plain = process("explain", path)
    assert plain.returncode == 0 and b"\x1b" not in plain.stdout
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert b"\x1b[1;32m" in process("explain", path, **forced).stdout
    for refused in (
        process("explain", path, NO_COLOR="1", **forced),
        process("--no-color", "explain", path, **forced),
        process("explain", path, "--no-color", **forced),
    ):
        assert refused.returncode == 0 and b"32m" not in refused.stdout


def test_output_is_utf_8_whatever_the_locale(results: dict[str, Path]) -> None:
    shown = process("explain", results["getting-started"], LC_ALL="C", PYTHONIOENCODING="ascii")
    assert "█" in shown.stdout.decode()


def test_a_closed_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "loadmaster.cli", "compile", str(START)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        words = running.stderr.read()
    assert running.returncode in (0, 141) and b"Traceback" not in words and b"Exception" not in words
