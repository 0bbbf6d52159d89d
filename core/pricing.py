"""Prices: what each legal form costs in the bundle, by exact serialisation and content hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loadmaster.core.contract import Candidate, Form
from loadmaster.core.items import DISCRETIONARY, Item, ItemForm, item_of
from loadmaster.core.pool import Pool
from loadmaster.core.problem import Problem

SYSTEM_ENVELOPE = {"role": "system", "content": ""}
CONTEXT_ENVELOPE = {"role": "user", "content": ""}


def price(
    problem: Problem, items: Sequence[Item], legal: Sequence[tuple[ItemForm, ...]], tags: Mapping[int, str]
) -> list[tuple[int, ...]]:
    """Price every legal form; the text of a block is built and counted only if it was never seen."""
    meter, renderer = problem.meter, problem.renderer
    if meter.declared:
        return [tuple([form.declared or 0 for form in forms]) for forms in legal]
    costs: list[tuple[int, ...]] = []
    known = meter.known
    for index, forms in enumerate(legal):
        if len(forms) == 1 and not tags:
            cached = known((renderer.name, forms[0].digest))
            if cached is not None:
                costs.append((cached,))
                continue
        item, tag = items[index], tags.get(index)
        costs.append(tuple([price_form(problem, item, form, tag) for form in forms]))
    return costs


def price_form(problem: Problem, item: Item, form: ItemForm, tag: str | None) -> int:
    """Price one form of one candidate."""
    meter, renderer = problem.meter, problem.renderer
    if meter.declared:
        return form.declared or 0
    key = (renderer.name, form.digest) if tag is None else (renderer.name, form.digest, tag)
    cached = meter.known(key)
    if cached is None:
        if form.value is None:
            cached = meter.charge_text(renderer.block(item, form, tag))
        elif form.kind == "message":
            cached = meter.charge_message(form.value)
        else:
            cached = meter.charge_text(form.body)
        meter.learn(key, cached)
    return cached


def envelopes(problem: Problem, pool: Pool) -> Pool:
    """Charge the message that carries text blocks to the first block in it, once.

    In a bundle that is sent as messages, governing text makes the leading system message and other
    text one more; each is a shared dependency of the forms that travel in it.
    """
    count = len(pool.items)
    meter = problem.meter
    prices = [(meter.charge_message(SYSTEM_ENVELOPE),), (meter.charge_message(CONTEXT_ENVELOPE),)]
    needs, form_needs = dict(pool.needs), dict(pool.form_needs)
    for index in pool.live:
        envelope = count if pool.items[index].section == "governing" else count + 1
        forms = pool.legal[index]
        if len(forms) == 1 and forms[0].kind == "text":
            needs[index] = (*needs.get(index, ()), envelope)
            continue
        for place, form in enumerate(forms):
            if form.kind == "text":
                form_needs[index, place] = (*form_needs.get((index, place), ()), envelope)
    return replace(
        pool,
        items=[*pool.items, *_ENVELOPES],
        bands=[*pool.bands, DISCRETIONARY, DISCRETIONARY],
        unit_bands=[*pool.unit_bands, DISCRETIONARY, DISCRETIONARY],
        legal=[*pool.legal, *(envelope.forms for envelope in _ENVELOPES)],
        cost=[*pool.cost, *prices],
        needs=needs,
        form_needs=form_needs,
    )


_ENVELOPES = tuple(
    item_of(Candidate(id=f"{role} message", forms=(Form(form="full", text=""),))) for role in ("system", "context")
)
