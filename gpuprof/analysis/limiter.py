# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What limits a case, in a word or two of the field: `issue 89 %`, `latency-bound`, `DRAM 92 %`."""

from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.limits import FAR, Limits, limits_of
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import Speed, speed_of
from gpuprof.analysis.status import blocks_of, is_reference
from gpuprof.bounds.parts import DRAM
from gpuprof.results import Measurement, Run

#: A launch overhead below this share of the time explains little of it.
_MUCH_OVERHEAD = 0.25
#: A grid of fewer blocks than this share of the SMs is too small for the device.
_FEW_BLOCKS = 0.9
#: Share of a theoretical peak from which that peak is called the limit.
_NEAR_PEAK_PCT = 60.0
#: No time can be below its bound; what is within the noise of one is not below it.
_BELOW = 0.99


class Limiter(Struct, frozen=True):
    """What a case's time is made of, or what keeps it from being shorter.

    The key is a part of the GPU, or `latency`, `grid` (too few blocks for the device), `compute`; the share
    that of the measured time, None where nothing was timed, and where no part has much of it. The evidence is
    there where no bounds say so.
    """

    key: str
    name: str
    share_pct: float | None = None
    evidence: str = ""

    @property
    def word(self) -> str:
        """For example `issue-bound`, `shared-memory-bound`, `too few blocks`."""
        return self.brief if self.key == "grid" else f"{self.name.replace(' ', '-')}-bound"

    @property
    def brief(self) -> str:
        """For a column: `issue 89 %`, `shared memory`, `too few blocks`."""
        if self.key == "grid":
            return "too few blocks"
        return self.name if self.share_pct is None else f"{self.name} {numbers.percent(self.share_pct, 2)}"

    @property
    def text(self) -> str:
        """For example `issue-bound: 2.22 ms of 2.51 ms`."""
        return f"{self.word}: {self.evidence}" if self.evidence else self.word


class Overhead(Struct, frozen=True):
    """What a launch takes that does nothing, within the time of one that does something."""

    launch_us: float
    of_us: float

    @property
    def share_pct(self) -> float:
        return 100 * self.launch_us / self.of_us

    @property
    def text(self) -> str:
        """For example `launch overhead 2.2 of 3.9 µs`."""
        return f"launch overhead {numbers.part_of(self.launch_us, self.of_us)}"


def verdict(limits: Limits, limiter: Limiter | None) -> str:
    """One sentence: what limits a case, and how near it is to its highest bound."""
    if limiter is None or not limits.is_far:
        return limits.text
    if limits.measured_us is None:
        return f"{limiter.word} as modelled; {limits.text}"
    return f"{limiter.text}{';' if limiter.evidence else ':'} {limits.text}"


def launch_overhead(run: Run, case: Measurement) -> Overhead | None:
    """The launch overhead of a timed or modelled case where it explains a short time; else None."""
    speed, model = speed_of(run, case), case.model
    if speed is not None and case.event_floor_us:
        found = Overhead(min(case.event_floor_us, speed.median_us), speed.median_us)
    elif speed is None and model is not None:
        found = Overhead(model.reasons.get("launch", 0.0) * model.median_us, model.median_us)
    else:
        return None
    return found if found.share_pct >= 100 * _MUCH_OVERHEAD else None


def beats_its_bound(limits: Limits | None) -> bool:
    """Whether a measured time is shorter than the bound allows: then counts or rates are wrong."""
    return limits is not None and limits.ratio is not None and limits.ratio < _BELOW


@remembered
def limiter_of(run: Run, case: Measurement) -> Limiter | None:
    """What limits a case; None where that is not known.

    By exact counts where there are any: the part with the largest share of the time, or latency where none
    has much of it. Bytes and arithmetic that the problem itself needs count as such parts too: a bound leaves
    out what caches may absorb.
    """
    limits, speed = limits_of(run, case), speed_of(run, case)
    if limits is None:
        return _by_roof(run, case)
    if limits.share_pct is None or speed is None:
        # A modelled time tells which bound is far from it, but is none that a share can be of.
        if not limits.is_far:
            return Limiter(limits.binding.key, _name(case, limits))
        return _small_grid(run, case) or Limiter("latency", "latency")
    if beats_its_bound(limits):
        return None
    roof = _roof(speed)
    if roof is not None and (roof.share_pct or 0.0) > max(limits.share_pct, 100 / FAR):
        return roof
    if limits.share_pct >= 100 / FAR:
        return Limiter(limits.binding.key, _name(case, limits), limits.share_pct)
    return _small_grid(run, case) or Limiter("latency", "latency")


def _name(case: Measurement, limits: Limits) -> str:
    """The binding part's; where that is the path of shared memory and L1, the one that has more of it."""
    if limits.binding.key != "l1":
        return limits.binding.short
    shared = counts.known(case, *counts.SHARED_PASSES)
    passes = counts.value(case, "l1_passes")
    return "shared memory" if passes is None or 2 * shared >= passes else "L1"


def _by_roof(run: Run, case: Measurement) -> Limiter | None:
    """Without counts: the peak that a case is near, or a grid too small for the device."""
    speed = speed_of(run, case)
    if speed is None or speed.pct_of_peak_bandwidth is None:
        return None
    near = _roof(speed)
    if near is not None and near.share_pct is not None and near.share_pct >= _NEAR_PEAK_PCT:
        return near
    return _small_grid(run, case)


def _roof(speed: Speed) -> Limiter | None:
    compute, memory = speed.pct_of_peak_compute or 0.0, speed.pct_of_peak_bandwidth or 0.0
    if max(compute, memory) > 100:  # by caches, or by units that nobody counted
        return None
    if memory > compute:
        evidence = f"{numbers.percent(memory)} of theoretical peak bandwidth"
        return Limiter(DRAM.key, DRAM.short, memory, evidence)
    evidence = f"{numbers.percent(compute)} of theoretical peak compute"
    return Limiter("compute", "compute", compute, evidence) if compute else None


def _small_grid(run: Run, case: Measurement) -> Limiter | None:
    # How many blocks a library launches is its own affair.
    blocks = None if is_reference(run, case) else blocks_of(case)
    sm_count = run.devices[case.device].sm_count
    if blocks is None or blocks >= _FEW_BLOCKS * sm_count:
        return None
    return Limiter("grid", "grid", None, f"{numbers.count(blocks)} of {sm_count} SMs have a block")
