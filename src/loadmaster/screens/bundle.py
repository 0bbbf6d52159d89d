"""The screen of a bundle: the budget, the layers, what entered and why, what did not and what would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadmaster.core.wording import SLACK
from loadmaster.screens.meanings import BANDS, WHY_PROFILE, rule_of
from loadmaster.screens.page import DIM, GOOD, HEAD, HINT, WARN, Cell, Page, Part
from loadmaster.screens.results import BlockView, BundleView, OmissionView, RowView, TokensView
from loadmaster.screens.words import clip, clip_end, count, listing, number, percent

MOST_LINES = 24
"""What a terminal shows at once; the list of what stayed out is shortened to stay near it."""
LEAST_OUT = 7
"""Lines that the list of what stayed out may have in any case."""


def bundle_screen(result: BundleView, width: int, name: str = "RESULT") -> Page:
    """Explain a bundle on one screen; ``name`` is how the reader may call the result again."""
    page = Page(width)
    _budget(page, result)
    page.gap()
    _layers(page, result)
    page.gap()
    _entered(page, result.blocks)
    page.gap()
    _left_out(page, result.omitted, name)
    return page


def _budget(page: Page, result: BundleView) -> None:
    tokens = result.tokens
    title = f"  {count(len(result.blocks), 'block')} in, {number(len(result.omitted))} left out"
    page.add(Cell("BUNDLE", "bold green"), Cell(title, HEAD), f"; {_slack(tokens)}")
    used = (
        f"{number(tokens.used)} of {number(tokens.capacity)} tokens, {percent(tokens.used, tokens.capacity)}"
    )
    page.add(*_bar(tokens.used, tokens.capacity, max(page.width - len(used) - 2, 10)), f"  {used}")
    reserved = tokens.window - tokens.usable
    why = WHY_PROFILE.get(result.profile.why, result.profile.why)
    page.add(
        f"window {number(tokens.window)}"
        + (f" - {number(reserved)} reserved" if reserved else "")
        + (f" - {number(tokens.headroom)} headroom" if tokens.headroom else "")
        + f"; profile {result.profile.name} {result.profile.version}, {why}"
    )
    counted = f"{tokens.encoding}, {tokens.source}" if tokens.encoding != tokens.source else tokens.source
    page.add(
        f"{number(tokens.standing)} standing + {number(tokens.task)} task"
        f" + {number(tokens.used - tokens.standing - tokens.task)} in layers + {number(tokens.slack)} free",
        Cell(f"; counts: {counted}", DIM),
    )


def _bar(part: int, whole: int, width: int) -> tuple[Part, Part]:
    filled = min(max(width * part // whole, 0), width) if whole > 0 else width
    return Cell("█" * filled, GOOD), Cell("░" * (width - filled), DIM)


def _slack(tokens: TokensView) -> str:
    words = SLACK.get(tokens.slack_reason, tokens.slack_reason) if tokens.slack_reason else ""
    return f"{count(tokens.slack, 'token')} free" + (f", {words}" if words else "")


def _layers(page: Page, result: BundleView) -> None:
    shown = [row for row in result.allocation if row.wants or row.used or row.floor_unmet]
    silent = [row.layer for row in result.allocation if row not in shown]
    if not shown:
        page.add(Cell("Layers", HEAD), ": none has anything to offer")
        return
    blocks = {row.layer: sum(block.layer == row.layer for block in result.blocks) for row in shown}
    header = ["Layers", "ratio", "floor", "cap", "wants", "granted", "used", "blocks", ""]
    rows: list[list[Part]] = [
        [
            Cell(row.layer),
            f"{row.ratio:g}",
            number(row.floor or None),
            number(row.cap),
            number(row.wants),
            number(row.granted),
            Cell(number(row.used), HEAD),
            number(blocks[row.layer]),
            _remark(row),
        ]
        for row in shown
    ]
    page.table(rows, header=header, align="lrrrrrrrl", widest=20)
    if silent:
        page.add(Cell(f"nothing to offer: {listing(silent, page.width - 22)}", DIM), indent=2)


def _remark(row: RowView) -> Cell:
    if row.floor_unmet:
        return Cell("floor not met: what is left does not fit it", WARN)
    if row.cap == 0 and row.wants:
        return Cell("the profile gives it nothing", WARN)
    if row.used >= row.wants:
        return Cell("all of it", DIM)
    if row.cap is not None and row.granted >= row.cap:
        return Cell("stopped by its cap", WARN)
    short = row.wants - row.granted
    return Cell(f"wanted {number(short)} more" if short > 0 else "")


def _entered(page: Page, blocks: Sequence[BlockView]) -> None:
    groups: dict[str, list[str]] = {}
    for block in blocks:
        form = "" if block.form == "full" else f" {block.form}"
        groups.setdefault(band_of(block), []).append(f"{clip(block.id, 30)}{form} {number(block.tokens)}")
    page.add(Cell("In", HEAD), Cell(", by band, with tokens", DIM))
    order = [*BANDS, "dependency", *sorted(groups)]
    rows: list[list[Part]] = []
    for band in dict.fromkeys(order):
        if band in groups:
            rows.append([Cell(band), listing(groups[band], page.width - 17)])
    page.table(rows, align="ll")


def band_of(block: BlockView) -> str:
    """Give the band for which a block is in; what has no layer and no claim of its own is a dependency."""
    dependent = block.layer is None and block.band in ("supported", "discretionary")
    return "dependency" if dependent else block.band


def _left_out(page: Page, omitted: Sequence[OmissionView], name: str) -> None:
    if not omitted:
        page.add(Cell("Out", HEAD), ": nothing was left out")
        return
    page.add(Cell(f"Out, {number(len(omitted))}", HEAD), Cell(", and what would have let it in", DIM))
    groups: dict[str, list[OmissionView]] = {}
    for omission in omitted:
        groups.setdefault(omission.rule, []).append(omission)
    quota = _quota(groups, max(MOST_LINES - len(page.lines) - 1, LEAST_OUT))
    rows: list[list[Part]] = []
    for rule, group in sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        for at, omission in enumerate(group[: quota[rule]]):
            left = len(group) - quota[rule] if at == quota[rule] - 1 else 0
            more = f" (…and {number(left)} more like it)" if left else ""
            short = rule_of(rule).short if at == 0 else ""
            would = clip_end(omission.would, page.width)  # about two lines; on its own it is shown whole
            rows.append([Cell(short, WARN), Cell(omission.id), Cell(would + more)])
    page.table(rows, align="lll", widest=26)
    page.add(Cell(f"More on one: loadmaster explain {name} ITEM", HINT))


def _quota(groups: Mapping[str, Sequence[OmissionView]], lines: int) -> dict[str, int]:
    """Give each rule a line, then share the lines that are left in turns; one more is no count but a line."""
    quota = dict.fromkeys(groups, 1)
    left = lines - len(groups)
    while left > 0:
        hungry = [rule for rule, group in groups.items() if quota[rule] < len(group)]
        if not hungry:
            break
        for rule in hungry[:left]:
            quota[rule] += 1
        left -= len(hungry)
    return {rule: kept + (len(groups[rule]) == kept + 1) for rule, kept in quota.items()}
