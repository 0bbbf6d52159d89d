"""Reads a Chroma folder in a process of its own: a ruined one can kill whoever opens it.

Run as ``python -m loadmaster.stores.vectors.probe FOLDER COLLECTION HOW``, where HOW is ``some`` or
``all`` vectors. Writes one line of JSON: what the collections are named, and how many vectors it read.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from loadmaster.stores.embeddings.grid import GRID, Grid
from loadmaster.stores.vectors.chroma import ChromaFailed, Client, Vectors

_PAGE = 1000
_NEAREST = 1000


def probe(folder: str, name: str, *, whole: bool) -> dict[str, object]:
    """Read the ids, vectors and nearest neighbours of a collection, as a search would.

    Raises:
        ChromaFailed: The folder cannot be read, or what it says does not fit together.
    """
    client = Client(folder)
    vectors = client.find(name)
    read = 0 if vectors is None else _read(vectors, whole=whole)
    found: dict[str, object] = {"collections": client.names(), "found": vectors is not None, "read": read}
    client.close()
    return found


def _read(vectors: Vectors, *, whole: bool) -> int:
    count = vectors.count()
    ids = sum(len(some) for some in vectors.everything().values())
    if ids != count:
        raise ChromaFailed(f"{count} vectors are counted, and {ids} have an id")
    read = 0
    for some, rows in vectors.pages(_PAGE):
        if rows.shape[:1] != (len(some),) or not np.isfinite(rows).all():
            raise ChromaFailed("vectors are missing or no numbers")
        if not read:
            first: Grid = np.rint(rows[0] * GRID).astype(np.int16)
            wanted = min(count, _NEAREST if whole else 10)
            found = len(vectors.nearest(first, wanted))
            if found < wanted:
                raise ChromaFailed(f"a search finds {found} vectors, and should find {wanted}")
        read += len(some)
        if not whole:
            break
    if whole and read != count:
        raise ChromaFailed(f"{count} vectors are counted, and {read} can be read")
    return read


def main(arguments: list[str]) -> int:
    """Probe the folder that the command line names, and say what was found."""
    folder, name, how = arguments
    try:
        found = probe(folder, name, whole=how == "all")
    except ChromaFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
