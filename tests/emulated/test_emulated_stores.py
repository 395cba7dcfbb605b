# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Memory that a kernel was not given is no store for its results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.deep

HERE = Path(__file__).parent


def test_what_a_kernel_keeps_where_nobody_clears_shows(tmp_path):
    """By its time with inputs that it has not seen; in the flush's memory by what it left there."""
    paths = (str(HERE / "site"), str(HERE.parent), *sys.path)
    process = subprocess.run(
        [sys.executable, str(HERE / "emulated_stores.py")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "GPUPROF_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    keeps, honest, flush = process.stdout.splitlines()
    assert keeps.startswith("spare True incorrect Right in its first launch, wrong in a later one")
    assert "inputs that it had not seen" in keeps
    assert honest == "spare False ok None"
    assert "incorrect" in flush
    assert "memory that it was not given" in flush
