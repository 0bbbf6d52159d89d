"""The examples in docstrings are true: every module that has some is run, as ``--doctest-modules`` would."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import loadmaster
import loadmaster.core

MODULES = sorted(
    {
        module.name
        for package in (loadmaster, loadmaster.core)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if module.name.startswith("loadmaster.core")
    }
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 5
