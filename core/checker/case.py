"""What the checker's rules are asked about: the inputs' facts beside the blocks of a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from loadmaster.core.checker.facts import Facts
from loadmaster.core.checker.gates import data_of, section_of
from loadmaster.core.contract import Candidate, Form
from loadmaster.core.problem import Problem
from loadmaster.core.result import Block, Bundle

Account = tuple[str, str]
"""Who pays: standing content, the task, or a layer."""

STANDING: Account = ("standing", "")
TASK: Account = ("task", "")


class Violation(NamedTuple):
    """A broken invariant: the rule, the candidate if it is about one, and what is wrong, without its text."""

    rule: str
    item: str | None
    message: str


@dataclass(frozen=True)
class Case:
    """One bundle under examination; ``blocks`` has the first of each known candidate, in bundle order."""

    problem: Problem
    facts: Facts
    bundle: Bundle
    blocks: Mapping[str, Block]

    @classmethod
    def of(cls, problem: Problem, facts: Facts, bundle: Bundle) -> Case:
        """Put a bundle beside the facts."""
        blocks: dict[str, Block] = {}
        for block in bundle.blocks:
            if block.id in facts.known.candidates:
                blocks.setdefault(block.id, block)
        return cls(problem, facts, bundle, blocks)

    def form(self, block: Block) -> tuple[Candidate, Form | None]:
        """Give a block's candidate and, where it was given, the form that the block claims to be."""
        candidate = self.facts.candidate(block.id)
        return candidate, next((form for form in candidate.forms if form.form == block.form), None)

    def kind(self, block: Block) -> str:
        """Give how a block travels, by its candidate's form; by its own word where there is no such form."""
        form = self.form(block)[1] if block.id in self.facts.known.candidates else None
        if form is not None:
            return data_of(form)[0]
        return block.kind if block.kind in ("message", "tool") else "text"

    def reach(self, roots: Iterable[str]) -> set[str]:
        """Give what some blocks are or need in their forms, directly or not, whether it is in or not."""
        found: set[str] = set()
        stack = list(roots)
        facts = self.facts
        while stack:
            identifier = stack.pop()
            if identifier in found or identifier not in facts.known.candidates:
                continue
            found.add(identifier)
            stack.extend(facts.mates(identifier))
            stack.extend(facts.requires(identifier))
            if identifier in self.blocks:
                stack.extend(facts.form_requires(identifier, self.blocks[identifier].form))
        return found

    @cached_property
    def musts(self) -> tuple[str, ...]:
        """The blocks whose unit must be in."""
        return tuple(identifier for identifier in self.blocks if self.facts.is_must(identifier))

    @cached_property
    def payers(self) -> Mapping[str, frozenset[Account]]:
        """Who may have paid for each block.

        A must-have is charged to its unit's account, anything else to the unit for which it came:
        itself, or whatever may need it in some form, also if that has another form now or has left.
        What standing content and the task bring in with a layer of its own is charged to that layer.
        """
        facts = self.facts
        brought: dict[str, set[Account]] = {identifier: set() for identifier in self.blocks}
        asking: dict[Account, list[str]] = {}
        for identifier in facts.needs:
            asking.setdefault(self._account(facts.lead(identifier)), []).append(identifier)
        for account, stack in asking.items():
            found: set[str] = set()
            while stack:
                identifier = stack.pop()
                for name in (*facts.needs.get(identifier, ()), *facts.mates(identifier)):
                    if name not in found:
                        found.add(name)
                        stack.append(name)
            for identifier in found & brought.keys():
                brought[identifier].add(self._within(account, identifier))
        named = self.problem.policy.profile.layers
        payers = {}
        for identifier in self.blocks:
            lead = facts.lead(identifier)
            mine = self._within(self._account(lead), identifier)
            if facts.is_must(identifier):
                payers[identifier] = frozenset([mine])
            else:
                competes = facts.candidate(lead).layer in named
                payers[identifier] = frozenset([*brought[identifier], *([mine] if competes else [])])
        return payers

    def _account(self, lead: str) -> Account:
        candidate = self.facts.candidate(lead)
        if candidate.layer is not None:
            return "layer", candidate.layer
        return TASK if section_of(candidate) == "task" else STANDING

    def _within(self, account: Account, identifier: str) -> Account:
        layer = self.facts.candidate(identifier).layer
        return account if account[0] == "layer" or layer is None else ("layer", layer)
