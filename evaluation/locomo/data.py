"""LoCoMo's conversations and questions as its files hold them; labels are for `judge` alone.

Source and schema: snap-research/LoCoMo, CC BY-NC 4.0 (Maharana et al.); never shipped with this project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

_SESSION = re.compile(r"session_(\d+)")
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of a conversation; a photo's caption is part of the line, as the chat would show it."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """Turns spoken in one go, and what a model once wrote about them."""

    number: int
    at: datetime
    turns: tuple[Turn, ...]
    facts: tuple[tuple[str, str, tuple[str, ...]], ...]  # about whom, what, from which turns
    summary: str
    events: tuple[tuple[str, str], ...]  # about whom, what


@dataclass(frozen=True, slots=True)
class Question:
    """A question as a user would ask it: no category, no answer, no evidence."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One tenant: a conversation of many months, and the questions about it."""

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def end(self) -> datetime:
        """The time of the last session, which questions come after."""
        return max(session.at for session in self.sessions)


def samples_in(folder: Path) -> list[dict[str, Any]]:
    """Give the samples of every ``locomo/*.json`` in a data folder, by file and place.

    Raises:
        FileNotFoundError: The folder has no such file.
    """
    files = sorted((folder / "locomo").glob("*.json"))
    if not files:
        raise FileNotFoundError(f"no locomo/*.json in {folder}")
    return [sample for file in files for sample in orjson.loads(file.read_bytes())]


def conversation_of(sample: Mapping[str, Any]) -> Conversation:
    """Read a sample without its labels."""
    spoken = sample["conversation"]
    numbers = sorted(int(match[1]) for key in spoken if (match := _SESSION.fullmatch(key)))
    name = str(sample["sample_id"])
    questions = tuple(
        Question(f"{name}/q{place}", str(entry["question"])) for place, entry in enumerate(sample["qa"])
    )
    return Conversation(name, tuple(_session_of(sample, number) for number in numbers), questions)


def turn_ids(given: object) -> Iterator[str]:
    """Give the turn ids that a label names, with the repairs of notes/datasets.md §3."""
    for part in given if isinstance(given, list) else [given]:
        for word in re.split(r"[;\s]+", str(part)):
            match = re.fullmatch(r"D:?(\d+):0*(\d+)", word)
            if match:
                yield f"D{match[1]}:{match[2]}"


def _session_of(sample: Mapping[str, Any], number: int) -> Session:
    key = f"session_{number}"
    turns = tuple(
        Turn(str(turn["dia_id"]), str(turn["speaker"]), _line(turn)) for turn in sample["conversation"][key]
    )
    facts = tuple(
        (str(speaker), str(fact), tuple(turn_ids(source)))
        for speaker, told in sample.get("observation", {}).get(f"{key}_observation", {}).items()
        for fact, source in told
    )
    told_events = sample.get("event_summary", {}).get(f"events_{key}", {})
    events = tuple(
        (str(speaker), str(event))
        for speaker, some in told_events.items()
        if speaker != "date"
        for event in some
    )
    return Session(
        number=number,
        at=datetime.strptime(sample["conversation"][f"{key}_date_time"], _DATE).replace(tzinfo=UTC),
        turns=turns,
        facts=facts,
        summary=str(sample.get("session_summary", {}).get(f"{key}_summary", "")),
        events=events,
    )


def _line(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [photo: {caption}]" if caption else str(turn["text"])
