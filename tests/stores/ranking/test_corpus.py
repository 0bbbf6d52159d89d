"""What a corpus ranks first, and what its figures mean."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from loadmaster.stores.ranking import Corpus, Passage, Ranked


def turn(identifier: str, text: str, *, author: str = "Ada", session: str = "1", day: int = 1) -> Passage:
    return Passage(
        id=identifier,
        text=text,
        author=author,
        session=session,
        position=(int(session), int(identifier.lstrip("abcdefgt") or 0)),
        at=datetime(2023, int(session), day, tzinfo=UTC),
    )


CHAT = [
    turn("t1", "Hello there, good to see you."),
    turn("t2", "How was the concert?", author="Bo"),
    turn("t3", "Wonderful, the band played for hours."),
    turn("t4", "My sister has a new bicycle.", session="2"),
    turn("t5", "I have a new bicycle too.", author="Bo", session="2"),
    turn("t6", "Yesterday I sold it.", session="2"),
    turn("t7", "The weather is grey.", session="3"),
    turn("t8", "The concert tickets are gone.", author="Bo", session="3"),
]


def ids(found: list[Ranked]) -> list[str]:
    return [one.id for one in found]


def test_words_of_the_query_come_first() -> None:
    assert ids(Corpus(CHAT).rank("sister bicycle"))[0] == "t4"


def test_neighbours_of_a_match_come_before_strangers() -> None:
    found = ids(Corpus(CHAT).rank("wonderful band hours"))
    assert found[0] == "t3"
    assert set(found[1:3]) == {"t1", "t2"}


def test_the_named_author_is_preferred_and_two_names_prefer_nobody() -> None:
    corpus = Corpus(CHAT)
    assert ids(corpus.rank("What does Bo say of the bicycle?"))[0] == "t5"
    assert ids(corpus.rank("What does Ada say of the bicycle?"))[0] == "t4"
    both = corpus.rank("What do Ada and Bo say of the bicycle?")
    assert "author" not in {name for one in both for name, _ in one.parts}


def test_a_named_date_finds_its_session() -> None:
    assert ids(Corpus(CHAT).rank("What happened to the concert in March 2023?"))[0] == "t8"
    assert ids(Corpus(CHAT).rank("How was the concert in January?"))[0] == "t2"


def test_relative_dates_need_the_present() -> None:
    corpus = Corpus(CHAT)
    today = datetime(2023, 4, 2, tzinfo=UTC)
    assert ids(corpus.rank("concert last month", as_of=today))[0] == "t8"
    assert "date" not in dict(corpus.rank("concert last month")[0].parts)


def test_when_asks_for_turns_that_tell_a_time() -> None:
    found = {one.id: dict(one.parts) for one in Corpus(CHAT).rank("When was the bicycle sold?")}
    assert [identifier for identifier, parts in found.items() if "time" in parts] == ["t6"]


def test_related_words_match_and_less_than_the_word_itself() -> None:
    corpus = Corpus(
        [turn("t1", "I like my job.", session="1"), turn("t2", "I like my cycling.", session="2")]
    )
    assert ids(corpus.rank("bicycle"))[0] == "t2"
    exact = Corpus(
        [turn("t1", "I like my bicycle.", session="1"), turn("t2", "I like my cycling.", session="2")]
    )
    assert ids(exact.rank("bicycle"))[0] == "t1"


def test_a_query_that_matches_nothing_gives_nothing() -> None:
    assert {one.relevance for one in Corpus(CHAT).rank("quantum chromodynamics")} == {Decimal(0)}
    assert {one.relevance for one in Corpus(CHAT).rank("")} == {Decimal(0)}


def test_a_query_that_matches_in_part_gives_less_than_one_that_matches_whole() -> None:
    corpus = Corpus(CHAT)
    whole = corpus.rank("sister bicycle")[0].relevance
    part = corpus.rank("sister bicycle quantum chromodynamics lattice")[0].relevance
    assert 0 < part < whole <= 1


def test_what_is_derived_lends_its_score_and_stays_below_its_source() -> None:
    fact = Passage(id="f1", text="Ada rides through the Alps", position=(9,), derived_from=("t4",))
    corpus = Corpus([*CHAT, fact])
    found = corpus.rank("Alps")
    assert ids(found)[0] == "t4"
    by_id = {one.id: one for one in found}
    assert 0 < by_id["f1"].relevance <= by_id["t4"].relevance
    assert dict(by_id["t4"].parts)["derived"] > 0
    corpus.remove(["t4"])
    assert ids(corpus.rank("Alps"))[0] == "f1"
    corpus.add([CHAT[3]])
    assert corpus.rank("Alps") == found


def test_meaning_finds_what_words_do_not() -> None:
    corpus = Corpus(CHAT)
    assert ids(corpus.rank("climate", meaning={"t7": 0.7, "t1": 0.1}))[0] == "t7"
    assert corpus.rank("climate", meaning={"t7": 0.7})[0].relevance > Decimal("0.2")
    assert {one.relevance for one in corpus.rank("climate", meaning={})} == {Decimal(0)}
    assert corpus.rank("climate", meaning={"unknown": 0.7}) == corpus.rank("climate", meaning={})


@pytest.mark.parametrize("cosine", [float("nan"), float("inf"), -7.0])
def test_a_cosine_must_be_one(cosine: float) -> None:
    with pytest.raises(ValueError, match=r"'t7'.*cosine"):
        Corpus(CHAT).rank("climate", meaning={"t7": cosine})


def test_documents_without_authors_dates_and_sessions_rank_too() -> None:
    texts = ["Transfers abroad cost two percent.", "Cards are blocked by phone.", "Interest is paid monthly."]
    corpus = Corpus(Passage(id=f"d{n}", text=text) for n, text in enumerate(texts))
    found = corpus.rank("How do I block a card?")
    assert ids(found) == ["d1", "d0", "d2"]
    assert {name for one in found for name, _ in one.parts} <= {"words", "window", "statement"}


def test_ties_are_ordered_by_position_then_id() -> None:
    same = [Passage(id=i, text="same", position=(p,)) for i, p in (("b", 2), ("c", 1), ("a", 2), ("d", "x"))]
    assert ids(Corpus(same).rank("same")) == ["c", "a", "b", "d"]


def test_an_empty_corpus_and_an_empty_choice_give_nothing() -> None:
    assert Corpus().rank("anything") == []
    assert Corpus(CHAT).rank("bicycle", among=[]) == []
    assert Corpus(CHAT).rank("bicycle", among=["unknown"]) == []
    assert Corpus(CHAT).rank("bicycle", limit=0) == []


def test_a_passage_added_again_is_replaced() -> None:
    corpus = Corpus(CHAT)
    corpus.add([turn("t7", "The bicycle of my sister is red.", session="3")])
    assert len(corpus) == len(CHAT)
    changed = [
        turn("t7", "The bicycle of my sister is red.", session="3") if p.id == "t7" else p for p in CHAT
    ]
    assert corpus.rank("sister bicycle") == Corpus(changed).rank("sister bicycle")


def test_topic_leaves_out_the_authors_names() -> None:
    assert Corpus(CHAT).topic("What did Ada's sister buy from Bo?") == "What did sister buy from ?"
    assert Corpus().topic("What did Ada buy?") == "What did Ada buy?"
