# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The launches of a case: their memory and arguments, what a driver refuses, how the executor runs them."""

import ctypes
import gc
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.backends.arguments import Argument as BoundArgument
from gpuprof.backends.arguments import bind_arguments
from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import occupancy_of
from gpuprof.backends.sim.instructions import DecodedKernels, FindLink, NoLink
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure, CaseSkipped, foreign
from gpuprof.executor import (
    Argument,
    Buffer,
    GlobalMemory,
    LaunchResult,
    Program,
    Sample,
    TensorDescriptor,
    bind_texels,
    encode_tensor_map,
    launch,
)
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch
from gpuprof.kernels.symbols import float_variables, variable_named
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.machine import gib, memory_left_bytes
from gpuprof.problems.dtypes import ELEMENT_TYPES, numpy_dtype, unwritten_byte
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array
from gpuprof.records import replace
from gpuprof.toolchain.assembling import PTXAS_FIX
from gpuprof.toolchain.nvrtc import CompiledKernel

#: Bytes of poison that all arrays are made of, and C's constant for a map at a given place.
_POISON_BYTES, _MAP_FIXED = 4 << 20, 0x10


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
            content = initial_content(spec, inputs, unread, is_own=spec in case.workspace)
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


def initial_content(
    spec: ArraySpec, inputs: Mapping[str, Array], unread: float | None, *, is_own: bool = False
) -> Array:
    """What an array holds before a case runs, its own as workspace is; others as for `device_memory`."""
    if spec.unread and unread is not None:
        return np.full(spec.elements, unread, numpy_dtype(spec.dtype))
    return (
        inputs[spec.name] if spec.is_read else _poison(spec, unwritten_byte(spec.dtype) if is_own else 0xFF)
    )


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
            case TensorMap() as made:
                arguments.append(encode_tensor_map(descriptor_of(made, buffers[made.array].address)))
            case Texture(array=array, texels=texels, sampling=sampling):
                arguments.append(bind_texels(memory, buffers[array], texels, sampling))
            case _:
                arguments.append(argument.packed(lambda array: buffers[array].address))
    return arguments


def descriptor_of(made: TensorMap, address: int) -> TensorDescriptor:
    """A tensor map as the executor takes it, of an array at an address."""
    return TensorDescriptor(
        address=address + made.start_bytes,
        element=ELEMENT_TYPES[made.dtype].mapped,
        extents=made.extents,
        strides=made.stride_bytes,
        box=made.box,
        swizzle_bytes=made.swizzle_bytes,
        steps=made.steps,
        fills_nan=made.fills_nan,
    )


def _poison(spec: ArraySpec, byte: int) -> Array:
    """What an output holds before: as a float, NaN; as an integer, its largest or -1, if that is the byte.

    Each case maps a few bytes of poison as often as they fit, for itself, and so pays for those pages only
    that its kernel writes: few of a sample.
    """
    size = max(1, spec.nbytes)  # nothing cannot be mapped
    poisoned = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(poisoned))
    how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED, _poison_file(byte), 0
    for offset in range(0, size, _POISON_BYTES):
        if _libc().mmap(start + offset, min(_POISON_BYTES, size - offset), *how) != start + offset:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return np.frombuffer(poisoned, np.uint8)[: spec.nbytes].view(numpy_dtype(spec.dtype))


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return library


@cache
def _poison_file(byte: int) -> int:
    """A file in memory of nothing but poison."""
    file = os.memfd_create(f"poison {byte}")
    os.pwrite(file, bytes([byte]) * _POISON_BYTES, 0)
    return file


_NOT_LINKED = NoLink("its counts are not wanted")


#: The blocks to run of each launch, None for all of them.
Samples = Sequence[Sample | None]


class Launches(Struct, frozen=True):
    """The launches of a case on a card, all of the blocks of each or a sample, to be run in any memory."""

    device: Device
    case: ConfiguredCase
    compiled: Functions
    bound: Sequence[Sequence[BoundArgument]]
    programs: Mapping[str, Program]
    samples: Samples
    links: Sequence[FindLink]

    @property
    def sampled(self) -> bool:
        return any(self.samples)

    def run(self, memory: GlobalMemory, buffers: Mapping[str, Buffer], **how: Any) -> list[LaunchResult]:
        """Run one after the other; `how` are other arguments of `launch`.

        Links, where there are any, are asked for where the counts depend on them: disassembling takes as long
        as a short run.
        """
        links = self.links or [lambda: _NOT_LINKED] * len(self.bound)
        each = zip(self.case.launches, self.bound, self.samples, links, strict=True)
        results = []
        for one, given, sample, link in each:
            program = self.programs[one.entry]
            contents = symbol_contents(program, one, buffers)
            for symbol in one.symbols:
                if symbol.is_output and (name := variable_named(symbol.name, contents)):
                    memory.variables[program.interface.module, name] = buffers[symbol.array]
            results.append(
                launch(
                    *(with_symbols(program, contents), one.grid, one.block),
                    *(arguments_of(given, buffers, memory), memory, one.dynamic_shared_bytes),
                    blocks=sample or "all",
                    merged_atomics=partial(_merged_atomics, link),
                    cooperative=one.cooperative,
                    multiprocessors=self.device.sm_count,
                    **how,
                )
            )
        return results

    def renew_symbols(self, memory: GlobalMemory, buffers: Mapping[str, Buffer]) -> None:
        """Set the variables again that are there already: what they follow from has changed."""
        one = self.case.launches[0]
        program = self.programs[one.entry]
        for name, content in symbol_contents(program, one, buffers).items():
            buffer = memory.variables.get((program.interface.module, name))
            if buffer is not None:
                buffer.refill(np.frombuffer(content.ljust(buffer.size, b"\0"), np.uint8))


def _merged_atomics(link: FindLink) -> frozenset[int]:
    return link().merged_atomics


def launches_of(
    decoded: DecodedKernels,
    case: ConfiguredCase,
    compiled: Functions,
    samples: Samples,
    *,
    counts: bool = True,
    **how: bool | None,
) -> Launches:
    """What a card runs of a case, and whether for its counts; `how` as for `DecodedKernels.programs`.

    Raises:
        CaseFailure: The driver would refuse a launch, or arguments do not fit.
        CaseSkipped: It is machine code, and the executor runs PTX.
    """
    if not all(function.ptx for function in compiled.values()):
        raise CaseSkipped(
            f"{case.kernel.file_name} is machine code: nothing of it is counted, for the executor runs PTX.",
            fix="Measure the PTX that it was made of.",
        )
    for one in case.launches:
        check_launch(decoded.device, one, compiled[one.entry])
    bound = [bind_arguments(case, one, compiled[one.entry]) for one in case.launches]
    programs = (decoded.begun if counts else decoded.programs)(case, compiled, **how)
    counted = case.launches if counts else ()
    links = [partial(decoded.links.of, compiled[one.entry], programs[one.entry]) for one in counted]
    return Launches(decoded.device, case, compiled, bound, programs, samples, links)


def symbol_contents(program: Program, one: OneLaunch, buffers: Mapping[str, Buffer]) -> dict[str, bytes]:
    """What the host would have set variables of the module to, by their names in machine code.

    Raises:
        CaseFailure: Something does not fit.
    """
    sizes = {variable.name: variable.size for variable in program.interface.variables}
    floats = float_variables(program.interface.module) if one.symbols else frozenset()
    contents = {}
    for symbol in one.symbols:
        name = variable_named(symbol.name, sizes)
        if name is None:  # nothing reads it
            continue
        contents[name] = symbol.content(
            sizes[name],
            name in floats,
            lambda array: buffers[array].array().tobytes(),
            lambda array: buffers[array].address,
        )
    return contents


def with_symbols(program: Program, contents: Mapping[str, bytes]) -> Program:
    """A program whose variables hold these contents when they first come to be."""
    if not contents:
        return program
    variables = [
        replace(each, data=contents[each.name], references=()) if each.name in contents else each
        for each in program.interface.variables
    ]
    return replace(program, interface=replace(program.interface, variables=variables))


@contextmanager
def unchecked(kernel: Kernel, compiled: Functions) -> Iterator[None]:
    """PTX that no ptxas has looked at may break any rule of its syntax."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        if kernel.built is None or any(function.cubin for function in compiled.values()):
            raise
        raise CaseFailure(
            f"The PTX of {kernel.file_name} cannot be read: {foreign(error)}.",
            fix=f"ptxas tells where it is wrong: {PTXAS_FIX}",
        ) from error


def check_launch(device: Device, one: OneLaunch, function: CompiledKernel) -> None:
    """Refuse a block, or a cooperative grid, that the card cannot hold.

    Raises:
        CaseFailure: The driver would refuse the launch.
    """
    held = occupancy_of(device, one, function)
    blocks, at_once = math.prod(one.grid), held.blocks_per_sm * device.sm_count
    if one.cooperative and blocks > at_once:
        raise CaseFailure(
            f"A cooperative grid of {blocks} blocks does not fit: {device.name} holds {at_once} of them at"
            f" once ({held.blocks_per_sm} on each SM), and its driver would refuse the launch with"
            " CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE.",
            over_limit=True,
            fix="Use a smaller grid.",
        )
