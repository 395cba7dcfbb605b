# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Atomic operations made of a plain load and a compare-and-swap: what the load finds is a guess, and no race.

Only the swap's own comparison excuses the load: guesses about another word, for another operation, beside
plain stores, or of another width than the swap stay races.
"""

import re

import numpy as np
import pytest
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

pytestmark = pytest.mark.deep

N, THREADS = 300, 128

#: Bodies that add what each thread brings; `word` points to the total.
TOTALS = {
    "as the guide adds doubles": (
        "double",
        """unsigned long long *bits = (unsigned long long *)word, old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
    } while (old != seen);""",
    ),
    "through the caches' second level": (
        "float",
        """int seen = __float_as_int(__ldcg(word));
    for (int old; (old = atomicCAS((int *)word, seen, __float_as_int(value + __int_as_float(seen)))) != seen;)
        seen = old;""",
    ),
    "looked at again after each failure": (
        "int",
        """int seen;
    do
        seen = *word;
    while (atomicCAS(word, seen, seen + value) != seen);""",
    ),
    "a short in its word": (
        "short",
        """unsigned *whole = (unsigned *)((size_t)word & ~(size_t)2), old = *whole, seen;
    const unsigned shift = (size_t)word & 2 ? 16 : 0;
    do {
        seen = old;
        const unsigned sum = (seen >> shift) + value & 0xffff;
        old = atomicCAS(whole, seen, seen & ~(0xffffu << shift) | sum << shift);
    } while (old != seen);""",
    ),
    "a short alone": (
        "unsigned short",
        """unsigned short old = *word, seen;
    do
        old = atomicCAS(word, seen = old, (unsigned short)(seen + value));
    while (old != seen);""",
    ),
    "in a function": ("int", "add(word, value);"),
}
HEAD = """__device__ __noinline__ void add(int *word, int value) {
    int old = *word, seen;
    do
        old = atomicCAS(word, seen = old, seen + value);
    while (old != seen);
}
"""
GLOBAL = """extern "C" __global__ void k(TYPE *totals, const TYPE *values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    TYPE *word = totals + i % 3;
    const TYPE value = values[i];
    BODY
}"""
SHARED = """extern "C" __global__ void k(TYPE *totals, const TYPE *values, int n) {
    __shared__ __align__(8) TYPE sums[4];
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        TYPE *word = sums + i % 3;
        const TYPE value = values[i];
        BODY
    }
    __syncthreads();
    if (threadIdx.x < 3) totals[threadIdx.x] = sums[threadIdx.x];
}"""
TYPES = {"double": "f8", "float": "f4", "int": "i4", "short": "i2", "unsigned short": "u2"}


def made(name: str, frame: str) -> tuple[str, np.dtype]:
    kind, body = TOTALS[name]
    return HEAD + frame.replace("BODY", body).replace("TYPE", kind), np.dtype(TYPES[kind])


@pytest.mark.parametrize(
    ("name", "frame", "blocks"),
    [(name, GLOBAL, 3) for name in TOTALS]
    + [(name, SHARED, 1) for name in TOTALS if "__ldcg" not in TOTALS[name][1]],
)
def test_guess_that_a_swap_checks_is_no_race(name, frame, blocks):
    source, kind = made(name, frame)
    values = np.random.default_rng(1).integers(0, 50, N).astype(kind)
    # Four words, so that the shorts' own words end inside the array.
    shape = {"grid": (blocks, 1, 1), "block": (THREADS, 1, 1)}
    (totals, _), _ = run_cuda(source, np.zeros(4, kind), values, scalars=(N,), **shape)
    assert totals.array()[:3].tolist() == [values[i::3].sum() for i in range(3)]


def test_the_word_may_lie_behind_another_address():
    source = """extern "C" __global__ void k(int *a, int n) {
        int old = a[1], seen;
        do
            old = atomicCAS(&a[1], seen = old, seen + 2);
        while (old != seen);
        atomicAdd(&a[0], 1);
    }"""
    (words,), _ = run_cuda(source, np.zeros(2, np.int32), scalars=(0,), grid=(3, 1, 1), block=(64, 1, 1))
    assert words.array().tolist() == [192, 384]


#: What each thread does with ints `a` and `b`; `// meets` marks both lines.
RACES = {
    "swap of another word": """const int seen = a[1]; // meets
        atomicCAS(&a[0], seen, 1);
        if (i == n - 1) atomicExch(&a[1], 7); // meets""",
    "swap of another array": """const int seen = a[0]; // meets
        atomicCAS(&b[0], seen, 1);
        if (i == n - 1) atomicExch(&a[0], 7); // meets""",
    "compared with something else": """const int seen = a[0]; // meets
        atomicCAS(&a[0], i, seen + 1); // meets""",
    "exchanged, not compared": """const int seen = a[0]; // meets
        atomicExch(&a[0], seen + 1); // meets""",
    "beside a plain store": """if (i == 0) a[0] = 9; // meets
        const int seen = a[0]; // meets
        atomicCAS(&a[0], seen, seen + 1); // meets""",
    "of half the word": """const unsigned short seen = *(unsigned short *)a; // meets
        atomicCAS((unsigned short *)a, seen, (unsigned short)(seen + 1)); // meets
        if (i == n - 1) atomicAdd(&a[0], 1 << 16); // meets""",
    "swapped for its block alone": """const int seen = a[0]; // meets
        atomicCAS_block(&a[0], seen, seen + 1); // meets""",
}


@pytest.mark.parametrize("name", RACES)
def test_guess_that_nothing_checks_is_a_race(name):
    source = f"""extern "C" __global__ void k(int *a, int *b, int n) {{
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        {RACES[name]}
    }}"""
    words = np.zeros(4, np.int32)
    fault = caught(source, words, words, scalars=(64,), grid=(2, 1, 1), block=(32, 1, 1))
    assert fault.kind is FaultKind.GLOBAL_RACE
    marked = {number for number, line in enumerate(source.splitlines(), 1) if "// meets" in line}
    assert {fault.source_line, int(re.search(r"in line (\d+)", fault.detail)[1])} <= marked, fault


@pytest.mark.parametrize(
    ("place", "stores", "after", "races"),
    [
        ("i % n", "i < n", "", False),
        ("(i + 1) % n", "i < n", "", True),
        ("i % n", "i <= n", "", True),
        ("i % n", "i < n", "if (v > 1000) a[n] = 1;", True),
        ("i % n", "i < n", "a[n + __popc(__ballot_sync(~0u, v & 1)) / 64] = 3;", True),
    ],
)
@pytest.mark.parametrize("before", ["", "for (int twice = 0; twice < 2; ++twice) {"])
def test_a_lane_whose_store_is_guarded_away_has_loaded_for_nothing(before, place, stores, after, races):
    source = f"""extern "C" __global__ void k(int *a, int n) {{
        const int i = threadIdx.x;
        {before}
        const int v = a[{place}];
        asm volatile("{{.reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.s32 [%0], %1;}}"
            :: "l"(a + i % n), "r"(v + 1), "r"(int({stores})) : "memory");
        {after}
        {before and "}"}
    }}"""
    words = np.zeros(16, np.int32)
    if races:
        fault = caught(source, words, scalars=(8,), block=(32, 1, 1))
        assert fault.kind is FaultKind.GLOBAL_RACE
    else:
        (got,), _ = run_cuda(source, words, scalars=(8,), block=(32, 1, 1))
        assert got.array().tolist() == [2 if before else 1] * 8 + [0] * 8
