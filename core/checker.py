"""The independent checker: it derives every invariant again, from the inputs and a bundle alone.

It shares no code with the passes and judges any bundle, so the evaluation uses it on other packers:
whatever a bundle holds, it reports and does not raise. A rule's name says what was broken; a refused
candidate in the bundle is reported under the gate's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadmaster.core import checker_figures, checker_rules
from loadmaster.core.checker_case import Case, Violation
from loadmaster.core.checker_facts import derive_facts
from loadmaster.core.problem import Problem
from loadmaster.core.result import Bundle

Rule = Callable[[Case], Iterator[Violation]]

RULES: tuple[Rule, ...] = (
    checker_rules.check_identity,
    checker_rules.check_must_haves,
    checker_rules.check_gates,
    checker_rules.check_forms,
    checker_rules.check_governance,
    checker_rules.check_closure,
    checker_rules.check_bonds,
    checker_rules.check_reasons,
    checker_rules.check_omissions,
    checker_rules.check_order,
    checker_figures.check_policy,
    checker_figures.check_digests,
    checker_figures.check_budget,
    checker_figures.check_size,
    checker_figures.check_accounts,
    checker_figures.check_layers,
)


def check(problem: Problem, bundle: Bundle) -> tuple[Violation, ...]:
    """Give every invariant that a bundle breaks; nothing for a bundle that is right."""
    case = Case.of(problem, derive_facts(problem), bundle)
    return tuple(violation for rule in RULES for violation in rule(case))
