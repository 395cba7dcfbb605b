# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that would look fast, or right, without doing the work, and what each backend must say of them.

The first lines after a kernel's header say it. `// executor:` and `// gpu:` are followed by an outcome and a
part of the reason; of the GPU also by `refused`, for whatever is no success, and by `honest` for a kernel
that gains nothing: it is right, and its time is that of the work; of either by `any`, with why it is not
known. `// both:` is for both.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from gpuprof.kernels.catalog import load_ladder
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.results import Measurement

FOLDER = Path(__file__).parent / "cheats"
_SAID = re.compile(r"^// (executor|gpu|both): ([a-z]+)(?:: ?(.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a backend says: an outcome, and a part of the reason."""

    outcome: str
    words: str

    def fits(self, measurement: Measurement) -> bool:
        """Whether a measurement is what was said."""
        if self.outcome == "refused":
            return measurement.outcome != "ok"
        same = measurement.outcome == self.outcome and self.words in (measurement.reason or "")
        return same or self.outcome == "any"


@dataclass(frozen=True)
class Cheat:
    """A kernel and the verdicts on it, by backend."""

    kernel: Kernel
    verdicts: dict[str, Verdict]


def verdicts_in(source: str) -> dict[str, Verdict]:
    """What a kernel's source says of itself, by backend."""
    found = {name: Verdict(outcome, words) for name, outcome, words in _SAID.findall(source)}
    both = found.pop("both", None)
    return {"executor": both, "gpu": both} if both else found


def ladder() -> Ladder:
    return load_ladder(FOLDER)


def cheats() -> list[Cheat]:
    """All of them, in the order of their names."""
    return [Cheat(kernel, verdicts_in(kernel.source)) for kernel in ladder().kernels]
