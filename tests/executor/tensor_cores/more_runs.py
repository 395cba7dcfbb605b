# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of `more_products`, on the executor and on a card."""

import functools
from pathlib import Path

import numpy as np
from card_process import KernelsOnCard
from executor_harness import compile_both
from more_products import TESTS, MoreProduct, more_source

from gpuprof.executor import Definedness, GlobalMemory, LaunchResult, launch, load_program

THREADS = (32, 1, 1)


@functools.cache
def compiled() -> tuple[str, bytes]:
    """The PTX and the machine code of all kernels."""
    return compile_both(more_source(), (), "sm_90")


def blank(product: MoreProduct) -> np.ndarray:
    """The output before the launch."""
    return np.zeros((TESTS, 32, product.counts[2]), np.uint32)


def executed(product: MoreProduct, *, follow_undefined: bool = False) -> tuple[np.ndarray, LaunchResult]:
    """Run a case on the executor; return the words of D by lane and the result of the launch."""
    memory = GlobalMemory()
    given = [memory.allocate(array, "given") for array in product.arrays()]
    out = memory.allocate(blank(product), "out")
    program = load_program(compiled()[0], product.name, observer=Definedness() if follow_undefined else None)
    result = launch(program, (TESTS, 1, 1), THREADS, [out, *given], memory)
    return out.array(), result


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "more.cubin", compiled()[1])

    def run(self, product: MoreProduct) -> np.ndarray:
        """Run a case; return the words of D by lane."""
        arrays = blank(product), *product.arrays()
        return self.launched(product.name, arrays, grid=(TESTS, 1, 1), block=THREADS)[0]
