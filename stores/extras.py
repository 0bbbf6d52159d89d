"""Framework packages are extras: what is missing is named together with the command that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import framework packages inside this block: ``with extra("chroma"): import chromadb``.

    Raises:
        ImportError: A package is missing; the message names the extra of Loadmaster that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "loadmaster":
            raise  # a fault of ours, which no installation would cure
        raise ImportError(
            f"{error.name} is not installed; install it with: pip install 'loadmaster[{name}]'",
            name=error.name,
        ) from error
