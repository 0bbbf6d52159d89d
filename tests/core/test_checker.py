"""A fault for every rule of the checker, planted in a bundle that is right, and found as just that.

Everything that follows from a fault (digests, sums, omissions) is set right again by `seal`, so that the
rule under test is the only one broken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadmaster.compiler import Compiler
from loadmaster.core.blocks import TAGGED
from loadmaster.core.canonical import canonical_json, digest_of_sequence
from loadmaster.core.checker.case import Violation
from loadmaster.core.checker.check import check
from loadmaster.core.contract import Conflict
from loadmaster.core.items import STABILITIES, item_of
from loadmaster.core.passes.validate import BrokenInvariant, validate
from loadmaster.core.pipeline import compile_problem
from loadmaster.core.problem import Policy, Problem
from loadmaster.core.result import Block, Bundle, Omission, Prefix, block_bytes

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "checker"
REQUESTS = sorted((ROOT / "examples" / "requests").glob("*.json"))

Given = tuple[Problem, Bundle]


def compiled(path: Path) -> Given:
    read = Compiler().read(path.read_bytes())
    problem = Compiler(profiles=read.profiles).problem(read.request, read.candidates)
    bundle = compile_problem(problem)
    assert isinstance(bundle, Bundle)
    return problem, bundle


@pytest.fixture(scope="module")
def everything() -> Given:
    return compiled(FIXTURES / "everything.json")


@pytest.fixture(scope="module")
def chat() -> Given:
    return compiled(FIXTURES / "chat.json")


def broken(problem: Problem, bundle: Bundle) -> set[str]:
    return {violation.rule for violation in check(problem, bundle)}


# Setting right what follows from a fault


def seal(
    problem: Problem, bundle: Bundle, blocks: Iterable[Block], payers: dict[str, str] | None = None
) -> Bundle:
    """Give a bundle of other blocks, with digests, sums and omissions that are right for them.

    A block that is added or that leaves is charged to its layer, or to what ``payers`` says.
    """
    blocks = tuple(blocks)
    key = problem.digest_key
    parts = [block_bytes(block) for block in blocks]
    last, length, chain = 0, 0, ""
    for block in blocks:
        if not last <= STABILITIES.index(block.stability) <= 3:
            break
        last, length = STABILITIES.index(block.stability), length + 1
        chain = digest_of_sequence([chain.encode(), block_bytes(block)], key)
    prefix = Prefix(chain, sum(block.tokens for block in blocks[:length]), length)
    change: dict[str, int] = {}
    for sign, side in ((-1, bundle.blocks), (1, blocks)):
        for block in side:
            payer = (payers or {}).get(block.id, block.layer or block.section)
            change[payer] = change.get(payer, 0) + sign * block.tokens
    rows = tuple(row._replace(used=row.used + change.get(row.layer, 0)) for row in bundle.allocation)
    rows = tuple(row._replace(floor_unmet=row.used < min(row.floor, row.wants)) for row in rows)
    tokens = replace(
        bundle.tokens,
        used=bundle.tokens.used + sum(change.values()),
        standing=bundle.tokens.standing + change.get("governing", 0),
        task=bundle.tokens.task + change.get("task", 0),
    )
    inside = {block.id for block in blocks}
    known = {omission.id: omission for omission in bundle.omitted}
    omitted = tuple(
        known.get(item.id) or Omission(item.id, "admission", "no_room", "more tokens")
        for item in sorted(problem.items, key=lambda item: item.id)
        if item.id not in inside
    )
    return replace(
        bundle,
        blocks=blocks,
        digest=digest_of_sequence(parts, key),
        prefix=prefix if length else replace(prefix, digest=digest_of_sequence([], key)),
        tokens=tokens,
        allocation=rows,
        omitted=omitted,
    )


def without(given: Given, *ids: str, payers: dict[str, str] | None = None) -> set[str]:
    problem, bundle = given
    return broken(
        problem, seal(problem, bundle, (each for each in bundle.blocks if each.id not in ids), payers)
    )


def block_of(problem: Problem, identifier: str, form: str | None = None) -> Block:
    """Render a candidate as the block that it would be."""
    item = next(item for item in problem.items if item.id == identifier)
    shown = next(each for each in item.forms if form in (None, each.name))
    return Block(
        id=item.id,
        ref=item.ref,
        section=item.section,
        layer=item.layer,
        band=item.candidate.band,
        form=shown.name,
        kind="text",
        tokens=shown.declared or 0,
        stability=STABILITIES[item.stability],
        text=TAGGED.block(item, shown, None),
        metadata=item.candidate.metadata,
    )


def with_block(given: Given, block: Block, payers: dict[str, str] | None = None) -> set[str]:
    """Plant one more block at the place where it belongs."""
    problem, bundle = given
    results = [
        broken(problem, seal(problem, bundle, (*bundle.blocks[:at], block, *bundle.blocks[at:]), payers))
        for at in range(len(bundle.blocks) + 1)
    ]
    return min(results, key=len)


def changed(given: Given, identifier: str, **fields: Any) -> Bundle:
    problem, bundle = given
    assert any(block.id == identifier for block in bundle.blocks)
    blocks = (replace(each, **fields) if each.id == identifier else each for each in bundle.blocks)
    return seal(problem, bundle, blocks)


def block(bundle: Bundle, identifier: str) -> Block:
    return next(each for each in bundle.blocks if each.id == identifier)


# What is right


@pytest.mark.parametrize("path", [*REQUESTS, *sorted(FIXTURES.glob("*.json"))], ids=lambda path: path.stem)
def test_nothing_is_found_in_a_bundle_that_is_right(path: Path) -> None:
    compiler = Compiler()
    read = compiler.read(path.read_bytes())
    problem = Compiler(profiles=read.profiles).problem(read.request, read.candidates)
    result = compile_problem(problem)
    if isinstance(result, Bundle):
        assert check(problem, result) == ()


def test_sealing_alone_breaks_nothing(everything: Given, chat: Given) -> None:
    for problem, bundle in (everything, chat):
        assert seal(problem, bundle, bundle.blocks) == bundle


# What must be in


@pytest.mark.parametrize("identifier", ["instructions", "question", "lifted"])
def test_a_missing_must_have(everything: Given, identifier: str) -> None:
    # Without standing content the grant base is larger, and the shares of it are others.
    assert without(everything, identifier) - {"allocation"} == {"must_have"}


def test_a_must_have_under_its_copys_name(everything: Given) -> None:
    problem, bundle = everything
    asked = replace(problem, request=problem.request.model_copy(update={"requires": ("lifted", "record-2")}))
    lifted = changed(everything, "record-1", band="required")
    assert broken(asked, lifted) == set()
    assert broken(asked, seal(asked, lifted, (b for b in bundle.blocks if b.id != "record-1"))) == {
        "must_have"
    }


def test_a_required_id_that_was_never_given(everything: Given) -> None:
    problem, bundle = everything
    asked = replace(problem, request=problem.request.model_copy(update={"requires": ("lifted", "nobody")}))
    assert broken(asked, bundle) == {"must_have"}


# What may not be in


@pytest.mark.parametrize(
    ("identifier", "rule"),
    [
        ("foreign", "scope"),
        ("upstart", "authority"),
        ("secret", "labels"),
        ("forgotten", "retention"),
        ("banned", "excluded"),
        ("replaced", "superseded"),
        ("over", "expired"),
        ("early", "not_yet_valid"),
        ("old", "max_age"),
        ("stale", "stale"),
        ("unsure", "unknown"),
        ("record-2", "merged"),
        ("shapeless", "form"),
        ("leaning", "closure"),
        ("helper", "orphan"),
        ("dull", "relevance"),
    ],
)
def test_what_is_refused_or_needless(everything: Given, identifier: str, rule: str) -> None:
    payers = {"helper": "rag"}
    assert with_block(everything, block_of(everything[0], identifier), payers) == {rule}


def test_a_layer_that_the_profile_does_not_name(everything: Given) -> None:
    assert with_block(everything, block_of(everything[0], "unnamed")) == {"layer", "cap"}


def test_a_dependency_that_outlived_its_need(everything: Given) -> None:
    assert without(everything, "report", payers={"resolver": "tools"}) == {"orphan"}


def test_something_that_nobody_gave(everything: Given) -> None:
    stranger = replace(block_of(everything[0], "claim"), id="stranger", ref="stranger")
    assert with_block(everything, stranger) == {"foreign"}


def test_two_forms_of_one_candidate(everything: Given) -> None:
    problem, bundle = everything
    second = block_of(problem, "clause", "compact")
    assert broken(problem, seal(problem, bundle, (*bundle.blocks, second))) == {"duplicate"}


# Forms and texts


def test_a_form_that_is_not_legal(everything: Given) -> None:
    problem, _ = everything
    short = block_of(problem, "clause", "compact")
    fields = {"form": short.form, "text": short.text, "tokens": short.tokens}
    assert broken(problem, changed(everything, "clause", **fields)) == {"form"}


def test_a_form_that_was_not_given(everything: Given) -> None:
    assert broken(everything[0], changed(everything, "clause", form="anchor")) == {"form"}


def test_one_byte_of_a_text(everything: Given) -> None:
    text = block(everything[1], "claim").text
    assert broken(everything[0], changed(everything, "claim", text=text.replace("text", "test"))) == {"text"}


def test_one_byte_of_a_message(chat: Given) -> None:
    value = {"role": "assistant", "content": "Good to knew."}
    bundle = changed(chat, "turn-2", value=value, text=canonical_json(value))
    assert broken(chat[0], bundle) == {"text"}
    assert broken(chat[0], changed(chat, "turn-2", text="{}")) >= {"text"}


@pytest.mark.parametrize(
    "fields",
    [
        {"section": "state"},
        {"layer": "memory"},
        {"band": "supported"},
        {"stability": "turn"},
        {"kind": "message"},
        {"metadata": {"page": 4}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_governance_that_is_not_the_candidates(everything: Given, fields: dict[str, Any]) -> None:
    problem, bundle = everything
    identifier = {"layer": "claim"}.get(next(iter(fields)), "clause")
    blocks = [replace(each, **fields) if each.id == identifier else each for each in bundle.blocks]
    sealed = seal(problem, bundle, blocks, payers={"claim": "rag"})
    found = check(problem, sealed)
    if "kind" in fields:  # the digest of a message covers other bytes
        assert [each.rule for each in found] == ["governance"]
    assert {each.rule for each in found} == {"governance"}
    assert {each.item for each in found} == {identifier}


def test_a_reference_that_is_not_the_ids(everything: Given, chat: Given) -> None:
    problem, bundle = everything
    text = block(bundle, "clause").text.replace('id="clause"', 'id="claws"')
    assert broken(problem, changed(everything, "clause", ref="claws", text=text)) == {"reference"}
    long = next(each for each in chat[1].blocks if each.ref.startswith("~"))
    assert check(chat[0], changed(chat, long.id, ref="~00000000"))[0].rule == "text"


# What belongs together


def test_a_claim_without_its_qualification(everything: Given) -> None:
    assert without(everything, "qualification") == {"closure"}


def test_a_reference_without_its_resolver(everything: Given) -> None:
    assert without(everything, "resolver", payers={"resolver": "tools"}) == {"closure"}


@pytest.mark.parametrize("identifier", ["pair-a", "pair-b"])
def test_half_a_group(everything: Given, identifier: str) -> None:
    assert without(everything, identifier) == {"group"}


@pytest.mark.parametrize("identifier", ["view-a", "view-b"])
def test_one_side_of_a_disagreement(everything: Given, identifier: str) -> None:
    assert without(everything, identifier) == {"conflict"}


def test_a_disagreement_that_is_not_shown(everything: Given) -> None:
    plain = block_of(everything[0], "view-a").text
    assert "unresolved" in block(everything[1], "view-a").text
    assert broken(everything[0], changed(everything, "view-a", text=plain)) == {"conflict"}


def test_must_haves_that_govern_and_disagree(everything: Given) -> None:
    problem, bundle = everything
    items = []
    for item in problem.items:
        candidate = item.candidate
        if item.id in ("instructions", "resolver"):
            update = {
                "conflict": Conflict(id="rule", status="unresolved"),
                "section": "governing",
                "band": "mandatory",
            }
            candidate = candidate.model_copy(update=update)
            candidate.__dict__.pop("item", None)
        items.append(item_of(candidate))
    found = check(replace(problem, items=tuple(items)), bundle)
    assert any(each.rule == "conflict" and "must govern" in each.message for each in found)


def test_what_is_left_out_is_named_once_and_rightly(everything: Given) -> None:
    problem, bundle = everything
    assert broken(problem, replace(bundle, omitted=bundle.omitted[1:])) == {"omission"}
    assert broken(problem, replace(bundle, omitted=(*bundle.omitted, bundle.omitted[0]))) == {"omission"}
    inside = Omission("claim", "admission", "no_room", "more tokens")
    assert broken(problem, replace(bundle, omitted=(*bundle.omitted, inside))) == {"omission"}
    for identifier, rule in (("stale", "no_room"), ("huge", "scope"), ("leaning", "group")):
        omitted = tuple(replace(o, rule=rule) if o.id == identifier else o for o in bundle.omitted)
        assert check(problem, replace(bundle, omitted=omitted))[0].item == identifier


# Order and digests


def swapped(given: Given, one: str, other: str) -> Bundle:
    problem, bundle = given
    exchange = {one: block(bundle, other), other: block(bundle, one)}
    return seal(problem, bundle, (exchange.get(each.id, each) for each in bundle.blocks))


@pytest.mark.parametrize(
    ("one", "other"), [("turn-1", "turn-2"), ("claim", "lifted"), ("question", "claim"), ("pair-a", "fresh")]
)
def test_text_out_of_order(everything: Given, one: str, other: str) -> None:
    assert broken(everything[0], swapped(everything, one, other)) == {"order"}


@pytest.mark.parametrize(
    ("one", "other"), [("turn-1", "turn-2"), ("call", "result"), ("tool-a", "tool-b"), ("note", "turn-1")]
)
def test_messages_and_tools_out_of_order(chat: Given, one: str, other: str) -> None:
    assert broken(chat[0], swapped(chat, one, other)) == {"order"}


def test_another_digest(everything: Given) -> None:
    problem, bundle = everything
    assert broken(problem, replace(bundle, digest="sha256:" + 64 * "0")) == {"digest"}
    assert broken(replace(problem, digest_key=b"key"), bundle) == {"digest", "prefix"}


@pytest.mark.parametrize("fields", [{"digest": "sha256:0"}, {"tokens": 7}, {"blocks": 2}])
def test_another_prefix(everything: Given, fields: dict[str, Any]) -> None:
    problem, bundle = everything
    assert broken(problem, replace(bundle, prefix=replace(bundle.prefix, **fields))) == {"prefix"}


# Figures


def test_a_block_that_is_charged_something_else(everything: Given, chat: Given) -> None:
    problem, bundle = everything
    more = {"view-a": 1, "view-b": -1}
    blocks = (replace(each, tokens=each.tokens + more.get(each.id, 0)) for each in bundle.blocks)
    assert broken(problem, seal(problem, bundle, blocks)) == {"tokens"}
    problem, bundle = chat
    more = {"turn-1": 1, "turn-2": -1}
    blocks = (replace(each, tokens=each.tokens + more.get(each.id, 0)) for each in bundle.blocks)
    assert broken(problem, seal(problem, bundle, blocks)) == {"tokens"}


def test_another_total(everything: Given, chat: Given) -> None:
    for problem, bundle in (everything, chat):
        tokens = replace(bundle.tokens, used=bundle.tokens.used + 1, framing=bundle.tokens.framing + 1)
        assert broken(problem, replace(bundle, tokens=tokens)) == {"size"}


def test_more_than_the_capacity(everything: Given) -> None:
    problem, bundle = everything
    limits = replace(problem.limits, window=700, output=100)
    tokens = replace(bundle.tokens, window=700, usable=550, capacity=500)
    found = broken(replace(problem, limits=limits), replace(bundle, tokens=tokens))
    # Floors and caps that are shares follow the smaller base, and the grants exceed it.
    assert found == {"capacity", "allocation"}


@pytest.mark.parametrize(
    "name", ["window", "usable", "headroom", "capacity", "framing", "encoding", "margin"]
)
def test_another_budget(everything: Given, name: str) -> None:
    problem, bundle = everything
    fields: dict[str, Any] = {name: "other" if name == "encoding" else getattr(bundle.tokens, name) + 1}
    found = check(problem, replace(bundle, tokens=replace(bundle.tokens, **fields)))
    assert {each.rule for each in found} - {"allocation"} == {"budget"}
    assert any(name in each.message for each in found)


def test_messages_that_are_not_sent_as_messages(chat: Given) -> None:
    assert "chat" in broken(chat[0], replace(chat[1], chat=False))


def with_row(bundle: Bundle, layer: str, **fields: Any) -> Bundle:
    rows = (row._replace(**fields) if row.layer == layer else row for row in bundle.allocation)
    return replace(bundle, allocation=tuple(rows))


def test_a_layer_that_pays_for_another(everything: Given) -> None:
    problem, bundle = everything
    assert broken(problem, with_row(bundle, "rag", used=220)) == {"accounts"}
    moved = with_row(with_row(bundle, "rag", used=220), "memory", used=105)
    assert broken(problem, moved) == {"accounts"}
    moved = with_row(bundle, "rag", used=221 - 7)
    tokens = replace(bundle.tokens, task=bundle.tokens.task + 7)
    assert "accounts" in broken(problem, replace(moved, tokens=tokens))


@pytest.mark.parametrize(
    "fields", [{"floor": 3}, {"ratio": 9}, {"cap": 4000}, {"granted": 1}, {"surplus": -1}]
)
def test_a_row_by_another_rule(everything: Given, fields: dict[str, Any]) -> None:
    assert broken(everything[0], with_row(everything[1], "rag", **fields)) == {"allocation"}


def test_rows_that_are_not_the_declared_layers(everything: Given) -> None:
    problem, bundle = everything
    assert broken(problem, replace(bundle, allocation=bundle.allocation[1:])) == {"allocation"}
    assert broken(problem, replace(bundle, allocation=bundle.allocation[::-1])) == {"allocation"}


def test_a_floor_that_is_said_to_be_unmet(everything: Given) -> None:
    assert broken(everything[0], with_row(everything[1], "memory", floor_unmet=True)) == {"floor"}


def test_a_layer_above_its_cap(everything: Given) -> None:
    problem, bundle = everything
    profiles = problem.policy.profiles.model_dump(mode="json", by_alias=True)
    profiles["profiles"]["work"]["layers"]["memory"]["cap"] = 103
    strict = type(problem.policy.profiles).model_validate(profiles)
    policy = Policy.of(strict, problem.policy.name, problem.policy.why)
    assert broken(replace(problem, policy=policy), with_row(bundle, "memory", cap=103)) == {"cap"}


def test_policies_that_were_not_in_force(everything: Given) -> None:
    problem, bundle = everything
    for fields in ({"name": "other"}, {"version": "8"}, {"why": "explicit"}):
        assert broken(problem, replace(bundle, profile=replace(bundle.profile, **fields))) == {"policy"}
    for name in bundle.policies:
        assert broken(problem, replace(bundle, policies={**bundle.policies, name: "other"})) == {"policy"}


# Whatever a bundle holds, the checker reports


ODD: dict[str, Callable[[random.Random], Any]] = {
    "id": lambda dice: dice.choice(["claim", "nobody", ""]),
    "ref": lambda dice: dice.choice(["", "~", "claim"]),
    "section": lambda dice: dice.choice(["task", "nowhere"]),
    "layer": lambda dice: dice.choice([None, "memory", "nowhere"]),
    "band": lambda dice: dice.choice(["excluded", "never"]),
    "form": lambda dice: dice.choice(["anchor", "full", "odd"]),
    "kind": lambda dice: dice.choice(["message", "tool", "odd"]),
    "tokens": lambda dice: dice.choice([-5, 0, 10**9]),
    "stability": lambda dice: dice.choice(["static", "never"]),
    "text": lambda dice: dice.choice(["", "<evidence>"]),
    "value": lambda dice: dice.choice([None, {}, {"role": None}, {"content": 3}]),
}


@pytest.mark.parametrize("seed", range(100))
def test_a_weird_bundle_is_reported_and_never_raises(everything: Given, chat: Given, seed: int) -> None:
    dice = random.Random(seed)
    problem, bundle = dice.choice([everything, chat])
    blocks = dice.sample(bundle.blocks, dice.randint(0, len(bundle.blocks) - 1))
    blocks += dice.choices(bundle.blocks, k=2)
    for _ in range(dice.randint(1, 6)):
        at, name = dice.randrange(len(blocks)), dice.choice(list(ODD))
        blocks[at] = replace(blocks[at], **{name: ODD[name](dice)})
    weird = replace(bundle, blocks=tuple(blocks), chat=dice.choice([True, False]))
    found = check(problem, weird)
    assert found
    for violation in found:
        assert isinstance(violation.message, str)


def test_an_empty_bundle_is_reported(everything: Given) -> None:
    problem, bundle = everything
    empty = replace(bundle, blocks=(), omitted=(), allocation=(), policies={})
    assert {"must_have", "omission", "allocation", "policy", "digest"} <= broken(problem, empty)


# The pass


def test_a_broken_invariant_is_a_bug_and_says_so_without_any_text(everything: Given) -> None:
    problem, bundle = everything
    assert validate(problem, bundle) is bundle
    wrong = changed(everything, "claim", text="<evidence>\nsomething private\n</evidence>\n")
    with pytest.raises(BrokenInvariant, match="bug in Loadmaster") as raised:
        validate(problem, wrong)
    assert raised.value.violations == (Violation("text", "claim", "is not the rendering of its form full"),)
    assert "private" not in str(raised.value)


def test_every_compile_is_checked(everything: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = everything
    seen = []

    def find(*given: object) -> tuple[Violation, ...]:
        seen.append(given)
        return (Violation("x", None, "y"),)

    monkeypatch.setattr("loadmaster.core.passes.validate.check", find)
    with pytest.raises(BrokenInvariant):
        compile_problem(problem)
    assert len(seen) == 1


def test_the_checker_shares_no_code_with_the_passes() -> None:
    private = {"passes", "selection", "failures", "pool", "pricing", "pipeline", "draft"}
    files = sorted((ROOT / "core" / "checker").glob("*.py"))
    assert len(files) > 5
    for path in files:
        lines = [
            line.split()
            for line in path.read_text("utf-8").splitlines()
            if line.startswith(("from", "import"))
        ]
        modules = {line[1].removeprefix("loadmaster.core.").split(".")[0] for line in lines}
        assert not modules & private, path.name
