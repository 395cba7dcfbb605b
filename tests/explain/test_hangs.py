# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Hangs: what every warp waits for, where a device ran out of time and where the executor is the device."""

import re

import pytest

import gpuprof
from gpuprof.kernels.paths import Source, ladder_of

pytestmark = pytest.mark.deep

HEADER = """/*gpuprof
operation = "doubled"
dimensions = ["n"]
default_sizes = "256"
arguments = ["y", "x", "flag", "n"]
[arrays]
x = { shape = ["n"] }
flag = { shape = ["4"], role = "inout", dtype = "i32" }
y = { shape = ["n"], role = "out" }
[inputs]
flag = "zeros"
[work]
bytes = "8 * n"
[check]
y = { value = "2 * x", equal = true }
flag = { value = "flag", absolute = "1000" }
[launch]
block = [128]
grid = ["cdiv(n, 128)"]
*/
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void arrive(u64 *b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
__device__ __forceinline__ void expect(u64 *b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(at(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u64 *b, int parity) {
    asm volatile("{\\n.reg .pred p;\\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n"
                 "@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}" ::"r"(at(b)), "r"(parity) : "memory");
}
"""
KERNEL = """extern "C" __global__ void CLUSTER hung(float *y, const float *x, int *flag, int n)
{
    const int t = threadIdx.x, warp = t / 32, i = blockIdx.x * blockDim.x + t;
BODY
    if (i < n)
        y[i] = 2 * x[i];
}
"""
#: By what hangs: the body, what makes it right, and what is said; `@n` is the line with `// n`.
HANGS = {
    "a barrier that one warp does not reach": (
        """    if (warp == 3)
        asm volatile("bar.sync 1, 64;" ::: "memory"); // 1
    __syncthreads(); // 2""",
        ("1, 64", "1, 32"),
        (
            "warps 0–2 of 2 blocks, line @2: `__syncthreads`, where 96 of 128 threads have come",
            "warp 3 of 2 blocks, line @1: barrier 1, where 32 of 64 threads have come",
        ),
    ),
    "a named barrier with too few": (
        """    if (warp < 3)
        asm volatile("bar.sync 2, 128;" ::: "memory"); // 1""",
        ("warp < 3", "warp < 4"),
        (
            "warps 0–2 of 2 blocks, line @1: barrier 2, where 96 of 128 threads have come",
            "warp 3 of 2 blocks: have ended",
        ),
    ),
    "an arrival too few": (
        """    __shared__ u64 full[2];
    if (t == 0) { init(full, 1); init(full + 1, 3); }
    __syncthreads();
    if (t == 32 || t == 64)
        arrive(full + 1); // 1
    wait(full + 1, 0); // 2""",
        ("full + 1, 3", "full + 1, 2"),
        (
            "warps 0–3 of 2 blocks, line ",
            ", called in line @2: phase 0 of the mbarrier `full[1]`: 1 of 3 arrivals are missing; arrived:",
            ", called in line @1, warp 2 in line ",
        ),
    ),
    "bytes that nobody copies": (
        """    __shared__ u64 full;
    if (t == 0) init(&full, 1);
    __syncthreads();
    if (t == 0)
        expect(&full, 512); // 1
    wait(&full, 0); // 2""",
        ("512", "0"),
        (
            "called in line @2: phase 0 of the mbarrier `full[0]`: 512 announced bytes are missing; arrived:",
            "called in line @1",
        ),
    ),
    "a ring that is never free": (
        """    __shared__ u64 full, empty;
    if (t == 0) { init(&full, 1); init(&empty, 96); }
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        if (warp == 0) {
            wait(&empty, k & 1); // 1
            if (t == 0)
                arrive(&full);
        } else {
            wait(&full, k & 1); // 2
            arrive(&empty); // 3
        }
    }""",
        ("empty, k & 1", "empty, (k & 1) ^ 1"),
        (
            "called in line @1: phase 0 of the mbarrier `empty[0]`: 96 of 96 arrivals are missing; nobody",
            "called in line @3 (no thread came there)",
            "called in line @2: phase 0 of the mbarrier `full[0]`: 1 of 1 arrivals are missing; nobody",
        ),
    ),
    "a flag that nobody sets": (
        """    if (t == 0 && blockIdx.x == 1)
        while (*(volatile int *)(flag + 2) != 7) // 1
            ;
    if (t == 0 && blockIdx.x == 0 && x[0] > 1e30f)
        atomicExch(flag + 2, 7); // 2""",
        (" && x[0] > 1e30f", ""),
        (
            "lane 0 of warp 0 of block (1, 0, 0), line @1: flag[2] to change, which holds 0",
            "to write it: line @2 (no thread came there)",
        ),
    ),
    "a flag in shared memory behind a barrier": (
        """    __shared__ int ready[4];
    if (t < 4) ready[t] = 0;
    __syncthreads();
    if (warp == 1) {
        while (*(volatile int *)(ready + 3) == 0) // 1
            ;
        asm volatile("bar.sync 1, 64;" ::: "memory");
    }
    if (warp == 0) {
        asm volatile("bar.sync 1, 64;" ::: "memory"); // 2
        *(volatile int *)(ready + 3) = 1; // 3
    }""",
        ("(volatile int *)(ready + 3) == 0", "(volatile int *)(ready + 3) == 1"),
        (
            "warp 1 of 2 blocks, line @1: `ready[3]` to change, which holds 0; to write it: line @3 (no",
            "warp 0 of 2 blocks, line @2: barrier 1, where 32 of 64 threads have come",
        ),
    ),
    "a lock that stays taken": (
        """    if (t == 0) {
        while (atomicCAS(flag + 1, 0, 1) != 0) // 1
            ;
        if (blockIdx.x == 7)
            atomicExch(flag + 1, 0); // 2
    }""",
        ("blockIdx.x == 7", "blockIdx.x < 7"),
        ("line @1: flag[1] to change, which holds 1", "to write it: line @2 (no thread came there)"),
    ),
    "a loop without a read": (
        """    if (warp == 2)
        while (flag[3] != 5) // 1
            ;""",
        ("!= 5", "== 5"),
        ("its loop to end, which nothing in it can do: what it tests is not read in it",),
    ),
    "a cluster of which one thread does not arrive": (
        """    if (i != 5 || x[0] > 1e30f)
        asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;" ::: "memory"); // 1
    else
        while (*(volatile int *)flag == 0) // 2
            ;""",
        (
            "else\n        while (*(volatile int *)flag == 0)",
            "else\n        while (*(volatile int *)flag != 0)",
        ),
        (
            "of 256 threads have arrived",
            "lane 5 of warp 0 of block (0, 0, 0), line @2: flag[0] to change, which holds 0; no line would",
        ),
    ),
    "a vote without some lanes": (
        """    if (t < 16)
        __syncwarp(); // 1
    else
        while (t < 32 && *(volatile int *)flag == 0) // 2
            ;""",
        ("== 0", "!= 0"),
        (
            "lanes 0–15 of warp 0 of 2 blocks, line @1: `bar.warp.sync` with lanes 16–31 of its warp",
            "lanes 16–31 of warp 0 of 2 blocks, line @2: flag[0] to change, which holds 0; no line would",
        ),
    ),
}


def sources(number, name):
    """A hung kernel, and its right twin."""
    body, (old, new), _ = HANGS[name]
    assert old in body
    cluster = "__cluster_dims__(2)" if "cluster" in body else ""
    text = (HEADER + KERNEL).replace("CLUSTER", cluster)
    kinds = {f"hung{number}": body, f"right{number}": body.replace(old, new)}
    return [Source(text.replace("BODY", one).replace("hung", kind), kind) for kind, one in kinds.items()]


#: By what hangs: the kernel, its twin, and what is to be said of it.
TWINS = {name: sources(number, name) for number, name in enumerate(HANGS)}


def words_of(name):
    """What is to be said, with the numbers of lines."""
    lines = TWINS[name][0].text.splitlines()

    def line(match):
        return str(next(number for number, one in enumerate(lines, 1) if one.endswith(f"// {match[1]}")))

    return [re.sub(r"@(\d)", line, one) for one in HANGS[name][2]]


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_says_what_every_warp_waits_for(name, explained):
    hung, right = TWINS[name]
    explanation, why_not = explained(ladder_of([hung]), hung.name, (256,), "hang")
    assert explanation is not None, why_not
    for one in words_of(name):
        assert one in explanation.text
    explanation, _ = explained(ladder_of([right]), right.name, (256,), "hang")
    assert explanation is None


def test_the_executor_says_it_of_itself():
    kinds = ("a named barrier with too few", "an arrival too few", "a lock that stays taken")
    run = gpuprof.profile([one for name in kinds for one in TWINS[name]], device="sim", timeout_s=20)
    for name in kinds:
        hung, right = (run.case(one.name) for one in TWINS[name])
        for one in words_of(name):
            assert one in hung.reason, name
        assert right.outcome == "ok", name
