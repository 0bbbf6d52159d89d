"""What is known about models: one dated table of patterns, first match wins, user-overridable.

An unknown model gets the table's most conservative row, which says so.
"""

from __future__ import annotations

from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from loadmaster.core.contract import Model, Name, Tokens, _exact_decimal


class ModelRow(Model):
    """One family of models.

    ``window`` is the largest input and output together; ``tokenizer`` the encoding to count with;
    ``margin`` the share added to each count where that encoding is only an approximation.
    """

    pattern: Name
    window: Tokens
    tokenizer: Literal["o200k_base", "cl100k_base", "estimate"]
    margin: Annotated[Decimal, BeforeValidator(_exact_decimal), Field(ge=0, le=10)] = Decimal(0)
    as_of: str
    source: str


class ModelTable(Model):
    """Rows in order of matching, and the row for models that none of them matches."""

    version: Name
    models: tuple[ModelRow, ...]
    unknown: ModelRow

    def find(self, model: str) -> ModelRow:
        """Give the first row whose pattern matches, with or without the provider's prefix."""
        names = (model, model.rpartition(":")[2], model.rpartition("/")[2])
        for row in self.models:
            if any(fnmatchcase(name, row.pattern) for name in names):
                return row
        return self.unknown
