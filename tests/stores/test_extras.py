"""Extras: what is missing is told with the command that brings it, and all that they bring is pinned."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from loadmaster.stores.extras import extra

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OFFERED = sorted(set(EXTRAS) - {"dev"})

BLOCKED = """
import sys
from loadmaster.stores.extras import extra

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name == "{package}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, NotInstalled())
try:
    with extra("{name}"):
        import {module}
except ImportError as error:
    print(type(error).__name__, error.name, error, sep="|")
"""


@pytest.mark.parametrize(
    ("name", "package", "module"),
    [
        ("chroma", "chromadb", "chromadb"),
        ("graph", "networkx", "networkx"),
        ("documents", "llama_index", "llama_index.core"),
        ("postgres", "psycopg", "psycopg"),
        ("stores", "sqlalchemy", "sqlalchemy"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    name: str, package: str, module: str
) -> None:
    program = BLOCKED.format(name=name, package=package, module=module)
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    kind, missing, message = run.stdout.strip().split("|")
    assert (kind, missing) == ("ImportError", package)
    assert message == f"{package} is not installed; install it with: pip install 'loadmaster[{name}]'"


def test_a_fault_in_loadmaster_is_not_disguised_as_a_missing_package() -> None:
    nowhere = r"No module named 'loadmaster\.stores\.nowhere'"
    with pytest.raises(ModuleNotFoundError, match=nowhere), extra("chroma"):
        import loadmaster.stores.nowhere  # type: ignore[import-not-found]  # noqa: F401


def test_a_foreign_package_whose_name_begins_like_ours_is_one_that_can_be_installed() -> None:
    cure = r"loadmasters is not installed; .*loadmaster\[chroma\]"
    with pytest.raises(ImportError, match=cure), extra("chroma"):
        import loadmasters  # type: ignore[import-not-found]  # noqa: F401


def test_other_errors_of_an_import_pass_as_they_are() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing'") as caught, extra("chroma"):
        from json import nothing  # type: ignore[attr-defined]  # noqa: F401
    assert "pip install" not in str(caught.value)


def test_every_extra_is_in_all_and_brings_what_exists() -> None:
    (everything,) = (Requirement(line) for line in EXTRAS["all"])
    assert sorted(everything.extras) == sorted(set(OFFERED) - {"all"})
    for name in OFFERED:
        inner = {chosen for line in EXTRAS[name] for chosen in _own(Requirement(line))}
        assert inner <= set(OFFERED) - {name}


def test_the_tests_have_every_package_that_an_extra_brings() -> None:
    development = {_normal(Requirement(line).name) for line in EXTRAS["dev"]}
    assert set(_packages("all")) <= development


def test_everything_that_the_extras_and_the_tools_bring_is_pinned() -> None:
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    )
    brought = {name for line in (*PROJECT["dependencies"], *EXTRAS["dev"]) for name in _closure(line)}
    assert len(brought) > 60
    assert sorted(brought - set(pins)) == []


def _own(requirement: Requirement) -> set[str]:
    return requirement.extras if requirement.name == PROJECT["name"] else set()


def _packages(name: str) -> Iterator[str]:
    """Give the packages of an extra, those of the extras inside it too."""
    for line in EXTRAS[name]:
        requirement = Requirement(line)
        if requirement.name != PROJECT["name"]:
            yield _normal(requirement.name)
        for inner in sorted(_own(requirement)):
            yield from _packages(inner)


def _closure(line: str) -> set[str]:
    """Give all packages that a requirement brings here, by what the installed ones declare."""
    reached: set[tuple[str, str]] = set()
    pending = [(_normal(Requirement(line).name), inner) for inner in ("", *sorted(Requirement(line).extras))]
    while pending:
        name, chosen = pending.pop()
        if (name, chosen) in reached:
            continue
        reached.add((name, chosen))
        for declared in _requires(name):
            needed = Requirement(declared)
            if needed.marker is None or needed.marker.evaluate({"extra": chosen}):
                pending += [(_normal(needed.name), inner) for inner in ("", *sorted(needed.extras))]
    return {name for name, _ in reached}


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []  # the tests that need it skip or fail; here its own name counts


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
