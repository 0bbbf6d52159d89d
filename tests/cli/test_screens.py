"""What screens look like, and that nothing in an id, a label or a text can break them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import loadmaster
from loadmaster.core.faults import InvalidInput
from loadmaster.core.profiles import Profile, ProfileSet, lint
from loadmaster.core.wording import _WOULD
from loadmaster.defaults import packaged_profiles
from loadmaster.evaluation.realised_use import realised_use
from loadmaster.screens import profiles as profile_screens
from loadmaster.screens.difference import difference, difference_screen
from loadmaster.screens.explain import explain_screen
from loadmaster.screens.item import item_screen, near_ids
from loadmaster.screens.meanings import RULES
from loadmaster.screens.page import Page
from loadmaster.screens.replay import compare_traces, replay_screen
from loadmaster.screens.results import Result, read_result
from loadmaster.screens.usage import usage_screen
from loadmaster.screens.words import clip, clip_end, listing, safe

HERE = Path(__file__).resolve().parent
REQUESTS = HERE.parents[1] / "examples" / "requests"

Json = Any


def request(name: str) -> Json:
    folder = REQUESTS if (REQUESTS / f"{name}.json").exists() else HERE
    return json.loads((folder / f"{name}.json").read_bytes())


def compiled(name: str, edit: Callable[[Json], object] = lambda document: None) -> Json:
    """Compile an example, perhaps edited, and bring the result through JSON, as the command line does."""
    document = request(name)
    edit(document)
    return json.loads(json.dumps(loadmaster.compile_document(json.dumps(document)).to_dict()))


def result(name: str, edit: Callable[[Json], object] = lambda document: None) -> Result:
    return read_result(compiled(name, edit))


Golden = Callable[[str, Callable[[int], Page]], None]

EXPLAINED = [
    "getting-started",
    "01-must-haves-over-budget",
    "02-required-evidence-over-by-900",
    "03-priority-surplus",
    "07-forms-must-have-too-large",
    "07-forms-priced",
    "10-qualification-refused",
    "12-roomy-and-it-stops",
    "14-required-record-absent",
    "14-required-record-foreign",
    "15-voice",
    "many-must-haves",
]
ITEMS = [
    ("getting-started", "insurance/cover"),
    ("getting-started", "memory/address-old"),
    ("getting-started", "terms/changes"),
    ("getting-started", "read_document"),
    ("getting-started", "question"),
    ("10-qualification-refused", "claim"),
    ("10-qualification-refused", "qualification"),
    ("many-must-haves", "rag/record-39"),
    ("14-required-record-absent", "record-212"),
    ("01-must-haves-over-budget", "answer-schema"),
]


def window(tokens: int) -> Callable[[Json], object]:
    def edit(document: Json) -> None:
        document["request"]["budget"]["window"] = tokens

    return edit


def profile(name: str) -> Callable[[Json], object]:
    def edit(document: Json) -> None:
        document["request"]["profile"] = name

    return edit


def other_instructions(document: Json) -> None:
    document["candidates"][0]["forms"][0]["text"] += " Be kind."


@pytest.mark.parametrize("name", EXPLAINED)
def test_explain(golden: Golden, name: str) -> None:
    golden(f"explain-{name}", lambda width: explain_screen(result(name), width, "result.json"))


@pytest.mark.parametrize(("name", "item"), ITEMS)
def test_explain_item(golden: Golden, name: str, item: str) -> None:
    def draw(width: int) -> Page:
        page = item_screen(result(name), item, width)
        assert page is not None
        return page

    golden(f"item-{item.replace('/', '-')}", draw)


def test_explain_invalid(golden: Golden) -> None:
    with pytest.raises(InvalidInput) as caught:
        loadmaster.compile_document(
            {"schema": 2, "request": {"id": ""}, "candidates": [{"id": "a"}, {"id": "a", "x": 1}]}
        )
    golden("explain-invalid", lambda width: explain_screen(read_result(caught.value.to_dict()), width))


@pytest.mark.parametrize(
    ("case", "edit"),
    [
        ("more-room", window(3300)),
        ("profile", profile("voice")),
        ("text", other_instructions),
        ("too-small", window(1800)),
    ],
)
def test_diff(golden: Golden, case: str, edit: Callable[[Json], object]) -> None:
    data = difference(result("getting-started"), result("getting-started", edit))
    golden(f"diff-{case}", lambda width: difference_screen(data, width))


def test_diff_of_failures(golden: Golden) -> None:
    data = difference(result("01-must-haves-over-budget"), result("02-required-evidence-over-by-900"))
    golden("diff-failures", lambda width: difference_screen(data, width))


def trace_of(document: Json) -> tuple[bytes, ...]:
    return tuple(loadmaster.compile_document(json.dumps(document)).trace.lines())


@pytest.mark.parametrize(("case", "edit"), [("same", lambda document: None), ("window", window(3100))])
def test_replay(golden: Golden, case: str, edit: Callable[[Json], object]) -> None:
    document = request("getting-started")
    recorded = trace_of(document)
    edit(document)
    data = compare_traces(recorded, trace_of(document))
    golden(f"replay-{case}", lambda width: replay_screen(data, width))


def test_replay_of_a_tampered_trace(golden: Golden) -> None:
    recorded = trace_of(request("getting-started"))
    changed = tuple(line.replace(b'"rule":"stale"', b'"rule":"expired"') for line in recorded)
    assert changed != recorded
    data = compare_traces(changed, recorded)
    assert not data["genuine"] and not data["head"]
    golden("replay-tampered", lambda width: replay_screen(data, width))


def test_profiles(golden: Golden) -> None:
    packaged = packaged_profiles()
    rows = profile_screens.difference_of(packaged.profiles["chat"], packaged.profiles["briefing"])
    golden("profiles-list", lambda width: profile_screens.list_screen(packaged, width))
    golden("profiles-show", lambda width: profile_screens.show_screen(packaged, "chat", width))
    golden("profiles-show-voice", lambda width: profile_screens.show_screen(packaged, "voice", width))
    golden("profiles-diff", lambda width: profile_screens.difference_screen("chat", "briefing", rows, width))
    assert profile_screens.difference_of(packaged, packaged) == []


def test_profiles_lint(golden: Golden) -> None:
    greedy = Profile.model_validate(
        {"output": "50%", "layers": {"rag": {"floor": 5000, "cap": 100}, "memory": {"priority": 1}}}
    )
    bad = ProfileSet(
        version="9",
        layers=("rag", "memory"),
        default="greedy",
        profiles={"greedy": greedy},
        smallest_window=8192,
    )
    golden("profiles-lint", lambda width: profile_screens.lint_screen(bad, list(lint(bad)), width))
    fine = packaged_profiles()
    golden("profiles-lint-fine", lambda width: profile_screens.lint_screen(fine, list(lint(fine)), width))


def test_metrics(golden: Golden) -> None:
    names = [
        "getting-started",
        "03-priority-surplus",
        "12-roomy-and-it-stops",
        "01-must-haves-over-budget",
        "15-voice",
    ]
    lines = list(itertools.chain.from_iterable(trace_of(request(name)) for name in names))
    data = realised_use([*lines, b"nonsense\n"])
    golden("metrics", lambda width: usage_screen(data, width))


# Nothing breaks a screen

HOSTILE = [
    "[bold red]markup[/bold red] [link=http://x]y[/link]",
    "line\nbreak\rand\x1b[31mescape\x07",
    "bidi \u202eevil\u2066 \u200b zero",
    "表題の長い識別子" * 8,
    "x" * 500,
    ":smile: [/]",
]


def hostile_result() -> Json:
    data = compiled("getting-started")
    for at, block in enumerate(data["blocks"]):
        block["id"] = block["ref"] = HOSTILE[at % len(HOSTILE)] + str(at)
        block["text"] = HOSTILE[at % len(HOSTILE)]
    for at, omission in enumerate(data["omitted"]):
        omission["id"] = HOSTILE[at % len(HOSTILE)] + str(at)
        omission["would"] = HOSTILE[(at + 1) % len(HOSTILE)]
        omission["cause"] = data["omitted"][at - 1]["id"]
        omission["rule"] = HOSTILE[at % len(HOSTILE)]
    data["allocation"][0]["layer"] = HOSTILE[3]
    data["profile"]["name"] = HOSTILE[1]
    return data


def fits(page: Page, width: int) -> bool:
    return all(cell_len(line.plain) <= width and line.plain.isprintable() for line in page.lines)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_hostile_ids_and_texts_are_shown_literally(golden: Golden, width: int) -> None:
    data = hostile_result()
    read = read_result(data)
    assert fits(explain_screen(read, width), width)
    for item in (
        data["blocks"][0]["id"],
        data["blocks"][1]["id"],
        data["omitted"][2]["id"],
        data["omitted"][3]["id"],
    ):
        page = item_screen(read, item, width)
        assert page is not None and fits(page, width)
    assert fits(difference_screen(difference(result("getting-started"), read), width), width)
    golden("explain-hostile", lambda columns: explain_screen(read, columns))


def test_ten_thousand_left_out_stay_on_one_screen() -> None:
    data = compiled("getting-started")
    data["omitted"] += [
        {"id": f"more/{n}", "pass": "admission", "rule": "no_room", "would": f"{n + 1:,} more tokens"}
        for n in range(10_000)
    ]
    read = read_result(data)
    page = explain_screen(read, 80, "result.json")
    assert len(page.lines) <= 34
    assert "10,009 left out" in page.plain() and "more like it" in page.plain()
    assert near_ids(read, "mor/77") and item_screen(read, "more/9999", 80) is not None


@pytest.mark.parametrize("name", EXPLAINED)
@pytest.mark.parametrize("width", [72, 80, 120])
def test_lines_fit(name: str, width: int) -> None:
    page = explain_screen(result(name), width, "result.json")
    assert fits(page, width)
    assert width < 80 or len(page.lines) <= 34


def test_a_circle_of_causes_ends() -> None:
    data = compiled("getting-started")
    first, second = data["omitted"][:2]
    first["cause"], second["cause"] = second["id"], first["id"]
    page = item_screen(read_result(data), first["id"], 80)
    assert page is not None and "leads back to itself" in page.plain()


def test_an_alias_leads_to_what_stands_for_it() -> None:
    def copy(document: Json) -> None:
        twin = json.loads(json.dumps(next(c for c in document["candidates"] if c["id"] == "terms/changes")))
        twin["id"] = "terms/copy"
        document["candidates"].append(twin)

    read = result("getting-started", copy)
    alias, survivor = (item_screen(read, item, 100) for item in ("terms/copy", "terms/changes"))
    assert alias is not None and "terms/changes is in" in alias.plain()
    assert survivor is not None and "stands for terms/copy" in survivor.plain()


def test_every_rule_has_words() -> None:
    assert set(_WOULD) <= set(RULES)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "no result"),
        ({"schema": 1, "request": {}, "candidates": []}, "is a request"),
        ({"t": "head"}, "is a trace"),
        ({"status": "bundle"}, "missing"),
        ({"status": "odd"}, "no result"),
    ],
)
def test_what_is_no_result_is_said(data: Json, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_result(data)


def test_words() -> None:
    assert clip("abcdefghij", 5) == "ab…ij" and clip_end("abcdef", 4) == "abc…"
    assert cell_len(clip("表題の長い識別子", 7)) <= 7
    assert safe("a\x00\u2028") == "a\\x00\\u2028"
    assert listing(["a", "b", "c"], 80) == "a, b, c"
    assert listing([f"name-{n}" for n in range(50)], 30).endswith("more")
