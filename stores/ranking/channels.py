"""The channels: what a query's words, authors, dates and meaning say about each place, by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

import numpy as np

from loadmaster.stores.ranking.postings import Floats, Ints, Postings, rarity, saturated, summed, term_weights
from loadmaster.stores.ranking.reading import Reading
from loadmaster.stores.ranking.shelf import OWN_SHARE, Shelf
from loadmaster.stores.ranking.vocabulary import related
from loadmaster.stores.ranking.weights import Weights

_MOST_CELLS: Final = 4_000_000  # of terms x places at once


def expected(terms: Sequence[str], rarities: Mapping[str, float], unknown: float) -> float:
    """Give the score of a passage of average length that has each of a query's words once."""
    return sum(rarities.get(term, unknown) for term in terms)


def score_words(
    postings: Postings, shelf: Shelf, terms: Sequence[str], weights: Weights
) -> tuple[Floats, float]:
    """Give BM25 of each place by itself, related words included, and what a full match would score."""
    reach = _with_related(terms)
    rarities = {
        term: rarity(postings.holders(term), postings.count) for term in reach if postings.holders(term)
    }
    unknown = rarity(0, postings.count)
    worth = term_weights(terms, related(), weights.related, rarities, unknown)
    ordered = sorted(worth)
    which, places, times = postings.gather(ordered, shelf.flags("alive"))
    length = shelf.column("length")[places].astype(np.float64)
    gain = saturated(times, length, postings.mean_length or 1.0, weights.k1, weights.b)
    gain *= np.array([worth[term] for term in ordered])[which] if ordered else 1.0
    return summed(places, gain, shelf.size), expected(terms, rarities, unknown)


def score_windows(
    postings: Postings, shelf: Shelf, terms: Sequence[str], weights: Weights
) -> tuple[Floats, float]:
    """Give BM25 of each place's surroundings, in which a word counts less the farther away it stands."""
    reach = sorted(term for term in _with_related(terms) if postings.holders(term))
    which, places, times = postings.gather(reach, shelf.flags("alive"))
    steps = shelf.reach(places, len(weights.window))
    size = shelf.size
    # Whole thousandths, so that these sums are exact; term by term, so that the next ones have one order.
    cells = np.concatenate([which * size + places, *(which[step[2]] * size + step[3] for step in steps)])
    counts = np.concatenate(
        [times * OWN_SHARE, *(times[step[2]] * weights.window[step[0] - 1] for step in steps)]
    )
    at, found = _summed(cells, counts, len(reach) * size)
    which, places = np.divmod(at, size) if size else (at, at)
    holders = np.bincount(which, minlength=len(reach))
    rarities = {term: rarity(int(holders[n]), postings.count) for n, term in enumerate(reach)}
    unknown = rarity(0, postings.count)
    worth = term_weights(terms, related(), weights.related, rarities, unknown)
    lengths = shelf.window_lengths()
    of_originals = shelf.flags("alive") & ~shelf.flags("derived")
    mean = int(lengths[of_originals].sum()) / max(1, postings.count) or 1.0
    # a window's length and times are both in thousandths; only times must be words again
    gain = saturated(found / OWN_SHARE, lengths[places].astype(np.float64), mean, weights.k1, weights.b)
    gain *= np.array([worth.get(term, 0.0) for term in reach])[which] if reach else 1.0
    return summed(places, gain, size), expected(terms, rarities, unknown)


def _with_related(terms: Sequence[str]) -> list[str]:
    table = related()
    return list(dict.fromkeys([*terms, *(other for term in terms for other in table.get(term, {}))]))


def _summed(cells: Ints, counts: Floats, size: int) -> tuple[Ints, Floats]:
    """Sum counts by cell, cells in ascending order. Counts are whole, so both ways give the same sums."""
    if size <= _MOST_CELLS:
        sums = summed(cells, counts, size)
        at = np.flatnonzero(sums).astype(np.int64, copy=False)
        return at, sums[at]
    each, back = np.unique(cells, return_inverse=True)
    return each, summed(back, counts, len(each))


def score_authors(shelf: Shelf, reading: Reading, numbers: Mapping[str, int]) -> Floats:
    """Give 1 for what the one author whom the query names wrote; two names say nothing about who answers."""
    if len(reading.authors) != 1:
        return np.zeros(shelf.size)
    return np.where(shelf.column("author") == numbers[reading.authors[0]], 1.0, 0.0)


def score_dates(shelf: Shelf, reading: Reading, weights: Weights) -> Floats:
    """Give how well each place's date fits the best of those that the query names."""
    days = shelf.column("day")
    if not reading.dates:
        return np.zeros(shelf.size)
    each, back = np.unique(days, return_inverse=True)
    fits = [
        max(weights.fit.of(named, date.fromordinal(day)) for named in reading.dates) if day else 0.0
        for day in each.tolist()
    ]
    return np.array(fits, np.float64)[back]


def lend(values: Floats, edges: tuple[Ints, Ints], size: int) -> Floats:
    """Give each place the best value of what was derived from it."""
    lent = np.zeros(size)
    np.maximum.at(lent, edges[1], values[edges[0]])
    return lent
