# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of the search share: a small kernel of a user's own that can be counted in seconds."""

import sys
from pathlib import Path

import pytest

# Runs without a measurement, which tests of reports share.
sys.path.append(str(Path(__file__).parents[1] / "report"))

from cuda_sources import write_kernel_file


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """The kernel's file."""
    return write_kernel_file(tmp_path, "scale", ", [2048, 1]")
