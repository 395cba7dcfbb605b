# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A few of the random command lines and damaged results files of benchmarks/fuzz.py."""

import sys
from pathlib import Path

import pytest
from processes import ran

pytestmark = pytest.mark.deep

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.mark.parametrize(("kind", "count"), [("--commands", 12), ("--files", 12)])
def test_nothing_random_is_a_traceback_or_a_hang(kind, count, tmp_path):
    ended = ran([sys.executable, str(FUZZ), kind, str(count), "--seed", "0"], cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert "0 faults" in ended.stdout
    assert sum(int(part.split(" x ")[0]) for part in ended.stdout.splitlines()[0].split(", ")) == count


def test_a_fault_is_found(tmp_path):
    """A status that nobody documented, a traceback, and what does not end."""
    sys.path.insert(0, str(FUZZ.parent))
    from fuzz import Ended, documented, fault_of

    assert documented() >= {0, 1, 2, 3, 130}
    assert fault_of(Ended(0, "all is well", 0.1)) == ""
    assert fault_of(Ended(99, "", 0.1)) == "status 99"
    assert fault_of(Ended(-11, "", 0.1)) == "status -11"
    assert fault_of(Ended(1, "Traceback (most recent call last):\n", 0.1)).startswith("Traceback")
    assert fault_of(Ended(None, "", 120.0)).startswith("no end after")
