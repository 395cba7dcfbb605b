# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The roofline by level of the memory hierarchy: its roofs, and where each kernel stands.

A kernel's arithmetic intensity is its FLOPs over the bytes that cross one level, so kernels that do the same
work stand apart: what one rung moves through shared memory the next keeps in registers. The bytes are counted
ones where there are any; the last level is the problem's ideal, the minimum bytes of the problem.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from gpuprof.analysis import counts
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Rung, SizeLadder, build_ladder
from gpuprof.analysis.speed import peak_compute, tensor_source
from gpuprof.analysis.status import on_host
from gpuprof.bounds.parts import BULK_READS, BULK_WRITES, DRAM_BYTES, READS, SECTOR_BYTES, WRITES
from gpuprof.devices.device import Device
from gpuprof.devices.measured import theoretical
from gpuprof.results import By, Measurement, Run

_PASS_BYTES = 128


class RooflinePoint(Struct, frozen=True):
    """One kernel at one size: the measured rate, the modelled one, or the highest that its bounds allow."""

    kernel: str
    size: str
    flop_per_byte: float
    gflops: float
    is_reference: bool
    by: By = "time"


class Level(Struct, frozen=True):
    """One level of the memory hierarchy: kernels under known bandwidths in GB/s.

    By whether a kernel or a copy was measured to reach it: else it is a theoretical peak.
    """

    label: str
    gbps: Mapping[bool, float]
    points: tuple[RooflinePoint, ...]


class Roofline(Struct, frozen=True):
    """Roofs and points of one group."""

    peak_gflops: float
    levels: tuple[Level, ...]


def build_roofline(run: Run, group: Group) -> Roofline | None:
    """The roofline of a group; None without arithmetic, without known peaks, or without a rate to show.

    What ran on the CPU does not stand under the GPU's roofs.
    """
    device = run.devices[group.device]
    cases = [case for size in group.sizes for case in size.cases]
    # A rung on tensor cores raises the roof for all: without it, it would stand above.
    peaks = [peak_compute(case.problem, device, tensor_source(case)) for case in cases]
    peak = max(filter(None, peaks), default=None)
    if peak is None or device.peak_bandwidth_gbps is None:
        return None
    ladders = [build_ladder(run, size) for size in group.sizes]
    levels = tuple(
        Level(label, roofs, points)
        for key, (label, bytes_of) in _LEVELS.items()
        if (roofs := _roofs(device, key)) and (points := tuple(_points(run, ladders, bytes_of)))
    )
    return Roofline(peak, levels) if levels else None


def _points(
    run: Run, ladders: list[SizeLadder], bytes_of: Callable[[Measurement], float | None]
) -> list[RooflinePoint]:
    found = []
    for ladder in ladders:
        for rung in ladder.rungs:
            moved, rate = bytes_of(rung.case), _rate(run, rung)
            if moved and rate:
                found.append(
                    RooflinePoint(
                        kernel=rung.kernel.id,
                        size=ladder.size.label,
                        flop_per_byte=rung.case.problem.flops / moved,
                        gflops=rate[0],
                        is_reference=rung.is_reference,
                        by=rate[1],
                    )
                )
    return found


def _rate(run: Run, rung: Rung) -> tuple[float, By] | None:
    """GFLOP/s, and what tells it."""
    if not rung.case.problem.flops or on_host(run, rung.case):
        return None
    if rung.speed is not None:
        return (rung.speed.gflops, "time") if rung.speed.gflops is not None else None
    if rung.case.model is not None:
        return rung.case.problem.flops / rung.case.model.median_us / 1e3, "model"
    if rung.limits is not None:
        return rung.case.problem.flops / rung.limits.least_us / 1e3, "bound"
    return None


def _l2_bytes(case: Measurement) -> float | None:
    """What SMs ask of L2: less what L1 was measured to absorb, or all of it where nobody measured."""
    reads, writes, bulk = (counts.total(case, *names) or 0 for names in (READS, WRITES, _BULK))
    hits = counts.value(case, "l1_hit_rate_pct") or 0.0
    return SECTOR_BYTES * (reads * (1 - hits / 100) + writes) + bulk or None


_BULK = (BULK_READS, BULK_WRITES)
_LEVELS: Mapping[str, tuple[str, Callable[[Measurement], float | None]]] = {
    "l1": ("shared memory and L1", lambda case: _PASS_BYTES * counts.known(case, "l1_passes") or None),
    "l2": ("L2", _l2_bytes),
    "dram": ("DRAM, measured", lambda case: counts.total(case, *DRAM_BYTES)),
    "ideal": ("minimum bytes of the problem", lambda case: case.problem.min_bytes),
}
_RATES = {"l1": "shared_gbps", "l2": "l2_gbps", "dram": "dram_read_gbps", "ideal": "dram_read_gbps"}


def _roofs(device: Device, level: str) -> Mapping[bool, float]:
    """The theoretical bandwidth of a level, and what was reached on this device."""
    rate = _RATES[level]
    limit = theoretical(device).get(rate)
    reached = device.measured_rates.get(rate)
    if reached is None and rate == "dram_read_gbps":
        reached = device.measured_copy_bandwidth_gbps
    return {measured: gbps for measured, gbps in ((False, limit), (True, reached)) if gbps is not None}
