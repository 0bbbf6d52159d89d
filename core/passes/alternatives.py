"""Pass 4, alternatives: what has no legal form is out."""

from __future__ import annotations

from dataclasses import replace

from loadmaster.core.draft import Blocker, Decision, Draft


def choose_alternatives(draft: Draft) -> Draft:
    """Refuse candidates that have no form within their own limits.

    Which forms those are depends on the candidate alone, so `items.Item.legal` has them already.
    """
    without = [index for index, item in enumerate(draft.items) if not item.legal and index not in draft.out]
    if not without:
        return draft
    out = dict(draft.out)
    log = list(draft.log)
    blockers = list(draft.blockers)
    for index in without:
        item = draft.items[index]
        args = {"given": [form.name for form in item.forms]}
        out[index] = Decision("alternatives", item.id, "rejected", "no_legal_form", args)
        log.append(out[index])
        if draft.is_must(index):
            blockers.append(Blocker("no_legal_representation", item.id, "no_legal_form"))
    return replace(draft, out=out, log=tuple(log), blockers=tuple(blockers))
