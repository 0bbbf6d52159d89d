"""The independent checker: it derives every invariant again, from the inputs and a bundle alone.

It shares no code with the passes and judges any bundle, so the evaluation uses it on other packers:
whatever a bundle holds, it reports and does not raise. A rule's name says what was broken; a refused
candidate in the bundle is reported under the gate's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadmaster.core.checker import figures, rules
from loadmaster.core.checker.case import Case, Violation
from loadmaster.core.checker.facts import derive_facts
from loadmaster.core.problem import Problem
from loadmaster.core.result import Bundle

Rule = Callable[[Case], Iterator[Violation]]

RULES: tuple[Rule, ...] = (
    rules.check_identity,
    rules.check_must_haves,
    rules.check_gates,
    rules.check_forms,
    rules.check_governance,
    rules.check_closure,
    rules.check_bonds,
    rules.check_reasons,
    rules.check_omissions,
    rules.check_order,
    figures.check_policy,
    figures.check_digests,
    figures.check_budget,
    figures.check_size,
    figures.check_accounts,
    figures.check_layers,
)


def check(problem: Problem, bundle: Bundle) -> tuple[Violation, ...]:
    """Give every invariant that a bundle breaks; nothing for a bundle that is right."""
    case = Case.of(problem, derive_facts(problem), bundle)
    return tuple(violation for rule in RULES for violation in rule(case))
