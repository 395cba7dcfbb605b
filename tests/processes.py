# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Programs that tests start and wait for."""

import subprocess
from typing import Any


def ran(command: Any, **more: Any) -> "subprocess.CompletedProcess[Any]":
    """A program that has ended, however it did: with its status, and what it said as text."""
    usual = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    return subprocess.run(command, **{**usual, **more})
