# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The device memory of an executed case, and the arguments that its launches get."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpuprof.backends.arguments import Argument as BoundArgument
from gpuprof.backends.arguments import ArrayArgument, ValueArgument
from gpuprof.executor import Argument, Buffer, GlobalMemory, encode_tensor_map
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.problems.behaviour import Array
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem


def device_memory(
    problem: Problem, inputs: Mapping[str, Array], workspace: Sequence[ArraySpec], unread: float | None
) -> tuple[GlobalMemory, dict[str, Buffer]]:
    """Fresh device memory, and each array's buffer: outputs and workspace hold poison.

    Args:
        problem: Tells the arrays.
        inputs: What is in those that kernels read.
        workspace: The kernel's own arrays.
        unread: What outputs hold that kernels must not read, though they may for other scalars; None for
            poison too.
    """
    memory = GlobalMemory()
    buffers: dict[str, Buffer] = {}
    for spec in problem.arrays:
        content = inputs[spec.name] if spec.is_read else _poison(spec)
        if spec.unread and unread is not None:
            content = np.full(spec.elements, unread, numpy_dtype(spec.dtype))
        buffers[spec.name] = memory.allocate(content, spec.name, read_only=not spec.is_output)
    for spec in workspace:
        buffers[spec.name] = memory.allocate(_poison(spec), spec.name)
    return memory, buffers


def arguments_of(bound: Sequence[BoundArgument], buffers: Mapping[str, Buffer]) -> list[Argument]:
    """A launch's arguments as the executor takes them."""
    arguments: list[Argument] = []
    for argument in bound:
        match argument:
            case ArrayArgument(name):
                arguments.append(buffers[name])
            case ValueArgument(content=number):
                arguments.append(number)
            case TensorMap() as made:
                address = buffers[made.array].address
                shape = (made.row_bytes,), made.box, made.swizzle_bytes
                arguments.append(encode_tensor_map(address, made.item_bytes, made.extents, *shape))
    return arguments


def _poison(spec: ArraySpec) -> Array:
    """What an output holds before: as a float, NaN; as an integer, its largest or -1."""
    return np.full(spec.nbytes, 0xFF, np.uint8).view(numpy_dtype(spec.dtype))
