# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Atomics that one lane does for its warp: read off machine code, and counted so.

What cards counted of 32 such kernels stands in `public_style`: see `test_executor_public_style.py`.
"""

import numpy as np
import pytest
from executor_harness import compile_both

from gpuprof.backends.sim.executed import atomics_remark
from gpuprof.backends.sim.instructions import NoLink
from gpuprof.executor import GlobalMemory, launch, load_program
from gpuprof.machine_code.disassembler import disassemble
from gpuprof.machine_code.linking import link
from gpuprof.machine_code.sass import read_machine_code

#: What each thread does, and how many sectors four warps of 32 and one of 8 take.
BODIES = {
    "count at one place": ("atomicAdd(out, 1u);", 5),
    "sum at one place": ("atomicAdd(out, x[threadIdx.x]);", 5),
    "largest, its place known to the block": ("atomicMax(out + blockIdx.x, x[threadIdx.x]);", 5),
    "64 bits of a constant": ("atomicAdd((unsigned long long *)out, 3ull);", 5),
    "64 bits that differ": ("atomicAdd((unsigned long long *)out, x[threadIdx.x] + 1ull);", 136),
    "floats": ("atomicAdd((float *)out, 1.0f);", 136),
    "wrapping": ("atomicInc(out, 7u);", 136),
    "a place of the warp": ("atomicAdd(out + threadIdx.x / 32, 1u);", 136),
    "a place that was read": ("atomicAdd(out + x[threadIdx.x] % 2, 1u);", 136),
}


def launched(body: str, *, linked: bool):
    source = f"""extern "C" __global__ void k(const unsigned *x, unsigned *out) {{
    {body}
}}"""
    ptx, cubin = compile_both(source)
    program, memory = load_program(ptx, "k"), GlobalMemory()
    arrays = [memory.allocate(np.zeros(256, np.uint32), name) for name in ("x", "out")]
    code = read_machine_code(disassemble(cubin), "k")
    merged = link(code, ptx, *program.listing).merged_atomics if linked else ()
    return launch(program, (1, 1, 1), (136, 1, 1), arrays, memory, merged_atomics=merged)


@pytest.mark.parametrize("name", BODIES)
def test_sectors_are_those_of_the_machine_code(name):
    body, sectors = BODIES[name]
    result = launched(body, linked=True)
    assert result.counters["global_atomic_sectors"] == sectors
    assert result.counters["global_atomic_requests"] == 5
    assert result.lines[2]["global_atomic_sectors"] == sectors


def test_without_machine_code_lanes_count_one_by_one_and_a_remark_says_so():
    result = launched("atomicAdd(out, 1u);", linked=False)
    assert result.counters["global_atomic_sectors"] == 136
    (remark,) = atomics_remark([NoLink("nvdisasm is missing.")], result)
    assert "counted lane by lane" in remark
    assert remark.endswith("nvdisasm is missing.")


def test_no_remark_without_such_atomics():
    result = launched("out[threadIdx.x] = x[threadIdx.x];", linked=False)
    assert atomics_remark([NoLink("nvdisasm is missing.")], result) == ()
