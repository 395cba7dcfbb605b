# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of the copy engine's corpus, on the executor and on a card."""

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
from card_process import KernelsOnCard
from copy_corpus import CopyCase, source
from executor_harness import compile_both

from gpuprof.backends.sim.device_memory import descriptor_of
from gpuprof.executor import GlobalMemory, Program, encode_tensor_map, launch, load_program

THREADS = (64, 1, 1)


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


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "copies.cubin", compiled()[1])

    def run(self, case: CopyCase) -> tuple[np.ndarray, np.ndarray]:
        """Run a case; return its data and its words as they are afterwards."""
        from gpuprof.backends.gpu.opaque_arguments import encode_tensor_map as encode_for_the_driver

        def first(address: int) -> Any:
            return ctypes.c_void_p(address) if case.map is None else encode_for_the_driver(case.map, address)

        numbers = [ctypes.c_int(number) for number in case.numbers]
        shape = {"block": THREADS, "shared": case.shared, "first": first}
        data, words = self.launched(case.name, (case.data, case.words), numbers, **shape)
        return data, words
