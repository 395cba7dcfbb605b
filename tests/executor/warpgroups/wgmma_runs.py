# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of the corpus of warpgroup products, on the executor and on a card."""

import ctypes
import functools
import sys
from pathlib import Path

import numpy as np
from executor_harness import compile_both
from wgmma_corpus import IMAGE_BYTES, Wgmma, source

from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program

THREADS = (128, 1, 1)
#: What the output holds before.
POISON = 0xA5A5A5A5
_BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


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


class CardRuns:
    """Runs cases on the first device.

    Args:
        folder: Where the compiled kernels may stand.
    """

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(_BENCHMARKS))
        from asking import Card

        self._card = Card()
        #: Its architecture.
        self.arch = self._card.describe()["arch"]
        self._cubin = folder / "products.cubin"
        if not self._cubin.exists():
            self._cubin.write_bytes(compiled()[1])

    def run(self, product: Wgmma) -> np.ndarray:
        """Run a case; return the words of D by thread."""
        card, arrays = self._card, arrays_of(product)
        function = card.function(self._cubin, product.name, IMAGE_BYTES)
        addresses = [card.array(array.tobytes()) for array in arrays]
        values = [ctypes.c_void_p(address) for address in addresses]
        values += [ctypes.c_uint64(descriptor) for descriptor in product.image()[1:]]
        card.launch(function, (1, 1, 1), THREADS, IMAGE_BYTES, values)
        found = card.content(addresses[0], arrays[0])[0]
        for address in addresses:
            card.free(address)
        return found
