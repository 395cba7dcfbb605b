# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a kernel, a problem and a block to one launch: grid, shared memory and compile-time macros."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped, InputError
from gpuprof.kernels.expression import ExpressionError, evaluate
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.tensor_map import TensorMap, make_tensor_map
from gpuprof.problems.base import C_TYPE, ITEM_BYTES, Problem

Extent = tuple[int, int, int]


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
    """

    block: Extent
    grid: Extent
    dynamic_shared_bytes: int
    defines: tuple[tuple[str, str], ...]
    tensor_maps: tuple[TensorMap, ...] = ()
    cooperative: bool = False


def check_block(kernel: Kernel, block: Extent, max_threads: int) -> None:
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
        params: Tile parameters that replace the header's defaults.
        device: Gives `sm_count`, `arch` and the grid's limits.

    Raises:
        CaseSkipped: A declared constraint, the kernel's types or the device's grid limits rule the case out.
    """
    _check_problem(kernel, problem)
    parameters = {**kernel.parameters, **params}
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
                raise CaseSkipped(f"{requirement.because}.")
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
        "real": C_TYPE[problem.dtype],
        "BLOCK_X": str(block[0]),
        "BLOCK_Y": str(block[1]),
        "BLOCK_Z": str(block[2]),
        **{name: str(value) for name, value in parameters.items()},
    }
    # A macro that the source never mentions would only split the compile cache.
    words = set(re.findall(r"[A-Za-z_]\w*", kernel.source[kernel.source.index("*/") :]))
    defines = tuple((name, value) for name, value in macros.items() if name in words)
    return LaunchShape(block, (x, y, z), dynamic, defines, tensor_maps, kernel.launch.cooperative)


def size_values(problem: Problem, device: Device) -> dict[str, int]:
    """The problem's dimensions and the device's figures, which header expressions may use by their names."""
    major, minor = device.capability
    return {
        **problem.dimensions,
        "real_bytes": ITEM_BYTES[problem.dtype],
        "sm_count": device.sm_count,
        "arch": 10 * major + minor,
    }


def _check_problem(kernel: Kernel, problem: Problem) -> None:
    if problem.dtype not in kernel.dtypes:
        raise CaseSkipped(f"{kernel.id} is written for {' and '.join(kernel.dtypes)}, not {problem.dtype}.")
    scalars = problem.scalars
    if "alpha" in scalars and "alpha" not in kernel.arguments and scalars["alpha"] != 1:
        raise CaseSkipped(f"{kernel.id} takes no alpha: it computes with alpha = 1 only.")
    if "beta" in scalars and "beta" not in kernel.arguments and scalars["beta"] != 0:
        raise CaseSkipped(f"{kernel.id} takes no beta: it computes with beta = 0 only.")


def format_extent(extent: Extent) -> str:
    """A block or grid as users write it: `8x32`, with z only when it is not 1."""
    shown = extent if extent[2] != 1 else extent[:2]
    return "x".join(map(str, shown))
