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
    if problem.meter.declared:
        return [tuple([form.declared or 0 for form in forms]) for forms in legal]
    known = problem.meter.cache.young.get
    costs: list[tuple[int, ...]] = []
    for index, forms in enumerate(legal):
        if len(forms) == 1 and not tags:
            count = known(forms[0].digest)
            if count is not None:
                costs.append((count,))
                continue
        item, tag = items[index], tags.get(index)
        costs.append(tuple([price_form(problem, item, form, tag) for form in forms]))
    return costs


def price_form(problem: Problem, item: Item, form: ItemForm, tag: str | None) -> int:
    """Price one form of one candidate; ``tag`` names the unresolved conflict that its block shows."""
    meter = problem.meter
    if meter.declared:
        return form.declared or 0
    key = form.digest if tag is None else form.digest + tag.encode()
    count = meter.cache.get(key)
    if count is None:
        if form.value is None:
            count = meter.charge_text(problem.renderer.block(item, form, tag))
        elif form.kind == "message":
            count = meter.charge_message(form.value)
        else:
            count = meter.charge_text(form.body)
        meter.cache.put(key, count)
    return count


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
        tied=pool.tied.union(needs, (index for index, _ in form_needs), (count, count + 1)),
    )


_ENVELOPES = tuple(
    item_of(Candidate(id=f"{role} message", forms=(Form(form="full", text=""),)))
    for role in ("system", "context")
)
