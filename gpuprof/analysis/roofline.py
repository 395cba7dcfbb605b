# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The roofline: theoretical roofs, the measured copy bandwidth, and where each kernel stands under them.

The arithmetic intensity is the problem's ideal one, FLOPs over the fewest bytes that must move. A kernel's
real traffic may be larger, so a point shows what was reached and not what the memory system carried.
"""

from dataclasses import dataclass

from gpuprof.analysis.groups import Group
from gpuprof.analysis.kinds import on_host
from gpuprof.analysis.ladder import build_ladder
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class MemoryRoof:
    """A bandwidth in GB/s; `measured` tells a copy's from a theoretical peak."""

    gbps: float
    measured: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel at one size."""

    kernel: str
    size: str
    flop_per_byte: float
    gflops: float
    is_reference: bool


@dataclass(frozen=True, slots=True)
class Roofline:
    """Roofs and points of one group; the roofs are absent where the device's peaks are unknown."""

    peak_gflops: float
    memory_roofs: tuple[MemoryRoof, ...]
    points: tuple[Point, ...]


def build_roofline(run: Run, group: Group) -> Roofline | None:
    """The roofline of a group; None without arithmetic, without known peaks, or without a timed case.

    What ran on the CPU does not stand under the GPU's roofs.
    """
    peak = run.device.peak_gflops(group.dtype)
    bandwidth = run.device.peak_bandwidth_gbps
    if peak is None or bandwidth is None:
        return None
    points = [
        Point(
            kernel=rung.kernel.id,
            size=size.label,
            flop_per_byte=rung.case.problem.flops / rung.case.problem.min_bytes,
            gflops=rung.speed.gflops,
            is_reference=rung.is_reference,
        )
        for size in group.sizes
        for rung in build_ladder(run, size).rungs
        if rung.speed and rung.speed.gflops is not None and not on_host(run, rung.case)
    ]
    if not points:
        return None
    copy = run.device.measured_copy_bandwidth_gbps
    roofs = (MemoryRoof(bandwidth, measured=False),)
    return Roofline(
        peak_gflops=peak,
        memory_roofs=(*roofs, MemoryRoof(copy, measured=True)) if copy else roofs,
        points=tuple(points),
    )
