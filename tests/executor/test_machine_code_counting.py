# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Executed instructions, held against what the executor counts of the same launches in another way."""

from math import inf

import numpy as np
import pytest
from executor_harness import compile_both

from gpuprof.executor import GlobalMemory, launch, load_program
from gpuprof.machine_code.disassembler import disassemble
from gpuprof.machine_code.instruction_counts import Between, MachineCounts, count
from gpuprof.machine_code.linking import link
from gpuprof.machine_code.sass import read_machine_code
from gpuprof.machine_code.weighing import Executed, weigh

pytestmark = pytest.mark.deep

#: Each thread adds up as many floats as the number of its warp says, and a little more.
UNEVEN = """
extern "C" __global__ void uneven(const float *in, float *out, int n)
{
    const int turns = n + 5 * (threadIdx.x / 32) + blockIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < turns; i++)
        sum += in[i * 64 + threadIdx.x % 32];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
#: Lanes part, and come together again.
PARTED = """
extern "C" __global__ void parted(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float held[128];
    held[threadIdx.x] = in[i];
    __syncthreads();
    float value = 0;
    if (threadIdx.x % 4 == 1) {
        for (int k = 0; k < 9; k++)
            value += held[(threadIdx.x * k) % 128];
    } else if (threadIdx.x < 40) {
        value = held[127 - threadIdx.x];
    }
    __syncthreads();
    out[i] = value;
}
"""
#: Divides, for which machine code has a slow path that these values do not need.
DIVIDES = """
extern "C" __global__ void divides(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] / in[i + 1];
}
"""
#: A warp waits for what another one stores late.
WAITS = """
extern "C" __global__ void waits(const float *in, float *out)
{
    volatile float *flag = out + 1024;
    if (threadIdx.x == 32) {
        float sum = in[0];
        #pragma unroll 1
        for (int i = 0; i < 50; i++)
            sum = sum * in[1] + 1.0f;
        out[1] = sum;
        __threadfence();
        *flag = 7.0f;
    }
    if (threadIdx.x == 0)
        while (*flag != 7.0f)
            ;
    __syncthreads();
    out[2 + threadIdx.x] = out[1] + 1.0f;
}
"""


def executed(
    source: str, entry: str, grid: int, block: int, *numbers: int, launches: int = 1
) -> tuple[MachineCounts, dict]:
    """Run a kernel of two arrays, and return its instructions, of so many launches, and its counters."""
    ptx, cubin = compile_both(source)
    program = load_program(ptx, entry)
    found = link(read_machine_code(disassemble(cubin), entry), ptx, *program.listing)
    memory = GlobalMemory()
    arrays = [memory.allocate(np.linspace(1, 2, 1 << 14, dtype=np.float32), name) for name in "ab"]
    shape = (grid, 1, 1), (block, 1, 1)
    result = launch(program, *shape, [*arrays, *numbers], memory)
    return count([(found, weigh(found, Executed.by(result)))] * launches, 90), dict(result.counters)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 7, 8, 17, 30])
def test_each_copy_of_an_unrolled_loop_has_the_turns_that_it_makes(turns):
    counts, counters = executed(UNEVEN, "uneven", 3, 128, turns)
    assert counts.total.exact
    # ptxas copies the load and the sum, whose number must come out whatever the copies are.
    assert counts.opcodes["LDG"].low == counters["global_load_requests"]
    assert counts.opcodes["FADD"].low == counters["global_load_requests"]
    assert counts.opcodes["STG"].low == counters["global_store_requests"] == 12
    assert counts.pipes["fma"].low + counts.pipes["alu"].low < counts.total.low


def test_code_that_lanes_run_apart_is_counted_for_each_part():
    counts, counters = executed(PARTED, "parted", 2, 128)
    assert counts.opcodes["BAR"] == Between(counters["barriers"], counters["barriers"])
    assert counts.opcodes["STG"] == Between(8, 8)
    # Warps 0 and 1 have lanes for both ways, warps 2 and 3 for the first alone.
    assert counters["shared_load_requests"] == 2 * (4 * 9 + 2)
    assert counts.opcodes["LDS"].low == counters["shared_load_requests"]
    assert counters["branch_divergent_warps"] > 0


def test_a_slow_path_may_have_run_and_may_not():
    counts, _ = executed(DIVIDES, "divides", 4, 64)
    assert counts.opcodes["MUFU"].low == 8
    assert 0 < counts.total.low < counts.total.high
    assert counts.opcodes["CALL"].low == 0
    assert counts.opcodes["CALL"].high == 8


def test_lines_of_the_source_share_the_instructions():
    counts, _ = executed(UNEVEN, "uneven", 1, 32, 12)
    inside = UNEVEN.splitlines().index("        sum += in[i * 64 + threadIdx.x % 32];") + 1
    assert counts.lines[inside].low >= 2 * 12
    assert max(counts.lines, key=lambda line: counts.lines[line].low) in (inside, inside - 1)
    assert sum(times.low for times in counts.lines.values()) <= counts.total.low


def test_launches_add_up():
    one, _ = executed(UNEVEN, "uneven", 1, 32, 12)
    two, _ = executed(UNEVEN, "uneven", 1, 32, 12, launches=2)
    assert two.total == Between(2 * one.total.low, 2 * one.total.high)
    assert two.pipes["lsu"].low == 2 * one.pipes["lsu"].low
    assert two.opcodes["EXIT"] == Between(2, 2)
    assert set(two.lines) == set(one.lines)


def test_loops_that_only_wait_are_tried_at_least_once():
    counts, _ = executed(WAITS, "waits", 1, 64)
    # Two of the warp that stores, one try of the warp that waits, and one of each warp behind the barrier.
    assert counts.opcodes["LDG"] == Between(5, inf)
    assert counts.total.high == inf
    assert counts.opcodes["STG"].exact
    assert counts.opcodes["FADD"] == Between(2, 2)
