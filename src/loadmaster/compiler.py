"""The Python face: a compiler that holds policy and a cache of counts, and compiles requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from loadmaster import defaults
from loadmaster.core.blocks import TAGGED, Renderer
from loadmaster.core.capabilities import ModelRow, ModelTable
from loadmaster.core.contract import Candidate, Observation, Request
from loadmaster.core.failures.failure import CompileFailure
from loadmaster.core.faults import Fault, InvalidInput
from loadmaster.core.pipeline import compile_problem
from loadmaster.core.problem import Policy, Problem, limits_of
from loadmaster.core.profiles import ProfileSet
from loadmaster.core.reading import Document, check_parts, parse_with_flaws, read_document
from loadmaster.core.result import Bundle
from loadmaster.core.tokens import (
    CountCache,
    DeclaredCounter,
    EncodingCounter,
    EstimateCounter,
    Meter,
    TokenCounter,
)

VERSION = "0.1.0"


class Compiler:
    """Compiles requests under one profile set. Safe to share between threads.

    Args:
        profiles: The profile set; by default the packaged one.
        counter: Counts tokens, whatever tokenizer a request names; by default the request's, its
            model's, or o200k_base decides.
        models: The capability table; by default the packaged one.
        renderer: How text blocks are written; by default tagged.
        digest_key: Makes digests HMACs, so that short texts cannot be guessed from them.
        cache_size: How many counts are kept.
    """

    def __init__(
        self,
        *,
        profiles: ProfileSet | None = None,
        counter: TokenCounter | None = None,
        models: ModelTable | None = None,
        renderer: Renderer = TAGGED,
        digest_key: bytes | None = None,
        cache_size: int = 1 << 18,
    ) -> None:
        self.profiles = profiles or defaults.packaged_profiles()
        self.models = models or defaults.packaged_models()
        self._counter = counter
        self._renderer = renderer
        self._digest_key = digest_key
        self._cache_size = cache_size
        self._caches: dict[tuple[str, Decimal], CountCache] = {}

    def compile(
        self,
        request: Request,
        candidates: Sequence[Candidate],
        *,
        observations: Iterable[Observation] = (),
    ) -> Bundle | CompileFailure:
        """Compile one request.

        Args:
            request: What the bundle is for.
            candidates: What might enter, in any order.
            observations: Outside answers that the candidates rest on; recorded in the trace.

        Returns:
            The bundle, or the failure if no legal bundle exists. Match on the type, or ``unwrap()``.

        Raises:
            InvalidInput: Request and candidates break the data contract.
        """
        return compile_problem(self.problem(request, candidates, observations=observations))

    def compile_document(
        self, document: Any, *, profile: str | None = None, observations: Iterable[Observation] = ()
    ) -> Bundle | CompileFailure:
        """Compile an input document: JSON text, bytes, or the data that they stand for.

        Raises:
            InvalidInput: The document breaks the data contract; every fault found is in it.
        """
        read = self.read(document, profile=profile)
        return self._compile_read(read, observations)

    def read(self, document: Any, *, profile: str | None = None) -> Document:
        """Check an input document and give its parts; ``profile`` overrides the request's.

        Raises:
            InvalidInput: The document breaks the data contract.
        """
        data, flaws = parse_with_flaws(document) if isinstance(document, str | bytes) else (document, [])
        if profile is not None and isinstance(data, dict) and isinstance(data.get("request"), dict):
            data = {**data, "request": {**data["request"], "profile": profile}}
        return read_document(data, self.profiles, flaws)

    def _compile_read(self, read: Document, observations: Iterable[Observation]) -> Bundle | CompileFailure:
        return compile_problem(self._problem(read.request, read.candidates, read.profiles, observations))

    def problem(
        self, request: Request, candidates: Sequence[Candidate], *, observations: Iterable[Observation] = ()
    ) -> Problem:
        """Resolve a request against policy and models, without compiling it.

        Raises:
            InvalidInput: Request and candidates break the data contract.
        """
        check_parts(request, candidates, self.profiles)
        return self._problem(request, candidates, self.profiles, observations)

    def _meter(self, counter: TokenCounter) -> Meter:
        """Give a meter with its encoding's cache; with one renderer, that is enough of a key."""
        key = counter.encoding, counter.margin
        return Meter(counter, self._caches.setdefault(key, CountCache(self._cache_size)))

    def _problem(
        self,
        request: Request,
        candidates: Sequence[Candidate],
        profiles: ProfileSet,
        observations: Iterable[Observation],
    ) -> Problem:
        name, why = profiles.choose(request.profile, request.route)
        policy = Policy.of(profiles, name, why)
        row = self.models.find(request.model) if request.model else None
        window = row.window if row else None
        if row is self.models.unknown and request.budget.window is not None:
            window = None  # the caller knows more than the table
        return Problem(
            request=request,
            items=tuple([candidate.item for candidate in candidates]),
            policy=policy,
            limits=limits_of(request, policy.profile, window),
            meter=self._meter(self._counter or counter_for(request, row)),
            renderer=self._renderer,
            observations=tuple(sorted(observations, key=lambda observation: observation.key)),
            digest_key=self._digest_key,
            compiler=VERSION,
        )


def counter_for(request: Request, row: ModelRow | None) -> TokenCounter:
    """Give the counter that a request or its model names, else o200k_base, else the labelled estimate.

    Raises:
        InvalidInput: The request names an encoding whose vocabulary is not on this machine.
    """
    named = request.tokenizer
    if named == "declared":
        return DeclaredCounter()
    wanted = named or (row.tokenizer if row else "o200k_base")
    if wanted != "estimate":
        encoding = defaults.find_encoding(wanted)
        margin = row.margin if row and not named else Decimal(0)
        if encoding is not None:
            return EncodingCounter(encoding, "estimated" if margin else "exact", margin)
        if named:
            hint = "install loadmaster[llamaindex], which ships it, or set TIKTOKEN_CACHE_DIR"
            raise InvalidInput(
                [Fault("request.tokenizer", f"the vocabulary of {named} is not at hand; {hint}")]
            )
    return EstimateCounter()


def compile_document(document: Any, *, profile: str | None = None) -> Bundle | CompileFailure:
    """Compile an input document under the packaged policy; see `Compiler.compile_document`."""
    return Compiler().compile_document(document, profile=profile)
