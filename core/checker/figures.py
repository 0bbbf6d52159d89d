"""The checker's rules about figures: what a bundle costs, who pays for it, and the digests over it.

Who pays is not always told by the bundle alone: a dependency that two units share was paid by the
first of them. Where that is open, a figure must lie between the least and the most that it can be;
the accounts must sum exactly in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor

from loadmaster.core.canonical import canonical_json, digest_of_sequence
from loadmaster.core.checker.case import STANDING, TASK, Account, Case, Violation
from loadmaster.core.items import STABILITIES
from loadmaster.core.profiles import Amount, LayerRule
from loadmaster.core.result import Block

LAYOUTS = {"canonical": "canonical/1", "cache": "cache/1"}


def check_policy(case: Case) -> Iterator[Violation]:
    """The bundle names the policies that it was made under."""
    problem, bundle = case.problem, case.bundle
    version = problem.policy.profiles.version
    used = bundle.profile
    if (used.name, used.version, used.why) != (problem.policy.name, version, problem.policy.why):
        yield Violation("policy", None, "names another profile, version or reason than the one in force")
    right = {
        "profiles": version,
        "layout": LAYOUTS[problem.policy.profile.layout],
        "renderer": problem.renderer.name,
        "compiler": problem.compiler,
    }
    for name in sorted(right.keys() | bundle.policies.keys()):
        if bundle.policies.get(name) != right.get(name):
            yield Violation("policy", None, f"names another {name} than the one in force")


def check_digests(case: Case) -> Iterator[Violation]:
    """The digest covers the blocks in order, the prefix the longest run that a cache may keep."""
    key, blocks = case.problem.digest_key, case.bundle.blocks
    parts = [_bytes(block) for block in blocks]
    if case.bundle.digest != digest_of_sequence(parts, key):
        yield Violation("digest", None, "is not the digest of the blocks in their order")
    # Stability may not drop, and what changes with each turn ends the run.
    length, last = 0, 0
    for block in blocks:
        rank = STABILITIES.index(block.stability) if block.stability in STABILITIES else len(STABILITIES)
        if rank < last or rank > STABILITIES.index("append"):
            break
        length, last = length + 1, rank
    digest = ""
    for part in parts[:length]:
        digest = digest_of_sequence([digest.encode(), part], key)
    prefix = case.bundle.prefix
    right = digest or digest_of_sequence([], key), sum(block.tokens for block in blocks[:length]), length
    if (prefix.digest, prefix.tokens, prefix.blocks) != right:
        yield Violation("prefix", None, f"is not the run of the first {length} blocks")


def _bytes(block: Block) -> bytes:
    return (block.text if block.kind == "text" else canonical_json(block.value)).encode()


def check_budget(case: Case) -> Iterator[Violation]:
    """The budget's arithmetic is the specification's, and the bundle is within it."""
    limits, tokens, counter = case.problem.limits, case.bundle.tokens, case.problem.meter.counter
    usable = limits.window - limits.output - limits.reasoning
    if limits.economic is not None:
        usable = min(usable, limits.economic)
    capacity = usable - limits.headroom
    right = {
        "window": limits.window,
        "usable": usable,
        "headroom": limits.headroom,
        "capacity": capacity,
        "allocatable": capacity - tokens.standing,
        "slack": capacity - tokens.used,
        "framing": tokens.used - sum(block.tokens for block in case.bundle.blocks),
        "encoding": counter.encoding,
        "source": counter.source,
        "margin": counter.margin,
    }
    for name, value in right.items():
        if getattr(tokens, name) != value:
            yield Violation("budget", None, f"{name} is {getattr(tokens, name)}, not {value}")
    if tokens.used > capacity:
        yield Violation("capacity", None, f"uses {tokens.used} tokens of {capacity}")


def check_size(case: Case) -> Iterator[Violation]:
    """Every block, and the whole as it is sent, count what they are said to count."""
    meter, bundle = case.problem.meter, case.bundle
    kinds = [case.kind(block) for block in bundle.blocks]
    if not bundle.chat and any(kind != "text" for kind in kinds):
        yield Violation("chat", None, "holds messages or tools, but is not sent as messages")
    parts = meter.priming if bundle.chat else 0
    whole = parts
    for block, kind in zip(bundle.blocks, kinds, strict=True):
        charge = _charge(case, block, kind)
        if block.tokens != charge:
            yield Violation("tokens", block.id, f"is charged {block.tokens} tokens, not {charge}")
        parts += charge
        whole += 0 if kind == "text" else charge
    parts += _envelopes(case)
    whole = parts if meter.declared else whole + _text_as_sent(case, kinds)
    additive = meter.declared or (meter.counter.additive and case.problem.renderer.additive)
    right = parts if additive else whole
    # Only an exact count is the same for the whole as for its parts; where each part is rounded up
    # the parts may be charged more, never less.
    exact = meter.counter.source == "exact" and not meter.counter.margin
    if bundle.tokens.used != right:
        yield Violation("size", None, f"counts {right} tokens as it is sent, not {bundle.tokens.used}")
    elif whole > right or (exact and whole != right):
        yield Violation("size", None, f"counts {whole} tokens as one text, not {right} as by its blocks")


def _charge(case: Case, block: Block, kind: str) -> int:
    """Count a block by itself; counts of the checker's own are kept, apart from those of the passes."""
    meter = case.problem.meter
    if meter.declared:
        form = case.form(block)[1] if block.id in case.blocks else None
        return block.tokens if form is None else form.tokens or 0
    key = b"checker" + sha256(f"{kind}\0{block.text}".encode()).digest()
    count = meter.cache.get(key)
    if count is None:
        if kind == "message":
            count = meter.charge_message(block.value or {})
        else:
            count = meter.charge_text(block.text)
        meter.cache.put(key, count)
    return count


def _text_as_sent(case: Case, kinds: Sequence[str]) -> int:
    """Count all text in one piece; in a message list governing text is one message, the rest another."""
    meter, pieces = case.problem.meter, {"system": "", "user": ""}
    texts = [block for block, kind in zip(case.bundle.blocks, kinds, strict=True) if kind == "text"]
    if not case.bundle.chat:
        return meter.charge_text("".join(block.text for block in texts)) if texts else 0
    for role in pieces:
        pieces[role] = "".join(
            each.text for each in texts if (each.section == "governing") == (role == "system")
        )
    return sum(
        meter.charge_message({"role": role, "content": content})
        for role, content in pieces.items()
        if content
    )


def _envelopes(case: Case) -> int:
    """Count the messages that carry text, without the text."""
    if not case.bundle.chat:
        return 0
    carried = {block.section == "governing" for block in case.bundle.blocks if block.kind == "text"}
    roles = ["system"] * (True in carried) + ["user"] * (False in carried)
    return sum(case.problem.meter.charge_message({"role": role, "content": ""}) for role in roles)


def check_accounts(case: Case) -> Iterator[Violation]:
    """Standing content, the task and the layers together pay for the bundle, each for its own."""
    bundle = case.bundle
    priming = case.problem.meter.priming if bundle.chat else 0
    envelopes = _envelopes(case)
    figures = {STANDING: bundle.tokens.standing - priming, TASK: bundle.tokens.task}
    figures.update({("layer", row.layer): row.used for row in bundle.allocation})
    total = sum(block.tokens for block in bundle.blocks) + envelopes
    if sum(figures.values()) != total:
        yield Violation("accounts", None, f"{sum(figures.values())} tokens are charged of {total}")
    least, most, anyone = Counter[Account](), Counter[Account](), envelopes
    tokens_of = Counter[str]()
    for block in bundle.blocks:
        tokens_of[block.id] += block.tokens
        anyone += 0 if case.payers.get(block.id) else block.tokens
    for identifier, payers in case.payers.items():
        tokens = tokens_of[identifier]
        for payer in payers:
            most[payer] += tokens
            if len(payers) == 1:
                least[payer] += tokens
    for account, figure in figures.items():
        if not least[account] <= figure <= most[account] + anyone:
            name = " ".join(account).strip()
            span = f"{least[account]} to {most[account] + anyone}"
            yield Violation("accounts", None, f"{name} is charged {figure} tokens, but takes {span}")


def check_layers(case: Case) -> Iterator[Violation]:
    """Each declared layer has a row by its profile's rule, and keeps its cap unless must-haves exceed it."""
    bundle, policy = case.bundle, case.problem.policy
    if tuple(row.layer for row in bundle.allocation) != policy.profiles.layers:
        yield Violation("allocation", None, "does not have one row for each declared layer, in their order")
    base = bundle.tokens.capacity - bundle.tokens.standing - bundle.tokens.task
    fixed = _is_base_fixed(case)
    forced = case.reach(case.musts)
    envelopes = _envelopes(case)
    for row in bundle.allocation:
        rule = policy.profile.layers.get(row.layer, LayerRule(cap=Amount(0)))
        for name, amount, figure in (("floor", rule.floor, row.floor), ("cap", rule.cap, row.cap)):
            right = None if amount is None else floor(_exactly(amount, base))
            if figure != right and (fixed or amount is None or amount.share is None):
                yield Violation("allocation", None, f"the {name} of {row.layer} is {figure}, not {right}")
        if row.ratio != rule.ratio:
            yield Violation("allocation", None, f"the ratio of {row.layer} is not the profile's")
        if min(row.floor_grant, row.surplus) < 0 or row.granted != row.floor_grant + row.surplus:
            yield Violation("allocation", None, f"the grant of {row.layer} is not its floor and its surplus")
        if row.floor_unmet != (row.used < min(row.floor, row.wants)):
            yield Violation("floor", None, f"the floor of {row.layer} is not rightly said to be met or unmet")
        # A floor above the cap wins; so do must-haves with what they need.
        highest = max(row.cap or 0, ceil(_exactly(rule.floor, base)) if fixed else row.floor + 1)
        if row.cap is not None and row.used > highest:
            held = sum(
                case.blocks[name].tokens
                for name, payers in case.payers.items()
                if name in forced and ("layer", row.layer) in payers
            )
            if row.used > held + envelopes:
                yield Violation(
                    "cap", None, f"{row.layer} holds {row.used} tokens above its cap of {row.cap}"
                )
    if fixed and sum(row.granted for row in bundle.allocation) > base:
        yield Violation("allocation", None, f"the grants are more than the grant base of {base}")


def _exactly(amount: Amount, base: int) -> int | Fraction:
    return amount.tokens if amount.share is None else amount.share * max(base, 0)


def _is_base_fixed(case: Case) -> bool:
    """Whether the grant base is still that of the allocation, since what makes it has one form each."""
    for identifier, payers in case.payers.items():
        if STANDING in payers or TASK in payers:
            forms = case.facts.candidate(identifier).forms
            if sum(case.facts.known.is_legal(identifier, form) for form in forms) > 1:
                return False
    return True
