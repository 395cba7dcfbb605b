# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A checker of one's own: an observer, in one file, that the executor knows nothing of."""

from collections import Counter

import numpy as np
from executor_harness import cuda_program

from gpuprof.executor import GlobalMemory, Observer, launch

LINE_BYTES = 128
SOURCE = """extern "C" __global__ void sums(int n, const float *x, float *y)
{
    float sum = x[threadIdx.x];
    const float *row = x + 32 * blockIdx.x;
    for (int i = 0; i < n; ++i)
        sum += row[i];
    y[32 * blockIdx.x + threadIdx.x] = sum;
    atomicAdd(y + 128, 1.0f);
}
"""


class LineReuse(Observer):
    """How often each warp reads a 128-byte line that was read before, by source line."""

    def __init__(self):
        self.again, self._seen = Counter(), set()

    def read(self, buffer, one):
        lines = (buffer.address + one.place * one.size) // LINE_BYTES
        for _, line in sorted(set(zip((one.who // 32).tolist(), lines.tolist(), strict=True))):
            self.again[one.line] += line in self._seen
            self._seen.add(line)

    def update(self, buffer, one, failed=None):
        self.read(buffer, one)


def test_an_observer_of_ones_own_counts_how_often_lines_are_read_again():
    memory, reuse = GlobalMemory(), LineReuse()
    x, y = (memory.allocate(np.arange(160, dtype=np.float32), name) for name in "xy")
    result = launch(cuda_program(SOURCE), (4, 1, 1), (32, 1, 1), [32, x, y], memory, observers=[reuse])
    # Three blocks read what the first one did; each reads its row 32 times, the first one's is known.
    assert reuse.again == {3: 3, 6: 4 * 32 - 3, 8: 3}
    assert result.counters["global_load_requests"] == 4 + 4 * 32
    alone = launch(cuda_program(SOURCE), (4, 1, 1), (32, 1, 1), [32, x, y], memory)
    assert alone.counters == result.counters
