# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Progress in a pipe: one line for each case, which tells the cases of one kernel apart."""

from dataclasses import replace

from problem_support import Gemm
from unit_support import DEVICE

from gpuprof.commands.progress import watch
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure.case import Case, unmeasured
from gpuprof.measure.protocol import Opened

KERNEL = shipped_ladder("gemm").find("reg_8x8")


def lines(capsys, act):
    with watch(quiet=False) as progress:
        progress.opened(Opened(DEVICE, "gpu", None, {}, 0), 2)
        act(progress)
    return capsys.readouterr().err.splitlines()[1:]


def test_a_case_is_named_by_size_block_and_parameters(capsys):
    def act(progress):
        for value in (8, 16):
            case = Case.of(KERNEL, Gemm(64, 64, 64), params={"BK": value})
            progress.finished(unmeasured(case, KERNEL, "ok", None, "not run"))

    assert lines(capsys, act) == ["[1/2] reg_8x8 64 256x1 BK=8: ok", "[2/2] reg_8x8 64 256x1 BK=16: ok"]


def test_of_a_kernel_that_was_chosen_the_header_says_the_parameters(capsys):
    case = unmeasured(Case.of(KERNEL, Gemm(64, 64, 64)), KERNEL, "ok", None, "not run")
    told = lines(
        capsys, lambda progress: progress.finished(replace(case, kernel="by_size", chosen="reg_8x8"))
    )
    assert told == ["[1/2] by_size 64 → reg_8x8 256x1: ok"]


def test_nsight_compute_turns_to_a_case_by_its_parameters(capsys):
    case = Case.of(KERNEL, Gemm(64, 64, 64), params={"BK": 8})
    assert lines(capsys, lambda progress: progress.profiling(case)) == ["ncu: reg_8x8 64 256x1 BK=8"]
