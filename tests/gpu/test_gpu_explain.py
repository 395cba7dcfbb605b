# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Planted faults and wrong results on a GPU: each row says the right line, which the executor found."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "explain"))
from planted_kernels import FOLDER, PLANTED, SIZE, check_row
from processes import ran

import gpuprof


@pytest.fixture(scope="module")
def rows(gpu_count, tmp_path_factory):
    """One run of all planted kernels, as a user starts it. Hangs take the timeout; a full card needs it."""
    results = tmp_path_factory.mktemp("planted") / "results.json"
    command = [sys.executable, "-m", "gpuprof", "run", str(FOLDER), "--sizes", SIZE, "--device", "0"]
    process = ran(
        [*command, "--timeout", "6", "--seconds", "0.01", "--reference", "none", "--json", str(results)]
    )
    assert results.exists(), process.stderr
    run = json.loads(results.read_text())
    assert run["complete"], process.stderr
    return {case["kernel"]: case for case in run["cases"]}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_kernel_is_explained(rows, planted):
    check_row(rows[planted.name], planted)


SCALE = """
extern "C" __global__ void scale(long long n, float a, const float *x, float *y)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[STEP * i];
}
"""


@pytest.mark.parametrize(
    ("step", "outcome", "words"),
    [
        (
            "1000000000000",
            "failed",
            "Illegal address: line 6, thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes",
        ),
        ("(i % 7 ? 1 : 0)", "incorrect", "Wrong store: line 6, thread (7, 0, 0) of block (0, 0, 0) stores"),
    ],
)
def test_a_call_with_arrays_of_its_own_is_explained(gpu_count, step, outcome, words):
    x = np.linspace(1, 2, 10_000, dtype=np.float32)
    case = gpuprof.profile(
        gpuprof.Source(SCALE.replace("STEP", step), "scale"),
        args={"n": x.size, "a": 3.0, "x": x, "y": None},
        expect={"y": 3 * x},
        grid="cdiv(n, block_x)",
        block=128,
        device=0,
        seconds_per_case=0.01,
    ).case()
    assert case.outcome == outcome
    assert words in case.reason
    assert case.explanation.line == 6
