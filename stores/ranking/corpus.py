"""A corpus ranks its passages for a query: scaled channels, summed, and calibrated to 0..1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

import numpy as np

from loadmaster.stores.ranking import channels as score
from loadmaster.stores.ranking.passages import Passage, Ranked
from loadmaster.stores.ranking.postings import Bools, Floats, Ints, Postings
from loadmaster.stores.ranking.reading import Reading, read_query, tells_time
from loadmaster.stores.ranking.shelf import Shelf
from loadmaster.stores.ranking.vocabulary import terms, words
from loadmaster.stores.ranking.weights import Weights, packaged_weights

PARTS: Final = 1_000_000
"""Parts are whole millionths of relevance, so that their sum has no order."""
_STEP: Final = PARTS // 10_000
_SPARE: Final = 64


class Corpus:
    """The passages of one tenant's memory, or of one index of documents. Not safe for concurrent use.

    What `rank` gives depends on which passages are in the corpus, never on how they came to be: in
    which order they were added, and what was added and removed in between. Adding a passage whose id
    is there replaces it.
    """

    def __init__(self, passages: Iterable[Passage] = (), weights: Weights | None = None) -> None:
        self.weights = weights or packaged_weights()
        self._begin()
        self.add(passages)

    def _begin(self) -> None:
        self._shelf = Shelf(self.weights.window)
        self._originals, self._derived = Postings(), Postings()
        self._places: dict[str, int] = {}
        self._authors: dict[str, int] = {}
        self._written: Counter[str] = Counter()
        self._lenders: dict[str, list[int]] = {}
        self._edges: tuple[list[int], list[int]] = ([], [])
        self._edge_arrays: tuple[Ints, Ints] | None = None

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._places

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages, or replace those that have the same id."""
        for passage in passages:
            known = self._places.get(passage.id)
            if known is not None:
                if self._shelf.passages[known] == passage:
                    continue
                self.remove([passage.id])
            self._put(passage)

    def _put(self, passage: Passage) -> None:
        own, said = terms(passage.text), words(passage.text)
        derived = bool(passage.derived_from)
        author = -1
        if passage.author is not None:
            author = self._authors.setdefault(passage.author, len(self._authors))
            self._written[passage.author] += 1
        place = self._shelf.put(
            passage,
            derived=derived,
            message=passage.author is not None and passage.session is not None and not derived,
            asks=passage.text.rstrip().endswith("?"),
            timed=tells_time(said),
            length=len(own),
            day=passage.at.toordinal() if passage.at is not None else 0,
            author=author,
        )
        self._places[passage.id] = place
        (self._derived if derived else self._originals).add(place, own)
        for source in dict.fromkeys(passage.derived_from):
            self._lenders.setdefault(source, []).append(place)
            if source in self._places and not self._is_derived(self._places[source]):
                self._join(place, self._places[source])
        if not derived:
            for lender in self._lenders.get(passage.id, ()):
                self._join(lender, place)

    def _is_derived(self, place: int) -> bool:
        return bool(self._shelf.passages[place].derived_from)

    def _join(self, lender: int, source: int) -> None:
        self._edges[0].append(lender)
        self._edges[1].append(source)
        self._edge_arrays = None

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; ids that are not there are passed over."""
        for identifier in ids:
            place = self._places.pop(identifier, None)
            if place is None:
                continue
            passage = self._shelf.passages[place]
            self._shelf.take(place)
            (self._derived if passage.derived_from else self._originals).remove(terms(passage.text))
            if passage.author is not None:
                self._written[passage.author] -= 1
        if self._shelf.size > 2 * len(self._places) + _SPARE:
            rest = [self._shelf.passages[place] for place in sorted(self._places.values())]
            self._begin()
            self.add(rest)

    def topic(self, query: str) -> str:
        """Give what to embed for a query: the query without the names of this corpus's authors.

        Who is asked about is matched as authorship; in an embedding a name drowns the matter.
        """
        return self._read(query, None).topic

    def _read(self, query: str, as_of: datetime | None) -> Reading:
        authors = [author for author in self._authors if self._written[author] > 0]
        return read_query(query, authors, as_of.date() if as_of is not None else None)

    def rank(
        self,
        query: str,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
        meaning: Mapping[str, float] | None = None,
        as_of: datetime | None = None,
    ) -> list[Ranked]:
        """Rank passages for a query, the most relevant first, ties by position, then id.

        Each channel is scaled to 0..1 by its best passage and weighted; the sum is divided by the
        weights of the channels that the query speaks to, and multiplied by the query's confidence, which
        is the same for all passages. The order is that of the sum.

        The confidence says how much of the query the corpus can match at all: the best score of the
        words, as a share of that of a passage of average length having each word of the query once (a
        word that no passage has counts as the rarest), or the best cosine, whichever is more. A date or
        an author that alone is matched gives a little. So a query that matches nothing gives 0
        everywhere, and one of whose words few are found gives little even to the best.

        Args:
            limit: At most so many.
            among: Only these ids are returned. What they are worth is still measured on the whole corpus.
            meaning: Cosines of an embedder for the passages' ids; a missing or negative one counts as 0.
                Given, even if empty, the weights "with meaning" are used.
            as_of: The time at which the query is asked, for words such as "yesterday".

        Raises:
            ValueError: A cosine is no finite number.
        """
        chosen = self._chosen(among)
        if not len(chosen) or (limit is not None and limit < 1):
            return []
        parts = self._parts(self._read(query, as_of), meaning)
        total = sum(parts.values(), np.zeros(self._shelf.size, np.int64))
        total = self._capped((total + _STEP // 2) // _STEP)
        places = self._best(chosen, total, limit)
        named = [(name, values[places].tolist()) for name, values in parts.items() if values.any()]
        return [
            Ranked(
                self._shelf.passages[place].id,
                _decimal(worth * _STEP, 4),
                tuple((name, _decimal(values[n], 6)) for name, values in named if values[n]),
            )
            for n, (place, worth) in enumerate(zip(places.tolist(), total[places].tolist(), strict=True))
        ]

    def _chosen(self, among: Collection[str] | None) -> Ints:
        if among is None:
            return np.flatnonzero(self._shelf.flags("alive"))
        return np.array(sorted(self._places[one] for one in set(among) if one in self._places), np.int64)

    def _parts(self, reading: Reading, meaning: Mapping[str, float] | None) -> dict[str, Ints]:
        """Give each channel's contribution to each place, in millionths of relevance."""
        shelf, weights = self._shelf, self.weights
        alive, derived = shelf.flags("alive"), shelf.flags("derived")
        original = alive & ~derived
        worth = weights.without_meaning if meaning is None else weights.with_meaning
        own, own_full = score.score_words(self._originals, shelf, reading.terms, weights)
        near, near_full = score.score_windows(self._originals, shelf, reading.terms, weights)
        facts, facts_full = score.score_words(self._derived, shelf, reading.terms, weights)
        best = [_share(own, own_full), _share(near, near_full), _share(facts, facts_full)]
        own = (
            own
            + weights.before * shelf.neighbour("before", own)
            + weights.after * shelf.neighbour("after", own)
        )
        facts = _scaled(facts, alive)
        edges = self._bridge()
        by_author = np.where(alive, score.score_authors(shelf, reading, self._authors), 0.0)
        by_date = np.where(alive, score.score_dates(shelf, reading, weights), 0.0)
        message = original & shelf.flags("message")
        channels = {
            "words": (worth.words, _scaled(own, original) + facts, True),
            "window": (worth.window, _scaled(near, original) + facts, True),
            "author": (worth.author, by_author, len(reading.authors) == 1),
            "date": (worth.date, by_date, bool(reading.dates)),
            "time": (worth.time, (alive & shelf.flags("timed")) * 1.0, reading.asks_when),
            "statement": (worth.statement, (alive & ~(shelf.flags("asks") & message)) * 1.0, True),
            "opening": (worth.opening, (message & (shelf.column("before") < 0)) * 1.0, bool(message.any())),
            "derived": (
                worth.derived,
                _scaled(score.lend(facts, edges, shelf.size), original),
                bool(len(edges[0])),
            ),
        }
        if meaning is not None:
            cosines = self._cosines(meaning)
            best.append(float(cosines.max(initial=0)) / PARTS)
            around = shelf.shared(np.where(original, cosines, 0), weights.meaning_window).astype(np.float64)
            close = cosines.astype(np.float64)
            of_facts = _scaled(close, alive & derived)
            lent = _scaled(score.lend(of_facts, edges, shelf.size), original)
            channels |= {
                "meaning": (worth.meaning, _scaled(close, original) + of_facts, True),
                "surroundings": (worth.surroundings, _scaled(around, original) + of_facts, True),
                "derived_meaning": (worth.derived_meaning, lent, bool(len(edges[0]))),
            }
        best += [weights.author_alone * by_author.max(initial=0), weights.date_alone * by_date.max(initial=0)]
        applies = sum(weight for weight, _, speaks in channels.values() if speaks)
        confidence = round(min(1.0, max(best)) * PARTS) / PARTS
        unit = PARTS * confidence / applies if applies else 0.0
        return {
            name: np.floor(weight * unit * values).astype(np.int64)
            for name, (weight, values, speaks) in channels.items()
            if speaks
        }

    def _bridge(self) -> tuple[Ints, Ints]:
        """Give the links from living derived passages to the living passages that they were made from."""
        if self._edge_arrays is None:
            self._edge_arrays = np.array(self._edges[0], np.int64), np.array(self._edges[1], np.int64)
        lender, source = self._edge_arrays
        alive = self._shelf.flags("alive")
        keep = alive[lender] & alive[source]
        return lender[keep], source[keep]

    def _cosines(self, meaning: Mapping[str, float]) -> Ints:
        cosines = np.zeros(self._shelf.size, np.int64)
        for identifier, cosine in meaning.items():
            place = self._places.get(identifier)
            if place is not None:
                if not -2 < cosine < 2:
                    raise ValueError(
                        f"meaning of {identifier!r} is {cosine!r}; a cosine lies between -1 and 1"
                    )
                cosines[place] = max(0, min(PARTS, round(cosine * PARTS)))
        return cosines

    def _capped(self, total: Ints) -> Ints:
        """Keep a derived passage at or below the best of those that it was made from, where they are here."""
        lender, source = self._bridge()
        if not len(lender):
            return total
        most = np.full(len(total), -1)
        np.maximum.at(most, lender, total[source])
        return np.where(most >= 0, np.minimum(total, most), total)

    def _best(self, chosen: Ints, total: Ints, limit: int | None) -> Ints:
        if limit is not None and limit < len(chosen):
            worth = total[chosen]
            least = np.partition(worth, len(worth) - limit)[len(worth) - limit]
            chosen = chosen[worth >= least]  # all that tie with the last one; the sort below decides
        worth, keys = total.tolist(), self._shelf.keys
        ordered = sorted(chosen.tolist(), key=lambda place: (-worth[place], keys[place]))
        return np.array(ordered[:limit], np.int64)


def _share(values: Floats, full: float) -> float:
    return float(values.max(initial=0.0)) / full if full else 0.0


def _scaled(values: Floats, where: Bools) -> Floats:
    kept = np.where(where, values, 0.0)
    best = kept.max(initial=0.0)
    return kept / best if best > 0 else kept


@lru_cache(maxsize=1 << 16)
def _decimal(millionths: int, places: int) -> Decimal:
    return Decimal(millionths).scaleb(-6).quantize(Decimal(1).scaleb(-places)).normalize() + 0
