# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a batch do the same: most do, but for those at the edges of a problem.

What is examined block by block is examined once for each kind. Kinds are numbered in the order of the first
block of each.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Kinds = NDArray[np.intp]


def kinds_of(*parts: NDArray[Any]) -> Kinds:
    """Return the kind of each row: rows are alike where all parts are; a part of one row tells none apart."""
    count = max(len(part) for part in parts)
    # Most parts of most states tell none apart, and comparing takes a fraction of the time that copying does.
    telling = [part for part in parts if len(part) > 1 and (part[1:] != part[:-1]).any()]
    if not telling:
        return np.zeros(count, dtype=np.intp)
    rows = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in telling]
    together = np.concatenate(rows, axis=1)
    content, width = together.tobytes(), together.shape[1]
    return numbered(content[start : start + width] for start in range(0, len(content), width))


def numbered(contents: Iterable[bytes]) -> Kinds:
    """Return the kind of each content."""
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(content, len(known)) for content in contents], dtype=np.intp)


def first_of(kinds: Kinds) -> NDArray[np.intp]:
    """Return the first row of each kind."""
    return np.unique(kinds, return_index=True)[1]


def rows_of(array: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Return some rows of an array; one row stands for all."""
    return array[rows] if len(array) > 1 else array
