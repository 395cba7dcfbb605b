# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a kernel, a problem and a block to one launch: grid, shared memory and compile-time macros."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped, InputError
from gpuprof.kernels.entries import with_values
from gpuprof.kernels.header import header_end
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.macros import own_names
from gpuprof.kernels.tensor_map import TensorMap, make_tensor_map
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.problems.problem import Problem
from gpuprof.text import Extent, format_extent

#: CUDA's limit on the threads of a block, the same on every architecture that NVRTC compiles for.
MAX_THREADS_PER_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """One launch.

    Args:
        block: Threads of a block in x, y, z.
        grid: Blocks in x, y, z.
        dynamic_shared_bytes: Dynamic shared memory of one block.
        defines: Macros that the source mentions, with their values.
        tensor_maps: Those of its arguments that are tensor maps.
        cooperative: Whether all blocks must be on the device at once.
        entry: The kernel's function, values in the place of macros: `sgemm<64, 64>`.
    """

    block: Extent
    grid: Extent
    dynamic_shared_bytes: int
    defines: tuple[tuple[str, str], ...]
    tensor_maps: tuple[TensorMap, ...] = ()
    cooperative: bool = False
    entry: str = ""


def check_block(kernel: Kernel, block: Extent, max_threads: int = MAX_THREADS_PER_BLOCK) -> None:
    """Refuse a block that a kernel can never run with, whatever the problem's size.

    Raises:
        InputError: The block has too many threads, or the kernel's shape is fixed or chosen by size.
    """
    if kernel.choices:
        raise InputError(
            f"{kernel.id} chooses its block itself: that of the kernel it picks for each size.",
            fix="Leave out --block for this kernel.",
        )
    threads = block[0] * block[1] * block[2]
    if threads > max_threads:
        raise InputError(
            f"Block {format_extent(block)} has {threads} threads; a block holds at most {max_threads}.",
            fix="Choose a smaller --block.",
        )
    if not kernel.launch.any_block and block != kernel.launch.block:
        raise InputError(
            f"{kernel.id} runs with block {format_extent(kernel.launch.block)} only,"
            f" not {format_extent(block)}.",
            fix="Leave out --block for this kernel.",
        )


def configure(
    kernel: Kernel, problem: Problem, block: Extent, params: Mapping[str, int], device: Device
) -> LaunchShape:
    """Work out a launch.

    Args:
        kernel: The kernel.
        problem: What it shall compute.
        block: Threads in x, y, z.
        params: Parameters that replace the header's defaults.
        device: Gives `sm_count`, `arch` and the grid's limits.

    Raises:
        CaseSkipped: A declared constraint, the kernel's types or the device's grid limits rule the case out.
    """
    _check_problem(kernel, problem, params)
    parameters = {**kernel.constants, **kernel.parameters, **params}
    values = {
        **size_values(problem, device),
        **parameters,
        "block_x": block[0],
        "block_y": block[1],
        "block_z": block[2],
        "threads": block[0] * block[1] * block[2],
    }
    try:
        for requirement in kernel.requirements:
            if not evaluate(requirement.condition, values):
                raise CaseSkipped(f"{requirement.because.replace('{id}', kernel.id)}.")
        x, y, z = (evaluate(text, values) for text in kernel.launch.grid)
        dynamic = evaluate(kernel.launch.dynamic_shared_bytes, values)
        boxes = {
            name: (evaluate(spec.box[0], values), evaluate(spec.box[1], values))
            for name, spec in kernel.tensor_maps.items()
        }
    except ExpressionError as error:
        raise CaseSkipped(f"The header of {kernel.id} cannot be evaluated for this size: {error}.") from error
    for axis, extent, limit in zip("xyz", (x, y, z), device.max_grid, strict=True):
        if not 1 <= extent <= limit:
            raise CaseSkipped(
                f"The grid needs {extent} blocks in {axis}; the device launches 1 to {limit}.",
                fix="Choose a block that covers more in that direction.",
            )
    if dynamic < 0:
        raise CaseSkipped(f"The header of {kernel.id} asks for {dynamic} bytes of dynamic shared memory.")
    tensor_maps = tuple(
        make_tensor_map(name, spec, boxes[name], problem) for name, spec in kernel.tensor_maps.items()
    )
    macros = {
        "real": ELEMENT_TYPES[problem.dtype].c_type,
        "BLOCK_X": str(block[0]),
        "BLOCK_Y": str(block[1]),
        "BLOCK_Z": str(block[2]),
        **{name: str(value) for name, value in parameters.items()},
    }
    entry = with_values(kernel.entry, {**macros, **kernel.defines})
    # A macro that the source never mentions would only split the compile cache.
    words = _words(kernel.source).union(*map(_words, kernel.headers.values())) - own_names(kernel.source)
    defines = tuple((name, value) for name, value in macros.items() if name in words)
    defines += tuple(kernel.defines.items())
    return LaunchShape(block, (x, y, z), dynamic, defines, tensor_maps, kernel.launch.cooperative, entry)


@lru_cache(maxsize=64)
def _words(source: str) -> frozenset[str]:
    """Every name in the code of a kernel file."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", source[header_end(source) :]))


def size_values(problem: Problem, device: Device) -> dict[str, int]:
    """The problem's dimensions and the device's figures, which header expressions may use by their names."""
    major, minor = device.capability
    return {
        **problem.dimensions,
        "real_bytes": problem.real_bytes,
        "sm_count": device.sm_count,
        "arch": 10 * major + minor,
    }


def _check_problem(kernel: Kernel, problem: Problem, params: Mapping[str, int]) -> None:
    if problem.dtype not in kernel.dtypes:
        raise CaseSkipped(f"{kernel.id} is written for {' and '.join(kernel.dtypes)}, not {problem.dtype}.")
    for name in params:
        if name not in kernel.parameters:
            known = ", ".join(kernel.parameters) or "none"
            raise CaseSkipped(f"{kernel.id} has no parameter {name}; those that it has: {known}.")
    for name, scalar in problem.operation.scalars.items():
        if name in kernel.arguments or problem.scalars[name] == scalar.neutral:
            continue
        if scalar.neutral is None:
            raise CaseSkipped(f"{kernel.id} takes no {name}, without which {problem.operation.name} is none.")
        raise CaseSkipped(f"{kernel.id} takes no {name}: it computes with {name} = {scalar.neutral:g} only.")
