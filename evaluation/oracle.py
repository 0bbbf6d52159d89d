"""An independent oracle for small pools: what is legal, whether it fits, and why not, by brute force.

It reads the plain document (tokenizer ``declared``) and shares no code with the compiler: gates,
merging, freshness, forms and closure are derived anew in the plainest way, and every joint choice of
forms is tried. It is exponential by design. Where the specification leaves room, these are the
conventions, which are the compiler's too:

* **Present.** What scope or authority refuses is a member of nothing. It still blocks if it is a
  must-have itself, or if the request requires it.
* **Merging.** Copies are equal in forms, source id and version, authority and scope; without a source
  nothing is a copy. The first id stands for all: the strongest band, though ``excluded`` wins; labels,
  requires and ``supersedes`` united; the first group and conflict; the stricter end of each time.
* **Superseding** takes an eligible candidate that has begun, fresh or not, of at least the target's
  authority; this holds for newer versions too.
* **Conflicts.** A set is unresolved if any member that passed gates and freshness says so; below two
  such members it dissolves.
* **Who pays.** Must-have units in the order: no layer, then the task, then declared layers, then ids.
  A unit's members, then all that it needs and that nobody before it paid, are charged to the layer of
  its lead; under a lead without a layer, to a candidate's own layer if it has one. The needs of another
  must-have unit are that unit's.
* **Wants** (against which floors are reserved). What must-haves bring in whatever forms are chosen is
  free for every layer but its payer. A layer wants its must-have units, and its other units from
  ``min_relevance`` up, each member in its richest legal form; then, unit by unit in the order of lead
  ids, what else each needs in its cheapest forms, shared parts once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

CODES = (
    "source_unavailable",
    "unknown_freshness",
    "no_legal_representation",
    "unsatisfied_dependency",
    "unresolved_required_conflict",
    "insufficient_budget",
)
FORMS = ("full", "dense", "compact", "anchor", "reference")
BANDS = ("mandatory", "required", "supported", "discretionary", "excluded")
AUTHORITIES = ("retrieved", "tool", "assistant", "user", "developer", "system")
LEAST = {"governing": "developer", "capability": "developer", "task": "user"}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
STANDING, TASK = "", " task"

Json = Any
Picks = Mapping[str, str]
"""The form chosen for each candidate."""


@dataclass(frozen=True)
class Verdict:
    """What the oracle found.

    ``legal`` holds the legal forms of each candidate that may enter; ``musts`` those of them that have to.
    ``excess`` is None unless the codes have ``insufficient_budget``. ``charged`` is what one cheapest
    choice charges to each account. Where ``certain`` is false, several cheapest choices of
    dependencies lead to different wants, and the specification does not say which of them counts.
    """

    codes: tuple[str, ...]
    capacity: int
    needed: int
    excess: int | None
    legal: Mapping[str, tuple[str, ...]]
    musts: frozenset[str]
    charged: Mapping[str, int]
    certain: bool

    @property
    def feasible(self) -> bool:
        """Whether a legal bundle exists."""
        return not self.codes


@dataclass
class Record:
    """One candidate with its defaults filled in."""

    data: Json
    band: int
    labels: set[str]
    requires: set[str]
    forms: dict[str, Json]
    group: str | None
    conflict: Json
    fresh: Json
    aliases: list[str] = field(default_factory=list)

    @property
    def layer(self) -> str | None:
        """Where it comes from."""
        layer: str | None = self.data.get("layer")
        return layer

    @property
    def section(self) -> str:
        """Where it goes."""
        return self.data.get("section") or ("state" if self.layer == "session" else "evidence")

    @property
    def authority(self) -> int:
        """Its authority, the least first."""
        return AUTHORITIES.index(self.data.get("authority") or "retrieved")

    @property
    def relevance(self) -> Fraction:
        """Its relevance, exactly as it is written."""
        return Fraction(str(self.data.get("relevance") or 0))

    @property
    def must(self) -> bool:
        """Whether it is a must-have by its own band."""
        return self.band <= 1


def judge(document: Json) -> Verdict:
    """Judge a document that is valid, small, and counted by declared tokens."""
    return _Judge(document).verdict()


def _same(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _share(amount: Json, whole: int) -> Fraction:
    if isinstance(amount, str):
        return Fraction(amount.rstrip("% ")) / 100 * max(whole, 0)
    return Fraction(amount or 0)


def _stricter(one: Json, two: Json) -> Json:
    """Give a freshness block that holds only where both do."""
    states = ("current", "unknown", "stale")
    ends = {"observed_at": min, "valid_from": max, "valid_until": min, "expires_at": min}
    times = {key: [block[key] for block in (one, two) if block.get(key)] for key in ends}
    return {
        **{key: ends[key](given, key=datetime.fromisoformat) for key, given in times.items() if given},
        "state": max(one.get("state", "unknown"), two.get("state", "unknown"), key=states.index),
        "required": bool(one.get("required") or two.get("required")),
        "supersedes": [*(one.get("supersedes") or ()), *(two.get("supersedes") or ())],
    }


def _version(source: Json) -> tuple[int, ...] | None:
    parts = ((source or {}).get("version") or "").split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


class _Judge:
    def __init__(self, document: Json) -> None:
        self.request = document["request"]
        self.layers = document["profiles"]["layers"]
        names = document["profiles"]
        route = names.get("routes", {}).get(self.request.get("route"))
        name = self.request.get("profile") or route or names["default"]
        self.profile = names["profiles"][name]
        self.wanted_ids = set(self.request.get("requires") or ())
        self.found: set[str] = set()
        self.certain = True
        ordered = sorted(document["candidates"], key=lambda data: data["id"])
        self.records = {data["id"]: self._record(data) for data in ordered}
        self.home = {identifier: identifier for identifier in self.records}

    def _record(self, data: Json) -> Record:
        band = BANDS.index(data.get("band") or "discretionary")
        if data["id"] in self.wanted_ids and band in (2, 3):
            band = 1
        return Record(
            data=data,
            band=band,
            labels=set(data.get("labels") or ()),
            requires=set(data.get("requires") or ()),
            forms={form["form"]: form for form in data["forms"]},
            group=data.get("group"),
            conflict=data.get("conflict"),
            fresh=data.get("freshness"),
        )

    def verdict(self) -> Verdict:
        self.found.update("source_unavailable" for name in self.wanted_ids if name not in self.records)
        self._border()
        self._copies()
        self._gates()
        self._freshness()
        self._forms()
        self._closure()
        self._units()
        needed, charged = self._least_need()
        short = needed > self.capacity
        if short:
            self.found.add("insufficient_budget")
        return Verdict(
            codes=tuple(code for code in CODES if code in self.found),
            capacity=self.capacity,
            needed=needed,
            excess=needed - self.capacity if short else None,
            legal={name: tuple(form for form in FORMS if form in self.legal[name]) for name in self.alive},
            musts=frozenset(name for lead in self.must_leads for name in self.unit[lead]),
            charged=charged,
            certain=self.certain,
        )

    @property
    def capacity(self) -> int:
        budget = self.request["budget"]
        window: int = budget["window"]
        output = budget.get("output")
        if output is None:
            output = ceil(_share(self.profile.get("output"), window))
        usable = window - output - budget.get("reasoning", 0)
        if budget.get("economic") is not None:
            usable = min(usable, budget["economic"])
        return int(usable - budget.get("headroom", 0))

    # Legality

    def _refuse(self, name: str, code: str = "source_unavailable", *, asked: bool = False) -> None:
        """Put a candidate out; for a must-have, or one the request ``asked`` for, that is a failure."""
        record = self.records[name]
        self.out.add(name)
        named = self.wanted_ids & {name, *record.aliases}
        if record.must or (asked and named):
            self.found.add(code)

    def _border(self) -> None:
        """Refuse what is out of scope or lacks authority: it is absent from now on."""
        self.out: set[str] = set()
        for name, record in self.records.items():
            least = AUTHORITIES.index(LEAST.get(record.section, "retrieved"))
            if not self._in_scope(record) or record.authority < least:
                self._refuse(name, asked=True)
        self.present = [name for name in self.records if name not in self.out]

    def _copies(self) -> None:
        first: dict[str, str] = {}
        for name in list(self.present):
            record = self.records[name]
            source = record.data.get("source")
            if source is not None:
                bodies = (
                    {**form, "requires": sorted(set(form.get("requires") or ()))}
                    for form in record.data["forms"]
                )
                origin = source["id"], source.get("version"), record.authority, record.data.get("scope") or {}
                original = first.setdefault(_same([sorted(map(_same, bodies)), origin]), name)
                if original != name:
                    self._merge(self.records[original], name)

    def _gates(self) -> None:
        cleared = set(self.request.get("clearances") or ())
        for name in self.present:
            record = self.records[name]
            gone = self._time(record, "expires_at")
            expired = gone is not None and gone <= self._now()
            if not record.labels <= cleared or expired or record.band == 4:
                self._refuse(name, asked=True)

    def _in_scope(self, record: Record) -> bool:
        scope, own = self.request.get("scope") or {}, record.data.get("scope") or {}
        if record.layer is not None and not set(self.profile.get("scope_required") or ()) <= own.keys():
            return False
        rules = self.profile.get("transfer") or ()
        allowed = {(rule["key"], _same(rule["from"]), _same(rule["to"])) for rule in rules}
        mine = {key: _same(value) for key, value in scope.items()}
        return all(
            key in mine and (mine[key] == _same(value) or (key, _same(value), mine[key]) in allowed)
            for key, value in own.items()
        )

    def _merge(self, kept: Record, name: str) -> None:
        copy = self.records[name]
        kept.band = 4 if 4 in (kept.band, copy.band) else min(kept.band, copy.band)
        kept.labels |= copy.labels
        kept.requires |= copy.requires
        kept.group, kept.conflict = kept.group or copy.group, kept.conflict or copy.conflict
        kept.fresh = (
            _stricter(kept.fresh, copy.fresh) if kept.fresh and copy.fresh else kept.fresh or copy.fresh
        )
        kept.aliases.append(name)
        self.home[name] = kept.data["id"]
        self.present.remove(name)

    def _now(self) -> datetime:
        return datetime.fromisoformat(self.request["as_of"])

    def _time(self, record: Record, key: str) -> datetime | None:
        text = (record.fresh or {}).get(key)
        return datetime.fromisoformat(text) if text else None

    def _begun(self, record: Record) -> bool:
        start = self._time(record, "valid_from")
        return start is None or start <= self._now()

    def _freshness(self) -> None:
        eligible = [name for name in self.present if name not in self.out]
        verdicts = {name: self._fresh_verdict(name, eligible) for name in eligible}
        for name, code in verdicts.items():
            if code is not None:
                self._refuse(name, code)

    def _fresh_verdict(self, name: str, eligible: list[str]) -> str | None:
        """Give the code under which a must-have of this standing would fail; None if it is fresh."""
        record = self.records[name]
        mine = _version(record.data.get("source"))
        for other in eligible:
            newer = self.records[other]
            if other == name or newer.authority < record.authority or not self._begun(newer):
                continue
            theirs = _version(newer.data.get("source"))
            named = name in {self.home.get(target) for target in (newer.fresh or {}).get("supersedes") or ()}
            ordered = mine is not None and theirs is not None and mine < theirs
            if named or (ordered and newer.data["source"]["id"] == record.data["source"]["id"]):
                return "source_unavailable"
        block = record.fresh
        if block is None:
            return None
        until, seen = self._time(record, "valid_until"), self._time(record, "observed_at")
        age = (self.profile.get("max_age") or {}).get(record.layer)
        too_old = age and seen and seen + timedelta(seconds=int(age[:-1]) * UNITS[age[-1]]) < self._now()
        over = until is not None and until <= self._now()
        if over or too_old or not self._begun(record) or block.get("state") == "stale":
            return "source_unavailable"
        if block.get("state", "unknown") == "unknown" and block.get("required"):
            return "unknown_freshness"
        return None

    def _forms(self) -> None:
        self.formless: set[str] = set()
        self.legal: dict[str, dict[str, set[str]]] = {}
        for name in self.present:
            if name in self.out:
                continue
            record = self.records[name]
            richest = FORMS.index(record.data.get("max_form") or "full")
            poorest = FORMS.index(
                "full" if record.data.get("exact") else record.data.get("min_form") or FORMS[-1]
            )
            self.legal[name] = {
                form: set(given.get("requires") or ())
                for form, given in record.forms.items()
                if richest <= FORMS.index(form) <= poorest
            }
            if not self.legal[name]:
                self.formless.add(name)
                self._refuse(name, "no_legal_representation")

    def _sets(self, key: str) -> dict[str, list[str]]:
        sets: dict[str, list[str]] = {}
        for name in self.present:
            record = self.records[name]
            label = record.group if key == "group" else record.conflict and record.conflict["id"]
            if label:
                sets.setdefault(label, []).append(name)
        return sets

    def _closure(self) -> None:
        """Let everything fall that needs something that has fallen, until nothing falls any more."""
        sides = {}
        for label, members in self._sets("conflict").items():
            there = [name for name in members if name not in self.out or name in self.formless]
            statuses = {self.records[name].conflict["status"] for name in there}
            if len(there) > 1 and "unresolved" in statuses:
                sides[label] = there
        self.bonds = [*self._sets("group").values(), *sides.values()]
        self.alive = {name for name in self.present if name not in self.out}
        before = -1
        while before != len(self.alive):
            before = len(self.alive)
            for name in sorted(self.alive):
                forms = self.legal[name]
                self.legal[name] = {form: needs for form, needs in forms.items() if self._all_alive(needs)}
                whole = all(self.alive.issuperset(bond) for bond in self.bonds if name in bond)
                if not self.legal[name] or not whole or not self._all_alive(self.records[name].requires):
                    self.alive.discard(name)
                    if self.records[name].must:
                        self.found.add("unsatisfied_dependency")
        for there in sides.values():
            standing = [self.records[name] for name in there if name in self.alive]
            governing = [record for record in standing if record.must and record.section == "governing"]
            if len(governing) > 1:
                self.found.add("unresolved_required_conflict")

    def _all_alive(self, names: Iterable[str]) -> bool:
        return all(self.home.get(name) in self.alive for name in names)

    # Units, and what they need

    def _units(self) -> None:
        together = {name: {name} for name in self.alive}
        for bond in self.bonds:
            united = set().union(*(together[name] for name in bond if name in self.alive))
            for name in united:
                together[name] = united
        self.unit = {name: sorted(unit) for name, unit in together.items()}
        self.lead = {name: min(unit, key=self._strength) for name, unit in self.unit.items()}
        self.leads = sorted(set(self.lead.values()))
        self.must_leads = [lead for lead in self.leads if self.records[lead].must]

    def _strength(self, name: str) -> Json:
        record = self.records[name]
        order = [(isinstance(part, str), part) for part in record.data.get("order") or ()]
        return record.band, -record.relevance, self._turn(name), order, name

    def _turn(self, name: str) -> int:
        layer = self.records[name].layer
        return -1 if layer is None else self.layers.index(layer)

    def _needs(self, name: str, form: str | None) -> set[str]:
        """Give what a candidate needs in a form, or whatever the form; the rest of its unit not counted."""
        wanted = self.records[name].requires | (self.legal[name][form] if form is not None else set())
        if len(self.legal[name]) == 1:
            wanted = wanted.union(*self.legal[name].values())
        return {self.home[need] for need in wanted}

    def _choices(
        self, agenda: Iterable[str], have: set[str], picks: dict[str, str], fixed: set[str]
    ) -> Iterator[Picks]:
        """Try every form for all on the agenda and for all that they turn out to need."""
        open_ = sorted(name for name in agenda if name not in picks and name not in have)
        if not open_:
            yield picks
            return
        name = open_[0]
        forms = [form for form in FORMS if form in self.legal[name]]
        for form in forms[:1] if name in fixed else forms:
            wanted = {*open_, *self.unit[name], *self._needs(name, form)}
            yield from self._choices(wanted, have, {**picks, name: form}, fixed)

    def _cost(self, name: str, form: str) -> int:
        tokens: int = self.records[name].forms[form]["tokens"]
        return tokens

    def _charge(self, picks: Mapping[str, str | None]) -> dict[str, str]:
        """Give the account that each candidate of a must-have bundle is charged to."""
        order = sorted(
            self.must_leads, key=lambda lead: (self._turn(lead), self.records[lead].section == "task", lead)
        )
        payer = {name: self._account(lead, name) for lead in order for name in self.unit[lead]}
        for lead in order:
            agenda = [need for name in self.unit[lead] for need in self._needs(name, picks[name])]
            while agenda:
                name = agenda.pop()
                if name not in payer:
                    payer[name] = self._account(lead, name)
                    agenda += [*self.unit[name], *self._needs(name, picks[name])]
        return payer

    def _account(self, lead: str, name: str) -> str:
        layer = self.records[lead].layer or self.records[name].layer
        return layer or (TASK if self.records[lead].section == "task" else STANDING)

    def _least_need(self) -> tuple[int, dict[str, int]]:
        """Try every choice; give the least that must-haves and floors need, and what that charges."""
        roots = {name for lead in self.must_leads for name in self.unit[lead]}
        rules = self.profile.get("layers") or {}
        floors = {layer: rule["floor"] for layer, rule in rules.items() if rule.get("floor")}
        wants = {layer: self._wants(layer, roots) for layer in floors}
        best: tuple[Fraction, int] | None = None
        charged: dict[str, int] = {}
        for picks in self._choices(roots, set(), {}, set()):
            payer = self._charge(picks)
            sums: dict[str, int] = {}
            for name, form in picks.items():
                sums[payer[name]] = sums.get(payer[name], 0) + self._cost(name, form)
            held = sum(sums.values())
            base = self.capacity - sums.get(STANDING, 0) - sums.get(TASK, 0)
            needed = Fraction(held)
            for layer, floor in floors.items():
                reserved = min(_share(floor, base), Fraction(wants[layer]))
                needed += max(Fraction(0), reserved - sums.get(layer, 0))
            if best is None or (needed, held) < best:
                best, charged = (needed, held), sums
        assert best is not None
        return ceil(best[0]), charged

    def _certain(self, roots: set[str]) -> dict[str, str]:
        """Give what the must-haves bring in whatever the forms, with who pays for it."""
        inside: dict[str, str | None] = {}
        agenda = list(roots)
        while agenda:
            name = agenda.pop()
            if name not in inside:
                inside[name] = None
                agenda += [*self.unit[name], *self._needs(name, None)]
        return self._charge(inside)

    def _wants(self, layer: str, roots: set[str]) -> int:
        """Give what a layer could use."""
        elsewhere = {name for name, payer in self._certain(roots).items() if payer != layer}
        least = Fraction(str(self.profile.get("min_relevance") or 0))
        records = self.records
        leads = [
            lead
            for lead in self.leads
            if records[lead].layer == layer and (records[lead].must or records[lead].relevance >= least)
        ]
        own = {name for lead in leads for name in self.unit[lead]} - elsewhere
        richest = {name: next(form for form in FORMS if form in self.legal[name]) for name in own}
        total = sum(self._cost(name, form) for name, form in richest.items())
        counted = set(own)
        for lead in leads:
            unit = set(self.unit[lead]) & own
            extras = [
                {name: form for name, form in picks.items() if name not in unit}
                for picks in self._choices(unit, (counted | elsewhere) - unit, {}, unit)
            ]
            costs = [sum(self._cost(*pick) for pick in extra.items()) for extra in extras]
            total += min(costs)
            cheapest = {
                frozenset(extra) for extra, cost in zip(extras, costs, strict=True) if cost == min(costs)
            }
            self.certain &= len(cheapest) == 1
            counted |= min(cheapest, key=sorted)
        return total
