# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of the executor share."""

import numpy as np
import pytest

from gpuprof.executor.memory.shared_memory import SharedMemory


@pytest.fixture
def garbage(monkeypatch):
    """Fill shared memory with other bytes than usual, from a seed."""

    def fill(seed: int) -> None:
        def start(self, blocks, size):
            original(self, blocks, size)
            self.content[:] = np.random.default_rng(seed).integers(0, 256, self.content.shape, dtype=np.uint8)

        monkeypatch.setattr(SharedMemory, "__init__", start)

    original = SharedMemory.__init__
    return fill
