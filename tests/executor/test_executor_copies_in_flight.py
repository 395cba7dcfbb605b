# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Copies in flight to one place, of every kind: faults of order with both lines, and right twins.

Neither within a group nor between groups does the PTX ISA order what asynchronous copies write: what is in
flight to a place must have landed before that place is read, written, or copied to again.
"""

from pathlib import Path

import numpy as np
import pytest
from bulk_sources import cuda
from cuda_sources import either, kernel_table
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

PAIRS = kernel_table(Path(__file__).parent / "copies_in_flight.cu")


@pytest.mark.parametrize("name", PAIRS)
def test_right_kernels_run(name):
    data = np.arange(1024, dtype=np.float32)
    (_, out), _ = run_cuda(cuda(either(PAIRS[name].text, first=False)), data, np.full(128, -1, np.float32))
    assert (out.array() != -1).any()


@pytest.mark.parametrize("name", PAIRS)
def test_wrong_twins_are_told_with_both_lines(name):
    kind = FaultKind[PAIRS[name].told.get("kind", "ASYNC_COPY")]
    source = cuda(either(PAIRS[name].text, first=True))
    fault = caught(source, np.arange(1024, dtype=np.float32), np.zeros(128, np.float32))
    assert fault.kind is kind, fault
    if kind is FaultKind.ASYNC_COPY:
        line = int(fault.detail.rpartition(" line ")[2].split()[0])
        started = source.splitlines()[line - 1]
        assert "cp.async" in started or "copy" in started or "load" in started, started
        assert fault.source_line
