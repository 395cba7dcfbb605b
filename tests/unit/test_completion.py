# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shell offers, asked as its completion scripts ask."""

import os
import subprocess
import sys

import pytest

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


def test_commands_and_options_are_offered(tmp_path):
    assert set(shipped_names()) <= set(offered("", cwd=tmp_path))
    assert offered("gemm", "--siz", cwd=tmp_path) == ["--sizes"]
    assert "--device" in [
        line.split("\t")[0] for line in offered("gemm", "--dev", cwd=tmp_path, shell="fish")
    ]
