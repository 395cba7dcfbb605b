# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with one race each, and their twins without it: the files of `races/`.

A body has «what the racy one says¦what its twin says». `// meets` marks the lines whose accesses meet. All
take int arrays `a`, `b` and `c` of N elements, and n.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cuda_sources import either, kernel_table

N = 2048


@dataclass(frozen=True)
class Pair:
    """A kernel and its racy twin: what stands in it, and `before` it, how it is launched, and what is told.

    `kind` is the fault where it is no race in the order in which the executor runs.
    """

    body: str
    grid: int = 8
    block: int = 64
    n: int = 512
    before: str = ""
    shared: bool = False
    kind: str = ""

    def source(self, *, racy: bool) -> str:
        """The CUDA source, with its race or without."""
        head = 'extern "C" __global__ void k(int *a, int *b, int *c, int n) {'
        first = "const int t = threadIdx.x, w = blockIdx.x, i = w * blockDim.x + t;"
        return f"{self.before}\n{head}\n{first}\n{either(self.body, first=racy)}\n}}\n"

    @property
    def launch(self) -> dict[str, Any]:
        """How it is launched."""
        shape = {"grid": (self.grid, 1, 1), "block": (self.block, 1, 1)}
        return {"scalars": (self.n,), "instruction_budget": 100_000, **shape}


def pairs(name: str) -> dict[str, Pair]:
    """Those of one file."""
    rows = kernel_table(Path(__file__).parent / "races" / f"{name}.cu")
    return {title: Pair(row.text, **row.told) for title, row in rows.items()}


def arrays() -> tuple[np.ndarray, ...]:
    """`a`, with what it holds, `b` and `c`."""
    values = np.random.default_rng(3).integers(1, 1000, N).astype(np.int32)
    return values, np.zeros(N, np.int32), np.zeros(N, np.int32)
