# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What kernels can do wrong in clusters of several blocks: each fault is planted beside a twin without it."""

import re
from pathlib import Path

import numpy as np
import pytest
from bulk_sources import clustered
from cuda_sources import either, kernel_table
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.backends.sim.told_faults import told
from gpuprof.executor import FaultKind

ROWS = kernel_table(Path(__file__).parent / "cluster_faults.cu")


@pytest.mark.parametrize("name", ROWS)
def test_what_is_wrong_is_found_and_told(name):
    row = ROWS[name]
    follows = "remark" in row.told
    launch = {"grid": (2, 1, 1), "block": (64, 1, 1), "follow_undefined": follows}
    arguments = np.zeros(128, np.float32)
    if "«" in row.text:
        (out,), result = run_cuda(clustered(either(row.text, first=False)), arguments, **launch)
        if follows:
            assert row.told["remark"] in result.remarks[0]
            np.testing.assert_array_equal(out.array(), [*range(64), *range(64)])
    source = clustered(either(row.text, first=True))
    fault = caught(source, arguments, **launch)
    assert fault.kind is FaultKind[row.told["kind"]]
    words = row.told["words"].replace("COPY", str(line_of(source, "multicast::cluster")))
    assert re.search(words, str(fault)), fault
    planted = row.told.get("line") or ("// planted" if "// planted" in row.text else "")
    assert not planted or fault.source_line == line_of(source, planted)
    for place in ("block", "thread"):
        assert getattr(fault, place) == (*row.told.get(place, getattr(fault, place)),)
    if fault.kind is FaultKind.SHARED_RACE:
        found = str(told(fault, {fault.kernel: cuda_program(source)}, []))
        met, line = line_of(source, row.told.get("met", "// other")), fault.source_line
        where = f"between lines {met} and {line}" if met < line else f"behind line {met}, before line {line}"
        assert re.search(r"of `\w+`", found)
        assert f" in line {met}" in found
        assert f"a barrier of the cluster that orders them is missing {where}" in found
