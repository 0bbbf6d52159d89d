"""The screen for any result."""

from __future__ import annotations

from loadmaster.screens.bundle import bundle_screen
from loadmaster.screens.failure import failure_screen, invalid_screen
from loadmaster.screens.page import Page
from loadmaster.screens.results import BundleView, FailureView, Result


def explain_screen(result: Result, width: int, name: str = "RESULT") -> Page:
    """Explain a result on one screen; ``name`` is how the reader may call it again."""
    if isinstance(result, BundleView):
        return bundle_screen(result, width, name)
    if isinstance(result, FailureView):
        return failure_screen(result, width, name)
    return invalid_screen(result, width)
