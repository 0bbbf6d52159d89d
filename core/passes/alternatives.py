"""Pass 4, alternatives: the legal forms of each candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loadmaster.core.draft import Blocker, Decision, Draft
from loadmaster.core.items import FORMS, Item, ItemForm


def choose_alternatives(draft: Draft) -> Draft:
    """Refuse candidates that have no form within their limits; `legal_forms` says which forms those are."""
    out = dict(draft.out)
    log = list(draft.log)
    blockers = list(draft.blockers)
    for index, item in enumerate(draft.items):
        if index in out or legal_forms(item):
            continue
        args: Mapping[str, object] = {"given": [form.name for form in item.forms]}
        out[index] = Decision("alternatives", item.id, "rejected", "no_legal_form", args)
        log.append(out[index])
        if draft.is_must(index):
            blockers.append(Blocker("no_legal_representation", item.id, "no_legal_form"))
    return replace(draft, out=out, log=tuple(log), blockers=tuple(blockers))


def legal_forms(item: Item) -> tuple[ItemForm, ...]:
    """Give the forms between ``min_form`` and ``max_form``, richest first; only full where ``exact``."""
    candidate = item.candidate
    if candidate.min_form is None and candidate.max_form is None and not candidate.exact:
        return item.forms
    richest = FORMS.index(candidate.max_form) if candidate.max_form else 0
    poorest = FORMS.index(candidate.min_form) if candidate.min_form else len(FORMS) - 1
    if candidate.exact:
        poorest = 0
    return tuple(form for form in item.forms if richest <= form.rank <= poorest)
