"""Very many candidates and very long chains: sizes at which anything quadratic would never come to an end.

No time is asserted. Each shape runs at a size that takes a second or two, and at ten times that among
the slow tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from loadmaster import (
    Budget,
    Bundle,
    Candidate,
    CompileFailure,
    Compiler,
    Conflict,
    Form,
    Freshness,
    LayerRule,
    Profile,
    ProfileSet,
    Request,
    Source,
)

FEW, MANY = 2_000, 20_000
LINKS = 10_000
TIGHT, ROOMY = 4_000, 10**9

PROFILES = ProfileSet(
    version="1",
    layers=("rag",),
    default="all",
    profiles={"all": Profile(layers={"rag": LayerRule(ratio=Decimal(1))})},
)

Shape = Callable[[int], Iterator[Candidate]]


def name(number: int) -> str:
    return f"c{number:06}"


def one(number: int, tokens: int = 10, **fields: Any) -> Candidate:
    forms = (Form(form="full", text="", tokens=tokens),)
    return Candidate(**{"id": name(number), "forms": forms, "layer": "rag", "relevance": "0.5", **fields})


def two_forms(number: int, tokens: int, **fields: Any) -> Candidate:
    reference = Form(form="reference", text="", tokens=5, requires=(name(0),))
    return one(number, **fields, forms=(Form(form="full", text="", tokens=tokens), reference))


def compile_shape(shape: Shape, count: int, window: int, **request: Any) -> Bundle | CompileFailure:
    asked = Request(id="r", tokenizer="declared", budget=Budget(window=window, output=0), **request)
    return Compiler(profiles=PROFILES).compile(asked, list(shape(count)))


def used(result: Bundle | CompileFailure) -> int:
    """Check a bundle by its figures and give the tokens used."""
    assert isinstance(result, Bundle)
    assert result.tokens.used == sum(block.tokens for block in result.blocks) <= result.tokens.capacity
    return result.tokens.used


sizes = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
lengths = pytest.mark.parametrize("count", [500, pytest.param(LINKS, marks=pytest.mark.slow)])


@sizes
def test_simple_candidates(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        return (one(number) for number in range(count))

    assert used(compile_shape(shape, count, TIGHT)) == 4_000
    assert used(compile_shape(shape, count, ROOMY)) == 10 * count


@sizes
def test_one_dependency_shared_by_all(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        yield one(0, 100, layer=None)
        yield from (one(number, requires=(name(0),)) for number in range(1, count))

    assert used(compile_shape(shape, count, TIGHT)) == 4_000
    assert used(compile_shape(shape, count, ROOMY)) == 100 + 10 * (count - 1)


@pytest.mark.parametrize("count", [200, pytest.param(LINKS, marks=pytest.mark.slow)])
def test_one_resolver_shared_by_all(count: int) -> None:
    def shape(count: int, band: str = "discretionary") -> Iterator[Candidate]:
        yield one(0, 50, layer=None)
        yield from (two_forms(number, 100, band=band) for number in range(1, count))

    assert used(compile_shape(shape, count, ROOMY)) == 100 * (count - 1)
    musts = compile_shape(lambda count: shape(count, "mandatory"), count, ROOMY)
    assert used(musts) == 100 * (count - 1)
    failure = compile_shape(lambda count: shape(count, "mandatory"), count, count)
    assert isinstance(failure, CompileFailure)
    assert failure.needed_tokens == 50 + 5 * (count - 1)
    assert failure.proof == "exact"


@sizes
def test_all_mandatory_and_over_budget(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        return (one(number, 1 + number % 97, band="mandatory") for number in range(count))

    failure = compile_shape(shape, count, TIGHT)
    assert isinstance(failure, CompileFailure)
    assert failure.code == "insufficient_budget"
    assert failure.needed_tokens == sum(1 + number % 97 for number in range(count))
    blocking = [fact.tokens or 0 for fact in failure.blocking]
    assert sum(blocking) > 4_000 >= sum(blocking) - min(blocking)


@sizes
def test_one_group(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        return (one(number, group="all") for number in range(count))

    def broken(count: int) -> Iterator[Candidate]:
        return (
            one(number, group="all", requires=("none",) if number == 7 else ()) for number in range(count)
        )

    assert used(compile_shape(shape, count, TIGHT)) == 0
    assert used(compile_shape(shape, count, ROOMY)) == 10 * count
    assert used(compile_shape(broken, count, ROOMY)) == 0


@sizes
def test_one_conflict(count: int) -> None:
    unresolved = Conflict(id="all", status="unresolved")

    def shape(count: int) -> Iterator[Candidate]:
        return (one(number, conflict=unresolved) for number in range(count))

    def governing(count: int) -> Iterator[Candidate]:
        rules: dict[str, Any] = {"layer": None, "section": "governing", "authority": "system"}
        return (one(number, conflict=unresolved, band="mandatory", **rules) for number in range(count))

    assert used(compile_shape(shape, count, TIGHT)) == 0
    assert used(compile_shape(shape, count, ROOMY)) == 10 * count
    failure = compile_shape(governing, count, ROOMY)
    assert isinstance(failure, CompileFailure)
    assert failure.code == "unresolved_required_conflict"
    assert len(failure.blocking) == count


@sizes
def test_versions_of_one_source(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        return (one(number, source=Source(id="s", version=f"1.{number}")) for number in range(count))

    result = compile_shape(shape, count, TIGHT)
    assert isinstance(result, Bundle)
    assert [block.id for block in result.blocks] == [name(count - 1)]


@sizes
def test_candidates_that_supersede_each_other(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        for number in range(count):
            others = tuple(name((number + step) % count) for step in range(1, 21))
            yield one(number, freshness=Freshness(state="current", supersedes=others))

    assert used(compile_shape(shape, count, TIGHT)) == 0


@sizes
def test_copies_of_one_record(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        yield one(count, layer=None)
        yield from (one(number, source=Source(id="s"), requires=(name(count),)) for number in range(count))

    assert used(compile_shape(shape, count, TIGHT)) == 20


@sizes
def test_witnesses_of_one_need(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        return (one(number, covers=("n",), source=Source(id=name(number))) for number in range(count))

    assert used(compile_shape(shape, count, ROOMY, needs=("n",))) == 20


def chain(count: int, **fields: Any) -> Iterator[Candidate]:
    for number in range(count):
        yield one(number, requires=(name(number + 1),) if number + 1 < count else (), **fields)


def mandatory_head(count: int) -> Iterator[Candidate]:
    first, *rest = chain(count)
    yield first.model_copy(update={"band": "mandatory"})
    yield from rest


def mandatory_chain(count: int) -> Iterator[Candidate]:
    return chain(count, band="mandatory")


def cycle(count: int, **fields: Any) -> Iterator[Candidate]:
    return (one(number, requires=(name((number + 1) % count),), **fields) for number in range(count))


def mandatory_cycle(count: int) -> Iterator[Candidate]:
    return cycle(count, band="mandatory")


def chain_of_forms(count: int, **fields: Any) -> Iterator[Candidate]:
    for number in range(count):
        needs = (name(number + 1),) if number + 1 < count else ()
        yield one(number, forms=(Form(form="reference", text="", tokens=10, requires=needs),), **fields)


def backwards(count: int) -> Iterator[Candidate]:
    return (one(number, requires=(name(number - 1),) if number else ()) for number in range(count))


@lengths
@pytest.mark.parametrize(
    "shape", [chain, backwards, mandatory_head, mandatory_chain, cycle, mandatory_cycle, chain_of_forms]
)
def test_long_chains_and_cycles_with_room(shape: Shape, count: int) -> None:
    assert used(compile_shape(shape, count, ROOMY)) == 10 * count


@lengths
@pytest.mark.parametrize("shape", [mandatory_head, mandatory_chain, mandatory_cycle])
def test_long_chains_and_cycles_of_must_haves_over_budget(shape: Shape, count: int) -> None:
    failure = compile_shape(shape, count, 10 * count - 1)
    assert isinstance(failure, CompileFailure)
    assert (failure.needed_tokens, failure.excess_tokens) == (10 * count, 1)
    assert failure.smallest_window == 10 * count


@lengths
def test_a_long_chain_enters_from_its_end_as_far_as_there_is_room(count: int) -> None:
    assert used(compile_shape(chain, count, 4_005)) == 4_000
    assert used(compile_shape(cycle, count, 4_005)) == 0


@lengths
def test_a_long_chain_whose_end_is_missing(count: int) -> None:
    def shape(count: int, **fields: Any) -> Iterator[Candidate]:
        return (one(number, requires=(name(number + 1),), **fields) for number in range(count))

    def forms(count: int) -> Iterator[Candidate]:
        for number in range(count):
            reference = Form(form="reference", text="", tokens=1, requires=(name(number + 1),))
            yield one(number, band="mandatory", forms=(reference,))

    def head(count: int) -> Iterator[Candidate]:
        first, *rest = shape(count)
        yield first.model_copy(update={"band": "mandatory"})
        yield from rest

    assert used(compile_shape(shape, count, ROOMY)) == 0
    for musts in (lambda count: shape(count, band="mandatory"), forms):
        failure = compile_shape(musts, count, ROOMY)
        assert isinstance(failure, CompileFailure)
        assert failure.code == "unsatisfied_dependency"
        assert len(failure.blocking) == count
        assert {fact.id: fact.via[-1] for fact in failure.blocking}[name(count - 1)] == name(count)
    failure = compile_shape(head, count, ROOMY)
    assert isinstance(failure, CompileFailure)
    (fact,) = failure.blocking
    assert fact.via == tuple(name(number) for number in range(count + 1))


@pytest.mark.parametrize("count", [200, pytest.param(LINKS, marks=pytest.mark.slow)])
def test_a_long_chain_of_forms_that_could_be_cheaper(count: int) -> None:
    def shape(count: int, band: str = "discretionary") -> Iterator[Candidate]:
        for number in range(count):
            full = Form(form="full", text="", tokens=10)
            reference = Form(form="reference", text="", tokens=2, requires=(name(number + 1),))
            yield one(number, band=band, forms=(full, reference) if number + 1 < count else (full,))

    assert used(compile_shape(lambda count: shape(count, "mandatory"), count, ROOMY)) == 10 * count
    result = compile_shape(shape, count, ROOMY)
    left_out = {item.rule for item in result.unwrap().omitted}
    assert left_out <= {"search_limit"}  # work is limited by a count, and that is said
    assert used(result) == 10 * (count - len(result.unwrap().omitted))


@sizes
def test_a_candidate_that_requires_all_others(count: int) -> None:
    def shape(count: int) -> Iterator[Candidate]:
        yield one(0, requires=tuple(name(number) for number in range(1, count)))
        yield from (one(number, layer=None) for number in range(1, count))

    assert used(compile_shape(shape, count, ROOMY)) == 10 * count
    assert used(compile_shape(shape, count, TIGHT)) == 0
