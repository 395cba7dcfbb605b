# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The counts that Nsight Compute gave for the shipped kernels on an H200: the executor finds the same."""

from math import ceil

import numpy as np
import pytest
from executor_harness import KERNELS, cuda_program, numpy_loop

from gpuprof.executor import GlobalMemory, choose_blocks, launch
from gpuprof.executor.arithmetic import floats
from gpuprof.executor.steps import fusion

pytestmark = pytest.mark.deep

GEMMS = {
    "naive": ((32, 32), (), 0),
    "smem_tiled": ((32, 32), (), 2 * 32 * 32 * 4),
    "reg_2x1": ((32, 16), ("-DTILE=32",), 0),
}


def gemm(name, m, n, k, dtype=np.float32, sample=None, arch="sm_90", alpha=1.0, beta=0.0):
    """Run one shipped GEMM with 32x32 tiles; return (output, expected, where written, result)."""
    block, options, shared = GEMMS[name]
    real = "float" if dtype is np.float32 else "double"
    options = (f"-Dreal={real}", f"-DBLOCK_X={block[0]}", f"-DBLOCK_Y={block[1]}", *options)
    program = cuda_program((KERNELS / "gemm" / f"{name}.cu").read_text(), options, arch)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c = rng.standard_normal((m, n)).astype(dtype) if beta else np.full((m, n), np.nan, dtype)
    memory = GlobalMemory()
    buffers = [memory.allocate(x, label) for x, label in ((a, "A"), (b, "B"), (c, "C"))]
    grid = (ceil(n / 32), ceil(m / 32), 1)
    result = launch(
        program,
        grid,
        (*block, 1),
        [m, n, k, dtype(alpha), buffers[0], buffers[1], dtype(beta), buffers[2]],
        memory,
        dynamic_shared_bytes=shared * np.dtype(dtype).itemsize // 4,
        blocks="all" if sample is None else choose_blocks(grid, sample),
    )
    expected = None
    if sample is None:
        expected = alpha * (a.astype(np.float64) @ b) + (beta * c if beta else 0)
    return buffers[2].array(), expected, buffers[2].written_mask(), result


FULL = {
    "naive": (4294967296, 10737418240, 82.5, None),
    "smem_tiled": (134217728, 536870912, 100.0, 4294967296),
    "reg_2x1": (134217728, 536870912, 100.0, 2147483648),
}


@pytest.mark.parametrize("name", FULL)
def test_gemm_4096_from_four_blocks(name):
    requests, sectors, efficiency, wavefronts = FULL[name]
    _, _, written, result = gemm(name, 4096, 4096, 4096, sample=4)
    counters = result.counters
    assert counters["global_load_requests"] == requests
    assert counters["global_load_sectors"] == sectors
    assert counters["global_load_efficiency_pct"] == efficiency
    assert counters["global_store_requests"] == 524288
    assert counters["global_store_sectors"] == 2097152
    assert counters["global_store_efficiency_pct"] == 100.0
    assert counters["ffma_thread_instructions"] == 68719476736
    if wavefronts:
        assert counters["shared_load_wavefronts"] == pytest.approx(wavefronts, rel=5e-4)
        assert counters["shared_load_bank_conflicts"] == 0
    assert (result.sampled_blocks, result.total_blocks, result.exact_sample) == (4, 16384, True)
    assert written.sum() == 4 * 32 * 32


@pytest.mark.parametrize("name", GEMMS)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"])
def test_gemm_128_is_right_and_counts_match_a_sample(name, arch):
    out, expected, written, result = gemm(name, 128, 128, 128, arch=arch)
    np.testing.assert_allclose(out, expected, atol=1e-4)
    assert written.all()
    sampled = gemm(name, 128, 128, 128, arch=arch, sample=4)[3]
    assert sampled.counters == result.counters
    assert result.counters["ffma_thread_instructions"] == 128**3


@pytest.mark.parametrize("name", GEMMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 65, 31), (100, 7, 40)])
def test_gemm_on_ragged_shapes(name, dtype, shape):
    out, expected, written, _ = gemm(name, *shape, dtype=dtype, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)
    assert written.all()


def test_without_the_cpu_instruction_every_bit_is_the_same(monkeypatch):
    """NumPy's multiply-add gives what the CPU's instruction gives, by itself and in runs of arithmetic."""
    with_instruction = [gemm(name, 64, 64, 96)[0] for name in GEMMS]
    monkeypatch.setattr(floats, "hardware_loop", numpy_loop)
    monkeypatch.setattr(fusion, "_FEWEST", 10**6)
    without = [gemm(name, 64, 64, 96)[0] for name in GEMMS]
    for a, b in zip(with_instruction, without, strict=True):
        np.testing.assert_array_equal(a, b)


TRANSPOSES = {
    "copy_row": (524288, 524288, 1),
    "copy_col": (2097152, 2097152, 1),
    "naive_row": (524288, 2097152, 1),
    "naive_col": (2097152, 524288, 1),
    "unroll4_row": (524288, 2097152, 4),
    "unroll4_col": (2097152, 524288, 4),
    "diagonal_row": (524288, 2097152, 1),
    "diagonal_col": (2097152, 524288, 1),
}


def transpose(name, nx, ny, block=(16, 16), sample=None):
    source = (KERNELS / "transpose" / f"{name}.cu").read_text()
    program = cuda_program(source, ("-Dreal=float", f"-DBLOCK_X={block[0]}", f"-DBLOCK_Y={block[1]}"))
    content = np.arange(nx * ny, dtype=np.float32).reshape(ny, nx)
    expected = content if name.startswith("copy") else content.T
    memory = GlobalMemory()
    source_buffer = memory.allocate(content, "in")
    target = memory.allocate(np.full(expected.shape, np.nan, np.float32), "out")
    # x walks the rows of the matrix that the kernel reads, or of the one that it writes.
    wide, high = (ny, nx) if name.endswith("_col") else (nx, ny)
    grid = (ceil(wide / (TRANSPOSES[name][2] * block[0])), ceil(high / block[1]), 1)
    blocks = "all" if sample is None else choose_blocks(grid, sample)
    result = launch(program, grid, (*block, 1), [nx, ny, source_buffer, target], memory, blocks=blocks)
    return target, expected, result


@pytest.mark.parametrize("name", TRANSPOSES)
def test_transpose_2048(name):
    loads, stores, _ = TRANSPOSES[name]
    target, expected, result = transpose(name, 2048, 2048)
    np.testing.assert_array_equal(target.array(), expected)
    counters = result.counters
    assert (counters["global_load_requests"], counters["global_load_sectors"]) == (131072, loads)
    assert (counters["global_store_requests"], counters["global_store_sectors"]) == (131072, stores)
    assert counters["global_load_efficiency_pct"] == 100 * 524288 / loads
    assert counters["global_store_efficiency_pct"] == 100 * 524288 / stores
    assert counters["ffma_thread_instructions"] == 0
    assert result.sampled_blocks == result.total_blocks


@pytest.mark.parametrize("name", TRANSPOSES)
@pytest.mark.parametrize("block", [(16, 16), (8, 32), (32, 8)])
def test_transpose_on_ragged_shapes(name, block):
    target, expected, result = transpose(name, 133, 75, block)
    np.testing.assert_array_equal(target.array(), expected)
    assert target.written_mask().all()
    lines = result.lines.values()
    assert sum(line["global_load_sectors"] for line in lines) == result.counters["global_load_sectors"]
