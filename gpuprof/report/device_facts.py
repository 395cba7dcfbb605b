# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report says of the device: limits and peaks, with where they come from."""

from collections.abc import Callable

from gpuprof.analysis import numbers
from gpuprof.devices.device import Device


def device_facts(device: Device) -> tuple[tuple[str, str], ...]:
    """Label and value pairs; an unknown peak says so."""
    origin = "driver" if device.source == "driver" else "gpuprof's table of cards"
    copy = device.measured_copy_bandwidth_gbps
    return (
        ("Device figures from", origin),
        ("Compute capability", device.compute_capability),
        ("SMs", f"{device.sm_count} at up to {device.sm_clock_mhz:,.0f} MHz"),
        ("Memory", numbers.size(device.memory_bytes)),
        ("L2 cache", numbers.size(device.l2_bytes)),
        ("Shared memory per SM", numbers.size(device.shared_bytes_per_sm)),
        ("Shared memory per block, at most", numbers.size(device.shared_bytes_per_block_optin)),
        ("Theoretical bandwidth", _known(device.peak_bandwidth_gbps, numbers.gbps)),
        (
            "Measured copy bandwidth",
            numbers.gbps(copy)
            if copy
            else f"not measured: {device.measured_copy_bandwidth_reason or 'no reason was recorded'}",
        ),
        ("Theoretical float32 peak", _known(device.peak_fp32_gflops, numbers.gflops)),
        ("Theoretical float64 peak", _known(device.peak_fp64_gflops, numbers.gflops)),
    )


def _known(value: float | None, write: Callable[[float], str]) -> str:
    return "unknown" if value is None else write(value)
