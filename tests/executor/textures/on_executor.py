# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a case of the corpus on the executor."""

from functools import cache
from typing import Any

import numpy as np
from executor_harness import compile_cuda
from numpy.typing import NDArray
from texture_corpus import POISON, SOURCE, Case

from gpuprof.executor import (
    Definedness,
    GlobalMemory,
    LaunchResult,
    Program,
    bind_texels,
    launch,
    load_program,
)


@cache
def program(kernel: str, follow_undefined: bool) -> Program:
    """Return one of the corpus's kernels."""
    return load_program(compile_cuda(SOURCE), kernel, observer=Definedness() if follow_undefined else None)


def run(case: Case, *, follow_undefined: bool = False) -> tuple[dict[str, NDArray[Any]], LaunchResult]:
    """Return what the launch leaves in the output, `out`, and in each surface, and what it counts."""
    memory = GlobalMemory()
    poison = np.full(case.output.nbytes, POISON, np.uint8).view(case.output.dtype).reshape(case.output.shape)
    out = memory.allocate(poison, "out")
    values: list[Any] = [out]
    surfaces = {}
    for number, argument in enumerate(case.arguments):
        if isinstance(argument, np.ndarray):
            values.append(memory.allocate(argument, f"array {number}", read_only=True))
            continue
        is_surface = argument.sampling is None
        texels = memory.allocate(argument.array, f"texels {number}", read_only=not is_surface)
        if is_surface:
            surfaces[f"surface {number}"] = texels
        values.append(bind_texels(memory, texels, argument.texels, argument.sampling))
    result = launch(program(case.kernel, follow_undefined), case.grid, case.block, values, memory)
    found = {"out": out.array()} | {name: buffer.array() for name, buffer in surfaces.items()}
    return found, result
