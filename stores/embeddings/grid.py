"""Unit vectors as whole numbers, so that scores are exact and the same on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

GRID = 32767
"""Steps per unit: a component is its share of 1 times this, rounded, in 16 bits."""

Grid = npt.NDArray[np.int16]
"""One vector ``[dimension]`` or many ``[n, dimension]``, on the grid."""

_ROWS_AT_ONCE = 4096  # bounds the memory of the conversion to float64: 8 MB at 256 components
_MOST_COMPONENTS = 1 << 22  # 2^30 per product leaves 2^23 products; half of that, to stay clear of the edge


def unit_grid(rows: npt.NDArray[np.floating]) -> Grid:
    """Scale each row ``[n, dimension]`` to length 1 and round it to the grid; a row of zeros stays so.

    Every step is correctly rounded, the sum of squares too (`math.fsum`), so that a row gives the same
    bits in any batch and under any vector unit of the processor. The numbers must be finite.
    """
    grid = np.zeros(rows.shape, dtype=np.int16)
    for place, given in enumerate(rows):
        row = given.astype(np.float64)
        largest = float(np.abs(row).max(initial=0.0))
        if largest == 0.0:
            continue
        row = np.ldexp(row, -math.frexp(largest)[1])  # exact, and no square can overflow or vanish
        length = math.sqrt(math.fsum(np.square(row).tolist()))
        grid[place] = np.rint(row / length * GRID)
    return grid


def cosine(query: Grid, rows: Grid) -> npt.NDArray[np.float64]:
    """Give the cosine of a query ``[d]`` with each row ``[n, d]``, in -1..1, rounded to 1e-6.

    The products are whole numbers below 2^30 and so few that no partial sum reaches 2^53, up to which
    float64 holds every whole number: the matrix product is exact in whichever order BLAS adds, and as
    fast as BLAS is. A zero vector has the cosine 0 with everything.

    Raises:
        ValueError: The shapes do not fit, or the vectors are not on the grid (int16).
    """
    if query.dtype != np.int16 or rows.dtype != np.int16:
        raise ValueError(f"vectors are int16, not {query.dtype} and {rows.dtype}; see unit_grid")
    if query.ndim != 1 or rows.ndim != 2 or rows.shape[1] != query.shape[0]:
        raise ValueError(f"a query [d] and rows [n, d] are compared, not {query.shape} and {rows.shape}")
    if query.shape[0] > _MOST_COMPONENTS:
        raise ValueError(f"{query.shape[0]} components are too many for an exact product")
    exact = query.astype(np.float64)
    products = np.empty(rows.shape[0], dtype=np.float64)
    for start in range(0, rows.shape[0], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        np.matmul(rows[part].astype(np.float64), exact, out=products[part])
    scores = np.round(products / (GRID * GRID), 6)
    return np.clip(scores, -1.0, 1.0) + 0.0  # + 0.0: no negative zero
