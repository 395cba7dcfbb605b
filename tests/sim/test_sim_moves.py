# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shipped kernels' headers say that their steps move, held against the executor's counts."""

import functools

import pytest
from problem_support import shipped_kernels
from typer.testing import CliRunner

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.cli import app
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

MOVERS = [kernel for kernel in shipped_kernels() if kernel.moves]
#: The smallest sizes at which all steps of a ladder show: several of the largest tiles, and more elements to
#: sum than a GPU has threads.
LADDER_SIZES = {
    **{"gemm": "256x256x64", "reduce": "600001", "softmax": "16x1024", "transpose": "256"},
    "attention": "1x1x300x64",
}
#: Sizes of whole tiles, for kernels whose tiles 256 does not fill.
SIZES = {
    **dict.fromkeys(("streamk", "streamk_64x256"), "384x512x64"),
    "registers": "16x8192",
    "few_rows": "4x256x512",
    "splitk_44x64": "88x256x128",
    "realigned": "129x257x65",
    "packed": "129x257x65",
    "wgmma_persistent": "2560x1792x8",
    **dict.fromkeys(("wgmma_streamk", "wgmma_packed"), "256x256x512"),
}


@pytest.fixture(scope="module")
def rung_of(tmp_path_factory):
    """The rung of a kernel in its ladder, executed as an H200."""

    @functools.cache
    def rungs(op, size, dtype, kernels):
        folder = tmp_path_factory.mktemp(op)
        arguments = [op, *kernels, "--sizes", size, "--dtype", dtype, "--device", "sim:h200", "--quiet"]
        arguments += ["--timeout", "1200"]
        # Results alone: nobody reads a page of each.
        arguments += ["--json", str(folder / "results.json"), "--no-lines"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        run = read_run(folder / "results.json")
        (group,) = groups(run)
        return build_ladder(run, group.sizes[0])

    def rung(kernel):
        apart = ("--kernel", f"{kernel.after},{kernel.id}")
        size = SIZES.get(kernel.id) or LADDER_SIZES[kernel.operation]
        dtype = kernel.dtypes[0]
        alone = kernel.id in SIZES or dtype != "f32" or kernel.shape_of
        kernels = apart if alone else ("--all",)
        return rungs(kernel.operation, size, dtype, kernels).rung(kernel.id)

    return rung


@pytest.mark.parametrize("kernel", MOVERS, ids=lambda kernel: f"{kernel.operation}-{kernel.id}")
def test_figures_move_as_the_header_says(rung_of, kernel):
    rung = rung_of(kernel)
    if rung.case.outcome == "skipped":
        pytest.skip(f"{kernel.id}: {rung.case.reason}")
    assert rung.previous == kernel.after
    assert rung.case.resources.spill_bytes == 0
    # The executor has no value for what only the caches and the memory behind them know.
    found = {
        name: claim.moved
        for name, claim in zip(kernel.moves, rung.claims, strict=True)
        if claim.step is not None
    }
    assert found
    assert found == {name: kernel.moves[name] for name in found}
    assert all(name.startswith(("dram_", "l2_")) for name in kernel.moves.keys() - found.keys())
