"""Seeded pools of candidates, to measure speed and size on. Nothing here says anything about quality.

``flat`` is the workload on which the peers were measured: one mandatory text and candidates of
about 20 to 400 tokens, each with a relevance of its own. ``mixed`` spreads such candidates over all
layers and gives them forms, groups, dependencies, scopes and times.
"""

from __future__ import annotations

from random import Random
from typing import Any

Document = dict[str, Any]

BUDGET = 8_000
LAYERS = ("session", "conversation", "tools", "memory", "graph", "rag")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_COMMON = _words(
    "the of and a to in is that it was for on are as with they at be this from have or by one had not "
    "but what all were when we there can an your which their said if do will each about how up out them "
    "then she many some so these would other into has more her two like him see time could no make than "
    "first been its who now people"
)
_PLAIN = _words(
    "account address agent answer archive argument audit balance batch branch budget cache change "
    "channel claim client cluster column commit config contract counter customer database deadline "
    "default delivery deploy device document draft engine entry error estimate event evidence export "
    "failure feature field figure filter folder forecast format function gateway graph group handler "
    "history image import index input instance invoice issue journal label latency layer ledger library "
    "limit market margin measure memory merge message method metric migration model module monitor "
    "network notice number object office option order output owner packet parser partner payment period "
    "pipeline policy price process product profile project protocol quarter query queue record region "
    "release report request reserve result review revenue rollback route sample schedule schema scope "
    "search section sensor server service session shipment signal source stable storage stream summary "
    "supplier support system table target tenant thread ticket token trace traffic transfer update "
    "upgrade user validation value vendor version volume warehouse window worker workflow zone"
)
_HEADS = _words("bar cor del fen gal hel kan lor mar nor pel quin ros sol tar vel")
_TAILS = _words("a and berg dale en ford ia is mont on ova stein ton wick")


def text_of(rng: Random, words: int) -> str:
    """Write sentences of so many natural-looking words: common ones, terms, some names and figures."""
    written = []
    left = 0
    for position in range(words):
        if left == 0:
            left = rng.randint(6, 18)
            start = True
        else:
            start = False
        kind = rng.random()
        if kind < 0.5:
            word = rng.choice(_COMMON)
        elif kind < 0.93:
            word = rng.choice(_PLAIN)
        elif kind < 0.98:
            word = (rng.choice(_HEADS) + rng.choice(_TAILS)).capitalize()
        else:
            word = str(rng.randint(2, 4_000))
        left -= 1
        end = "." if left == 0 or position == words - 1 else "," if rng.random() < 0.06 else ""
        written.append((word[0].upper() + word[1:] if start else word) + end)
    return " ".join(written)


def _relevance(rng: Random) -> float:
    return rng.randint(1, 1_000_000) / 1_000_000


def _mandatory(rng: Random) -> Document:
    return {
        "id": "instructions",
        "section": "governing",
        "band": "mandatory",
        "authority": "system",
        "forms": [{"form": "full", "text": text_of(rng, 172)}],
    }


def flat(size: int, order: str, seed: int = 15) -> Document:
    """Give the peers' workload: one layer, one form each, no relations; ``order`` is the profile's."""
    rng = Random(f"flat/{seed}/{size}")  # the order changes nothing in the pool
    candidates = [_mandatory(rng)]
    for number in range(size):
        text = text_of(rng, rng.randint(17, 345))
        candidates.append(
            {
                "id": f"c{number:05}",
                "layer": "rag",
                "relevance": _relevance(rng),
                "forms": [{"form": "full", "text": text}],
            }
        )
    profile = {"order": order, "price": 0, "layers": {"rag": {"ratio": 1}}}
    return {
        "schema": 1,
        "request": {"id": "bench", "tokenizer": "o200k_base", "budget": {"window": BUDGET}},
        "candidates": candidates,
        "profiles": {
            "version": "bench-1",
            "layers": ["rag"],
            "default": "flat",
            "profiles": {"flat": profile},
        },
    }


def mixed(size: int, seed: int = 15) -> Document:
    """Give a pool with everything in it, for the packaged chat profile.

    One candidate in four has two or three forms, one in ten a dependency, one in ten is in a group of two or
    three, one in thirty belongs to another tenant, one in twenty has a validity that may be over.
    """
    rng = Random(f"mixed/{seed}/{size}")
    candidates = [_mandatory(rng)]
    group = 0
    grouped = 0
    for number in range(size):
        words = rng.randint(17, 345)
        forms: list[Document] = [{"form": "full", "text": text_of(rng, words)}]
        if rng.random() < 0.25:
            forms.append({"form": "compact", "text": text_of(rng, max(8, words // 3))})
            if rng.random() < 0.5:
                forms.append({"form": "dense", "text": text_of(rng, max(8, words * 2 // 3))})
        candidate: Document = {
            "id": f"c{number:05}",
            "layer": rng.choice(LAYERS),
            "relevance": _relevance(rng),
            "scope": {"tenant": "b" if rng.random() < 1 / 30 else "a"},
            "source": {"id": f"s{number:05}", "version": "1.0"},
            "order": [number],
            "forms": forms,
        }
        if number and rng.random() < 0.1:
            candidate["requires"] = [f"c{rng.randrange(number):05}"]
        if grouped:
            candidate["group"] = f"g{group}"
            grouped -= 1
        elif number < size - 3 and rng.random() < 0.04:
            group += 1
            candidate["group"] = f"g{group}"
            grouped = rng.randint(1, 2)
        if rng.random() < 0.05:
            day = rng.randint(1, 28)
            candidate["freshness"] = {
                "observed_at": "2026-10-01T00:00:00Z",
                "valid_from": "2026-10-01T00:00:00Z",
                "valid_until": f"2026-11-{day:02}T00:00:00Z",
                "state": "current",
            }
        if rng.random() < 0.02:
            candidate["band"] = "supported"
        candidates.append(candidate)
    return {
        "schema": 1,
        "request": {
            "id": "bench",
            "profile": "chat",
            "tokenizer": "o200k_base",
            "budget": {"window": BUDGET, "output": 0},
            "scope": {"tenant": "a"},
            "as_of": "2026-11-20T12:00:00Z",
        },
        "candidates": candidates,
    }
