# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The first rungs as PTX of every architecture that is executed."""

from math import ceil

import numpy as np
import pytest
from executor_harness import KERNELS, cuda_program

from gpuprof.executor import GlobalMemory, launch

pytestmark = pytest.mark.deep

#: Block, macros and bytes of shared memory.
GEMMS = {
    "naive": ((32, 32), (), 0),
    "smem_tiled": ((32, 32), (), 2 * 32 * 32 * 4),
    "reg_2x1": ((32, 16), ("-DTILE=32",), 0),
}


def gemm(name, m, n, k, arch="sm_90"):
    """Run one shipped GEMM with 32x32 tiles; return (output, expected, counters)."""
    block, options, shared = GEMMS[name]
    options = ("-Dreal=float", f"-DBLOCK_X={block[0]}", f"-DBLOCK_Y={block[1]}", *options)
    program = cuda_program((KERNELS / "gemm" / f"{name}.cu").read_text(), options, arch)
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
    memory = GlobalMemory()
    buffers = [memory.allocate(x, label) for x, label in ((a, "A"), (b, "B"), (c, "C"))]
    arguments = [m, n, k, np.float32(0.5), buffers[0], buffers[1], np.float32(2), buffers[2]]
    grid = (ceil(n / 32), ceil(m / 32), 1)
    result = launch(program, grid, (*block, 1), arguments, memory, dynamic_shared_bytes=shared)
    return buffers[2].array(), 0.5 * (a.astype(np.float64) @ b) + 2 * c, result.counters


@pytest.mark.parametrize("name", GEMMS)
def test_every_architecture_gives_the_same_product_and_counts(name):
    counts = []
    for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"):
        out, expected, counters = gemm(name, 33, 65, 31, arch)
        np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)
        counts.append(counters)
    assert counts == counts[:1] * 5
