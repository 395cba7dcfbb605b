# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case never hurts another: broken kernels each get a row, and the good kernel after them is measured."""

import json
import sys

import pytest
from problem_support import Gemm, find_kernel
from processes import ran

from gpuprof.kernels.shape import configure
from gpuprof.measure.execute import Compiler
from gpuprof.records import replace

HEADER = """/*gpuprof
title = "broken on purpose"
problem = "transpose"
rung = {rung}
arguments = ["nx", "ny", "in", "out"]
[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
__device__ unsigned arrivals;

extern "C" __global__ void {name}(int nx, int ny, const real *in, real *out)
{{
    __shared__ unsigned launch; // since the module was loaded
    if (threadIdx.x == 0 && threadIdx.y == 0)
        launch = atomicAdd(&arrivals, 1) / (gridDim.x * gridDim.y);
    __syncthreads();
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny)
        return;
    {body}
}}
"""
RIGHT = "out[(size_t)x * ny + y] = in[(size_t)y * nx + x];"
BODIES = {
    "bad_syntax": "out[x] = in[y]",
    "bad_address": "out[(1ll << 45) + x] = in[y];",
    "bad_hang": "while (((volatile real *)out)[0] != 12345.f) {} out[0] = 1;",
    "bad_value": RIGHT + " if (x == 3 && y == 5) out[(size_t)x * ny + y] += 1;",
    "bad_unwritten": "if (x || y) " + RIGHT,
    "bad_input": RIGHT + " if (x == 1 && y == 0) ((real *)in)[0] = 7;",
    "good_input_kept": RIGHT + " if (x == 1 && y == 0) ((volatile real *)in)[0] = in[0];",
    "bad_overrun": RIGHT + " if (x == 0 && y == 0) out[(size_t)nx * ny] = 1;",
    "good_after_overrun": RIGHT,
    "bad_underrun": RIGHT + " if (x == 0 && y == 0) out[-1] = 1;",
    "bad_input_overrun": RIGHT + " if (x == 0 && y == 0) ((real *)in)[(size_t)nx * ny] = 1;",
    "bad_later": "if (launch == 0) " + RIGHT + " else out[(size_t)x * ny + y] = 1;",
    "bad_stops_writing": "if (launch == 0) " + RIGHT,
    "bad_unless_poisoned": "const real old = out[(size_t)x * ny + y];"
    " out[(size_t)x * ny + y] = old != old ? in[(size_t)y * nx + x] : 2;",
    "good": RIGHT,
}


@pytest.fixture(scope="module")
def run(gpu_count, tmp_path_factory):
    directory = tmp_path_factory.mktemp("broken")
    arguments = []
    for rung, (name, body) in enumerate(BODIES.items()):
        path = directory / f"{name}.cu"
        path.write_text(HEADER.format(name=name, body=body, rung=rung))
        arguments += ["--kernel", str(path)]
    json_path = directory / "results.json"
    command = [sys.executable, "-m", "gpuprof", "transpose", *arguments, "--sizes", "64", "--timeout", "6"]
    command += ["--reference", "none"]
    # The report needs plotly, the measurement does not: the results are on disk before it is rendered.
    process = ran([*command, "--json", str(json_path)])
    assert json_path.exists(), process.stderr
    document = json.loads(json_path.read_text())
    assert document["complete"], process.stderr
    return {case["kernel"]: case for case in document["cases"]}


def test_every_kernel_has_a_row(run):
    assert list(run) == list(BODIES)


@pytest.mark.parametrize(
    ("kernel", "outcome", "words"),
    [
        ("bad_syntax", "failed", "expected a"),
        ("bad_address", "failed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("bad_hang", "timeout", "6 s"),
        ("bad_value", "incorrect", "1 of 4096 elements (0.0244 %) is wrong"),
        (
            "bad_unwritten",
            "incorrect",
            "1 of 4096 elements (0.0244 %) is wrong: column 0 of row 0; it was never written",
        ),
        ("bad_input", "incorrect", "wrote to one of its inputs"),
        ("bad_overrun", "incorrect", "past the end of out"),
        ("bad_underrun", "incorrect", "before the start of out"),
        ("bad_input_overrun", "incorrect", "past the end of in"),
        ("bad_later", "incorrect", "Right in its first launch, wrong in a later one: all 4096"),
        ("bad_stops_writing", "incorrect", "Right in its first launch, wrong in a later one: all 4096"),
        ("bad_unless_poisoned", "incorrect", "Right in its first launch, wrong in a later one: all 4096"),
    ],
)
def test_broken_kernel_is_a_row_with_its_reason(run, kernel, outcome, words):
    assert run[kernel]["outcome"] == outcome
    assert words in run[kernel]["reason"]
    assert run[kernel]["timing"] is None


def test_compile_error_carries_the_compilers_log(run):
    assert "bad_syntax.cu(" in run["bad_syntax"]["log"]


@pytest.mark.parametrize("kernel", ["good_after_overrun", "good_input_kept", "good"])
def test_good_kernel_after_broken_ones_is_measured(run, kernel):
    assert run[kernel]["outcome"] == "ok", run[kernel]["reason"]
    assert run[kernel]["timing"]["cold"]["median_us"] > 0


def test_overrun_of_one_kernel_is_not_the_next_ones_where_the_output_is_read(backend):
    """With beta the output is restored and not filled: its guard must be poisoned anew all the same."""
    problem = Gemm(64, 64, 64, beta=0.5)
    good = find_kernel("gemm", "naive")
    past_the_end = good.source.replace("    *c = beta", "    C[(size_t)M * N] = 0;\n    *c = beta")
    assert past_the_end != good.source
    outcomes = []
    for kernel in (good, replace(good, source=past_the_end), good, good):
        shape = configure(kernel, problem, kernel.block, {}, backend.device)
        findings = backend.run(shape, Compiler(backend.device.arch)(shape))
        outcomes.append(findings.outcome)
    assert outcomes == ["ok", "incorrect", "ok", "ok"]
