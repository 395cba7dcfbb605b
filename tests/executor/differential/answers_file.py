# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The file in which a card's answers to launches are kept: JSON, packed when its name ends in `.xz`.

`about` tells the card and the versions. `answers` holds for each case by name its `key`, its `outcome`, the
bits of the `arrays` that the kernel changed, the `ptx` that was compiled on, `counters` by Nsight Compute's
names, and `opcodes`, warp instructions by opcode.
"""

import json
import lzma
from pathlib import Path
from typing import Any


def save_answers(path: Path, about: dict[str, str], answers: dict[str, dict[str, Any]]) -> None:
    """Write a file, one line a case."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answers[name])}" for name in sorted(answers))
    text = f'{{"about": {json.dumps(about)},\n"answers": {{\n{lines}\n}}}}\n'
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())


def load_answers(path: Path) -> dict[str, Any]:
    """Read a file."""
    content = path.read_bytes()
    return json.loads(lzma.decompress(content) if path.suffix == ".xz" else content)
