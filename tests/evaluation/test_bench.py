"""The bench runs and its figures are whole. Times are never asserted: they belong to the bench itself."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from loadmaster.evaluation import bench
from loadmaster.evaluation.measures import Ours, fractional_bound
from loadmaster.evaluation.workload import BUDGET, flat, mixed

WORKLOADS = ["flat/net", "flat/density", "mixed/chat"]


@pytest.fixture(scope="module")
def report() -> dict[str, object]:
    return bench.bench([50], repeat=1)


def test_every_workload_has_every_measure(report: dict[str, object]) -> None:
    runs = report["runs"]
    assert isinstance(runs, list)
    assert [run["workload"] for run in runs] == WORKLOADS
    for run in runs:
        assert run["size"] == 50
        assert run["ms"].keys() - {"check"} == bench.ROWS.keys() - {"check"}
        assert all(0 < took["min"] <= took["median"] and took["wall"] > 0 for took in run["ms"].values())


def test_untimed_targets_hold(report: dict[str, object]) -> None:
    runs, targets = report["runs"], report["targets"]
    assert isinstance(runs, list)
    assert isinstance(targets, list)
    assert {target["name"] for target in targets} <= {"recount - reported", "violations"}  # none is timed
    assert {target["verdict"] for target in targets} == {"pass"}
    for run in runs:
        assert run["quality"]["recount"] == run["quality"]["reported"] <= BUDGET
    for run in runs[:2]:
        assert run["quality"]["plain_recount"] == run["quality"]["plain_reported"] <= BUDGET
        assert 0 < run["quality"]["bound_percent"] <= 100


def test_density_reaches_the_bound_at_its_target() -> None:
    quality = Ours(flat(1_000, "density")).quality()
    assert quality["bound_percent"] >= bench.BOUND_PERCENT
    assert quality["recount"] == quality["reported"] <= BUDGET


def test_judging() -> None:
    def measured(size: int, warm: float) -> dict[str, object]:
        times = {name: {"min": 1.0, "rounds": [1.0, 2.0, 2.0]} for name in bench.ROWS}
        times["warm"] = {"min": warm / 2, "rounds": [warm, warm / 2, warm]}
        quality = {"recount": 10, "reported": 10, "violations": 1, "bound_percent": 98.0}
        return {"workload": "flat/density", "size": size, "ms": times, "quality": quality}

    targets = list(bench._targets([measured(1_000, 6.0), measured(10_000, 120.0)]))
    verdicts = {(target.name, target.size): target.verdict for target in targets}
    assert verdicts["warm, ms", 1_000] == "best only"
    assert verdicts["warm, ms", 10_000] == "miss"
    assert verdicts["checker + trace, ms", 1_000] == "pass"
    assert verdicts["cold / tokenise", 1_000] == "pass"
    assert verdicts["warm / 10x at 1,000", 10_000] == "miss"
    assert verdicts["fractional bound, %", 1_000] == "miss"
    assert verdicts["recount - reported", 1_000] == "pass"
    assert verdicts["violations", 1_000] == "miss"


def test_it_is_written_as_json_and_as_tables(
    report: dict[str, object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "bench", lambda sizes, repeat: report)
    assert bench.main(["--json", "--sizes", "50", "--repeat", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == report
    out = io.StringIO()
    bench.show(report, Console(file=out, width=80))
    assert "50 candidates, mixed/chat" in out.getvalue()
    assert "…" not in out.getvalue()


def test_the_profile_names_the_passes() -> None:
    assert "admission.py" in bench.profile_warm(50, lines=100, rounds=1)


@pytest.mark.parametrize("sizes", ["", "0", "ten", "10,-1"])
def test_senseless_sizes_are_refused(sizes: str) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--sizes", sizes])


def test_workloads_are_the_same_every_time() -> None:
    assert flat(20, "net") == flat(20, "net")
    assert flat(20, "net")["candidates"] == flat(20, "density")["candidates"]
    assert mixed(20) == mixed(20)


def test_fractional_bound_cuts_one_ware() -> None:
    assert fractional_bound([(0.5, 1.0, 2), (1.0, 3.0, 3), (0.1, 1.0, 10)], 4) == pytest.approx(3.5)
    assert fractional_bound([(0.5, 1.0, 2)], 9) == 1.0
