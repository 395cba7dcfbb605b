# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose results, counts, remarks, texts and faults are known: one row of a table each."""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import Row, either, kernel_table
from executor_harness import line_of, run_cuda, run_ptx

from gpuprof.executor import FaultKind, KernelFault, LaunchResult

FOLDER = Path(__file__).parent
ROWS = kernel_table(FOLDER / "kernels.cu") | kernel_table(FOLDER / "kernels.ptx")
#: What a row may say; anything else would go unheard.
KEYS = {"arrays", "at", "counters", "deep", "gives", "kind", "launch", "lines", "place", "printed", "remarks"}
KEYS |= {"words"}


def with_lines(words: str, source: str) -> str:
    """Words with the numbers of the lines that they name by their comments."""
    return re.sub(r"\{(\w+)\}", lambda found: str(line_of(source, f"// {found[1]}")), words)


def deep(row: Row) -> tuple:
    return (pytest.mark.deep,) if row.told.get("deep") else ()


def run(source: str, *arrays: np.ndarray, **launch) -> tuple[list[np.ndarray], LaunchResult]:
    """What a launch leaves in the arrays, and its result."""
    if ".entry k" in source:
        return run_ptx(source, *arrays, **launch)
    buffers, result = run_cuda(source, *arrays, **launch)
    return [buffer.array() for buffer in buffers], result


@pytest.mark.parametrize("name", [pytest.param(name, marks=deep(row)) for name, row in ROWS.items()])
def test_a_kernel_does_what_its_row_says(name):
    text, told = ROWS[name].text, ROWS[name].told
    assert told.keys() <= KEYS
    arrays = [eval(formula, vars(np)) for formula in told["arrays"]]
    launch = told.get("launch", {})
    if "kind" in told:
        source = either(text, first=True)
        with pytest.raises(KernelFault) as caught:
            run(source, *arrays, **launch)
        fault = caught.value
        assert fault.kind is FaultKind[told["kind"]], fault
        planted = told.get("at", "// planted")
        assert ("at" not in told and planted not in source) or fault.source_line == line_of(source, planted)
        assert with_lines(told.get("words", ""), source) in fault.detail
        for place, where in told.get("place", {}).items():
            assert getattr(fault, place) == (tuple(where) if place != "address" else where)
    if "kind" not in told or "«" in text:
        source = either(text, first=False)
        left, result = run(source, *arrays, **launch)
        for found, formula in zip(left, told.get("gives", ()), strict=False):
            expected = eval(formula, vars(np) | {"t": np.arange(found.size)})
            np.testing.assert_array_equal(found, np.broadcast_to(expected, found.shape))
        for counter, value in told.get("counters", {}).items():
            assert result.counters[counter] == value, counter
        for line, counters in told.get("lines", {}).items():
            counted = result.lines[line_of(source, f"// {line}")]
            assert counters == {counter: counted[counter] for counter in counters}
        if "remarks" in told:
            assert result.remarks == tuple(with_lines(remark, source) for remark in told["remarks"])
        assert result.printed == told.get("printed", "")
