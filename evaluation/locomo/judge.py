"""The judge: the only one who reads labels. Evidence means the labelled turns, and strictly those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loadmaster.evaluation.locomo.data import turn_ids

Category = Literal["multi_hop", "temporal", "open_domain", "single_hop", "adversarial"]
CATEGORIES: dict[int, Category] = {
    1: "multi_hop",
    2: "temporal",
    3: "open_domain",
    4: "single_hop",
    5: "adversarial",
}
OVERALL = "all_but_adversarial"


@dataclass(frozen=True, slots=True)
class Label:
    """What a question is about: its kind and the turns that answer it."""

    category: Category
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How much of the evidence was in one bundle: 0..1, and whether all of it was."""

    category: Category
    recall: float
    whole: bool


@dataclass(frozen=True, slots=True)
class Score:
    """The mean over questions: share of the evidence, and share of questions with all of it."""

    questions: int
    recall: float
    whole: float


class Judge:
    """Holds the labels of samples, by question id. Questions without a resolvable turn are not judged."""

    def __init__(self, samples: Iterable[Mapping[str, Any]]) -> None:
        self._labels: dict[str, Label] = {}
        for sample in samples:
            spoken = sample["conversation"]
            known = {
                str(turn["dia_id"]) for turns in spoken.values() if isinstance(turns, list) for turn in turns
            }
            for place, entry in enumerate(sample["qa"]):
                evidence = frozenset(turn_ids(entry.get("evidence", []))) & known
                if evidence:
                    label = Label(CATEGORIES[int(entry["category"])], evidence)
                    self._labels[f"{sample['sample_id']}/q{place}"] = label

    def judges(self, question: str) -> bool:
        """Say whether a question has evidence at all."""
        return question in self._labels

    def evidence(self, question: str) -> frozenset[str]:
        """Give the labelled turns: for the oracle, which shows what would be possible."""
        return self._labels[question].evidence

    def verdict(self, question: str, kept: Iterable[str]) -> Verdict:
        """Judge the turns that a bundle holds."""
        label = self._labels[question]
        found = label.evidence.intersection(kept)
        return Verdict(label.category, len(found) / len(label.evidence), found == label.evidence)


def scores(verdicts: Sequence[Verdict]) -> dict[str, Score]:
    """Give the mean by category, and over all but the adversarial questions, as the goals are stated."""
    groups: dict[str, list[Verdict]] = {OVERALL: [v for v in verdicts if v.category != "adversarial"]}
    for category in CATEGORIES.values():
        groups[category] = [verdict for verdict in verdicts if verdict.category == category]
    return {
        name: Score(
            len(some),
            sum(verdict.recall for verdict in some) / len(some),
            sum(verdict.whole for verdict in some) / len(some),
        )
        for name, some in groups.items()
        if some
    }
