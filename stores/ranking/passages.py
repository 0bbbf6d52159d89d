"""What is ranked, and what ranking says about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of text that a query may be about: a turn, a fact, a chunk of a document.

    Attributes:
        id: Unique in its corpus; the last tie-break.
        text: What is indexed. It should be what is shown and paid for, without the author's name.
        author: Who wrote it. A passage with an author is a message.
        session: The conversation or document that it belongs to; passages of one session that stand
            near each other share their words. Without one a passage stands alone.
        position: Its place in the session, as a candidate's ``order``.
        at: When it was said or written; its calendar date is read in the datetime's own time zone.
        derived_from: Ids of the passages that it was made from. A derived passage (a fact, a
            summary) lends its score to these, and is itself never above the best of them.
    """

    id: str
    text: str
    author: str | None = None
    session: str | None = None
    position: tuple[int | str, ...] = ()
    at: datetime | None = None
    derived_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage's relevance for one query, and the channels that it came from.

    Attributes:
        id: The passage.
        relevance: 0 to 1, at most four decimal places.
        parts: What each channel gave, in millionths of relevance and without those that gave
            nothing; their sum, rounded to four places and never above the cap of a derived passage,
            is the relevance.
    """

    id: str
    relevance: Decimal
    parts: tuple[tuple[str, Decimal], ...] = ()
