from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadmaster.stores.embeddings import GRID, cosine, unit_grid

FINITE = st.floats(allow_nan=False, allow_infinity=False)
STEP = st.integers(-GRID, GRID)
ROWS = st.integers(1, 12).flatmap(
    lambda size: st.lists(st.lists(FINITE, min_size=size, max_size=size), min_size=1, max_size=6)
)


@given(ROWS)
def test_a_row_is_a_unit_vector_whatever_its_size(rows: list[list[float]]) -> None:
    grid = unit_grid(np.array(rows))
    assert grid.dtype == np.int16
    for given_row, row in zip(rows, grid.tolist(), strict=True):
        length = math.sqrt(sum(step * step for step in row))
        assert length == 0 if not any(given_row) else abs(length - GRID) <= math.sqrt(len(row)) / 2 + 1e-6
        assert all(step * value >= 0 for step, value in zip(row, given_row, strict=True))


@given(ROWS)
def test_a_row_is_the_same_alone_and_among_others(rows: list[list[float]]) -> None:
    together = unit_grid(np.array(rows))
    assert np.array_equal(together, np.concatenate([unit_grid(np.array([row])) for row in rows]))


@given(st.lists(st.tuples(STEP, STEP, STEP), min_size=1, max_size=5), st.tuples(STEP, STEP, STEP))
def test_cosine_is_the_exact_product_rounded(
    rows: list[tuple[int, int, int]], query: tuple[int, int, int]
) -> None:
    scores = cosine(np.array(query, dtype=np.int16), np.array(rows, dtype=np.int16))
    for row, score in zip(rows, scores.tolist(), strict=True):
        exact = Fraction(sum(a * b for a, b in zip(query, row, strict=True)), GRID * GRID)
        bounded = max(Fraction(-1), min(Fraction(1), exact))
        assert abs(Fraction(score) - bounded) <= Fraction(1, 2 * 10**6) + Fraction(1, 10**12)


def test_no_order_of_components_or_rows_changes_a_bit() -> None:
    random = np.random.default_rng(7)
    rows = unit_grid(random.normal(size=(9000, 384)))  # more rows than are converted at once
    query = rows[4711]
    scores = cosine(query, rows)
    components, places = random.permutation(384), random.permutation(9000)
    assert np.array_equal(scores, cosine(query[components], rows[:, components]))
    assert np.array_equal(scores[places], cosine(query, rows[places]))
    assert np.array_equal(scores, np.concatenate([cosine(query, rows[at : at + 1]) for at in range(9000)]))
    assert scores.argmax() == 4711 and scores[4711] == pytest.approx(1, abs=1e-4)


def test_zeros_are_like_nothing() -> None:
    zero = np.zeros((1, 4), dtype=np.int16)
    assert cosine(zero[0], unit_grid(np.ones((2, 4)))).tolist() == [0.0, 0.0]
    assert cosine(unit_grid(np.ones((1, 4)))[0], np.zeros((0, 4), dtype=np.int16)).shape == (0,)


def test_vectors_off_the_grid_or_of_another_dimension_are_refused() -> None:
    rows = unit_grid(np.ones((2, 4)))
    with pytest.raises(ValueError, match="float64"):
        cosine(rows[0].astype(np.float64), rows)
    with pytest.raises(ValueError, match=r"\(3,\) and \(2, 4\)"):
        cosine(rows[0][:3], rows)
