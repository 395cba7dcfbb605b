# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches that the card's driver would refuse."""

import math

from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import theoretical_occupancy
from gpuprof.errors import CaseFailure
from gpuprof.kernels.shape import OneLaunch
from gpuprof.toolchain.nvrtc import CompiledKernel


def check_launch(device: Device, name: str, one: OneLaunch, compiled: CompiledKernel) -> None:
    """Refuse what the card cannot hold.

    Args:
        device: The card.
        name: What the kernel is called.
        one: The launch, of at least one thread.
        compiled: The kernel.

    Raises:
        CaseFailure: The driver would refuse the launch.
    """
    needed = compiled.static_shared_bytes + one.dynamic_shared_bytes
    _check_shared(device, name, needed)
    _check_resources(device, one, compiled.registers_per_thread, needed)


def _check_shared(device: Device, name: str, needed: int) -> None:
    """Refuse a launch that the card's driver would refuse."""
    limit = device.shared_bytes_per_block_optin
    if needed > limit:
        raise CaseFailure(
            f"{name} needs {needed} bytes of shared memory per block ({needed / 1024:g} KiB);"
            f" {device.name} allows {limit} ({limit / 1024:g} KiB), and its driver would refuse the launch"
            " with CUDA_ERROR_INVALID_VALUE.",
            over_limit=True,
        )


def _check_resources(device: Device, one: OneLaunch, registers: int, shared_bytes: int) -> None:
    """Refuse a block, or a cooperative grid, that the card cannot hold.

    Raises:
        CaseFailure: The driver would refuse the launch.
    """
    held = theoretical_occupancy(
        device,
        threads_per_block=math.prod(one.block),
        registers_per_thread=registers,
        shared_bytes_per_block=shared_bytes,
    )
    blocks, at_once = math.prod(one.grid), held.blocks_per_sm * device.sm_count
    if one.cooperative and blocks > at_once:
        raise CaseFailure(
            f"A cooperative grid of {blocks} blocks does not fit: {device.name} holds {at_once} of them at"
            f" once ({held.blocks_per_sm} on each SM), and its driver would refuse the launch with"
            " CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE.",
            over_limit=True,
            fix="Use a smaller grid.",
        )
