"""A query, read: its terms, the authors and dates that it names, and whether it asks when."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from loadmaster.stores.ranking.dates import MONTHS, Named, named_dates
from loadmaster.stores.ranking.vocabulary import WORD, listed, related, stem, words

_ASKS_WHEN = re.compile(
    r"^\W*(?:(?:and|but|so|since|until)\s+)?when\b|\bhow (?:long|recently)\b"
    r"|\b(?:what|which) (?:date|day|weekday|week|weekend|month|season|year|time)\b",
    re.I,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SHORTEST_NICKNAME = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a query says.

    Attributes:
        terms: The stems of its words, in order and each once, without stop words, words that name the
            sort of the answer, and the names of authors.
        authors: The authors whom it names.
        dates: The dates that it names.
        asks_when: It asks for a time.
        topic: The query without the authors' names: who is asked about is a matter of authorship,
            and a name drowns the matter in an embedding.
    """

    terms: tuple[str, ...]
    authors: tuple[str, ...]
    dates: tuple[Named, ...]
    asks_when: bool
    topic: str


def read_query(query: str, authors: Collection[str], today: date | None = None) -> Reading:
    """Read a query put to passages of these authors; today gives words such as "yesterday" their date."""
    spans = _names(query, authors)
    named = _whole(spans)
    taken = sorted({span for author in named for span in spans[author]})
    rest = query
    for start, end in reversed(taken):
        rest = rest[:start] + " " + re.sub(r"^['’]s\b", "", rest[end:])
    kept = [word for word in words(rest) if word not in listed("stop") and word not in listed("scaffold")]
    return Reading(
        terms=tuple(dict.fromkeys(stem(word) for word in kept)),
        authors=tuple(sorted(named)),
        dates=tuple(named_dates(query, today)),
        asks_when=_ASKS_WHEN.search(query) is not None,
        topic=" ".join(rest.split()) or query,
    )


def _names(query: str, authors: Collection[str]) -> dict[str, set[tuple[int, int]]]:
    """Find where a query says a word of an author's name, or a nickname that begins exactly one of them."""
    said = [(match[0], match.span()) for match in WORD.finditer(query)]
    parts = {author: [(word, word.lower()) for word in WORD.findall(author)] for author in sorted(authors)}
    spans: dict[str, set[tuple[int, int]]] = {}
    for word, span in said:
        lower = word.lower()
        common = lower in listed("stop") or lower in MONTHS or stem(lower) in related()
        if len(word) < 2 or (common and word.islower()):
            continue  # "will" and "may" are words before they are names
        full = [author for author, own in parts.items() if any(lower == part for _, part in own)]
        if not full and len(word) >= _SHORTEST_NICKNAME and word[0].isupper() and not common:
            full = [
                a for a, own in parts.items() if any(p.startswith(lower) and w[0].isupper() for w, p in own)
            ]
            full = full if len(full) == 1 else []
        for author in full:
            spans.setdefault(author, set()).add(span)
    return spans


def _whole(spans: dict[str, set[tuple[int, int]]]) -> list[str]:
    """Drop an author of whom only words are said that belong to a longer name said in full."""
    return [one for one, said in spans.items() if not any(said < other for other in spans.values())]


def tells_time(found: Collection[str]) -> bool:
    """Say whether words, in lower case, place something in time."""
    times = listed("time")
    return any(
        word in times
        or (word in MONTHS and word not in ("may", "march"))
        or _YEAR.fullmatch(word) is not None
        for word in found
    )
