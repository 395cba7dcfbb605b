# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of `more_products`, on the executor and on a card."""

import ctypes
import functools
import sys
from pathlib import Path

import numpy as np
from executor_harness import compile_both
from more_products import TESTS, MoreProduct, more_source

from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program

THREADS = (32, 1, 1)
_BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


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
    program = load_program(compiled()[0], product.name, follow_undefined=follow_undefined)
    result = launch(program, (TESTS, 1, 1), THREADS, [out, *given], memory)
    return out.array(), result


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
        self._cubin = folder / "more.cubin"
        if not self._cubin.exists():
            self._cubin.write_bytes(compiled()[1])

    def run(self, product: MoreProduct) -> np.ndarray:
        """Run a case; return the words of D by lane."""
        card, out = self._card, blank(product)
        addresses = [card.array(array.tobytes()) for array in (out, *product.arrays())]
        values = [ctypes.c_void_p(address) for address in addresses]
        card.launch(card.function(self._cubin, product.name), (TESTS, 1, 1), THREADS, 0, values)
        found = card.content(addresses[0], out)
        for address in addresses:
            card.free(address)
        return found
