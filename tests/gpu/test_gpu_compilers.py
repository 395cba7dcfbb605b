# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A ptxas that makes wrong machine code is told from a wrong kernel, on a real GPU."""

import os
import re

import pytest

import gpuprof
from gpuprof.toolchain import assembling

WRONG = re.compile("wrong machine code of its PTX: at size ([0-9x]+), .* which line ([0-9]+) stores")


@pytest.fixture
def miscompiling(gpu_count, tmp_path, monkeypatch):
    """Puts a ptxas first that replaces one instruction by another."""
    real = assembling.found_ptxas()
    if not real:
        pytest.skip("no ptxas here")

    def install(old, new):
        wrong = tmp_path / "ptxas"
        wrong.write_text(
            f'#!/bin/bash\n[ "$1" = --version ] && exec {real[0][0]} --version\nargs=("$@")\n'
            f'sed "s/{old}/{new}/" "${{args[-1]}}" > {tmp_path}/wrong.ptx\nargs[-1]={tmp_path}/wrong.ptx\n'
            f'exec {real[0][0]} "${{args[@]}}"\n'
        )
        wrong.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        assembling.found_ptxas.cache_clear()

    yield install
    assembling.found_ptxas.cache_clear()


@pytest.mark.parametrize(
    ("operation", "kernel", "size", "old", "new", "wrong"),
    [
        ("softmax", "block_row", "256", r"max\.f32", "min.f32", True),
        ("softmax", "online", "256", r"ex2\.approx\.ftz\.f32", "sqrt.approx.ftz.f32", True),
        ("reduce", "sequential", "5000", r"add\.f32", "sub.f32", True),
        ("gemm", "naive", "128", r"fma\.rn\.f32", "fma.rz.f32", False),
    ],
)
def test_wrong_machine_code_is_found(miscompiling, operation, kernel, size, old, new, wrong):
    """With a size that shows it and the line; other rounding is none."""
    miscompiling(old, new)
    run = gpuprof.profile(
        operation,
        kernels=[kernel],
        sizes=size,
        device="0",
        lines=False,
        references=(),
        seconds_per_case=0.01,
        check_compiler=True,
    )
    (case,) = run.cases
    assert case.ok, case.reason
    said = " ".join(case.record.remarks)
    assert bool(WRONG.search(said)) == wrong, said
    assert "Right machine code" in said
