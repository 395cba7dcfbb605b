# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of the search share: a small kernel of a user's own that can be counted in seconds."""

import sys
from pathlib import Path

import pytest

# Runs without a measurement, which tests of reports share.
sys.path.append(str(Path(__file__).parents[1] / "report"))

from scale_source import SCALE


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """The kernel's file."""
    path = tmp_path / "scale.cu"
    path.write_text(SCALE.replace(", [2048, 1]", ""), encoding="utf-8")
    return path
