"""What stands beside the compiler: newest turns, BM25, BM25 with neighbours, and the oracle.

The cost model is that of notes/datasets.md §3: a turn costs its line and a newline, the line with its
session's date is paid once for each session used, and what does not fit is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from loadmaster.evaluation.locomo.data import Conversation
from loadmaster.stores.extras import extra

with extra("evaluation"):
    from rank_bm25 import BM25Okapi
    from snowballstemmer import stemmer

Counter = Callable[[str], int]

_WORD = re.compile(r"[a-z0-9]+")
_STOP_WORDS = """
a an the and or but if of to in on at by for with from as is are was were be been being do does did
has have had i you he she it we they me him her us them my your his its our their this that these
those what which who whom when where why how so not no yes can could will would should may might
"""
_STOP = frozenset(_STOP_WORDS.split())
_STEMMER = stemmer("english")


class Baselines:
    """The baselines over one conversation."""

    def __init__(self, conversation: Conversation, count: Counter) -> None:
        self._turns = [(turn, session) for session in conversation.sessions for turn in session.turns]
        self._ids = [turn.id for turn, _ in self._turns]
        self._place = {name: place for place, name in enumerate(self._ids)}
        self._session = [session.number for _, session in self._turns]
        self._tokens = [count(f"{turn.speaker}: {turn.text}\n") for turn, _ in self._turns]
        self._lines = {session.number: count(f"{session.at:%d %B %Y}\n") for session in conversation.sessions}
        texts = [f"{turn.speaker}: {turn.text}" for turn, _ in self._turns]
        self._plain = BM25Okapi([_words(text) for text in texts])
        self._stems = BM25Okapi([_stems(text) for text in texts])

    def kept(self, question: str, budget: int, evidence: frozenset[str]) -> dict[str, list[str]]:
        """Give the turns that each baseline keeps within a budget of tokens."""
        plain = self._ranked(self._plain.get_scores(_words(question)))
        stems = self._ranked(self._stems.get_scores(_stems(question)))
        shortest = sorted(
            (self._place[name] for name in evidence), key=lambda place: (self._tokens[place], place)
        )
        return {
            "recent": self._fill(range(len(self._ids) - 1, -1, -1), budget, stop=True),
            "bm25": self._fill(plain, budget),
            "bm25+1": self._fill(self._with_neighbours(plain), budget),
            "bm25+1 stems": self._fill(self._with_neighbours(stems), budget),
            "oracle": self._fill(shortest, budget),
        }

    def _ranked(self, values: Sequence[float]) -> list[int]:
        return sorted(range(len(values)), key=lambda place: (-values[place], place))

    def _with_neighbours(self, order: Iterable[int]) -> Iterable[int]:
        for place in order:
            yield from (near for near in (place, place - 1, place + 1) if 0 <= near < len(self._ids))

    def _fill(self, order: Iterable[int], budget: int, *, stop: bool = False) -> list[str]:
        left, kept, opened = budget, dict[int, None](), set[int]()
        for place in order:
            if place in kept:
                continue
            session = self._session[place]
            cost = self._tokens[place] + (0 if session in opened else self._lines[session])
            if cost <= left:
                left -= cost
                kept[place] = None
                opened.add(session)
            elif stop:
                break
        return [self._ids[place] for place in kept]


def _words(text: str) -> list[str]:
    return text.lower().split()


@cache
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]
