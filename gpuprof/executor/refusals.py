# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches that CUDA refuses on every card: by limits of all architectures, and by the kernel's own."""

import math

from gpuprof.executor.decode import Program
from gpuprof.executor.faults import LaunchRefused
from gpuprof.executor.steps.batch import Geometry

#: CUDA's limits of every architecture: blocks of a grid, and threads of a block, along x, y and z.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
_MOST_LOCAL_BYTES = 512 << 10
#: More need the consent of the kernel, by an attribute that nothing here sets.
_MOST_CLUSTER_BLOCKS = 8


def cluster_of(program: Program) -> tuple[int, int, int]:
    """Return the blocks of a cluster along x, y and z: one where the kernel says nothing of clusters."""
    return program.limits.get("reqnctapercluster", (1, 1, 1))


def check_shape(program: Program, geometry: Geometry, arguments: int) -> None:
    """Refuse a launch that does not fit the kernel, or that CUDA does not allow.

    Args:
        program: The kernel.
        geometry: The launch.
        arguments: How many arguments are given.

    Raises:
        LaunchRefused: It cannot be launched.
    """
    expected = len(program.parameters)
    if arguments != expected:
        raise LaunchRefused(f"{program.kernel} takes {expected} arguments, but {arguments} were given.")
    extents = (*geometry.grid, *geometry.block)
    allowed = all(
        1 <= extent <= most for extent, most in zip(extents, _MOST_BLOCKS + _MOST_THREADS, strict=True)
    )
    if not allowed or geometry.threads > _MOST_THREADS[0]:
        raise LaunchRefused(
            f"{program.kernel}: grid {geometry.grid} with block {geometry.block} cannot be launched.",
            fix="A block has 1 to 1024 threads, at most 64 along z; a grid has 1 to 2^31-1 blocks along x,"
            " and to 65535 along y and z.",
        )
    _check_limits(program, geometry)


def _check_limits(program: Program, geometry: Geometry) -> None:
    """Refuse what the kernel itself rules out: by its stack, `__launch_bounds__` or `__cluster_dims__`."""
    if program.local_bytes > _MOST_LOCAL_BYTES:
        raise LaunchRefused(
            f"{program.kernel} needs {program.local_bytes:,} bytes of local memory for each thread;"
            f" CUDA allows {_MOST_LOCAL_BYTES:,}.",
            fix="Put its arrays into global memory.",
        )
    limits, block, grid = program.limits, geometry.block, geometry.grid
    most = math.prod(limits.get("maxntid", _MOST_THREADS[:1]))
    if geometry.threads > most:
        raise LaunchRefused(
            f"{program.kernel}: a block of {geometry.threads} threads cannot be launched:"
            f" its __launch_bounds__ allow {most}.",
            fix="Use a smaller block, or larger __launch_bounds__.",
        )
    if block != limits.get("reqntid", block):
        raise LaunchRefused(
            f"{program.kernel}: block {block} cannot be launched: it asks for {limits['reqntid']}."
        )
    cluster = cluster_of(program)
    if math.prod(cluster) > _MOST_CLUSTER_BLOCKS:
        raise LaunchRefused(
            f"{program.kernel}: clusters of {cluster} blocks cannot be launched: a cluster has at most"
            f" {_MOST_CLUSTER_BLOCKS}, and the driver refuses more with CUDA_ERROR_INVALID_CLUSTER_SIZE.",
            fix="Use smaller clusters.",
        )
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        raise LaunchRefused(
            f"{program.kernel}: grid {grid} cannot be launched: its clusters are of {cluster} blocks,"
            " which do not divide it.",
            fix="Round the grid up to whole clusters.",
        )
