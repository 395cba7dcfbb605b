# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The device memory of an executed case, and the arguments that its launches get."""

import gc
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from gpuprof.backends.arguments import Argument as BoundArgument
from gpuprof.backends.arguments import ArrayArgument, StructArgument, ValueArgument
from gpuprof.executor import (
    Argument,
    Buffer,
    GlobalMemory,
    Program,
    TensorDescriptor,
    bind_texels,
    encode_tensor_map,
)
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.machine import gib, memory_left_bytes
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array

#: What PTX calls the types that tensor maps have; of narrow integers it does not tell the sign.
_PTX_TYPES = {
    **{name: name for name in ("f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64")},
    **{"i8": "u8", "i16": "u16", "i32": "s32", "i64": "s64", "tf32": "f32", "e4m3": "u8"},
}


def device_memory(
    case: ConfiguredCase,
    inputs: Mapping[str, Array],
    unread: float | None,
    memory: GlobalMemory | None = None,
) -> tuple[GlobalMemory, dict[str, Buffer]]:
    """Fresh device memory, and each array's buffer: outputs and workspace hold poison.

    Outputs that kernels must not read, though they may for other scalars, hold `unread`; poison too where
    that is None. Arrays lie as the driver places them where no memory is given.
    """
    memory = memory or GlobalMemory()
    buffers: dict[str, Buffer] = {}
    for spec in (*case.problem.arrays, *case.workspace):
        if spec.addresses:
            content = spec.table(lambda array: buffers[array].address)
        else:
            content = initial_content(spec, inputs, unread)
        is_input = content is inputs.get(spec.name)
        buffers[spec.name] = memory.allocate(
            content, spec.name, read_only=not spec.is_output, adopts=not is_input
        )
    return memory, buffers


def check_room(case: ConfiguredCase, programs: Iterable[Program]) -> None:
    """Refuse device memory that this machine does not have, before any is taken.

    Raises:
        MemoryError: There is too little.
    """
    modules = {program.interface.module: program.interface.variables for program in programs}
    variables = sum(
        variable.size for own in modules.values() for variable in own if variable.space in ("global", "const")
    )
    arrays = sum(spec.nbytes for spec in (*case.problem.outputs, *case.workspace))
    # Once as poison or initial content, once as what kernels store to.
    needed = 2 * (arrays + variables)
    if needed > memory_left_bytes():
        gc.collect()  # what the case before had
    if needed > memory_left_bytes():
        parts = {"arrays that it writes": arrays, "variables of its module": variables}
        told = " and ".join(f"{gib(size)} of {name}" for name, size in parts.items() if size > needed / 100)
        raise MemoryError(f"{told} take {gib(needed)} here")


def initial_content(spec: ArraySpec, inputs: Mapping[str, Array], unread: float | None) -> Array:
    """What an array holds before a case runs; arguments as for `device_memory`."""
    if spec.unread and unread is not None:
        return np.full(spec.elements, unread, numpy_dtype(spec.dtype))
    return inputs[spec.name] if spec.is_read else _poison(spec)


def renew(problem: Problem, content: Mapping[str, Array], buffers: Mapping[str, Buffer]) -> None:
    """Put other content in the arrays of a case that ran, which nobody has written."""
    for spec in problem.arrays:
        buffers[spec.name].refill(content[spec.name])


def arguments_of(
    bound: Sequence[BoundArgument], buffers: Mapping[str, Buffer], memory: GlobalMemory
) -> list[Argument]:
    """A launch's arguments as the executor takes them."""
    arguments: list[Argument] = []
    for argument in bound:
        match argument:
            case ArrayArgument(name, 0):
                arguments.append(buffers[name])
            case ArrayArgument(name, offset):
                arguments.append((buffers[name].address + offset).to_bytes(8, "little"))
            case ValueArgument(content=number):
                arguments.append(number)
            case StructArgument() as struct:
                arguments.append(struct.content(lambda array: buffers[array].address))
            case TensorMap() as made:
                arguments.append(encode_tensor_map(descriptor_of(made, buffers[made.array].address)))
            case Texture(array=array, texels=texels, sampling=sampling):
                arguments.append(bind_texels(memory, buffers[array], texels, sampling))
    return arguments


def descriptor_of(made: TensorMap, address: int) -> TensorDescriptor:
    """A tensor map as the executor takes it, of an array at an address."""
    return TensorDescriptor(
        address=address + made.start_bytes,
        element=_PTX_TYPES[made.dtype],
        extents=made.extents,
        strides=made.stride_bytes,
        box=made.box,
        swizzle_bytes=made.swizzle_bytes,
        steps=made.steps,
        fills_nan=made.fills_nan,
    )


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
