# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Made-up times for a space of GEMM tiles, for tests of the search: no figure here was ever measured.

They behave as times do. The slowest of several parts of an SM sets the pace, too few warps expose latency,
blocks fall on SMs in whole waves, and every point is off by a few percent that nothing explains.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gpuprof.devices.cards import load_card
from gpuprof.devices.occupancy import theoretical_occupancy
from gpuprof.errors import CaseFailure
from gpuprof.kernels.catalog import load_kernels
from gpuprof.measure.case import unmeasured
from gpuprof.measure.request import Selection
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import Bound, Model, Occupancy, Resources
from gpuprof.tuning.space import BuiltPoint, make_space

TILES = Path(__file__).parents[2] / "benchmarks" / "tuning" / "gemm_tiles.cu"
#: Standard deviation of what nothing explains, as a share of the time.
UNEXPLAINED = 0.015


@dataclass(frozen=True)
class Landscape:
    """A space with a made-up time for each of its points."""

    points: list[BuiltPoint]
    times_us: np.ndarray

    def counted(self) -> list[BuiltPoint]:
        """The points as if each had been counted and modelled."""
        found = []
        for one, time_us in zip(self.points, self.times_us, strict=True):
            us = float(time_us) * _share(one)
            case = replace(
                one.measurement,
                outcome="ok",
                bounds={"issue": Bound(us / 2, "made up", "made up")},
                bound_by="issue",
                model=Model(us, 0.85 * us, 1.3 * us),
            )
            found.append(replace(one, measurement=case))
        return found


@cache
def landscape(size: int = 2048, seed: int = 0) -> Landscape:
    """The space of the benchmark's GEMM at one size on an H200."""
    device = load_card("h200")
    file = load_kernels(TILES)
    problem = Problem.of(file.operation, (size, size, size), "f32", {}, {})
    space = make_space([Selection(file.kernels[0])], named=True)
    candidates, _ = space.allowed(problem, device)
    random = np.random.default_rng(seed)
    points, times = [], []
    for candidate in candidates:
        p = dict(candidate.point.params)
        threads = p["BM"] * p["BN"] // (p["TM"] * p["TN"])
        registers = min(
            255, 24 + p["TM"] * p["TN"] + 2 * (p["TM"] + p["TN"]) + (8 if p["UNROLL"] == 0 else 0)
        )
        shared = 4 * p["BK"] * (p["BM"] + p["PAD"] + p["BN"])
        try:
            held = theoretical_occupancy(
                device,
                threads_per_block=threads,
                registers_per_thread=min(255, registers),
                shared_bytes_per_block=shared,
            )
        except CaseFailure:
            continue
        case = unmeasured(candidate.case, candidate.case.kernel, "skipped", None, "made up")
        case = replace(
            case,
            resources=Resources(min(255, registers), shared, 0, 0),
            occupancy=Occupancy(held.theoretical_pct, held.limiter, held.blocks_per_sm),
        )
        points.append(BuiltPoint(candidate, case))
        times.append(_time_us(p, size, threads, held.blocks_per_sm, device.sm_count))
    spread = 1 + UNEXPLAINED * random.standard_normal(len(times))
    return Landscape(points, np.array(times) * np.maximum(spread, 0.9))


def _time_us(p: dict[str, int], size: int, threads: int, resident: int, sms: int) -> float:
    fmas = size**3
    # Cycles of one SM for one multiply-add of each part.
    arithmetic = 1 / 128
    loads = (
        (p["TM"] / (4 if p["PAD"] else 1) + p["TN"] / 4 * (1 if p["SPLIT"] else 1.6))
        / (p["TM"] * p["TN"])
        / 32
    )
    traffic = 4 * (1 / p["BM"] + 1 / p["BN"]) / 50
    overhead = (1.08 if p["UNROLL"] else 1.0) * (1 + 8 / p["BK"] / math.sqrt(p["TM"] * p["TN"]))
    overhead *= 1 + 0.5 * (p["TM"] + p["TN"]) / (p["TM"] * p["TN"])
    parts = [arithmetic * overhead, loads, traffic]
    pace = sum(part**3 for part in parts) ** (1 / 3)
    warps = resident * threads / 32
    independent = p["TM"] * p["TN"] / 16
    hidden = 1 - math.exp(-warps * (1 + independent) / 30)
    blocks = (size // p["BM"]) * (size // p["BN"])
    slots = sms * resident
    waves = math.ceil(blocks / slots) * slots / blocks
    busiest = math.ceil(blocks / sms) * sms / blocks
    return fmas * pace / hidden * max(busiest, 0.5 + 0.5 * waves) / sms / 1980 + 3


def _share(one: BuiltPoint) -> float:
    """What part of its time a point is modelled to take: little of it where few warps hide latency."""
    assert one.measurement.occupancy is not None
    return 0.5 + 0.3 * min(1.0, one.measurement.occupancy.theoretical_pct / 50)
