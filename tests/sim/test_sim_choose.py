# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel that chooses another by size, executed: it counts what the chosen one counts."""

import pytest
from problem_support import Gemm, ladder
from typer.testing import CliRunner

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.cli import app
from gpuprof.devices.cards import load_card
from gpuprof.executor import launch
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

CHOICES = """/*gpuprof
title = "Mine"
problem = "gemm"
[[choose]]
kernel = "splitk_8x32"
when = "M * N <= 256 * sm_count"
[[choose]]
kernel = "splitk_16x32"
when = "M < 400"
*/
"""
CHOSEN = {"64": "splitk_8x32", "190": "splitk_16x32"}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A run of the choice and of what it chooses among, and what was printed."""
    folder = tmp_path_factory.mktemp("chosen")
    (folder / "mine.cu").write_text(CHOICES)
    kernels = f"{folder / 'mine.cu'},splitk_8x32,splitk_16x32"
    arguments = ["gemm", "-k", kernels, "--sizes", "64,190", "--device", "sim:h200", "--table"]
    # Wide enough for every column.
    result = CliRunner().invoke(app, [*arguments, "-o", str(folder)], env={"COLUMNS": "240"})
    assert result.exit_code == 0, result.output
    run = read_run(folder / "results.json")
    return run, result.stdout, {(case.kernel, case.problem.label): case for case in run.cases}


@pytest.mark.parametrize(("size", "chosen"), CHOSEN.items())
def test_choice_measures_what_the_chosen_kernel_measures(executed, size, chosen):
    _, _, cases = executed
    case, own = cases["mine", size], cases[chosen, size]
    assert (case.outcome, case.chosen, own.chosen) == ("ok", chosen, "")
    for name in ("block", "grid", "params", "counters", "resources", "occupancy", "verification"):
        assert getattr(case, name) == getattr(own, name), name
    assert case.source_hash == own.source_hash
    assert own.lines
    assert case.lines is None
    assert chosen in case.lines_reason


def test_what_a_choice_and_its_kernel_share_is_executed_once(monkeypatch):
    backend = SimBackend(load_card("h200"), models=False)
    compiler = Compiler(backend.device.arch)
    launches = []

    def counted(*arguments, **named):
        launches.append(arguments)
        return launch(*arguments, **named)

    monkeypatch.setattr("gpuprof.backends.sim.launching.launch", counted)
    alternatives = tuple(ladder("gemm"))
    kernels = {kernel.id: kernel for kernel in alternatives}
    by_size = Case.of(kernels["by_size"], Gemm(64, 64, 64), alternatives=alternatives)
    choice, _ = measure_case(by_size, backend, compiler)
    assert len(launches) == 1
    own, _ = measure_case(Case.of(kernels[choice.chosen], by_size.problem), backend, compiler)
    assert len(launches) == 1
    assert (own.counters, own.verification) == (choice.counters, choice.verification)
    other, _ = measure_case(Case.of(kernels[choice.chosen], Gemm(64, 64, 32)), backend, compiler)
    assert len(launches) == 2
    assert other.counters != own.counters


def test_choice_is_named_beside_its_block(executed):
    _, shown, _ = executed
    for size, chosen in CHOSEN.items():
        (line,) = [line for line in shown.splitlines() if line.split()[:4] == ["mine", "→", chosen, size]]
        assert "256x1" in line
