# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory ordered by more than barriers: who is judged access by access, and what is told of it."""

import numpy as np
import pytest
from executor_harness import caught, cuda_program, line_of, run_cuda
from global_race_sources import arrays
from shared_race_sources import PAIRS


def test_a_lock_of_shared_memory_loses_nothing():
    pair = PAIRS["lock left out, within a warp"]
    text = pair.source(racy=False).rstrip().removesuffix("}")
    text += "    __syncthreads();\n    out[t] = out[128 + t] = sum;\n}\n"
    (*_, out), _ = run_cuda(text, *arrays(), **pair.launch)
    assert (out.array()[:512] == sum(range(32))).all()


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
def test_only_kernels_with_other_means_of_order_are_judged_access_by_access(body, ordered):
    text = f"""extern "C" __global__ void k(int *out) {{
    __shared__ int tile[64];
    const int t = threadIdx.x;
    {body}
}}"""
    assert cuda_program(text).means.in_shared is ordered


def test_a_race_names_line_and_thread_of_both():
    pair = PAIRS["flag without a fence"]
    text = pair.source(racy=True)
    fault = caught(text, *arrays(), **pair.launch)
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
