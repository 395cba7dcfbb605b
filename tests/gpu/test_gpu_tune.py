# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search on a GPU: points are timed, wrong ones are findings, the closest meet in rounds."""

import pytest

import gpuprof
from gpuprof.reading import read_run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu_count")]

#: With EACH = 3 it is wrong.
SCALE = """/*gpuprof
operation = "scale"
dimensions = ["n"]
default_sizes = "4194304"
arguments = ["n", "x", "y"]
[parameters]
EACH = 1
[candidates]
EACH = [1, 2, 3, 4, 8]
block = [[64], [128], [256], [512]]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = { value = "2 * x", equal = true }
[launch]
block = [64]
any_block = true
grid = ["cdiv(n, EACH * block_x)"]
*/
extern "C" __global__ void scale(int n, const real *x, real *y)
{
    for (int i = 0; i < EACH; ++i) {
        const int at = (blockIdx.x * EACH + i) * BLOCK_X + threadIdx.x;
        if (at < n && !(EACH == 3 && at == 5))
            y[at] = 2 * x[at];
    }
}
"""


def test_search_on_a_gpu(tmp_path):
    path = tmp_path / "kept.json"
    source = gpuprof.Source(SCALE, "scale")
    found = gpuprof.tune(source, device=0, budget=20, rounds=3, seconds_per_case=0.02, save=path)
    assert found.by_time
    best = found.best()
    assert best.params["EACH"] != 3
    assert best.median_us > 0
    run = read_run(path)
    assert run.tuning is not None
    (tuned,) = run.tuning.sizes
    assert tuned.by == "time"
    assert tuned.combinations == 20
    outcomes = {case.params["EACH"]: case.outcome for case in run.cases}
    assert outcomes[3] == "incorrect"
    assert {outcomes[each] for each in (1, 2, 4, 8)} == {"ok"}
    fastest = min(
        case.timing.cold.median_us for case in run.cases if case.timing is not None and case.timing.cold
    )
    assert best.median_us <= 1.1 * fastest
    if len(tuned.ties) > 1:
        assert len(run.cases[0].timing.cold.rounds_us) == 3


def test_the_same_search_times_no_point_anew(tmp_path):
    path = tmp_path / "kept.json"
    source = gpuprof.Source(SCALE, "scale")
    how = {"device": 0, "rounds": 1, "seconds_per_case": 0.02, "save": path}
    few = gpuprof.tune(source, budget=4, **how)
    more = gpuprof.tune(source, budget=8, **how)
    known = {(tuple(case.params.items()), case.block) for case in few.run.record.cases}
    assert known <= {(tuple(case.params.items()), case.block) for case in more.run.record.cases}
    assert sum(case.outcome == "ok" for case in more.run.record.cases) == 8


@pytest.mark.parametrize(
    ("operation", "kernel", "size"),
    [
        ("gemm", "splitk_16x32", (100, 132, 300)),
        ("gemm", "reg_8x16_pipelined", (100, 132, 300)),
        ("gemm", "streamk", (1000, 1028, 300)),
        ("transpose", "bulk_tile", (1000, 516)),
        ("transpose", "smem_unrolled", (1000, 777)),
        ("reduce", "last_block", 1_000_003),
        ("reduce", "atomic_add", 1_000_003),
        ("softmax", "registers", (64, 500)),
        ("softmax", "warp_row", (64, 500)),
    ],
)
def test_candidates_of_shipped_kernels_are_right(operation, kernel, size):
    # Compiling may take the most of it: some kernels have thousands of candidates.
    how = {"device": 0, "budget": 8, "seconds": 20, "rounds": 1, "seconds_per_case": 0.01}
    found = gpuprof.tune(operation, kernels=kernel, sizes=[size], **how)
    assert [
        (case.record.params, case.record.reason) for case in found.run if case.record.outcome != "ok"
    ] == []
    assert found.best().median_us > 0


def test_each_gpu_of_a_machine_has_its_own_answer(gpu_count):
    if gpu_count < 2:
        pytest.skip("there is one GPU")
    source = gpuprof.Source(SCALE, "scale")
    found = gpuprof.tune(source, device="0,1", budget=8, rounds=4, seconds_per_case=0.02)
    assert [tuned.device for tuned in found.run.record.tuning.sizes] == [0, 1]
    for device in found.run.devices:
        assert found.best(device=device).median_us > 0
        assert found.best(device=device).params["EACH"] != 3
    for number in (0, 1):
        outcomes = {case.outcome for case in found.run.record.cases if case.device == number}
        assert "ok" in outcomes
