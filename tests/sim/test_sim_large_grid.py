# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a case runs whole, and with its values, is a matter of its launch too, not of its problem alone."""

from dataclasses import replace

import pytest
from problem_support import Gemm, ladder
from typer.testing import CliRunner

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim import backend, instructions, sampled
from gpuprof.cli import app
from gpuprof.devices.cards import load_card
from gpuprof.kernels.shape import configure
from gpuprof.options import RunOptions
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

SOURCE = """/*gpuprof
title = "One block works"
problem = "transpose"
arguments = ["nx", "ny", "in", "out"]

[launch]
block = [256, 1]
grid = ["{blocks}"]
*/
extern "C" __global__ void one_block(int nx, int ny, const real *in, real *out)
{{
    if (blockIdx.x > 0)
        return;
    for (int i = threadIdx.x; i < nx * ny; i += 256)
        out[(size_t)(i % nx) * ny + i / nx] = in[i];
}}
"""


@pytest.mark.parametrize(("blocks", "executed"), [(2**31 - 1, 6), (2**28 // 256 + 1, 6), (1000, 1000)])
def test_grid_far_larger_than_its_problem_is_sampled(tmp_path, blocks, executed):
    (tmp_path / "one_block.cu").write_text(SOURCE.format(blocks=blocks))
    arguments = ["transpose", "-k", str(tmp_path / "one_block.cu"), "--sizes", "64", "--device", "sim:h200"]
    result = CliRunner().invoke(app, [*arguments, "--quiet", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok", case.reason
    stores = case.counters["global_store_requests"]
    assert (stores.sampled_blocks, stores.total_blocks) == (executed, blocks)
    assert stores.value == 64 * 64 // 32
    assert case.verification.checked_elements == 64 * 64


@pytest.mark.parametrize(("name", "dtype"), [("tf32x3_mma", "f32"), ("wgmma_tma", "bf16")])
def test_a_sample_whose_sums_are_dear_is_counted_alike_without_them(name, dtype, monkeypatch):
    card = load_card("h200")
    kernel = next(one for one in ladder("gemm") if one.id == name)
    problem = Gemm(512, 640, 136, dtype=dtype)
    shape = configure(kernel, problem, kernel.launch.block, {}, card)
    compiled = compile_kernel(shape, card.arch)
    found = []
    for most_s in (1e9, 0.0):
        monkeypatch.setattr(sampled, "_SUMS_S", most_s)
        found.append(backend.SimBackend(card, RunOptions(sim_blocks=3)).run(shape, compiled))
    with_values, without = found
    assert with_values.outcome == without.outcome == "ok"
    assert [one for one in without.remarks if one.startswith("Counted at this size, verified at ")]
    kept = ("remarks", "verification")
    assert replace(without, **{part: getattr(with_values, part) for part in kept}) == with_values


def test_a_dear_grid_that_no_sample_stands_for_is_counted_whole_without_values(monkeypatch):
    card = load_card("h200")
    kernel = next(one for one in ladder("gemm") if one.id == "wgmma_tma")
    shape = configure(kernel, Gemm(256, 512, 64, dtype="bf16"), kernel.launch.block, {}, card)
    compiled = compile_kernel(shape, card.arch)
    with_values = backend.SimBackend(card, RunOptions(sim_blocks=0)).count(shape, compiled)
    sliced = []
    load = instructions.load_program

    def load_program(*arguments, **how):
        sliced.append(how["with_slice"])
        return load(*arguments, **how)

    monkeypatch.setattr(instructions, "load_program", load_program)
    monkeypatch.setattr(sampled, "_SUMS_S", 0.0)
    monkeypatch.setattr(backend, "stands_for_grid", lambda *_: False)
    found = backend.SimBackend(card, RunOptions(sim_blocks=2)).count(shape, compiled)
    assert sliced == [True]
    assert found.caveat is None
    assert found.counters == with_values.counters


@pytest.mark.parametrize(
    ("operations", "sums", "dear"),
    [
        (1e12, [set()], False),
        (1e9, [{"bf16"}], False),
        (1e9, [set(), {"bf16", "tf32"}], True),
        (2e9, [{"bf16"}], True),
        (1e8, [{"f64"}], False),
    ],
)
def test_sums_are_dear_by_what_they_take_whatever_the_kernel(operations, sums, dear):
    assert sampled.are_dear(operations, sums) == dear
