# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rounds on a GPU, and verdicts on times that were really measured."""

import json
import sys
from pathlib import Path

import pytest
from processes import make_repository, ran

import gpuprof

SAXPY = """/*gpuprof
operation = "saxpy"
dimensions = ["n"]
arguments = ["n", "x", "y"]
default_sizes = "16777216"
[arrays]
x.shape = ["n"]
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = "2 * x"
equal = true
[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void scaled(int n, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}
"""
#: The same with each element read from a place far from its neighbour's.
SLOW = SAXPY.replace("y[i] = 2 * x[i];", "y[i] = 2 * x[i] + 0 * x[(i * 1024LL + i / 16384) % n];")
ROUNDS = 10


@pytest.fixture(scope="module")
def measured(gpu_count, tmp_path_factory):
    """Identical code twice, and a slower version, in rounds of their own."""
    folder = tmp_path_factory.mktemp("rounds")
    found = {}
    for name, text in (("base", SAXPY), ("again", SAXPY), ("slow", SLOW)):
        (folder / name).mkdir()
        path = folder / name / "scaled.cu"
        path.write_text(text)
        found[name] = gpuprof.profile(path, device=0, rounds=ROUNDS, seconds_per_case=0.5, lines=False)
    return found


def test_a_round_is_kept_as_one(measured):
    (case,) = measured["base"].cases
    assert case.ok, case.reason
    assert len(case.record.timing.cold.rounds_us) == ROUNDS
    assert all(len(samples) >= 3 for samples in case.record.timing.cold.rounds_us)
    assert case.median_us == pytest.approx(sorted(case.record.timing.cold.samples_us)[0], rel=0.5)


def test_identical_code_is_not_called_changed(measured):
    (case,) = gpuprof.compare(measured["base"], measured["again"]).cases
    assert case.verdict in ("same", "uncertain"), case.sentence


def test_slower_code_is_found(measured):
    comparison = gpuprof.compare(measured["base"], measured["slow"])
    assert comparison.verdict == "regressed", comparison.cases[0].sentence
    assert comparison.hold("time > 10%")[0].outcome == "failed"


def test_the_working_tree_against_a_revision(gpu_count, tmp_path):
    (tmp_path / "scaled.cu").write_text(SAXPY)
    make_repository(tmp_path)
    (tmp_path / "scaled.cu").write_text(SLOW)
    process = ran(
        [
            *(sys.executable, "-m", "gpuprof", "compare", "--against", "HEAD", "scaled.cu", "--device", "0"),
            *("--rounds", str(ROUNDS), "--json", "c.json", "-o", "out", "--fail-on", "time > 10%"),
        ],
        cwd=tmp_path,
    )
    assert process.returncode == 1, process.stdout + process.stderr
    (compared,) = json.loads(Path(tmp_path, "c.json").read_text())["comparisons"]
    (case,) = (case for case in compared["cases"] if case["kernel"] == "scaled")
    assert case["verdict"] == "regressed"
    assert len(case["time"]["base_rounds_us"]) == len(case["time"]["new_rounds_us"]) == ROUNDS
