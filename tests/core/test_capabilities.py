"""The capability table: which row a model's name leads to, and what the rows promise."""

from __future__ import annotations

from decimal import Decimal
from fnmatch import fnmatchcase

import pytest

from loadmaster.compiler import Compiler
from loadmaster.core.capabilities import ModelTable
from loadmaster.core.contract import Budget, Request
from loadmaster.defaults import packaged_models, packaged_profiles, read_toml

EXACT, ASSUMED, ESTIMATE = Decimal(0), Decimal("0.05"), Decimal("0.2")

FAMILIES = [
    # model, pattern of its row, window, margin
    ("gpt-4o", "*gpt-4o*", 128_000, EXACT),
    ("gpt-4o-mini", "*gpt-4o*", 128_000, EXACT),
    ("gpt-4o-2024-11-20", "*gpt-4o*", 128_000, EXACT),
    ("ft:gpt-4o-mini-2024-07-18:acme::a1b2", "*gpt-4o*", 128_000, EXACT),
    ("gpt-4.1", "*gpt-4.1*", 1_047_576, EXACT),
    ("gpt-4.1-nano-2025-04-14", "*gpt-4.1*", 1_047_576, EXACT),
    ("o1", "o1*", 200_000, EXACT),
    ("o1-mini", "o1-mini*", 128_000, EXACT),
    ("o1-pro-2025-03-19", "o1*", 200_000, EXACT),
    ("o3", "o3*", 200_000, EXACT),
    ("o3-mini-2025-01-31", "o3*", 200_000, EXACT),
    ("o4-mini", "o4-mini*", 200_000, EXACT),
    ("gpt-5", "*gpt-5*", 272_000, EXACT),
    ("gpt-5-2025-08-07", "*gpt-5*", 272_000, EXACT),
    ("gpt-5-mini", "*gpt-5*", 272_000, EXACT),
    ("gpt-5-chat-latest", "*gpt-5*-chat*", 111_616, EXACT),
    ("gpt-5.1", "*gpt-5*", 272_000, EXACT),
    ("gpt-5.1-codex-max", "*gpt-5*", 272_000, EXACT),
    ("gpt-5.2-2025-12-11", "*gpt-5*", 272_000, EXACT),
    ("gpt-5.3-codex", "*gpt-5*", 272_000, EXACT),
    ("gpt-5.3-codex-spark", "*gpt-5.3-codex-spark*", 128_000, EXACT),
    ("gpt-5.4", "*gpt-5.[45]*", 922_000, EXACT),
    ("gpt-5.4-mini-2026-03-17", "*gpt-5.[45]-mini*", 272_000, EXACT),
    ("gpt-5.4-nano", "*gpt-5.[45]-nano*", 272_000, EXACT),
    ("gpt-5.5", "*gpt-5.[45]*", 922_000, EXACT),
    ("gpt-5.5-pro-2026-04-23", "*gpt-5.[45]*", 922_000, EXACT),
    ("gpt-5.6", "*gpt-5.6*", 922_000, EXACT),
    ("gpt-5.6-sol-2026-07-09", "*gpt-5.6*", 922_000, EXACT),
    ("gpt-5.6-cyber", "*gpt-5.6-cyber*", 272_000, EXACT),
    ("gpt-6-astra", "*gpt-6*", 922_000, ASSUMED),
    ("gpt-6-sol-2026-09-22", "*gpt-6*", 922_000, ASSUMED),
    ("gpt-6.1-terra", "*gpt-6*", 922_000, ASSUMED),
    ("gpt-6.2", "*gpt-6*", 922_000, ASSUMED),
    ("claude-opus-4-5", "*claude-opus-4[.-]5*", 200_000, ESTIMATE),
    ("claude-opus-4-5-20251101", "*claude-opus-4[.-]5*", 200_000, ESTIMATE),
    ("claude-opus-4.5", "*claude-opus-4[.-]5*", 200_000, ESTIMATE),
    ("claude-opus-4-20250514", "*claude-opus-4*", 200_000, ESTIMATE),
    ("claude-opus-4-6-20260205", "*claude-opus-4[.-]6*", 1_000_000, ESTIMATE),
    ("claude-opus-4-7", "*claude-opus-4[.-]7*", 1_000_000, ESTIMATE),
    ("claude-opus-4-8", "*claude-opus-4[.-]8*", 1_000_000, ESTIMATE),
    ("claude-opus-5", "*claude-opus-5*", 1_000_000, ESTIMATE),
    ("claude-opus-5-5", "*claude-opus-5[.-]5*", 1_000_000, ESTIMATE),
    ("claude-sonnet-4-5-20250929", "*claude-sonnet-4[.-]5*", 200_000, ESTIMATE),
    ("claude-sonnet-4-6", "*claude-sonnet-4[.-]6*", 1_000_000, ESTIMATE),
    ("claude-sonnet-5", "*claude-sonnet-5*", 1_000_000, ESTIMATE),
    ("claude-sonnet-5-5", "*claude-sonnet-5[.-]5*", 1_000_000, ESTIMATE),
    ("claude-haiku-4-5-20251001", "*claude-haiku-4[.-]5*", 200_000, ESTIMATE),
    ("claude-haiku-5-5", "*claude-haiku-5*", 1_000_000, ESTIMATE),
    ("claude-fable-5-1", "*claude-fable-5*", 1_000_000, ESTIMATE),
    ("claude-mythos-5-1", "*claude-mythos-5*", 1_000_000, ESTIMATE),
    ("claude-mythos-preview", "*claude-mythos-preview*", 1_000_000, ESTIMATE),
    ("gemini-2.5-flash", "*gemini-2.5*", 1_048_576, ESTIMATE),
    ("gemini-2.5-pro", "*gemini-2.5*", 1_048_576, ESTIMATE),
    ("gemini-2.5-computer-use-preview-10-2025", "*gemini-2.5-computer-use*", 128_000, ESTIMATE),
    ("gemini-3-flash-preview", "*gemini-3*", 1_048_576, ESTIMATE),
    ("gemini-3.1-pro-preview", "*gemini-3*", 1_048_576, ESTIMATE),
    ("gemini-3.8-flash", "*gemini-3*", 1_048_576, ESTIMATE),
    ("gemini-4-argon", "*gemini-4*", 1_048_576, ESTIMATE),
    ("gemini-flash-latest", "gemini-flash-latest", 1_048_576, ESTIMATE),
]

PREFIXED = [
    ("openai:gpt-4o", "gpt-4o"),
    ("openai/gpt-5.6-sol", "gpt-5.6-sol"),
    ("openai:o3", "o3"),
    ("azure/eu/gpt-5.6-sol", "gpt-5.6-sol"),
    ("us.openai.gpt-6-sol", "gpt-6-sol"),
    ("anthropic/claude-opus-4-5-20251101", "claude-opus-4-5"),
    ("anthropic:claude-sonnet-5-5", "claude-sonnet-5-5"),
    ("openrouter:anthropic/claude-opus-4.6", "claude-opus-4-6"),
    ("bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
    ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ("google_genai:gemini-2.5-pro", "gemini-2.5-pro"),
    ("models/gemini-3.5-flash", "gemini-3.5-flash"),
]


@pytest.mark.parametrize(("model", "pattern", "window", "margin"), FAMILIES)
def test_each_family_has_its_row(model: str, pattern: str, window: int, margin: Decimal) -> None:
    row = packaged_models().find(model)
    assert (row.pattern, row.window, row.tokenizer, row.margin) == (pattern, window, "o200k_base", margin)


@pytest.mark.parametrize(("prefixed", "model"), PREFIXED)
def test_a_provider_prefix_changes_nothing(prefixed: str, model: str) -> None:
    table = packaged_models()
    assert table.find(prefixed) is table.find(model)


@pytest.mark.parametrize(
    "model", ["", "gpt-3.5-turbo", "gpt-oss-120b", "mistral-large", "claude", "ollama:phi:o200"]
)
def test_an_unknown_model_gets_the_most_conservative_row(model: str) -> None:
    table = packaged_models()
    assert table.find(model) is table.unknown
    assert table.unknown.window == packaged_profiles().smallest_window
    assert table.unknown.window == min(row.window for row in (*table.models, table.unknown))
    assert table.unknown.margin == max(row.margin for row in (*table.models, table.unknown))


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o-transcribe",
        "gpt-4o-realtime-preview-2024-12-17",
        "gemini-2.5-flash-preview-tts",
        "gemini-3.8-live",
    ],
)
def test_what_is_no_chat_model_gets_no_more_than_an_unknown_one(model: str) -> None:
    table = packaged_models()
    assert table.find(model).window == table.unknown.window
    assert table.find(model).margin == table.unknown.margin


@pytest.mark.parametrize(
    "model", ["github_copilot/gpt-4o", "github_copilot:claude-opus-5", "chatgpt/gpt-5.2"]
)
def test_a_platform_with_smaller_windows_comes_before_the_family(model: str) -> None:
    table = packaged_models()
    assert table.find(model).window < table.find(model.replace(":", "/").rpartition("/")[2]).window


def test_every_row_is_whole_and_can_be_reached() -> None:
    rows = packaged_models().models
    assert len({row.pattern for row in rows}) == len(rows)
    for place, row in enumerate(rows):
        assert row.window > 0
        assert row.margin >= 0
        assert row.source
        assert row.as_of.startswith("2026-")
        example = row.pattern.replace("[.-]", "-").replace("[45]", "5").replace("[:/]", "/").replace("*", "")
        assert fnmatchcase(example, row.pattern)
        earlier = [other.pattern for other in rows[:place] if fnmatchcase(example, other.pattern)]
        assert not earlier, f"{row.pattern} is hidden by {earlier}"


def test_the_first_match_decides() -> None:
    general = {
        "pattern": "m*",
        "window": 10,
        "tokenizer": "o200k_base",
        "as_of": "2026-11-30",
        "source": "test",
    }
    special = {**general, "pattern": "m-small*", "window": 5}
    one = ModelTable.model_validate({"version": "t", "models": [special, general], "unknown": general})
    other = ModelTable.model_validate({"version": "t", "models": [general, special], "unknown": general})
    assert one.find("x:m-small-2").window == 5
    assert other.find("x:m-small-2").window == 10


def test_margins_are_exact_decimals() -> None:
    row = '{ pattern = "*", window = 1, tokenizer = "estimate", margin = 0.1, as_of = "x", source = "test" }'
    table = ModelTable.model_validate(read_toml(f'version = "t"\nmodels = []\nunknown = {row}'))
    assert table.unknown.margin == Decimal("0.1")


@pytest.mark.parametrize(
    ("model", "asked", "window"),
    [
        ("claude-opus-4-5", None, 200_000),
        ("claude-opus-4-5", 50_000, 50_000),
        ("claude-opus-4-5", 500_000, 200_000),
        ("nobody-knows", None, 8_192),
        ("nobody-knows", 500_000, 500_000),  # the caller knows more than the table
    ],
)
def test_a_request_takes_its_window_from_the_model(model: str, asked: int | None, window: int) -> None:
    request = Request(id="r", model=model, budget=Budget(window=asked))
    assert Compiler().problem(request, []).limits.window == window
