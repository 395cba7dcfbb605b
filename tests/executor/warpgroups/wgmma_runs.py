# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of the corpus of warpgroup products, on the executor and on a card."""

import ctypes
import functools
from pathlib import Path

import numpy as np
from card_process import KernelsOnCard
from executor_harness import compile_both
from wgmma_corpus import IMAGE_BYTES, Wgmma, source

from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program

THREADS = (128, 1, 1)
#: What the output holds before.
POISON = 0xA5A5A5A5


@functools.cache
def compiled() -> tuple[str, bytes]:
    """The PTX and the machine code of all kernels."""
    return compile_both(source(), (), "sm_90a")


def arrays_of(product: Wgmma, grid: int = 1) -> list[np.ndarray]:
    """The arrays that a kernel gets: output, image, A and C by thread."""
    out = np.full((grid, 128, product.registers), POISON, np.uint32)
    return [out, product.image()[0], *product.fragments()]


def executed(product: Wgmma, ptx: str = "", *, grid: int = 1) -> tuple[np.ndarray, LaunchResult]:
    """Run a case on the executor; return the words of D by thread, and the launch's result."""
    memory = GlobalMemory()
    out, *given = (memory.allocate(array, "array") for array in arrays_of(product, grid))
    program = load_program(ptx or compiled()[0], product.name)
    arguments = [out, *given, *product.image()[1:]]
    result = launch(program, (grid, 1, 1), THREADS, arguments, memory, IMAGE_BYTES)
    return out.array()[0], result


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "products.cubin", compiled()[1])

    def run(self, product: Wgmma) -> np.ndarray:
        """Run a case; return the words of D by thread."""
        descriptors = [ctypes.c_uint64(descriptor) for descriptor in product.image()[1:]]
        shape = {"block": THREADS, "shared": IMAGE_BYTES}
        return self.launched(product.name, arrays_of(product), descriptors, **shape)[0][0]
