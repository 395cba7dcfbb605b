# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The device memory of an executed case, and the arguments that its launches get."""

import mmap
import os
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from gpuprof.backends.arguments import Argument as BoundArgument
from gpuprof.backends.arguments import ArrayArgument, ValueArgument
from gpuprof.executor import Argument, Buffer, GlobalMemory, encode_tensor_map
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.problems.behaviour import Array
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem


def device_memory(
    problem: Problem,
    inputs: Mapping[str, Array],
    workspace: Sequence[ArraySpec],
    unread: float | None,
    memory: GlobalMemory | None = None,
) -> tuple[GlobalMemory, dict[str, Buffer]]:
    """Fresh device memory, and each array's buffer: outputs and workspace hold poison.

    Args:
        problem: Tells the arrays.
        inputs: What is in those that kernels read.
        workspace: The kernel's own arrays.
        unread: What outputs hold that kernels must not read, though they may for other scalars; None for
            poison too.
        memory: Where to allocate them; memory as the driver places it when None.
    """
    memory = memory or GlobalMemory()
    buffers = {}
    for spec in (*problem.arrays, *workspace):
        content = initial_content(spec, inputs, unread)
        is_input = content is inputs.get(spec.name)
        buffers[spec.name] = memory.allocate(
            content, spec.name, read_only=not spec.is_output, adopts=not is_input
        )
    return memory, buffers


def initial_content(spec: ArraySpec, inputs: Mapping[str, Array], unread: float | None) -> Array:
    """What an array holds before a case runs; arguments as for `device_memory`."""
    if spec.unread and unread is not None:
        return np.full(spec.elements, unread, numpy_dtype(spec.dtype))
    return inputs[spec.name] if spec.is_read else _poison(spec)


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
    size = max(1, spec.nbytes)  # nothing cannot be mapped
    poisoned = mmap.mmap(_poison_file(size), size, flags=mmap.MAP_PRIVATE)
    return np.frombuffer(poisoned, np.uint8)[: spec.nbytes].view(numpy_dtype(spec.dtype))


_POISON = b"\xff" * (1 << 20)


def _poison_file(least_bytes: int) -> int:
    """A file in memory of at least so many bytes of poison.

    Each case maps it for itself, and so pays for those pages only that its kernel writes: few of a sample.
    """
    file = _empty_file()
    missing = least_bytes - os.fstat(file).st_size
    while missing > 0:
        missing -= os.pwrite(file, _POISON, os.fstat(file).st_size)
    return file


@cache
def _empty_file() -> int:
    return os.memfd_create("poison")
