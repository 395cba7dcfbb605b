# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`cp.async` of 16 bytes costs what Nsight Compute counted for it on an H200."""

import pytest
from problem_support import find_kernel, measured, problem_for

pytestmark = pytest.mark.deep

#: Kernel, sizes: requests (None where not noted), sectors and shared wavefronts of its copies, on an H200.
COUNTED = {
    "rows padded by 16 bytes": ("splitk_16x32", (128, 128, 128), 1536, 28672, 9472),
    "fewer such rows": ("splitk_8x32", (128, 128, 128), 2560, 45056, 13568),
    "more such rows": ("splitk", (128, 128, 128), 768, 14336, 4736),
    "half of the lanes' columns beyond the matrix": ("reg_8x16_async", (128, 128, 128), 256, 6144, 4608),
    "the same with a pipeline": ("reg_8x16_pipelined", (128, 128, 128), 256, 6144, 4608),
    "zeros beyond K": ("reg_8x16_pipelined", (260, 388, 132), None, 41184, 25704),
}


@pytest.mark.parametrize("what", COUNTED)
def test_copies_cost_what_the_hardware_counts(what):
    name, sizes, *expected = COUNTED[what]
    kernel = find_kernel("gemm", name)
    measurement = measured(kernel, problem_for(kernel, *sizes), blocks=0)
    assert measurement.outcome == "ok", measurement.reason
    names = ("requests", "sectors", "shared_wavefronts")
    got = [measurement.counters[f"async_copy_{name}"].value for name in names]
    assert [value for value, known in zip(got, expected, strict=True) if known is not None] == [
        known for known in expected if known is not None
    ]
