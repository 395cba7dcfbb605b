# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the attacks share with the unit tests: how a command is started."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "unit"))
