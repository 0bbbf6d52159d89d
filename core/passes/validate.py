"""Pass 10, validation: the independent checker judges every bundle before anyone sees it."""

from __future__ import annotations

from loadmaster.core.checker.case import Violation
from loadmaster.core.checker.check import check
from loadmaster.core.problem import Problem
from loadmaster.core.result import Bundle


class BrokenInvariant(RuntimeError):
    """A bundle broke its own rules. That is a bug in Loadmaster, whatever the input was.

    ``violations`` says which rules, for which candidates; no text of an item is in it.
    """

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        self.violations = violations
        lines = (f"{rule}: {item or 'bundle'} {message}" for rule, item, message in violations)
        super().__init__("this is a bug in Loadmaster; the bundle breaks " + "; ".join(lines))


def validate(problem: Problem, bundle: Bundle) -> Bundle:
    """Give the bundle if it keeps every invariant.

    Raises:
        BrokenInvariant: It does not.
    """
    violations = check(problem, bundle)
    if violations:
        raise BrokenInvariant(violations)
    return bundle
