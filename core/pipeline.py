"""The compiler: ten passes, in this order, from a parsed problem to a bundle or a failure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from loadmaster.core.canonical import digest_of_sequence
from loadmaster.core.draft import Draft
from loadmaster.core.failures.explain import explain_failure
from loadmaster.core.failures.failure import CompileFailure
from loadmaster.core.items import BANDS, STABILITIES
from loadmaster.core.passes.admission import admit
from loadmaster.core.passes.alternatives import choose_alternatives
from loadmaster.core.passes.closure import close
from loadmaster.core.passes.eligibility import check_eligibility
from loadmaster.core.passes.feasibility import prove_feasibility
from loadmaster.core.passes.freshness import check_freshness
from loadmaster.core.passes.inventory import inventory
from loadmaster.core.passes.layout import LAYOUTS, lay_out
from loadmaster.core.passes.render import render
from loadmaster.core.passes.validate import validate
from loadmaster.core.problem import Problem
from loadmaster.core.result import (
    Block,
    Bundle,
    Omission,
    Prefix,
    ProfileUsed,
    Tokens,
    block_bytes,
    row_to_dict,
)
from loadmaster.core.selection.accounts import STANDING, TASK, totals
from loadmaster.core.trace import PassCount, Trace
from loadmaster.core.wording import cause_of, would

Pass = Callable[[Draft], Draft]

LEGALITY: tuple[Pass, ...] = (
    inventory,
    check_eligibility,
    check_freshness,
    choose_alternatives,
    close,
    prove_feasibility,
)
"""What decides whether a legal bundle exists at all. No score is read here."""

SELECTION: tuple[Pass, ...] = (admit, lay_out, render)
"""What fills the bundle and gives it its exact bytes."""

NAMES: Mapping[Pass, str] = {
    inventory: "inventory",
    check_eligibility: "eligibility",
    check_freshness: "freshness",
    choose_alternatives: "alternatives",
    close: "closure",
    prove_feasibility: "feasibility",
    admit: "admission",
    lay_out: "layout",
    render: "render",
}


def run(problem: Problem) -> tuple[Draft, tuple[PassCount, ...], bool]:
    """Run passes 1 to 9; gives the draft, what each pass did, and whether a legal bundle came out."""
    draft = Draft(problem)
    counts: list[PassCount] = []
    for step in LEGALITY:
        draft = _counted(step, draft, counts)
    assert draft.musts is not None
    if draft.blockers or draft.musts.needed > problem.limits.capacity:
        return draft, tuple(counts), False
    for step in SELECTION:
        draft = _counted(step, draft, counts)
    assert draft.rendered is not None
    return draft, tuple(counts), draft.rendered.used <= problem.limits.capacity


def _counted(step: Pass, draft: Draft, counts: list[PassCount]) -> Draft:
    before = len(draft.items or draft.problem.items) - len(draft.out)
    draft = step(draft)
    tokens = None
    if draft.rendered is not None:
        tokens = draft.rendered.used
    elif draft.packed is not None:
        tokens = draft.packed.ledger.total
    elif draft.musts is not None:
        tokens = ceil(draft.musts.needed)
    counts.append(PassCount(NAMES[step], before, len(draft.items) - len(draft.out), tokens))
    return draft


def compile_problem(problem: Problem) -> Bundle | CompileFailure:
    """Compile a problem. Equal problems give equal bytes; a failure is a value, never an exception."""
    draft, counts, ok = run(problem)
    profile = ProfileUsed(problem.policy.name, problem.policy.profiles.version, problem.policy.why)
    if not ok:
        return explain_failure(
            draft,
            _tokens(draft),
            profile,
            lambda relaxed: run(relaxed)[2],
            lambda foot: Trace(problem, draft.log, counts, "failure", foot),
        )
    blocks = _blocks(draft)
    digest = digest_of_sequence((block_bytes(block) for block in blocks), problem.digest_key)
    assert draft.packed is not None and draft.pool is not None
    tokens, rows = _tokens(draft), draft.packed.rows
    foot = {
        "digest": digest,
        "tokens": tokens.figures(),
        "allocation": [{**row_to_dict(row), "ratio": str(row.ratio)} for row in rows],
    }
    bundle = Bundle(
        digest=digest,
        prefix=_prefix(blocks, problem.digest_key),
        tokens=tokens,
        profile=profile,
        policies={
            "profiles": problem.policy.profiles.version,
            "layout": LAYOUTS[problem.policy.profile.layout],
            "renderer": problem.renderer.name,
            "compiler": problem.compiler,
        },
        allocation=rows,
        blocks=blocks,
        omitted=tuple(
            Omission(decision.item, decision.step, decision.rule, would(decision), cause_of(decision))
            for _, decision in sorted(draft.out.items())
        ),
        chat=draft.pool.chat,
        trace=Trace(problem, draft.log, counts, "bundle", foot),
    )
    return validate(problem, bundle)


def _blocks(draft: Draft) -> tuple[Block, ...]:
    pool, packed, rendered = draft.pool, draft.packed, draft.rendered
    assert pool is not None and packed is not None and rendered is not None
    blocks = []
    for index, text in zip(draft.order, rendered.texts, strict=True):
        item, place = pool.items[index], packed.ledger.place[index]
        form = pool.legal[index][place]
        blocks.append(
            Block(
                id=item.id,
                ref=item.ref,
                section=item.section,
                layer=item.layer,
                band=BANDS[draft.bands[index]],
                form=form.name,
                kind=form.kind,  # type: ignore[arg-type]
                tokens=pool.cost[index][place],
                stability=STABILITIES[item.stability],
                text=text,
                value=form.value,
                metadata=item.candidate.metadata,
            )
        )
    return tuple(blocks)


def _prefix(blocks: tuple[Block, ...], key: bytes | None) -> Prefix:
    """Find the leading run whose stability never drops, up to what is appended to and never changed."""
    last = 0
    run_of: list[Block] = []
    for block in blocks:
        stability = STABILITIES.index(block.stability)
        if stability < last or stability > STABILITIES.index("append"):
            break
        last = stability
        run_of.append(block)
    digest = ""
    for block in run_of:
        digest = digest_of_sequence([digest.encode(), block_bytes(block)], key)
    return Prefix(digest or digest_of_sequence([], key), sum(block.tokens for block in run_of), len(run_of))


def _tokens(draft: Draft) -> Tokens:
    """Report the budget arithmetic as it is, also where it is negative."""
    limits, counter, pool = draft.problem.limits, draft.problem.meter.counter, draft.pool
    assert pool is not None and draft.musts is not None
    if draft.packed is not None:
        held = draft.packed.ledger.held
        standing = held.get(STANDING, 0)
    else:
        held = totals(pool, draft.musts.picks, draft.musts.account)
        standing = held.get(STANDING, 0) + pool.priming
    used = draft.rendered.used if draft.rendered else sum(held.values()) - held.get(STANDING, 0) + standing
    blocks = 0
    if draft.rendered is not None and draft.packed is not None:
        blocks = sum(pool.cost[index][draft.packed.ledger.place[index]] for index in draft.order)
    return Tokens(
        window=limits.window,
        usable=limits.usable,
        headroom=limits.headroom,
        capacity=limits.capacity,
        standing=standing,
        task=held.get(TASK, 0),
        used=used,
        framing=used - blocks if draft.rendered else pool.priming,
        slack_reason=draft.packed.slack_reason if draft.packed else None,
        encoding=counter.encoding,
        source=counter.source,
        margin=counter.margin,
    )
