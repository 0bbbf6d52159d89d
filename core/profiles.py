"""Profiles: allocation as declared, versioned data, one complete table per request type.

A set is read from TOML or JSON of the same shape (`profiles.toml` is the packaged one). It is
never edited in place: a change is a new version, and the version is in every trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from loadmaster.core.contract import (
    MAX_INTEGER,
    FormName,
    Model,
    Name,
    Names,
    Share,
    Tokens,
    _exact_decimal,
    _scope_value,
    _sound,
)
from loadmaster.core.faults import Flaw, get, listed, quoted
from loadmaster.core.instants import parse_duration
from loadmaster.core.items import FORMS

_PERCENT = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*%", re.ASCII)
MOST_PROFILES = 8
"""More profiles than this are flagged by lint: nobody can keep them apart."""


class Amount(NamedTuple):
    """Tokens, or a share of something that is known only at compile time."""

    tokens: int
    share: Fraction | None = None

    def of(self, whole: int) -> Fraction:
        """Give the amount in tokens, exactly; a share of less than nothing is nothing."""
        return Fraction(self.tokens) if self.share is None else self.share * max(whole, 0)


def _amount(value: Any) -> Any:
    if isinstance(value, Amount):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INTEGER:
        return Amount(value)
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or Decimal(match[1]) > 100:
        given = f"{value:,}" if _is_small(value) else quoted(value)
        raise ValueError(f'must be a whole number of tokens or a share from "0%" to "100%", not {given}')
    return Amount(0, Fraction(match[1]) / 100)


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_INTEGER


def _duration(value: str) -> str:
    parse_duration(value)
    return value


def _as_written(amount: Amount) -> int | str:
    if amount.share is None:
        return amount.tokens
    percent = amount.share * 100
    return f"{Decimal(percent.numerator) / Decimal(percent.denominator):f}%"


AmountField = Annotated[Amount, BeforeValidator(_amount), PlainSerializer(_as_written)]
Weight = Annotated[Decimal, BeforeValidator(_exact_decimal), Field(ge=0)]

_FIDELITY = {
    "full": Decimal(1),
    "dense": Decimal("0.95"),
    "compact": Decimal("0.85"),
    "anchor": Decimal("0.5"),
    "reference": Decimal("0.3"),
}


class LayerRule(Model):
    """What one layer gets: a guaranteed ``floor``, a ``ratio`` of the rest, a ``cap``, a ``priority``."""

    floor: AmountField = Amount(0)
    ratio: Weight = Decimal(0)
    cap: AmountField | None = None
    priority: Tokens | None = None


class Transfer(Model):
    """A declared exception to the scope gate: what has scope ``from`` may serve a request of scope ``to``."""

    key: Name
    from_: Annotated[Any, BeforeValidator(_scope_value), Field(alias="from")]
    to: Annotated[Any, BeforeValidator(_scope_value)]


def profile_flaws(profile: object) -> Iterator[Flaw]:
    """Find what is wrong between the fields of a profile, given as data or as a model."""
    shares = Fraction(0)
    for rule in _entries(get(profile, "layers")).values():
        try:
            shares += _amount(get(rule, "floor") or 0).share or 0
        except ValueError:
            continue  # said where it stands
    if shares > 1:
        yield ("layers",), f"floors given as shares sum to {float(100 * shares):.6g} %, above 100 %"


def set_flaws(profiles: object) -> Iterator[Flaw]:
    """Find what is wrong between the parts of a profile set, given as data or as a model."""
    layers = get(profiles, "layers")
    known = _entries(get(profiles, "profiles"))
    if isinstance(layers, list | tuple):
        for place, layer in enumerate(layers):
            if isinstance(layer, str) and layer in layers[:place]:
                yield (
                    ("layers", place),
                    f"layer {quoted(layer)} stands twice, first at layers[{layers.index(layer)}]",
                )
        for name, profile in known.items():
            for field in ("layers", "max_age"):
                for layer in _entries(get(profile, field)):
                    if layer not in layers:
                        message = f"layer {quoted(layer)} is not declared; layers has {listed(layers)}"
                        yield ("profiles", name, field, layer), message
    if isinstance(get(profiles, "profiles"), Mapping):
        has = listed(sorted(known))
        default = get(profiles, "default")
        if isinstance(default, str) and default not in known:
            yield ("default",), f"{quoted(default)} is no profile of this set; it has {has}"
        for route, name in _entries(get(profiles, "routes")).items():
            if isinstance(name, str) and name not in known:
                yield ("routes", route), f"{quoted(name)} is no profile of this set; it has {has}"


def _entries(value: object) -> Mapping[str, Any]:
    """Give what of a value can be read as named entries."""
    return (
        {name: entry for name, entry in value.items() if isinstance(name, str)}
        if isinstance(value, Mapping)
        else {}
    )


class Profile(Model):
    """The complete policy for one request type. A layer that is not named gets nothing."""

    output: AmountField = Amount(0)
    surplus: Literal["ratio", "priority"] = "ratio"
    order: Literal["net", "density"] = "net"
    price: Weight = Decimal(0)
    min_relevance: Share = Decimal(0)
    corroboration: Tokens = 1
    layout: Literal["canonical", "cache"] = "canonical"
    max_age: dict[Name, Annotated[str, AfterValidator(_duration)]] = {}
    scope_required: Names = ()
    transfer: tuple[Transfer, ...] = ()
    fidelity: dict[FormName, Share] = {}
    layers: dict[Name, LayerRule] = {}

    @model_validator(mode="after")
    def _whole(self) -> Profile:
        return _sound(self, profile_flaws)

    def fidelity_of(self) -> tuple[Decimal, ...]:
        """Give the fidelity of each form, richest form first."""
        return tuple(self.fidelity.get(name, _FIDELITY[name]) for name in FORMS)  # type: ignore[call-overload]


class ProfileSet(Model):
    """A named, versioned set of profiles with the declared array of layers and the routes to them."""

    version: Name
    layers: tuple[Name, ...]
    default: Name
    routes: dict[Name, Name] = {}
    smallest_window: Tokens | None = None
    standing_max: Tokens = 0
    profiles: dict[Name, Profile]

    @model_validator(mode="after")
    def _whole(self) -> ProfileSet:
        return _sound(self, set_flaws)

    def choose(self, profile: str | None, route: str | None) -> tuple[str, str]:
        """Choose a profile: the named one, else the route's, else the default. Gives its name and why.

        Raises:
            KeyError: The named profile is not in this set.
        """
        if profile is not None:
            if profile not in self.profiles:
                raise KeyError(profile)
            return profile, "explicit"
        if route is not None and route in self.routes:
            return self.routes[route], "route"
        return self.default, "default"


class Finding(NamedTuple):
    """Something that lint found in a profile set."""

    profile: str | None
    severity: Literal["error", "warning"]
    message: str


def lint(profiles: ProfileSet) -> Iterator[Finding]:
    """Check what a set promises against the smallest window that it claims to support."""
    if len(profiles.profiles) > MOST_PROFILES:
        count = len(profiles.profiles)
        yield Finding(None, "warning", f"{count} profiles; above {MOST_PROFILES} nobody can keep them apart")
    window = profiles.smallest_window
    if window is None:
        yield Finding(None, "warning", "smallest_window is not set, so no floor or reserve can be checked")
    for name, profile in sorted(profiles.profiles.items()):
        if window is not None:
            yield from _check_window(profiles, name, profile, window)
        for layer, rule in sorted(profile.layers.items()):
            if rule.cap is not None and _exceeds(rule.floor, rule.cap, window):
                yield Finding(name, "error", f"layer {layer}: the floor exceeds the cap")
            if rule.ratio == 0 and profile.surplus == "ratio" and rule.floor == Amount(0):
                yield Finding(name, "warning", f"layer {layer}: neither floor nor ratio, so it gets no grant")


def _exceeds(floor: Amount, cap: Amount, window: int | None) -> bool:
    """Whether a floor is above a cap; tokens and shares compare only given a window."""
    if (floor.share is None) == (cap.share is None):
        return floor > cap if floor.share is None else floor.share > (cap.share or 0)
    return window is not None and floor.of(window) > cap.of(window)


def _check_window(profiles: ProfileSet, name: str, profile: Profile, window: int) -> Iterator[Finding]:
    room = window - profile.output.of(window)
    base = room - profiles.standing_max
    floors = sum((rule.floor.of(int(base)) for rule in profile.layers.values()), Fraction(0))
    if profiles.standing_max + floors > room:
        over = float(profiles.standing_max + floors - room)
        yield Finding(
            name,
            "error",
            f"floors, standing_max and the output reserve exceed the smallest window by {over:.6g} tokens",
        )
