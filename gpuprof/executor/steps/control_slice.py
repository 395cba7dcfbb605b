# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A batch that runs its control slice alone: where its memory has no value, because none was moved there."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.memory.global_memory import moved_dtype
from gpuprof.executor.memory.shared_groups import SharedGroup
from gpuprof.executor.memory.shared_memory import SharedMemory, SharedPattern
from gpuprof.executor.memory.store_trace import StoreTrace, ValueNeeded


class TooMuchWork(Exception):
    """A launch takes more steps than it may."""


@dataclass
class SliceRun:
    """A launch of control slices: what it stores to, and how many steps of single lanes it may still take."""

    trace: StoreTrace
    left: float

    def spend(self, steps: int) -> None:
        """Take steps.

        Raises:
            TooMuchWork: There have been too many.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


class ControlSlice:
    """One batch of such a launch; it has marks of the spaces, of "shared" and "local", that decide anything.

    Attributes:
        groups: What address-only accesses to shared memory cost, by the site of each group.
    """

    def __init__(self, run: SliceRun, shared: SharedMemory | None, local: NDArray[np.uint8] | None) -> None:
        self.run = run
        self.groups: dict[int, SharedGroup] = {}
        self._shared, self._local = shared, local

    def store_shared(self, pattern: SharedPattern, *, valueless: bool) -> None:
        """Lanes store to shared memory, with values or without."""
        if self._shared is not None:
            self._shared.store(pattern, marks(pattern.size, set_to=valueless))

    def load_shared(self, pattern: SharedPattern, line: int) -> None:
        """Lanes load what decides something.

        Raises:
            ValueNeeded: A store has left it out.
        """
        if self._shared is not None:
            found = self._shared.load(pattern)
            if (
                (found.view(np.uint8).reshape(*found.shape, -1) != 0).any(axis=-1) & pattern.mask.lanes
            ).any():
                raise ValueNeeded("shared memory", line)

    def store_local(self, places: NDArray[np.intp], size: int, *, valueless: bool) -> None:
        """Lanes store to local memory, at places in units of `size` bytes."""
        if self._local is not None:
            self._local.reshape(-1, size)[places] = valueless

    def load_local(self, places: NDArray[np.intp], size: int, mask: Mask, line: int) -> None:
        """As `load_shared`."""
        if (
            self._local is not None
            and (self._local.reshape(-1, size)[places].any(axis=-1) & mask.lanes).any()
        ):
            raise ValueNeeded("local memory", line)


def marks(size: int, *, set_to: bool) -> Lanes:
    """Return an element of `size` bytes that are all marked, or none of them."""
    return np.full(size, 0xFF if set_to else 0, dtype=np.uint8).view(moved_dtype(size)).reshape(1, 1, 1)
