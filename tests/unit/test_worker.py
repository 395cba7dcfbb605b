# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A worker process belongs to the one that started it from its first moment on."""

import os
import subprocess
import sys

LOADED = """
import sys
import gpuprof.measure.worker
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "cuda", "llvmlite"}))
"""


def test_one_whose_parent_is_gone_ends_before_it_loads_anything():
    worker = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpuprof.measure.worker", str(os.getpid() + 1)],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (worker.returncode, worker.stdout) == (1, "")
    assert "gpuprof.measure.serving" not in worker.stderr


def test_it_is_tied_to_its_parent_before_the_slow_imports():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
