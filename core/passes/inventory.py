"""Pass 1, inventory: canonical order, resolved references, and the request's own requirements."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.draft import Blocker, Decision, Draft
from loadmaster.core.items import DISCRETIONARY, REQUIRED, SUPPORTED
from loadmaster.core.problem import canonical_items


def inventory(draft: Draft) -> Draft:
    """Order candidates by id and lift what the request requires to the band required.

    A required id that is not there blocks: a similar candidate never stands in for it.
    """
    items = canonical_items(draft.problem.items)
    position = {item.id: index for index, item in enumerate(items)}
    bands = [item.band for item in items]
    log = []
    blockers = []
    for identifier in draft.problem.request.requires:
        index = position.get(identifier)
        if index is None:
            blockers.append(Blocker("source_unavailable", identifier, "absent"))
        elif bands[index] in (SUPPORTED, DISCRETIONARY):
            bands[index] = REQUIRED
            log.append(Decision("inventory", identifier, "kept", "lifted", {"band": "required"}))
    return replace(
        draft, items=items, bands=bands, position=position, blockers=tuple(blockers), log=tuple(log)
    )
