# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shell offers, asked as its completion scripts ask."""

import os
import subprocess
import sys

import pytest
from problem_support import ladder
from unit_support import write_transpose_kernel

from gpuprof.devices.cards import card_names
from gpuprof.kernels.shipped import shipped_names

pytestmark = pytest.mark.deep

_COMMAND = "import sys; sys.argv[0] = 'gpuprof'; from gpuprof.__main__ import main; main()"


def offered(*words, cwd, shell="bash"):
    """The candidates for the last word of a command line."""
    told = {
        "bash": {"COMP_WORDS": " ".join(("gpuprof", *words)), "COMP_CWORD": str(len(words))},
        "fish": {
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_ARGS": " ".join(("gpuprof", *words)),
        },
    }[shell]
    process = subprocess.run(
        [sys.executable, "-c", _COMMAND],
        cwd=cwd,
        env={**os.environ, "_GPUPROF_COMPLETE": f"complete_{shell}", **told},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return [line for line in process.stdout.splitlines() if line]


def test_operations_are_offered_as_commands_and_as_arguments(tmp_path):
    assert set(shipped_names()) <= set(offered("", cwd=tmp_path))
    assert offered("list", "", cwd=tmp_path) == list(shipped_names())
    assert offered("new", "so", cwd=tmp_path) == ["softmax"]


def test_kernels_are_those_of_the_command_and_files(tmp_path):
    write_transpose_kernel(tmp_path, "mine")
    kernels = [kernel.id for kernel in ladder("transpose")]
    assert offered("transpose", "-k", "", cwd=tmp_path) == [*kernels, "mine.cu"]
    assert offered("transpose", "-k", "naive_row,naive_", cwd=tmp_path) == ["naive_row,naive_col"]
    assert offered("gemm", "-k", "naive_x", cwd=tmp_path) == ["naive_x_rows"]
    assert offered("run", "mine.cu", "-k", "mi", cwd=tmp_path) == ["mine", "mine.cu"]
    assert offered("run", "nothing", "-k", "mi", cwd=tmp_path) == ["mine.cu"]


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["gemm", "--sizes", "10"], ["1024"]),
        (["gemm", "--sizes", "128,12"], []),
        (["gemm", "--sizes", "128,10"], ["128,1024"]),
        (["gemm", "--device", "sim:h2"], ["sim:h200"]),
        (["gemm", "--device", "n"], ["none"]),
        (["gemm", "--dtype", "f3"], ["f32"]),
        (["gemm", "--reference", "v"], ["vendor"]),
        (["gemm", "--ncu-clocks", "b"], ["base"]),
        (["gemm", "--block", "16"], ["16x16"]),
    ],
)
def test_values_of_options_are_offered(tmp_path, words, candidates):
    assert offered(*words, cwd=tmp_path) == candidates


def test_every_card_is_offered(tmp_path):
    assert set(offered("gemm", "--device", "sim:", cwd=tmp_path)) == {f"sim:{name}" for name in card_names()}


def test_a_description_is_one_line(tmp_path):
    lines = offered("gemm", "-k", "", cwd=tmp_path, shell="fish")
    assert [line.split("\t")[0] for line in lines] == [kernel.id for kernel in ladder("gemm")]
