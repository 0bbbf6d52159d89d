from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadmaster.evaluation.locomo.baselines import Baselines
from loadmaster.evaluation.locomo.data import conversation_of, samples_in, turn_ids
from loadmaster.evaluation.locomo.judge import OVERALL, Judge, scores

SAMPLES: list[dict[str, Any]] = orjson.loads(
    (Path(__file__).parents[2] / "fixtures" / "locomo" / "sample.json").read_bytes()
)


def test_a_conversation_is_read_without_its_labels() -> None:
    read = conversation_of(SAMPLES[0])
    assert [session.at for session in read.sessions] == [
        datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
        datetime(2023, 6, 3, 10, 5, tzinfo=UTC),
    ]
    assert read.sessions[0].turns[2].text == "Look at my new kayak. [photo: a photo of a red boat on a lake]"
    assert read.sessions[1].facts == (("Ines", "The cat of Ines is named Pixel.", ("D2:1", "D1:2")),)
    assert read.sessions[0].events == (("Ines", "Ines adopts a cat."),)
    assert [question.id for question in read.questions] == [f"made-1/q{n}" for n in range(5)]
    assert "D1:2" not in repr(read.questions) and "single" not in repr(read.questions)


@pytest.mark.parametrize(
    ("label", "ids"),
    [
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D:11:26"], ["D11:26"]),
        (["D30:05"], ["D30:5"]),
        ("D1:2 D1:3", ["D1:2", "D1:3"]),
        (["D"], []),
        ([], []),
    ],
)
def test_labels_are_repaired_as_the_notes_say(label: object, ids: list[str]) -> None:
    assert list(turn_ids(label)) == ids


def test_the_judge_counts_strictly() -> None:
    judge = Judge(SAMPLES)
    assert not judge.judges("made-1/q4"), "no turn that exists"
    half = judge.verdict("made-1/q2", ["D1:2", "D2:1"])
    assert (half.category, half.recall, half.whole) == ("multi_hop", 0.5, False)
    whole = judge.verdict("made-1/q1", ["D2:2"])
    adversarial = judge.verdict("made-1/q3", [])
    scored = scores([half, whole, adversarial])
    assert scored[OVERALL].questions == 2 and scored[OVERALL].recall == 0.75 and scored[OVERALL].whole == 0.5
    assert scored["adversarial"].recall == 0 and "open_domain" not in scored


def test_baselines_keep_what_fits() -> None:
    baselines = Baselines(conversation_of(SAMPLES[0]), lambda text: len(text.split()))
    kept = baselines.kept("What pet did Ines adopt from a shelter?", 14, frozenset({"D1:2"}))
    assert kept["recent"] == ["D2:3"], "then a turn that does not fit, and the tail ends"
    assert kept["bm25"] == kept["bm25+1 stems"] == kept["oracle"] == ["D1:2"]
    everything = baselines.kept("x", 1000, frozenset())
    assert sorted(everything["bm25"]) == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2", "D2:3"]


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no locomo/\*\.json"):
        samples_in(tmp_path)
