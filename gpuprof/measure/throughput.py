# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rates from a time: pure arithmetic on a problem's work and a device's peaks."""

from gpuprof.devices.device import Device
from gpuprof.results import Problem, Throughput


def throughput(problem: Problem, device: Device, median_us: float) -> Throughput:
    """GFLOP/s, effective GB/s and their shares of the theoretical peaks.

    Effective bandwidth counts the fewest bytes that the problem must move, not what the kernel moved: for a
    transpose 2 * nx * ny * sizeof / time.

    Args:
        problem: Gives the floating-point operations and the bytes.
        device: Gives the peaks.
        median_us: Time of one launch.
    """
    gflops = problem.flops / median_us / 1e3 if problem.flops else None
    gbps = problem.min_bytes / median_us / 1e3
    peak_gflops = device.peak_gflops(problem.dtype)
    peak_gbps = device.peak_bandwidth_gbps
    return Throughput(
        gflops=gflops,
        gbps=gbps,
        pct_of_peak_compute=100 * gflops / peak_gflops if gflops and peak_gflops else None,
        pct_of_peak_bandwidth=100 * gbps / peak_gbps if peak_gbps else None,
    )
