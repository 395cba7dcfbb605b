# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of the copy engine's corpus, on the executor and on a card."""

import ctypes
import functools
import sys
from pathlib import Path

import numpy as np
from copy_corpus import CopyCase, source
from executor_harness import compile_both

from gpuprof.backends.sim.device_memory import descriptor_of
from gpuprof.executor import GlobalMemory, Program, encode_tensor_map, launch, load_program

THREADS = (64, 1, 1)
_BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@functools.cache
def compiled() -> tuple[str, bytes]:
    """The PTX and the machine code of all kernels."""
    return compile_both(source())


@functools.cache
def program(name: str) -> Program:
    """Return a decoded kernel of the corpus."""
    return load_program(compiled()[0], name)


def executed(case: CopyCase) -> tuple[np.ndarray, np.ndarray]:
    """Run a case on the executor; return its data and its words as they are afterwards."""
    memory = GlobalMemory()
    data, words = memory.allocate(case.data, "data"), memory.allocate(case.words, "words")
    first = data if case.map is None else encode_tensor_map(descriptor_of(case.map, data.address))
    launch(program(case.name), (1, 1, 1), THREADS, [first, words, *case.numbers], memory, case.shared)
    return data.array(), words.array()


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
        self._cubin = folder / "copies.cubin"
        if not self._cubin.exists():
            self._cubin.write_bytes(compiled()[1])

    def run(self, case: CopyCase) -> tuple[np.ndarray, np.ndarray]:
        """Run a case; return its data and its words as they are afterwards."""
        from gpuprof.backends.gpu.opaque_arguments import encode_tensor_map as encode_for_the_driver

        card = self._card
        function = card.function(self._cubin, case.name, case.shared)
        data, words = (card.array(array.tobytes()) for array in (case.data, case.words))
        first = ctypes.c_void_p(data) if case.map is None else encode_for_the_driver(case.map, data)
        numbers = [ctypes.c_int(number) for number in case.numbers]
        card.launch(function, (1, 1, 1), THREADS, case.shared, [first, ctypes.c_void_p(words), *numbers])
        found = card.content(data, case.data), card.content(words, case.words)
        card.free(data)
        card.free(words)
        return found
