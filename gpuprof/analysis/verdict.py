# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What holds a case back, as far as its figures show; each verdict carries the figures it rests on."""

from dataclasses import dataclass
from typing import Literal

from gpuprof.analysis import numbers
from gpuprof.analysis.kinds import blocks_of, is_reference
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import speed_of
from gpuprof.analysis.why import reasons
from gpuprof.results import Measurement, Run

#: Share of a theoretical peak above which that peak is called the limit.
_NEAR_PEAK_PCT = 60.0
_LOW_OCCUPANCY_PCT = 35.0
#: Reasons that the counters give, of which the first ones tell most.
_MOST_REASONS = 2

Kind = Literal["memory", "compute", "grid", "neither"]

_LABEL: dict[Kind, str] = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "grid": "too small for the device",
    "neither": "below both roofs",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The limiter of one case.

    Args:
        kind: Which limit, if any, the case is near.
        evidence: The figure that decides it; empty where nothing does.
        clues: Further figures that cost time, most telling first; causes are suggested, not proven.
    """

    kind: Kind
    evidence: str
    clues: tuple[str, ...]

    @property
    def label(self) -> str:
        """The limiter in two or three words."""
        return _LABEL[self.kind]

    @property
    def text(self) -> str:
        """For example `memory-bound: 71.0 % of theoretical peak bandwidth`."""
        return f"{self.label}: {self.evidence}" if self.evidence else self.label


@remembered
def verdict_of(run: Run, case: Measurement) -> Verdict | None:
    """What limits a timed case; None where it has no speed or the device's peaks are unknown."""
    speed = speed_of(run, case)
    if speed is None or speed.pct_of_peak_bandwidth is None:
        return None
    clues = tuple(_clues(case))
    memory, compute = speed.pct_of_peak_bandwidth, speed.pct_of_peak_compute or 0.0
    if compute >= _NEAR_PEAK_PCT and compute >= memory:
        return Verdict("compute", f"{numbers.percent(compute)} of theoretical peak compute", ())
    if memory >= _NEAR_PEAK_PCT:
        return Verdict("memory", f"{numbers.percent(memory)} of theoretical peak bandwidth", ())
    # How many blocks a library launches is its own affair.
    blocks = None if is_reference(run, case) else blocks_of(case)
    sm_count = run.devices[case.device].sm_count
    if blocks is not None and blocks < sm_count:
        evidence = f"{numbers.count(blocks)} {_blocks(blocks)} for {sm_count} SMs"
        return Verdict("grid", evidence, clues)
    return Verdict("neither", "", clues)


def clues_of(case: Measurement) -> tuple[str, ...]:
    """Figures that cost time on any device, for cases without a speed of their own."""
    return tuple(_clues(case))


def _blocks(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _clues(case: Measurement) -> list[str]:
    clues = list(reasons(case)[:_MOST_REASONS])
    if case.resources and case.resources.spill_bytes:
        clues.append(f"{numbers.size(case.resources.spill_bytes)} of registers spilled per thread")
    if case.occupancy and case.occupancy.theoretical_pct < _LOW_OCCUPANCY_PCT:
        occupancy = numbers.percent(case.occupancy.theoretical_pct)
        clues.append(f"occupancy {occupancy}, limited by {case.occupancy.limiter}")
    return clues
