from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadmaster import (
    Budget,
    Candidate,
    Compiler,
    EncodingCounter,
    EstimateCounter,
    Form,
    Request,
    defaults,
)
from loadmaster.core.tokens import CountCache, DeclaredCounter, Meter, message_tokens

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


class Letters:
    encoding = "letters"
    source = "exact"
    additive = True

    def __init__(self, margin: str = "0") -> None:
        self.margin = Decimal(margin)

    def count(self, text: str) -> int:
        return len(text)


def counter(encoding: str) -> EncodingCounter:
    tokenizer = defaults.find_encoding(encoding)
    assert tokenizer is not None
    return EncodingCounter(tokenizer)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@settings(deadline=None)  # the first example loads a vocabulary
@given(one=TEXTS, other=TEXTS)
def test_blocks_add_up_exactly(encoding: str, one: str, other: str) -> None:
    count = counter(encoding).count
    one, other = f"<evidence>\n{one}\n</evidence>\n", f"<evidence>\n{other}\n</evidence>\n"
    assert count(one + other) == count(one) + count(other)


def test_special_tokens_are_ordinary_text() -> None:
    assert counter("o200k_base").count("<|endoftext|>") > 1


@given(TEXTS)
def test_the_estimate_is_a_token_for_four_bytes_begun(text: str) -> None:
    value = EstimateCounter().count(text)
    assert 4 * value >= len(text.encode()) > 4 * (value - 1)


def test_the_estimate_is_labelled() -> None:
    assert (EstimateCounter().source, EstimateCounter().encoding) == ("estimated", "estimate")
    assert EstimateCounter().margin > 0


def test_declared_counts_nothing_and_frames_nothing() -> None:
    meter = Meter(DeclaredCounter())
    assert meter.charge_text("a long text") == 0
    assert meter.charge_message({"role": "user", "content": "hi"}) == 0
    assert meter.priming == 0


@pytest.mark.parametrize(
    ("margin", "count", "charge"),
    [
        ("0", 7, 7),
        ("0.2", 5, 6),
        ("0.2", 7, 9),
        ("0.2", 0, 0),
        ("0.0000001", 1, 2),
        ("1", 7, 14),
        ("0.1", 10, 11),
    ],
)
def test_the_margin_is_charged_on_each_count_rounded_up(margin: str, count: int, charge: int) -> None:
    assert Meter(Letters(margin)).charge_text("x" * count) == charge  # type: ignore[arg-type]


def test_a_message_is_counted_as_it_is_sent() -> None:
    letters = Letters()
    frame = message_tokens(letters, {})  # type: ignore[arg-type]
    assert frame == 3
    for message, count in (
        ({"role": "user", "content": "hello"}, 4 + 5),
        ({"role": "user", "content": "hello", "name": "ann"}, 4 + 5 + 3 + 1),
        ({"role": "assistant", "content": None}, 9),
        (
            {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]},
            4 + 8,
        ),
        ({"role": "user", "content": [{"type": "x", "a": 1}]}, 4 + len('{"a":1,"type":"x"}')),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, 9 + len('[{"id":"1"}]')),
    ):
        assert message_tokens(letters, message) == frame + count  # type: ignore[arg-type]


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


def test_the_cache_is_bounded_and_keeps_what_is_used() -> None:
    cache = CountCache(100)
    cache.put(b"kept", -1)
    for number in range(1000):
        cache.put(key(number), number)
        assert cache.get(b"kept") == -1
        assert len(cache.young) + len(cache._old) <= 100
    assert cache.get(key(999)) == 999
    assert cache.get(key(5)) is None


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_a_tiny_cache_forgets_but_never_lies(size: int) -> None:
    cache = CountCache(size)
    for number in range(20):
        cache.put(key(number), number)
        assert cache.get(key(number)) == number
        assert all(cache.get(key(other)) in (None, other) for other in range(20))


def test_compilers_of_other_counts_do_not_share_them() -> None:
    form = Form(form="full", text="some text that is counted " * 30)
    candidate = Candidate(id="a", band="mandatory", forms=(form,))
    compiler = Compiler()
    used: dict[str, int] = {}
    for _ in range(2):
        for tokenizer in ("o200k_base", "estimate", "cl100k_base"):
            request = Request(id="r", tokenizer=tokenizer, budget=Budget(window=1000, output=0))
            tokens = compiler.compile(request, [candidate]).tokens
            assert used.setdefault(tokenizer, tokens.used) == tokens.used
    assert used["estimate"] > used["o200k_base"] > 100


def test_one_compiler_in_many_threads_counts_alike() -> None:
    compiler = Compiler(cache_size=16)
    candidates = [
        Candidate(
            id=f"c{number}", band="mandatory", forms=(Form(form="full", text=f"text {number} " * number),)
        )
        for number in range(60)
    ]
    request = Request(id="r", budget=Budget(window=100_000, output=0))

    def used(_: int) -> int:
        return compiler.compile(request, candidates).tokens.used

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(used, range(40)))) == 1
