"""Records get their vectors, which the ledger keeps: an index can be lost, and nothing is embedded twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from loadmaster.stores.embeddings import Embedder, identity
from loadmaster.stores.embeddings.grid import Grid
from loadmaster.stores.ledger.embedded import Embedded
from loadmaster.stores.ledger.ledger import Ledger, ScopeState

_MOST_FAILURES = 20  # of one call: enough to corner two texts in a batch of 256, few where a service is away


@dataclass(slots=True)
class Failures:
    """How often the embedder has failed in one synchronisation, and what it said first."""

    count: int = 0
    reason: str | None = None

    def note(self, error: Exception) -> None:
        """Count a failure."""
        self.count += 1
        if self.reason is None:
            self.reason = f"the embedder failed: {type(error).__name__}: {error}"

    @property
    def too_many(self) -> bool:
        """Say whether to leave the embedder alone until the next synchronisation."""
        return self.count >= _MOST_FAILURES


@dataclass(frozen=True, slots=True)
class Feeder:
    """Embeds what has no vector yet."""

    ledger: Ledger
    embedder: Embedder
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", str(identity(self.embedder)))

    @property
    def mark(self) -> str:
        """The name under which the ledger notes how far the scopes are embedded."""
        return mark_of(self.identity)

    def embed(self, state: ScopeState, rows: Sequence[Embedded], failures: Failures) -> int:
        """Embed those of these records that have no vector, and give how many got one.

        The embedder's failures are noted and never raised: those records stand in the ledger, and wait.

        Raises:
            LedgerUnavailable: The ledger cannot be read or written.
        """
        wanted = [row.id for row in rows if not row.has]
        if not wanted or failures.too_many:
            return 0
        found = self.ledger.get(wanted, state.scope)
        texts = {name: record.text for name, record in found.items()}
        vectors = dict(self._vectors(list(texts), list(texts.values()), failures))
        if vectors:
            self.ledger.put_vectors(state.key, self.identity, vectors)
        return len(vectors)

    def _vectors(
        self, ids: Sequence[str], texts: Sequence[str], failures: Failures
    ) -> list[tuple[str, bytes]]:
        """Embed texts; where that fails, halve them, so that one bad text does not hold up the others."""
        if not texts or failures.too_many:
            return []
        try:
            rows = checked(self.embedder.embed(texts), len(texts), self.embedder)
        except Exception as error:  # embedders are anybody's code
            failures.note(error)
            if len(texts) == 1:
                return []
            half = len(texts) // 2
            return [
                *self._vectors(ids[:half], texts[:half], failures),
                *self._vectors(ids[half:], texts[half:], failures),
            ]
        return [(name, row.tobytes()) for name, row in zip(ids, rows.astype("<i2"), strict=True)]


def mark_of(embedder: str) -> str:
    """Give the name of the mark for an embedder's identity."""
    return f"embedded:{sha256(embedder.encode()).hexdigest()[:32]}"


def checked(rows: Grid, count: int, embedder: Embedder) -> Grid:
    """Give vectors as they came, if they are what an embedder promises.

    Raises:
        ValueError: They are of another number, dimension or type.
    """
    if rows.dtype != np.int16 or rows.shape != (count, embedder.dimension):
        raise ValueError(
            f"{embedder.name} gave {rows.dtype} of shape {rows.shape} for {count} texts, instead of int16 of "
            f"shape {(count, embedder.dimension)}"
        )
    return rows
