"""Everything that a result knows about one candidate, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from loadmaster.screens.bundle import band_of
from loadmaster.screens.failure import action_words
from loadmaster.screens.meanings import BANDS, DEPENDENCY, rule_of
from loadmaster.screens.page import BAD, DIM, GOOD, HEAD, WARN, Cell, Page, Part
from loadmaster.screens.results import BlockView, BundleView, FactView, FailureView, OmissionView, Result
from loadmaster.screens.words import count, head, number, safe, sentence

MOST_LINKS = 8
"""A chain of causes longer than this is shown by its beginning."""
LABEL = 12
TEXT_SHOWN = 240
NEAR_SEARCHED = 20_000
"""So many ids are searched for one that is nearly the id that was asked for."""


def item_screen(result: Result, item: str, width: int) -> Page | None:
    """Explain one candidate; None if the result does not know the id."""
    page = Page(width)
    if isinstance(result, BundleView):
        return page if _in_bundle(page, result, item) else None
    if isinstance(result, FailureView):
        return page if _in_failure(page, result, item) else None
    return None


def near_ids(result: Result, item: str) -> list[str]:
    """Give up to three ids of the result that the unknown one may stand for."""
    known = list(dict.fromkeys(_ids(result)))
    lower = item.lower()
    inside = [identifier for identifier in known if lower and lower in identifier.lower()]
    close = get_close_matches(item, known[:NEAR_SEARCHED], n=3, cutoff=0.6) if len(item) < 200 else []
    return list(dict.fromkeys([*close, *inside]))[:3]


def _ids(result: Result) -> Iterator[str]:
    if isinstance(result, BundleView):
        yield from (block.id for block in result.blocks)
        yield from (omission.id for omission in result.omitted)
    elif isinstance(result, FailureView):
        yield from (fact.id for fact in result.blocking)
        yield from (identifier for other in result.also for identifier in other.ids)


def _fields(page: Page, *rows: tuple[str, Part]) -> None:
    page.table([[Cell(name.ljust(LABEL), DIM), value] for name, value in rows], align="ll")


def _in_bundle(page: Page, result: BundleView, item: str) -> bool:
    for at, block in enumerate(result.blocks):
        if block.id == item:
            _block(page, result, at, block)
            return True
    outside = {omission.id: omission for omission in result.omitted}
    if item in outside:
        _omission(page, result, outside, outside[item])
        return True
    shown = [at for at, block in enumerate(result.blocks) if block.ref == item]
    if shown:
        _block(page, result, shown[0], result.blocks[shown[0]])
    return bool(shown)


def _block(page: Page, result: BundleView, at: int, block: BlockView) -> None:
    page.add(
        Cell(block.id, HEAD), " is ", Cell("in", GOOD), f", as {block.form}, {count(block.tokens, 'token')}"
    )
    band = band_of(block)
    _fields(page, ("why", f"{band}: {BANDS.get(band, DEPENDENCY)}"), ("layer", _layer(result, block)))
    before = sum(other.tokens for other in result.blocks[:at])
    place = (
        f"block {at + 1:,} of {len(result.blocks):,}, section {block.section}, after {number(before)} tokens"
    )
    cached = at < result.prefix.blocks
    stays = f"{block.stability}; {'inside' if cached else 'after'} the prefix that a cache can keep"
    _fields(page, ("place", place), ("stability", stays))
    if block.kind != "text":
        _fields(page, ("sent as", f"a {block.kind}"))
    if block.ref is not None:
        _fields(page, ("shown as", f"{block.ref}, the id that the model sees"))
    copies = [other.id for other in result.omitted if other.rule == "merged" and other.cause == block.id]
    replaced = [
        other.id for other in result.omitted if other.rule == "superseded" and other.cause == block.id
    ]
    if copies:
        _fields(page, ("also", f"stands for {sentence(copies)}, merged into it"))
    if replaced:
        _fields(page, ("also", f"replaces {sentence(replaced)}"))
    text = block.text.strip()
    shown = head(safe(text), TEXT_SHOWN)
    _fields(page, ("text", shown + ("…" if len(shown) < len(safe(text)) else "")))


def _layer(result: BundleView, block: BlockView) -> str:
    if block.layer is None:
        return "none: it counts as " + ("the task" if block.section == "task" else "standing content")
    for row in result.allocation:
        if row.layer == block.layer:
            wants, granted, used = number(row.wants), number(row.granted), number(row.used)
            return f"{block.layer}: wants {wants}, granted {granted}, used {used} tokens"
    return block.layer


def _omission(
    page: Page, result: BundleView, outside: dict[str, OmissionView], omission: OmissionView
) -> None:
    rule = rule_of(omission.rule)
    free = f"; {count(result.tokens.slack, 'token')} stayed free" if omission.rule == "no_room" else ""
    page.add(Cell(omission.id, HEAD), " is ", Cell("out", BAD), f": {rule.short}")
    _fields(
        page,
        ("why", rule.why + free),
        ("let it in", omission.would),
        ("decided", f"pass {omission.step}, rule {omission.rule}"),
    )
    _causes(page, result, outside, omission)
    dependents = [other.id for other in outside.values() if other.cause == omission.id]
    if dependents:
        shown = sentence(dependents[:5] + ([f"{len(dependents) - 5:,} more"] if len(dependents) > 5 else []))
        _fields(page, ("because of it", f"{shown} {'is' if len(dependents) == 1 else 'are'} out too"))


def _causes(page: Page, result: BundleView, outside: dict[str, OmissionView], omission: OmissionView) -> None:
    """Follow the chain of causes to its end: an omission that turned on nothing else, or what is in."""
    seen = {omission.id}
    cause = omission.cause
    while cause is not None:
        if cause in seen or len(seen) > MOST_LINKS:
            _fields(page, ("and so on", "" if cause not in seen else f"{cause} leads back to itself"))
            return
        seen.add(cause)
        link = outside.get(cause)
        if link is None:
            inside = any(block.id == cause for block in result.blocks)
            _fields(page, ("and that", f"{cause} is in" if inside else f"no candidate has the id {cause}"))
            return
        fate = f"{cause} is out: {rule_of(link.rule).short}; to let it in: {link.would}"
        _fields(page, ("and that", Cell(fate, WARN)))
        cause = link.cause


def _in_failure(page: Page, result: FailureView, item: str) -> bool:
    facts = [fact for fact in result.blocking if fact.id == item]
    also = [other.code for other in result.also if item in other.ids]
    if not facts and not also:
        return False
    page.add(
        Cell(item, HEAD),
        " ",
        Cell("blocks", BAD),
        f" this compile: {sentence([*_codes(result, facts), *also])}",
    )
    for fact in facts:
        _fact(page, fact)
    cures = [at + 1 for at, cure in enumerate(result.relaxations) if item in cure.remove]
    if cures:
        which = f"{sentence(map(str, cures))} of {len(result.relaxations)}"
        _fields(page, ("cure", f"smallest change {which} goes without it, and compiles"))
    for remedy in result.remedies:
        if item in remedy.params.get("ids", ()):
            at = list(remedy.params["ids"]).index(item)
            own_tokens = {"tokens": remedy.params["tokens"][at : at + 1]} if "tokens" in remedy.params else {}
            own = remedy.model_copy(update={"params": {"ids": [item], **own_tokens}, "frees": None})
            _fields(page, (remedy.owner, action_words(own, page.width)))
    return True


def _codes(result: FailureView, facts: list[FactView]) -> list[str]:
    return [result.code] if facts else []


def _fact(page: Page, fact: FactView) -> None:
    what = "the floor of a layer" if fact.kind == "floor" else f"a must-have, band {fact.band or 'required'}"
    _fields(page, ("what", what), ("why", rule_of(fact.rule.partition(":")[0]).why))
    if fact.layer is not None:
        _fields(page, ("layer", fact.layer))
    if fact.tokens is not None:
        _fields(page, ("tokens", number(fact.tokens)))
    if fact.via:
        _fields(page, ("leads to", " -> ".join(fact.via)))
