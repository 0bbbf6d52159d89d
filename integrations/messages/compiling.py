"""Compiling a chat history: from OpenAI-form messages and a budget to a bundle that is ready to send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from loadmaster.compiler import Compiler
from loadmaster.core.contract import MAX_INTEGER, Budget, Candidate, Request, TokenizerName
from loadmaster.core.failures.failure import CompileFailure
from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.core.result import Bundle
from loadmaster.integrations.messages.candidates import LATEST_HUMAN, candidates_of
from loadmaster.integrations.messages.checks import faults_of
from loadmaster.integrations.messages.history import Message

ROUTE = "/messages"
"""The route that decides the profile where the caller names none: a history is a step of an agent."""

_SENDABLE: Mapping[str, str] = {
    "empty": "some text: providers refuse an empty message",
    "unanswered_call": "an answer to each of its calls, directly after it",
    "orphan_result": "the call that it answers, directly before it",
    "no_user_before": "a user message before it: providers want one first",
    "arguments_no_object": "arguments that are a JSON object",
}
"""What would let a message in that no provider takes as it is."""

_TOKENIZERS = tuple(name for name in get_args(TokenizerName) if name != "declared")
"""Messages declare no tokens, so only what counts can count them."""


def compile_messages(
    compiler: Compiler,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    budget: int,
    tokenizer: str | None = None,
    profile: str | None = None,
) -> Bundle | CompileFailure:
    """Compile an OpenAI-form chat history, with its tool schemas, into what fits a budget.

    Args:
        compiler: Holds the policy and the cache of counts.
        messages: The history, oldest first. The objects that are kept come out unchanged.
        tools: The tool schemas that go along.
        budget: Tokens that may be sent: messages with their framing, and schemas. Reserve room for
            the reply before.
        tokenizer: The encoding to count with; by default the compiler's.
        profile: The profile to compile under; by default the one that the set's route ``/agent`` names.

    Returns:
        A bundle whose ``messages`` and ``tools`` are ready to send, legal for OpenAI, Anthropic and
        Gemini alike; or the failure. A history without a user message is a failure, since no message
        list can start with anything else.

    Raises:
        InvalidInput: A message, a tool schema or an option is malformed; every fault is in it.
    """
    faults = [*_option_faults(budget, tokenizer, profile), *faults_of(messages, tools)]
    if faults:
        raise InvalidInput(faults)
    request = Request(
        id="messages",
        route=ROUTE,
        profile=profile,
        tokenizer=cast(TokenizerName | None, tokenizer),
        budget=Budget(window=budget, output=0),
        requires=() if any(message["role"] == "user" for message in messages) else (LATEST_HUMAN,),
    )
    candidates = candidates_of(messages, tools, checked=True)
    result = compiler.compile(request, candidates)
    return _with_reasons(result, candidates) if isinstance(result, Bundle) else result


def _with_reasons(bundle: Bundle, candidates: Sequence[Candidate]) -> Bundle:
    """Say what would let in each message that no provider takes; the compiler saw only a lack of forms."""
    reasons = {
        candidate.id: _SENDABLE[candidate.metadata["unsendable"]]
        for candidate in candidates
        if "unsendable" in candidate.metadata
    }
    omitted = tuple(
        replace(omission, would=reasons[omission.id])
        if omission.rule == "no_legal_form" and omission.id in reasons
        else omission
        for omission in bundle.omitted
    )
    return replace(bundle, omitted=omitted)


def _option_faults(budget: Any, tokenizer: Any, profile: Any) -> Iterator[Fault]:
    if isinstance(budget, bool) or not isinstance(budget, int) or not 0 <= budget <= MAX_INTEGER:
        yield Fault("budget", f"must be a whole number between 0 and {MAX_INTEGER}")
    if tokenizer is not None and tokenizer not in _TOKENIZERS:
        yield Fault("tokenizer", f"must be one of {', '.join(_TOKENIZERS)}")
    if profile is not None and (not isinstance(profile, str) or not profile):
        yield Fault("profile", "must be the name of a profile")
