# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shipped kernels' headers say that their steps move, held against the executor's counts."""

import functools

import pytest
from typer.testing import CliRunner

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.cli import app
from gpuprof.kernels.catalog import ladder
from gpuprof.results import read_run

MOVERS = [kernel for op in ("gemm", "transpose") for kernel in ladder(op) if kernel.moves]


@pytest.fixture(scope="module")
def rung_of(tmp_path_factory):
    """The rung of a kernel in its whole ladder at 256, executed as an H200."""

    @functools.cache
    def rungs(op):
        folder = tmp_path_factory.mktemp(op)
        arguments = [op, "--all", "--sizes", "256", "--device", "sim:h200", "--quiet", "-o", str(folder)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        run = read_run(folder / "results.json")
        (group,) = groups(run)
        return build_ladder(run, group.sizes[0])

    return lambda kernel: rungs(kernel.op).rung(kernel.id)


@pytest.mark.parametrize("kernel", MOVERS, ids=lambda kernel: f"{kernel.op}-{kernel.id}")
def test_figures_move_as_the_header_says(rung_of, kernel):
    rung = rung_of(kernel)
    if rung.case.outcome == "skipped":
        pytest.skip(f"{kernel.id}: {rung.case.reason}")
    assert rung.previous == kernel.after
    found = {name: claim.moved for name, claim in zip(kernel.moves, rung.claims, strict=True)}
    assert found == kernel.moves
