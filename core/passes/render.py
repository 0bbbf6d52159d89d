"""Pass 9, render and repair: exact serialisation decides the cost. Text is never cut."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.draft import Decision, Draft, Rendered
from loadmaster.core.items import DISCRETIONARY, SUPPORTED
from loadmaster.core.passes.layout import lay_out
from loadmaster.core.pricing import CONTEXT_ENVELOPE, SYSTEM_ENVELOPE


def render(draft: Draft) -> Draft:
    """Serialise the bundle; while it is over budget, take out the unit that was admitted last.

    Only a counter or a renderer whose counts do not add up gets here over budget. Must-haves that
    are over by themselves are left for the failure, with the rendered figures.
    """
    draft = _serialise(draft)
    while draft.rendered is not None and draft.rendered.used > draft.problem.limits.capacity:
        assert draft.pool is not None and draft.packed is not None
        entered = draft.packed.entered
        last = next(
            (
                lead
                for band in (DISCRETIONARY, SUPPORTED)
                for lead in reversed(entered)
                if draft.pool.unit_bands[lead] == band
            ),
            None,
        )
        if last is None:
            return draft
        ledger = draft.packed.ledger.copy()
        gone = ledger.remove(draft.pool.unit(last))
        removed = {
            index: Decision("render", draft.items[index].id, "omitted", "over_after_rendering")
            for index in sorted(gone)
            if index < len(draft.items)
        }
        rows = tuple(row._replace(used=ledger.held.get(row.layer, 0)) for row in draft.packed.rows)
        packed = replace(
            draft.packed,
            ledger=ledger,
            entered=tuple(lead for lead in entered if lead != last),
            rows=tuple(row._replace(floor_unmet=row.used < min(row.floor, row.wants)) for row in rows),
            slack_reason="nothing_fits",
        )
        draft = replace(
            draft, packed=packed, out={**draft.out, **removed}, log=(*draft.log, *removed.values())
        )
        draft = _serialise(lay_out(draft))
    return draft


def _serialise(draft: Draft) -> Draft:
    pool, packed, problem = draft.pool, draft.packed, draft.problem
    assert pool is not None and packed is not None
    texts = []
    used = pool.priming
    governing = context = ""
    # Declared counts are sums by definition, however the text is joined.
    additive = problem.meter.declared or (problem.renderer.additive and problem.meter.counter.additive)
    for index in draft.order:
        item, place = pool.items[index], packed.ledger.place[index]
        form = pool.legal[index][place]
        text = form.body if form.kind != "text" else problem.renderer.block(item, form, pool.tags.get(index))
        texts.append(text)
        if form.kind != "text" or additive:
            used += pool.cost[index][place]
        elif item.section == "governing":
            governing += text
        else:
            context += text
    if additive:
        envelopes = (index for index in packed.ledger.place if index >= len(draft.items))
        used += sum(pool.cost[index][0] for index in envelopes)
    elif pool.chat:
        for envelope, text in ((SYSTEM_ENVELOPE, governing), (CONTEXT_ENVELOPE, context)):
            used += problem.meter.charge_message({**envelope, "content": text}) if text else 0
    else:
        used += problem.meter.charge_text(governing + context)
    return replace(draft, rendered=Rendered(tuple(texts), used))
