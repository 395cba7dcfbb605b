# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every shipped kernel at two sizes and a ragged one: the cases of docs/executor-accuracy.md."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuprof.kernels.catalog import load_kernels, load_ladder, shipped_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shipped import shipped_names
from gpuprof.measure.case import Case
from gpuprof.operation import Operation
from gpuprof.problems.problem import Problem

ROOT = Path(__file__).parents[1]
OWN = ROOT / "samples" / "own"
RECORDED = ROOT / "tests" / "sim" / "hardware" / "accuracy.json"
#: Two sizes that fit tiles, and one that fits nothing, by operation.
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gemm": ((256, 256, 256), (512, 512, 512), (260, 388, 132)),
    "transpose": ((512, 512), (2048, 2048), (1000, 777)),
    "reduce": ((65536,), (1048576,), (100003,)),
    "attention": ((1, 2, 256, 128), (2, 2, 512, 64), (1, 3, 200, 128)),
    "softmax": ((64, 1024), (16, 4096), (33, 777)),
    "axpy_f16": ((65536,), (1048576,), (100003,)),
    "hgemm": ((256, 256, 256), (512, 512, 512), (128, 256, 384)),
    "histogram": ((65536,), (524288,), (100003,)),
    "scan": ((65536,), (524288,), (100003,)),
    "stencil": ((256, 256), (1024, 512), (333, 517)),
}


@dataclass(frozen=True)
class Shipped:
    """One case.

    Attributes:
        ladder: The ladder or sample that its kernel stands in.
        case: The case.
    """

    ladder: str
    case: Case

    @property
    def key(self) -> str:
        """What it is recorded under."""
        return f"{self.ladder} {self.case.name} {self.case.problem.label} {self.case.problem.dtype}"


def shipped_cases() -> Iterator[Shipped]:
    """Yield the cases of the ladders, then those of the samples."""
    for name in shipped_names():
        ladder = shipped_ladder(name)
        yield from _cases(name, ladder.operation, ladder.kernels)
    for path in sorted(OWN.iterdir()):
        found = load_ladder(path) if path.is_dir() else load_kernels(path)
        yield from _cases(path.name, found.operation, found.kernels)


def _cases(ladder: str, operation: Operation, kernels: Sequence[Kernel]) -> Iterator[Shipped]:
    for kernel in kernels:
        if kernel.choices:
            continue  # it runs the code of others
        for size in SIZES[operation.name]:
            dtype = "f32" if "f32" in kernel.dtypes else kernel.dtypes[0]
            yield Shipped(ladder, Case.of(kernel, Problem.of(operation, size, dtype, options=kernel.options)))


def recorded() -> dict[str, Any]:
    """Return the cards' counts by the keys of cases, with what they were counted on."""
    return json.loads(RECORDED.read_text())
