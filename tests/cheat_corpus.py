# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that would look fast, or right, without doing the work, and what each backend must say of them.

The first lines after a kernel's header say it. `// executor:` and `// gpu:` are followed by an outcome and a
part of the reason; of the GPU also by `refused`, for whatever is no success, and by `honest` for a kernel
that gains nothing: it is right, and its time is that of the work.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from gpuprof.kernels.catalog import Ladder, load_ladder
from gpuprof.kernels.kernel import Kernel

FOLDER = Path(__file__).parent / "cheats"
_SAID = re.compile(r"^// (executor|gpu): ([a-z]+)(?:: ?(.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a backend says: an outcome, and a part of the reason."""

    outcome: str
    words: str


@dataclass(frozen=True)
class Cheat:
    """A kernel and the verdicts on it, by backend."""

    kernel: Kernel
    verdicts: dict[str, Verdict]


def ladder() -> Ladder:
    return load_ladder(FOLDER)


def cheats() -> list[Cheat]:
    """All of them, in the order of their names."""
    return [
        Cheat(
            kernel,
            {name: Verdict(outcome, words) for name, outcome, words in _SAID.findall(kernel.source)},
        )
        for kernel in ladder().kernels
    ]
