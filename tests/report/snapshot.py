# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison with files under `snapshots/`; GPUPROF_UPDATE_SNAPSHOTS=1 writes them anew."""

import os
from pathlib import Path

DIRECTORY = Path(__file__).parent / "snapshots"


def check(name: str, text: str) -> None:
    """Fail unless the text is what the snapshot holds."""
    path = DIRECTORY / name
    if os.environ.get("GPUPROF_UPDATE_SNAPSHOTS"):
        DIRECTORY.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no snapshot {name}: run once with GPUPROF_UPDATE_SNAPSHOTS=1 and read it"
    assert text == path.read_text(encoding="utf-8")
