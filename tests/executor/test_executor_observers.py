# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A checker of one's own: an observer, in one file, that the executor knows nothing of."""

from collections import Counter

import numpy as np
from executor_harness import cuda_program

from gpuprof.executor import Access, Buffer, GlobalMemory, Listener, Observer, launch

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


class Meetings(Observer, Listener):
    """Counts what orders threads: barriers of blocks, and fences by their reach."""

    def __init__(self):
        self.times = Counter()

    def synchronise(self, access, signal, line):
        self.times["barrier"] += access is Access.MEET

    def fence(self, mask, *, near):
        self.times["near fence" if near else "fence"] += 1


def test_a_listener_hears_of_what_orders_threads():
    source = """extern "C" __global__ void k(int n, int *y)
    {
        for (int i = 0; i < n; ++i) {
            __syncthreads();
            y[threadIdx.x] = i;
            __threadfence();
        }
        __threadfence_block();
    }"""
    memory, meetings = GlobalMemory(), Meetings()
    y = memory.allocate(np.zeros(64, dtype=np.int32), "y")
    launch(cuda_program(source), (1, 1, 1), (64, 1, 1), [7, y], memory, observers=[meetings])
    assert meetings.times == {"barrier": 7, "fence": 7, "near fence": 1}


class Touched(Observer):
    """Bytes that are loaded and stored of shared and of local memory."""

    def __init__(self):
        self.bytes = Counter()

    def wants(self, buffer):
        return not isinstance(buffer, Buffer)

    def read(self, buffer, one):
        self.bytes[type(buffer).__name__, "read"] += one.size * len(one.who)

    def write(self, buffer, one, values):
        self.bytes[type(buffer).__name__, "write"] += one.size * len(one.who)


def test_an_observer_is_told_of_shared_and_local_memory_in_the_same_way():
    source = """extern "C" __global__ void k(const float *x, float *y, int j)
    {
        __shared__ float tile[32];
        float own[32];
        tile[threadIdx.x] = x[threadIdx.x];
        for (int i = 0; i < 32; ++i)
            own[(i + j) % 32] = i;
        __syncwarp();
        y[32 * blockIdx.x + threadIdx.x] = tile[31 - threadIdx.x] + own[j];
    }"""
    memory, touched = GlobalMemory(), Touched()
    x, y = (memory.allocate(np.arange(64, dtype=np.float32), name) for name in "xy")
    result = launch(cuda_program(source), (2, 1, 1), (32, 1, 1), [x, y, 3], memory, observers=[touched])
    stores = int(result.counters["local_store_requests"]) * 32 * 4
    assert touched.bytes == {
        **{("SharedBlocks", "read"): 256, ("SharedBlocks", "write"): 256},
        **{("LocalLanes", "read"): 256, ("LocalLanes", "write"): stores},
    }
