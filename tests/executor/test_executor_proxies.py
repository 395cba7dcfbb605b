# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fences between threads and the copy engine: each fault with the kernel beside it that is right."""

from pathlib import Path

import numpy as np
import pytest
from bulk_sources import cuda
from cuda_sources import either, kernel_table
from executor_harness import run_cuda, tells

from gpuprof.executor import FaultKind

PAIRS = kernel_table(Path(__file__).parent / "proxies.cu")
NUMBERS = np.arange(256, dtype=np.float32)


@pytest.mark.parametrize("name", PAIRS)
def test_right_kernel_runs(name):
    source = cuda(either(PAIRS[name].text, first=False))
    (_, out), _ = run_cuda(source, NUMBERS, np.full(256, -1, np.float32), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), PAIRS[name].told["times"] * NUMBERS)


@pytest.mark.parametrize("name", PAIRS)
def test_wrong_one_is_told_with_line_thread_and_byte(name):
    said = PAIRS[name].told
    source = cuda(either(PAIRS[name].text, first=True))
    told = FaultKind[said["kind"]], said["line"], said["words"]
    arrays = NUMBERS, np.zeros(256, np.float32)
    fault = tells(source, *told, *arrays, thread=said["thread"], block=(64, 1, 1))
    assert fault.address == (None if said["address"] < 0 else said["address"])
