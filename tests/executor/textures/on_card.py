# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a case of the corpus on a GPU."""

import ctypes
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray
from texture_corpus import POISON, Case

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, GpuContext, LoadedModule
from gpuprof.backends.gpu.opaque_arguments import CudaArray, DeviceTexture


def ask(context: GpuContext, module: LoadedModule, case: Case) -> dict[str, NDArray[Any]]:
    """Return what the launch leaves in the output, `out`, and in each surface, by its argument's number."""
    with ExitStack() as held:

        def buffer(content: NDArray[Any]) -> DeviceBuffer:
            made = DeviceBuffer(content.nbytes)
            held.callback(made.free)
            made.upload(content)
            return made

        out = buffer(case.output)
        out.fill(POISON)
        values: list[Any] = [ctypes.c_void_p(out.address)]
        surfaces = {}
        for number, argument in enumerate(case.arguments):
            if isinstance(argument, np.ndarray):
                values.append(ctypes.c_void_p(buffer(argument).address))
                continue
            memory, source = buffer(argument.array), None
            if not argument.texels.linear:
                source = CudaArray(argument.texels, written=argument.sampling is None)
                held.callback(source.free)
                source.fill(memory.address)
            if argument.sampling is None:
                surfaces[f"surface {number}"] = (source, memory, argument.array)
            made = DeviceTexture(argument.texels, argument.sampling, source or memory.address)
            held.callback(made.free)
            values.append(ctypes.c_uint64(made.handle))
        function = module.function(case.kernel)
        context.synchronize()
        function.launch(case.grid, case.block, 0, context.stream, Arguments(values))
        context.synchronize()
        found = {"out": out.download(case.output.dtype, count=case.output.size).reshape(case.output.shape)}
        for name, (source, memory, array) in surfaces.items():
            source.drain(memory.address)
            found[name] = memory.download(array.dtype, count=array.size).reshape(array.shape)
        return found
