"""Realised use: what layers really got, over logs of many compiles, in memory that does not grow with them.

A log is JSON Lines: traces as `loadmaster compile --trace` writes them, one after the other, or
results, one on a line. Shares are of the grant base (allocatable - task), which is what a profile
divides. They are counted in whole permille, rounded down, so a percentile is exact to 0.1 % without
keeping a value; means are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

CUT_RULES = ("no_room", "cap")
"""Rules that left something out although it had earned its place."""
LONGEST_LINE = 1 << 26
"""Bytes; a longer line is passed over as bad."""


@dataclass(slots=True)
class LayerUse:
    """What one layer got, over the bundles whose profile set declares it."""

    bundles: int = 0
    shared: int = 0
    micros: int = 0
    permille: list[int] = field(default_factory=lambda: [0] * 1001)
    promised: int = 0
    unmet: int = 0
    surplus: int = 0

    def take(self, row: Mapping[str, Any], base: int) -> None:
        """Count one account of the layer."""
        self.bundles += 1
        self.surplus += row["surplus"]
        self.promised += row["floor"] > 0
        self.unmet += bool(row["floor_unmet"])
        if base > 0:
            self.shared += 1
            self.micros += row["used"] * 1_000_000 // base
            self.permille[min(max(row["used"] * 1000 // base, 0), 1000)] += 1

    def mean(self) -> float | None:
        """Give the mean share of the grant base; None where no bundle had one."""
        return round(self.micros / self.shared / 1_000_000, 4) if self.shared else None

    def percentile(self, percent: int) -> float | None:
        """Give the least share, in whole permille, that so many percent of the bundles stay within."""
        rank = -(-self.shared * percent // 100)
        seen = 0
        for value, times in enumerate(self.permille):
            seen += times
            if times and seen >= rank:
                return value / 1000
        return None


@dataclass(slots=True)
class Usage:
    """The running figures of a log. Feed it lines; ask for ``to_dict`` at any time."""

    lines: int = 0
    bad_lines: int = 0
    unfinished: int = 0
    bundles: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    profiles: Counter[str] = field(default_factory=Counter)
    layers: dict[str, LayerUse] = field(default_factory=dict)
    breached: int = 0
    cut_bundles: int = 0
    cuts: Counter[str] = field(default_factory=Counter)
    slack: int = 0
    slack_micros: int = 0
    _head: Mapping[str, Any] | None = None
    _cuts: Counter[str] = field(default_factory=Counter)

    @property
    def compiles(self) -> int:
        """How many outcomes were counted."""
        return self.bundles + self.failures.total()

    def take(self, line: bytes) -> str | None:
        """Count a line; gives what is wrong with it, if anything."""
        if not line.strip():
            return None
        self.lines += 1
        try:
            data = orjson.loads(line)
            flaw = self._take(data) if isinstance(data, dict) else "is no JSON object"
        except orjson.JSONDecodeError:
            flaw = "is not JSON"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            flaw = f"is no line of a trace and no result: {type(error).__name__} {error}"
        self.bad_lines += flaw is not None
        return flaw

    def too_long(self) -> str:
        """Count a line that was too long to be held; gives what is wrong with it."""
        self.lines += 1
        self.bad_lines += 1
        return f"is longer than {LONGEST_LINE:,} bytes"

    def end_of_file(self) -> None:
        """Close a log: a trace without its foot is counted as unfinished."""
        self._open(None)

    def _take(self, data: Mapping[str, Any]) -> str | None:
        match data.get("t"), data.get("status"):
            case "head", _:
                self._open(data)
            case "dec", _:
                if data["verdict"] == "omitted" and data["rule"] in CUT_RULES:
                    self._cuts[data["rule"]] += 1
            case "foot", _:
                return self._close(data)
            case (("obs" | "pass"), _):
                pass
            case None, "bundle":
                cuts = Counter(omission["rule"] for omission in data["omitted"])
                self._bundle(
                    data, data["profile"], Counter({rule: cuts[rule] for rule in CUT_RULES if cuts[rule]})
                )
            case None, "failure":
                self._failure(data["code"], data["profile"])
            case None, "invalid":
                return "is an invalid input's result, which nothing was compiled for"
            case _:
                return "is no line of a trace and no result"
        return None

    def _open(self, head: Mapping[str, Any] | None) -> None:
        self.unfinished += self._head is not None
        self._head = head
        self._cuts = Counter()

    def _close(self, foot: Mapping[str, Any]) -> str | None:
        head, cuts = self._head, self._cuts
        self._head, self._cuts = None, Counter()
        if head is None:
            return "is the foot of a trace whose head is missing"
        if foot["outcome"] == "failure":
            self._failure(foot["code"], head["profile"])
        else:
            self._bundle(foot, head["profile"], cuts)
        return None

    def _failure(self, code: str, profile: Mapping[str, Any]) -> None:
        name = _profile_of(profile)
        self.failures[str(code)] += 1
        self.profiles[name] += 1

    def _bundle(self, data: Mapping[str, Any], profile: Mapping[str, Any], cuts: Counter[str]) -> None:
        tokens, rows, name = data["tokens"], data["allocation"], _profile_of(profile)
        base = tokens["allocatable"] - tokens["task"]
        slack, capacity = tokens["slack"] + 0, tokens["capacity"] + 0
        for row in rows:
            _check(row)
        self.bundles += 1
        self.profiles[name] += 1
        self.breached += any(row["floor_unmet"] for row in rows)
        for row in rows:
            self.layers.setdefault(row["layer"], LayerUse()).take(row, base)
        self.cut_bundles += bool(cuts)
        self.cuts += cuts
        self.slack += slack
        self.slack_micros += slack * 1_000_000 // capacity if capacity > 0 else 0

    def to_dict(self) -> dict[str, Any]:
        """Give the figures as JSON data; shares between 0 and 1."""
        surplus = sum(layer.surplus for layer in self.layers.values())
        return {
            "compiles": self.compiles,
            "bundles": self.bundles,
            "failures": dict(sorted(self.failures.items())),
            "profiles": dict(sorted(self.profiles.items(), key=lambda entry: (-entry[1], entry[0]))),
            "layers": [
                {
                    "layer": name,
                    "bundles": layer.bundles,
                    "realised_mean": layer.mean(),
                    "realised_p95": layer.percentile(95),
                    "floor_promised": layer.promised,
                    "floor_unmet": layer.unmet,
                    "surplus": layer.surplus,
                    "surplus_share": _share(layer.surplus, surplus),
                }
                for name, layer in self.layers.items()
            ],
            "floor_breach_rate": _share(self.breached, self.bundles),
            "cut_rate": _share(self.cut_bundles, self.bundles),
            "cuts_per_bundle": round(self.cuts.total() / self.bundles, 4) if self.bundles else None,
            "cuts": dict(sorted(self.cuts.items())),
            "slack_mean": round(self.slack / self.bundles, 1) if self.bundles else None,
            "slack_share_mean": round(self.slack_micros / self.bundles / 1_000_000, 4)
            if self.bundles
            else None,
            "lines": self.lines,
            "bad_lines": self.bad_lines,
            "unfinished": self.unfinished,
        }


def log_lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """Give the lines of a log one by one; None for one that is too long to be held."""
    while line := file.readline(longest):
        if len(line) < longest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(longest)
        yield None


def realised_use(lines: Iterable[bytes]) -> dict[str, Any]:
    """Give the figures of one log that is at hand as lines."""
    usage = Usage()
    for line in lines:
        usage.take(line)
    usage.end_of_file()
    return usage.to_dict()


def _profile_of(profile: Mapping[str, Any]) -> str:
    return f"{profile['name']} {profile['version']}"


def _check(row: Mapping[str, Any]) -> None:
    """Refuse a row before anything of its bundle is counted."""
    if not isinstance(row["layer"], str):
        raise ValueError("a layer has no name")
    for name in ("used", "surplus", "floor"):
        if not isinstance(row[name], int):
            raise ValueError(f"{name} is no whole number")
    row["floor_unmet"]


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
