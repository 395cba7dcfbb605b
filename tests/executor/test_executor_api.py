# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor as a library: from PTX to results, counters and faults, with its public names only."""

import doctest
import sys

import numpy as np
import pytest
from compile_support import compile_source
from processes import ran

import gpuprof.executor
from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchRefused,
    UnsupportedInstruction,
    choose_blocks,
    launch,
    load_program,
)
from gpuprof.toolchain.nvrtc import compiler_options

SOURCE = """extern "C" __global__ void twice(float *values, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        values[i] = 2 * values[i];
}
"""


@pytest.fixture(scope="module")
def ptx():
    return compile_source(SOURCE, "twice.cu", "twice", compiler_options("sm_80", (), ())).ptx


def test_the_example_of_the_documentation_holds(ptx):
    names = {**vars(gpuprof.executor), "np": np, "ptx": ptx}
    example = doctest.DocTestParser().get_doctest(gpuprof.executor.__doc__, names, "executor", None, 0)
    assert len(example.examples) == 5
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_launch_gives_results_counters_and_lines(ptx):
    memory = GlobalMemory()
    values = memory.allocate(np.arange(100, dtype=np.float32), "values")
    result = launch(load_program(ptx, "twice"), (4, 1, 1), (32, 1, 1), [values, 100], memory)
    np.testing.assert_array_equal(values.array(), 2 * np.arange(100))
    assert values.written_mask().all()
    assert result.counters["global_store_requests"] == 4
    assert result.counters["global_load_sectors"] == 3 * 4 + 1
    assert result.counters["global_load_efficiency_pct"] == 100 * 400 / (13 * 32)
    (line,) = [number for number, counted in result.lines.items() if counted["global_load_requests"]]
    assert SOURCE.splitlines()[line - 1].strip() == "values[i] = 2 * values[i];"
    assert (result.sampled_blocks, result.total_blocks) == (4, 4)


def test_a_sample_of_blocks_stands_for_the_grid(ptx):
    memory = GlobalMemory()
    values = memory.allocate(np.ones(1 << 20, dtype=np.float32), "values")
    grid = (1 << 15, 1, 1)
    sample = choose_blocks(grid, 6)
    result = launch(load_program(ptx, "twice"), grid, (32, 1, 1), [values, 1 << 20], memory, blocks=sample)
    assert (result.sampled_blocks, result.total_blocks, result.exact_sample) == (6, 1 << 15, True)
    assert result.counters["global_load_requests"] == 1 << 15
    assert values.written_mask().sum() == 6 * 32


def test_a_fault_names_kernel_line_block_and_thread(ptx):
    memory = GlobalMemory()
    values = memory.allocate(np.zeros(40, dtype=np.float32), "values")
    with pytest.raises(KernelFault, match="past the end of values: element 40 of 40") as error:
        launch(load_program(ptx, "twice"), (2, 1, 1), (32, 1, 1), [values, 64], memory)
    fault = error.value
    assert (fault.kind, fault.kernel, fault.source_line) == (FaultKind.OUT_OF_BOUNDS, "twice", 5)
    assert (fault.block, fault.thread) == ((1, 0, 0), (8, 0, 0))
    assert fault.address == values.address + 160


def test_what_cannot_run_says_so_before_anything_ran(ptx):
    memory = GlobalMemory()
    values = memory.allocate(np.zeros(1, dtype=np.float32), "values")
    with pytest.raises(LaunchRefused, match="takes 2 arguments, but 1"):
        launch(load_program(ptx, "twice"), (1, 1, 1), (32, 1, 1), [values], memory)
    with pytest.raises(UnsupportedInstruction, match="entry thrice"):
        load_program(ptx, "thrice")
    assert not values.written_mask().any()


def test_every_public_name_is_explained():
    for name, value in vars(gpuprof.executor).items():
        if callable(value) and getattr(value, "__module__", "").startswith("gpuprof."):
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), f"{name} has only what dataclass writes"


def test_importing_the_executor_loads_little():
    """Neither CUDA nor the optional compiler, and of gpuprof only what it stands on."""
    code = """import sys, gpuprof.executor
print(sorted(m for m in sys.modules if m in ("cuda", "llvmlite") or m.startswith("gpuprof.")
             and not m.startswith("gpuprof.executor")))"""
    done = ran([sys.executable, "-c", code], check=True)
    assert done.stdout.split("'")[1::2] == [
        f"gpuprof.{name}" for name in ("copy_engine", "errors", "ptx_directives", "texture_units")
    ]
