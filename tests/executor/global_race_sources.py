# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with one race each on global memory, and their twins without it.

Where the two differ, a body has «what the racy one says¦what its twin says». `// meets` marks the lines whose
accesses meet. All take int arrays `a`, `b` and `c` of N elements, and n.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

N = 2048


@dataclass(frozen=True)
class Pair:
    """A kernel and its racy twin: what stands in it, and `before` it, and how it is launched."""

    body: str
    grid: int = 8
    block: int = 64
    n: int = 512
    before: str = ""

    def source(self, *, racy: bool) -> str:
        """The CUDA source, with its race or without."""
        head = 'extern "C" __global__ void k(int *a, int *b, int *c, int n) {'
        first = "const int t = threadIdx.x, w = blockIdx.x, i = w * blockDim.x + t;"
        body = re.sub("«(.*?)¦(.*?)»", lambda found: found[1 if racy else 2], self.body, flags=re.DOTALL)
        return f"{self.before}\n{head}\n{first}\n{body}\n}}\n"

    @property
    def launch(self) -> dict[str, Any]:
        """How it is launched."""
        shape = {"grid": (self.grid, 1, 1), "block": (self.block, 1, 1)}
        return {"scalars": (self.n,), "instruction_budget": 100_000, **shape}


def arrays() -> tuple[np.ndarray, ...]:
    """`a`, with what it holds, `b` and `c`."""
    values = np.random.default_rng(3).integers(1, 1000, N).astype(np.int32)
    return values, np.zeros(N, np.int32), np.zeros(N, np.int32)


_TICKET = "__device__ unsigned tickets;\n"
_LOCK = """
__device__ int lock, locks[2];
__device__ void take(int *one) {
    while (atomicCAS(one, 0, 1) != 0)
        ;
    __threadfence();
}
__device__ void release(int *one) {
    __threadfence();
    atomicExch(one, 0);
}
"""

PAIRS: dict[str, Pair] = {
    # Atomic on one side only, or for too few.
    "initialised by one block": Pair("""
    «if (i == 0)
        b[5] = 7; // meets¦»
    atomicAdd(&b[5], 1); // meets"""),
    "atomics of a block's own scope": Pair("""
    «atomicAdd_block(c, 1); // meets¦atomicAdd(c, 1);»"""),
    "two lanes of a warp": Pair("""
    c[«i / 2¦i»] = t; // meets"""),
    # Of one block.
    "scratch of another lane": Pair(
        """
    b[t] = a[t]; // meets
    «¦__syncwarp();»
    c[t] = b[t ^ 1]; // meets""",
        grid=1,
    ),
    "what several warps read, and one barrier is of some": Pair(
        """
    c[t] = «t < 96¦t < 64» ? *(volatile int *)b : 0; // meets
    if (t / 32 != 2)
        asm volatile("bar.sync 1, 96;" ::: "memory");
    if (t == 96)
        b[0] = 7; // meets""",
        grid=1,
        block=128,
    ),
    # Blocks that signal to each other.
    "last block with its own block's fence": Pair(
        """
    __shared__ bool last;
    if (t == 0) {
        b[w] = a[i] + 1; // meets
        «__threadfence_block();¦__threadfence();»
        last = atomicAdd(&tickets, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x)
        c[t] = b[t]; // meets
    if (last && t == 0)
        tickets = 0;""",
        before=_TICKET,
    ),
    "released by the ticket itself": Pair(
        """
    __shared__ unsigned old;
    b[i] = a[i]; // meets
    __syncthreads();
    if (t == 0)
        asm volatile("atom.«relaxed¦acq_rel».gpu.global.add.u32 %0, [%1], 1;"
                     : "=r"(old) : "l"(&tickets) : "memory");
    __syncthreads();
    if (old == gridDim.x - 1)
        for (int j = t; j < n; j += 64)
        c[j] = b[j]; // meets""",
        before=_TICKET,
    ),
    "grid barrier without a fence": Pair(
        """
    b[i] = a[i]; // meets
    __syncthreads();
    if (t == 0) {
        «¦__threadfence();»
        atomicAdd(&tickets, 1);
        while (*(volatile unsigned *)&tickets < gridDim.x)
            ;
    }
    __syncthreads();
    c[i] = b[(i + 64) % n]; // meets""",
        before=_TICKET,
    ),
    # Locks.
    "lock of every lane left out": Pair(
        """
    «¦take(&lock);»
    *c += a[i]; // meets
    «¦release(&lock);»""",
        grid=2,
        block=32,
        before=_LOCK,
    ),
    "two locks for one sum": Pair(
        """
    if (t == 0) {
        take(&locks[«w % 2¦0»]);
        *c += a[w]; // meets
        release(&locks[«w % 2¦0»]);
    }""",
        before=_LOCK,
    ),
    "lock with acquire and release": Pair(
        """
    if (t == 0) {
        int held;
        do
            asm volatile("atom.«relaxed¦acquire».gpu.global.cas.b32 %0, [%1], 0, 1;"
                         : "=r"(held) : "l"(&lock) : "memory");
        while (held);
        *c += a[w]; // meets
        asm volatile("st.«relaxed¦release».gpu.global.s32 [%0], 0;" ::"l"(&lock) : "memory");
    }""",
        before=_LOCK,
    ),
}
