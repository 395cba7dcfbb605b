# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One launch of one kernel, by value: what a card is asked and the executor runs.

Only the standard library and NumPy are used, so that a bare machine with a GPU can ask its card.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchCase:
    """A kernel and all that a launch of it takes.

    The kernel is `extern "C"`, and its name unique among the cases that are asked together. Arrays are passed
    as pointers to a copy.
    """

    name: str
    source: str
    grid: Extent
    block: Extent
    arguments: tuple[np.ndarray | np.generic, ...]
    shared: int = 0
    options: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments that are arrays, in order."""
        return tuple(value for value in self.arguments if isinstance(value, np.ndarray))

    @property
    def key(self) -> str:
        """Changes whenever a card would have to be asked again."""
        digest = hashlib.sha256(
            repr((self.source, self.grid, self.block, self.shared, self.options)).encode()
        )
        for value in self.arguments:
            digest.update(value.dtype.str.encode() + value.tobytes())
        return digest.hexdigest()[:16]
