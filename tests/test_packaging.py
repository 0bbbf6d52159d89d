"""The repository installs as it looks: links, sdist, wheel, pins and import directions."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINKED = ("core", "evaluation", "integrations", "stores")
NOT_SHIPPED = {".md", ".pyc"}


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python …` as a user outside the tree would: nothing but installed packages on the path."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-P", *command], cwd=cwd, env=inherited, capture_output=True, text=True, check=False
    )


def copy_of_the_tree(target: Path) -> Path:
    """The files a build reads, links kept as links, so that a build never writes into the tree."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "MANIFEST.in"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, target)
    for name in (*LINKED, "src"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=ignored)
    return target


def files_of_the_package(root: Path) -> set[str]:
    """Every file that belongs in the wheel, by its path in the wheel."""
    public = root / "src" / "loadmaster"
    own = {
        f"loadmaster/{(Path(folder) / name).relative_to(public).as_posix()}"
        for folder, _, names in os.walk(public)  # which does not walk into links
        for name in names
        if Path(name).suffix not in NOT_SHIPPED
    }
    linked = {
        f"loadmaster/{path.relative_to(root).as_posix()}"
        for folder in LINKED
        for path in (root / folder).rglob("*")
        if path.is_file() and path.suffix not in NOT_SHIPPED
    }
    return own | linked


@pytest.mark.parametrize("folder", LINKED)
def test_links_are_relative_and_lead_to_the_top_level_folders(folder: str) -> None:
    link = ROOT / "src" / "loadmaster" / folder
    assert link.is_symlink()
    assert link.readlink().as_posix() == f"../../{folder}"
    assert link.resolve() == ROOT / folder


def test_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    pin = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*")
    assert [line for line in lines if not pin.fullmatch(line)] == []
    assert lines == sorted(set(lines))


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=!~ \[;]", requirement)[0] for requirement in declared}
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names <= pinned


def test_core_is_importable_only_inside_the_package(tmp_path: Path) -> None:
    assert run("-c", "import loadmaster.core", cwd=tmp_path).returncode == 0
    for folder in LINKED:
        bare = run("-c", f"import {folder}", cwd=tmp_path)
        assert "ModuleNotFoundError" in bare.stderr


@pytest.mark.slow
def test_sdist_and_the_wheel_built_from_it_hold_the_whole_tree(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "tree")
    expected = files_of_the_package(tree)
    assert {"loadmaster/py.typed", "loadmaster/core/__init__.py"} <= expected

    # Without --sdist or --wheel, `build` makes the wheel from the sdist and not from the tree.
    built = run("-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(tree), cwd=tmp_path)
    assert built.returncode == 0, built.stdout + built.stderr

    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    inside = {member.name.partition("/src/")[2] for member in members if member.isfile()}
    assert expected - inside == set()

    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        entry_points = packed.read("loadmaster-0.1.0.dist-info/entry_points.txt").decode()
        packed.extractall(tmp_path / "site")
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert "loadmaster = loadmaster.cli:app" in entry_points

    place = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); "
    shown = run("-c", place + "import loadmaster.core; print(loadmaster.core.__file__)", cwd=tmp_path)
    assert Path(shown.stdout.strip()).parent == tmp_path / "site" / "loadmaster" / "core"


PLANTED = {
    "core/planted.py": ("import os", "loadmaster.core.planted -> os"),
    "core/outward.py": ("import loadmaster", "loadmaster.core.outward -> loadmaster"),
    "core/upward.py": ("import loadmaster.stores", "loadmaster.core.upward -> loadmaster.stores"),
    "stores/planted.py": ("import loadmaster.cli", "loadmaster.stores.planted -> loadmaster.cli"),
    "integrations/planted.py": (
        "from loadmaster import evaluation",
        "loadmaster.integrations.planted -> loadmaster.evaluation",
    ),
}


@pytest.mark.slow
def test_planted_imports_are_caught_through_the_links(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "tree")
    for path, (text, _) in PLANTED.items():
        (tree / path).write_text(text + "\n", encoding="utf-8")
    lint = "import sys; sys.path.insert(0, ''); from importlinter import cli; cli.lint_imports_command()"
    report = run("-c", lint, "--no-cache", str(tree / "pyproject.toml"), cwd=tree / "src")
    assert report.returncode == 1, report.stdout + report.stderr
    for _, finding in PLANTED.values():
        assert f"{finding} (l.1)" in report.stdout
