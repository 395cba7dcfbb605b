# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A launch of control slices, which move only the values that decide where threads go and what they touch."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.memory.global_accesses import LocalLanes, MemoryOperation, Observer
from gpuprof.executor.memory.shared_memory import SharedBlocks
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


class ValuelessBytes(Observer):
    """Which bytes of one batch's memory a control slice has left without their value.

    Of the `spaces`, of "shared" and "local", whose content decides anything.
    """

    def __init__(self, spaces: Collection[str]) -> None:
        self._spaces = spaces
        self._marks: dict[int, NDArray[np.bool_]] = {}

    def wants(self, buffer: Any) -> bool:
        """As an observer."""
        return isinstance(buffer, SharedBlocks | LocalLanes) and buffer.space in self._spaces

    def read(self, buffer: Any, one: MemoryOperation) -> None:
        """As an observer.

        Raises:
            ValueNeeded: The value decides something, and a store has left it out.
        """
        if not one.address_only and self._of(buffer, one.size)[one.place].any():
            raise ValueNeeded(f"{buffer.space} memory", one.line)

    def write(self, buffer: Any, one: MemoryOperation, values: Any) -> None:
        """As an observer."""
        self._of(buffer, one.size)[one.place] = one.address_only

    def update(self, buffer: Any, one: MemoryOperation, failed: Any = None) -> None:
        """As an observer."""
        self.read(buffer, one)
        self.write(buffer, one, failed)

    def _of(self, buffer: Any, size: int) -> NDArray[np.bool_]:
        if buffer.address not in self._marks:
            self._marks[buffer.address] = np.zeros(buffer.size, dtype=np.bool_)
        return self._marks[buffer.address].reshape(-1, size)
