# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory ordered by more than barriers: flags, locks, fences, `__syncwarp` of some lanes, arrivals.

Kernels with one race each, and their twins without it: where the two differ, a body has «what the racy one
says¦what its twin says». `// meets` marks the lines whose accesses meet.
"""

import re

import numpy as np
import pytest
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.executor import FaultKind

HEAD = """
static __device__ void fence() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
template <typename T> static __device__ unsigned at(T *p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ void release(int *p, int value) {
    asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(at(p)), "r"(value) : "memory");
}
static __device__ void relaxed(int *p, int value) {
    asm volatile("st.relaxed.cta.shared.s32 [%0], %1;" ::"r"(at(p)), "r"(value) : "memory");
}
static __device__ int acquire(int *p) {
    int value;
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(value) : "r"(at(p)) : "memory");
    return value;
}
static __device__ void take(int *lock) {
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    __threadfence_block();
}
static __device__ void give(int *lock) {
    __threadfence_block();
    atomicExch(lock, 0);
}
static __device__ void sync(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
static __device__ void arrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
extern "C" __global__ void k(int *out) {
    __shared__ int tile[128], flag, lock, locks[2], sum;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    out += 256 * blockIdx.x;
    if (t == 0)
        flag = lock = locks[0] = locks[1] = sum = 0;
    tile[t] = -1;
    __syncthreads();
"""

PAIRS = {
    # Messages.
    "released without a release": """
        if (t == 32) {
            tile[5] = 42; // meets
            «relaxed¦release»(&flag, 1);
        } else if (t < 32) {
            while (acquire(&flag) == 0)
                ;
            out[t] = tile[5]; // meets
        }""",
    "flag without a fence": """
        if (t == 32) {
            tile[t] = out[t]; // meets
            «¦__threadfence_block();»
            *(volatile int *)&flag = 1;
        } else if (t == 0) {
            while (*(volatile int *)&flag == 0)
                ;
            «¦__threadfence_block();»
            out[0] = tile[32]; // meets
        }""",
    "fence after the flag": """
        if (t == 32) {
            tile[t] = out[t]; // meets
            «relaxed(&flag, 1); fence();¦fence(); relaxed(&flag, 1);»
        } else if (t == 0) {
            while (acquire(&flag) == 0)
                ;
            out[0] = tile[32]; // meets
        }""",
    "message after the flag": """
        if (t == 32) {
            «¦tile[7] = 3;»
            release(&flag, 1);
            «tile[7] = 3; // meets¦»
        } else if (t < 32) {
            while (acquire(&flag) == 0)
                ;
            out[t] = tile[7]; // meets
        }""",
    "only one of a warp's lanes' message": """
        if (warp == 1) {
            tile[t] = t; // meets
            «¦__syncwarp();»
            if (lane == 3)
                release(&flag, 1);
        } else if (warp == 0) {
            while (acquire(&flag) == 0)
                ;
            out[t] = tile[t + 32]; // meets
        }""",
    "overwritten before it is read": """
        if (t == 32) {
            tile[t] = 1; // meets
            release(&flag, 1);
            «¦while (acquire(&flag) != 2);»
            tile[t] = 2; // meets
        } else if (t == 0) {
            while (acquire(&flag) == 0)
                ;
            out[0] = tile[32]; // meets
            release(&flag, 2);
        }""",
    "handed on by a third": """
        if (t == 32) {
            tile[t] = 1; // meets
            release(&flag, 1);
        } else if (t == 64) {
            while (acquire(&flag) != 1)
                ;
            release(&«locks[1]¦sum», 1);
        } else if (t == 0) {
            while (acquire(&«flag¦sum») == 0)
                ;
            «if (tile[33] == -1) ;¦»
            out[0] = tile[«64¦32»]; // meets
        }
        «if (t == 64) tile[t] = 9; // meets¦»""",
    "by an atomic exchange": """
        if (t == 32) {
            tile[t] = 1; // meets
            «¦__threadfence_block();»
            atomicExch(&flag, 1);
        } else if (t < 32) {
            while (atomicAdd(&flag, 0) == 0)
                ;
            __threadfence_block();
            out[t] = tile[32]; // meets
        }""",
    # Locks.
    "lock left out, within a warp": """
        if (warp == 0) {
            «¦take(&lock);»
            sum += t; // meets
            «¦give(&lock);»
        }""",
    "lock left out, across warps": """
        if (lane == 0) {
            «¦take(&lock);»
            sum += t; // meets
            «¦give(&lock);»
        }""",
    "two locks for one sum": """
        if (lane == 0) {
            take(&locks[«warp % 2¦1»]);
            sum += t; // meets
            give(&locks[«warp % 2¦1»]);
        }""",
    "lock given back without a fence": """
        if (lane == 0) {
            take(&lock);
            sum += t; // meets
            «¦__threadfence_block();»
            atomicExch(&lock, 0);
        }""",
    "lock given back in the branch that took it": """
        bool done = t >= 40;
        while (!done)
            if (atomicCAS(&lock, 0, 1) == 0) {
                __threadfence_block();
                sum += t; // meets
                «¦__threadfence_block();»
                atomicExch(&lock, 0);
                done = true;
            }""",
    # Lanes of a warp.
    "half of a warp": """
        tile[t] = t; // meets
        if (lane < 16)
            __syncwarp(0xffff);
        else
            __syncwarp(0xffff0000);
        out[t] = tile[t ^ «16¦15»]; // meets""",
    "half a warp's tree": """
        tile[t] = t;
        __syncthreads();
        for (int d = 8; d > 0; d /= 2) {
            if (lane % 16 < d)
                tile[t] += tile[t + d]; // meets
            «¦__syncwarp(lane < 16 ? 0xffff : 0xffff0000);»
        }
        out[t] = tile[t / 16 * 16]; // meets""",
    "pairs that change": """
        for (int d = 1; d < 32; d *= 2) {
            tile[t] = t + d; // meets
            __syncwarp(1u << lane | 1u << (lane ^ «1¦d»));
            out[t] += tile[t ^ d]; // meets
            __syncwarp(1u << lane | 1u << (lane ^ «1¦d»));
        }""",
    "passed on from pair to pair": """
        tile[t] = t; // meets
        __syncwarp(1u << lane | 1u << (lane ^ 1));
        __syncwarp(1u << lane | 1u << (lane ^ 2));
        out[t] = tile[t ^ «4¦3»]; // meets""",
    "two branches that meet": """
        if (lane % 2) {
            tile[t] = 1; // meets
            «¦asm volatile("bar.warp.sync -1;" ::: "memory");»
            out[t] = tile[t - 1]; // meets
        } else {
            tile[t] = 2; // meets
            «¦asm volatile("bar.warp.sync -1;" ::: "memory");»
            out[t] = tile[t + 1] + 5; // meets
        }""",
    "a vote orders no memory": """
        tile[t] = t; // meets
        «out[t] = __ballot_sync(0xffffffff, t & 1);¦__syncwarp();»
        out[t] = tile[t ^ 1]; // meets""",
    # Named barriers.
    "two teams that each wait for the other": """
        tile[t] = t; // meets
        if (t < 64) {
            arrive(1, 128);
            «¦sync(2, 128);»
        } else {
            «¦arrive(2, 128);»
            sync(1, 128);
        }
        out[t] = tile[t ^ 64]; // meets""",
    "written after the arrival": """
        if (t < 64) {
            «¦tile[t] = t;»
            arrive(1, 128);
            «tile[t] = t; // meets¦»
        } else {
            sync(1, 128);
            out[t] = tile[t ^ 64]; // meets
        }""",
    # Copies.
    "copied over what others read": """
        out[t] = tile[t ^ 32]; // meets
        «__syncwarp(0xffffffffu >> (t & 0));¦__syncthreads();»
        if (*(volatile int *)&sum == 0)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" // meets
                         ::"r"(at(tile + t)), "l"(out + 128 + t) : "memory");
        asm volatile("cp.async.wait_all;" ::: "memory");""",
}
WHERE = re.compile(r"which (?:thread \(.*?\)|another thread) of block \(.*?\) .* in line (\d+)")


def source(name: str, *, racy: bool) -> str:
    choose = lambda found: found[1 if racy else 2]  # noqa: E731
    return f"{HEAD}{re.sub('«(.*?)¦(.*?)»', choose, PAIRS[name], flags=re.DOTALL)}\n}}\n"


@pytest.mark.parametrize("name", PAIRS)
def test_planted_race_is_found_with_both_lines(name):
    text = source(name, racy=True)
    fault = caught(text, np.zeros(512, np.int32), grid=(2, 1, 1), block=(128, 1, 1))
    assert fault.kind is FaultKind.SHARED_RACE
    marked = {number for number, line in enumerate(text.splitlines(), 1) if "// meets" in line}
    assert fault.source_line in marked, fault
    other = WHERE.search(fault.detail)
    assert other is None or int(other[1]) in marked, fault


@pytest.mark.parametrize("name", PAIRS)
def test_right_twin_is_left_alone(name):
    run_cuda(source(name, racy=False), np.zeros(512, np.int32), grid=(2, 1, 1), block=(128, 1, 1))


def test_locks_of_shared_memory_lose_nothing():
    for name, expected in (
        ("lock left out, within a warp", sum(range(32))),
        ("lock left out, across warps", 32 + 64 + 96),
        ("lock given back in the branch that took it", sum(range(40))),
    ):
        text = source(name, racy=False).rstrip().removesuffix("}")
        text += "    __syncthreads();\n    out[t] = out[128 + t] = sum;\n}\n"
        (out,), _ = run_cuda(text, np.zeros(512, np.int32), grid=(2, 1, 1), block=(128, 1, 1))
        assert (out.array() == expected).all(), name


def test_a_second_look_starts_from_what_memory_held():
    """What the quick look takes for a race is looked at again, from the beginning of the launch."""
    text = """__device__ int counted;
extern "C" __global__ void k(int *out) {
    __shared__ volatile int flag;
    out[threadIdx.x] += 1;
    if (threadIdx.x == 0)
        counted += 1;
    flag = 1;
    out[threadIdx.x] += flag;
    if (threadIdx.x == 0)
        out[64] = counted;
}"""
    (out,), result = run_cuda(text, np.full(65, 7, np.int32), block=(64, 1, 1))
    assert out.array().tolist() == [9] * 64 + [1]
    assert result.counters["shared_store_requests"] == 2
    assert out.written_mask().all()


@pytest.mark.parametrize(
    ("body", "ordered"),
    [
        ("tile[t] = t; __syncthreads(); out[t] = tile[t ^ 1];", False),
        ("tile[t] = t; __syncwarp(); out[t] = tile[t ^ 1];", False),
        (
            "tile[t] = 0; __syncthreads(); atomicAdd(&tile[t / 2], 1); __syncthreads(); out[t] = tile[t];",
            False,
        ),
        ("*(volatile int *)out = 1;", False),
        ("*(volatile int *)&tile[t] = t;", True),
        ("tile[t] = t; __syncwarp(out[t]);", True),
        ("tile[t] = 0; __threadfence_block(); out[t] = atomicAdd(&tile[t], 1);", True),
        ('tile[t] = t; asm volatile("bar.sync 1, 64;" ::: "memory"); out[t] = tile[t ^ 1];', True),
    ],
)
def test_only_kernels_with_other_means_of_order_are_looked_at_again(body, ordered):
    text = f"""extern "C" __global__ void k(int *out) {{
    __shared__ int tile[64];
    const int t = threadIdx.x;
    {body}
}}"""
    assert cuda_program(text).orders_shared is ordered


def test_a_race_names_line_and_thread_of_both():
    text = source("flag without a fence", racy=True)
    fault = caught(text, np.zeros(512, np.int32), grid=(2, 1, 1), block=(128, 1, 1))
    assert (fault.thread, fault.block, fault.address) == ((0, 0, 0), (0, 0, 0), 128)
    assert fault.source_line == line_of(text, "out[0] = tile[32]")
    assert fault.detail == (
        "reads byte 128 of shared memory, which thread (32, 0, 0) of block (0, 0, 0) writes in line"
        f" {line_of(text, 'tile[t] = out[t]')}, and nothing orders them"
    )


SUM_OF_A_WARP = """extern "C" __global__ void k(int *out) {
    __shared__ volatile int tile[64];
    const int t = threadIdx.x;
    tile[t] = t; // stores
    tile[t + 32] = 0;
    for (int step = 16; step > 0; step /= 2) {
        const int other = tile[t + step]; // reads
        BETWEEN
        tile[t] = tile[t] + other;
        BETWEEN
    }
    out[t] = tile[0];
}"""


def test_volatile_words_of_a_warp_that_nothing_orders_are_remarked_on():
    text = SUM_OF_A_WARP.replace("BETWEEN", "")
    _, result = run_cuda(text, np.zeros(32, np.int32), block=(32, 1, 1))
    (remark,) = result.remarks
    assert remark == (
        f"undefined: line {line_of(text, '// reads')} reads as volatile what another lane of its warp stores"
        f" in line {line_of(text, '// stores')} (thread (0, 0, 0) of block (0, 0, 0)),"
        " and no __syncwarp orders the two"
    )


def test_no_remark_where_lanes_meet_or_wait_for_each_other():
    (out,), result = run_cuda(
        SUM_OF_A_WARP.replace("BETWEEN", "__syncwarp();").replace("+ 32] = 0;", "+ 32] = 0; __syncwarp();"),
        np.zeros(32, np.int32),
        block=(32, 1, 1),
    )
    assert out.array()[0] == 31 * 16
    assert not result.remarks
    chain = """extern "C" __global__ void k(int *out) {
    __shared__ volatile int flags[33];
    flags[threadIdx.x + 1] = 0;
    if (threadIdx.x == 0)
        flags[0] = 100;
    __syncwarp();
    int found;
    while ((found = flags[threadIdx.x]) == 0)
        ;
    flags[threadIdx.x + 1] = found + threadIdx.x;
    out[threadIdx.x] = found;
}"""
    _, result = run_cuda(chain, np.zeros(32, np.int32), block=(32, 1, 1))
    assert not result.remarks
