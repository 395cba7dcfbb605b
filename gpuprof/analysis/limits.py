# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Why a case takes its time: floors of its parts, what binds, where, and what less of it would allow."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuprof.analysis import counters, numbers
from gpuprof.analysis.kinds import on_host
from gpuprof.analysis.speed import speed_of
from gpuprof.bounds.parts import LAUNCH, PARTS, SECTOR_BYTES, SECTORS_PER_PASS, WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.devices.rates import sm_rates
from gpuprof.results import Bound, Measurement, Run

#: A case that takes so many times its highest bound is held by something that no bound holds.
_FAR = 1.5
#: A step that allows less than this is no step.
_WORTHWHILE = 1.02
_PASS_BYTES = SECTORS_PER_PASS * SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Floor:
    """One bound of a case, ready to be shown.

    Args:
        key: The part's.
        label: The part's name.
        short: The same for a narrow column.
        meaning: What the part does.
        bound: Time, formula and source.
        share_pct: Of the measured time; None without one.
        binds: Whether no other part needs longer.
    """

    key: str
    label: str
    short: str
    meaning: str
    bound: Bound
    share_pct: float | None
    binds: bool


@dataclass(frozen=True, slots=True)
class NextStep:
    """What removing something would allow at best.

    Args:
        what: What is removed.
        least_us: The bound that is left.
        left: The part that sets it.
        factor: How many times as fast as now: as measured, or as bounded where nothing was measured.
    """

    what: str
    least_us: float
    left: str
    factor: float

    @property
    def text(self) -> str:
        """For example `conflict-free shared memory would allow 13.4 ms at best (FMA (f32)), 6.9x as fast`."""
        return (
            f"{self.what} would allow {numbers.time_us(self.least_us)} at best ({self.left}),"
            f" {numbers.ratio(self.factor)} as fast"
        )


@dataclass(frozen=True, slots=True)
class HotLine:
    """The source line that causes most of the binding part's work."""

    line: int
    share_pct: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one case.

    Args:
        floors: The one that binds first.
        measured_us: The cold median; None where nothing was timed.
        hot: None where no line was counted.
        latency: What to say where the measured time is far above every bound; empty elsewhere.
        steps: What removing the excess of the binding part would allow, the most telling first.
    """

    floors: tuple[Floor, ...]
    measured_us: float | None
    hot: HotLine | None
    latency: str
    steps: tuple[NextStep, ...]

    @property
    def binding(self) -> Floor:
        """The floor that no other exceeds."""
        return self.floors[0]

    @property
    def least_us(self) -> float:
        """The time that no launch of the case can go below."""
        return self.binding.bound.least_us

    @property
    def ratio(self) -> float | None:
        """Measured time over the highest bound; None where nothing was timed."""
        return self.measured_us / self.least_us if self.measured_us else None

    @property
    def text(self) -> str:
        """One sentence: what binds, and how near the case is to that."""
        least, label = numbers.time_us(self.least_us), self.binding.label
        if self.ratio is None:
            return f"cannot be faster than {least} ({label})"
        if self.latency:
            return f"{numbers.ratio(self.ratio)} its highest bound, {least} ({label}): latency is not hidden"
        return f"bound by {label}: {least} at least, {numbers.percent(100 / self.ratio)} of the time it takes"


def limits_of(run: Run, case: Measurement) -> Limits | None:
    """The bounds of a case; None where exact counts are missing."""
    if case.bound_by is None or case.bound_by not in case.bounds or on_host(run, case):
        return None
    device = run.devices[case.device]
    speed = speed_of(run, case)
    measured = speed.median_us if speed else None
    ordered = sorted(case.bounds, key=lambda key: -case.bounds[key].least_us)
    floors = tuple(
        Floor(
            key,
            PARTS[key].label if key in PARTS else key,
            PARTS[key].short if key in PARTS else key,
            PARTS[key].meaning if key in PARTS else "",
            case.bounds[key],
            100 * case.bounds[key].least_us / measured if measured else None,
            key == ordered[0],
        )
        for key in ordered
    )
    binding = floors[0]
    far = measured is not None and measured > _FAR * binding.bound.least_us and binding.key != LAUNCH.key
    return Limits(
        floors=floors,
        measured_us=measured,
        hot=_hot_line(case, binding.bound),
        latency=_latency(case, device, binding) if far else "",
        steps=tuple(_steps(case, floors, measured or binding.bound.least_us)),
    )


def _hot_line(case: Measurement, bound: Bound) -> HotLine | None:
    work = {
        line.line: sum(line.counters.get(name, 0) for name in bound.counters) for line in case.lines or ()
    }
    total = sum(work.values())
    if not total:
        return None
    line = max(work, key=work.__getitem__)
    return HotLine(line, 100 * work[line] / total)


def _steps(case: Measurement, floors: tuple[Floor, ...], now_us: float) -> Iterator[NextStep]:
    """What is wasted in the binding part, then all of it; only what leaves a lower bound."""
    binding, others = floors[0], floors[1:]
    second = others[0] if others else None
    for what, left_us in sorted(_wastes(case, binding), key=lambda item: item[1]):
        left = binding if second is None or left_us >= second.bound.least_us else second
        least = max(left_us, second.bound.least_us if second else 0.0)
        if least and binding.bound.least_us >= _WORTHWHILE * least:
            yield NextStep(what, least, left.label, now_us / least)
    if second is not None and binding.bound.least_us >= _WORTHWHILE * second.bound.least_us:
        least = second.bound.least_us
        yield NextStep(f"no work for {binding.label} at all", least, second.label, now_us / least)


def _wastes(case: Measurement, binding: Floor) -> Iterator[tuple[str, float]]:
    """Work of the binding part that the result does not need, and the time that is left without it."""
    bound = binding.bound
    if bound.even_us is not None:
        yield "an even share for every SM", bound.even_us
    passes = counters.value(case, "l1_passes")
    if binding.key == "l1" and passes:
        conflicts = sum(counters.value(case, name) or 0 for name in counters.BANK_CONFLICTS)
        if conflicts:
            yield "conflict-free shared memory", bound.least_us * (1 - conflicts / passes)
        for kind in ("load", "store"):
            extra = _scattered_passes(case, kind)
            if extra:
                yield f"coalesced global {kind}s", bound.least_us * (1 - extra / passes)
    needed = case.problem.flops / 2 / WARP_LANES
    fmas = counters.value(case, "pipe_fma_instructions")
    if binding.key == "fma" and needed and fmas and fmas > needed:
        yield "no arithmetic but the problem's own", bound.least_us * needed / fmas


def _scattered_passes(case: Measurement, kind: str) -> float:
    """Passes of global accesses beyond those that their bytes, or one for each request, would take."""
    sectors = counters.value(case, f"global_{kind}_sectors") or 0
    requests = counters.value(case, f"global_{kind}_requests") or 0
    useful = counters.value(case, f"global_{kind}_useful_bytes") or 0
    return max(0.0, sectors / SECTORS_PER_PASS - max(requests, useful / _PASS_BYTES))


def _latency(case: Measurement, device: Device, binding: Floor) -> str:
    """Little's law: what must be in flight on an SM to keep the binding part busy, and what is resident."""
    flight = _in_flight(device, binding)
    held = case.occupancy
    if flight is None or held is None:
        return "No part of the GPU is busy all the time: latency is not hidden."
    needed, unit, reckoned = flight
    warps = held.theoretical_pct / 100 * device.max_threads_per_sm / WARP_LANES
    each = needed / warps if warps else needed
    return (
        "No part of the GPU is busy all the time: latency is not hidden. By Little's law"
        f" {binding.label} needs {numbers.significant(needed)} {unit} in flight on each SM ({reckoned});"
        f" {numbers.brief(warps)} warps are resident ({held.limiter}), so each must keep"
        f" {numbers.significant(each)} under way all the time."
    )


def _in_flight(device: Device, binding: Floor) -> tuple[float, str, str] | None:
    """Work in flight that a part's rate and latency ask for: amount, unit, and how it was reckoned."""
    cycles = {
        "fma": "fma_latency_cycles",
        "l1": "shared_latency_cycles",
        "l2": "l2_latency_cycles",
        "dram": "dram_latency_cycles",
    }.get(binding.key)
    latency = latencies(device).get(cycles or "")
    if latency is None:
        return None
    per_sm = {part: rate.per_cycle for part, rate in sm_rates(device).items()}
    if binding.key == "dram":
        if not device.peak_bandwidth_gbps or not device.sm_clock_mhz:
            return None
        rate, unit = device.peak_bandwidth_gbps * 1e3 / device.sm_clock_mhz / device.sm_count, "bytes"
    else:
        rate = per_sm["l2_bytes"] if binding.key == "l2" else per_sm[binding.key]
        unit = "bytes" if binding.key == "l2" else PARTS[binding.key].unit
    reckoned = f"{numbers.significant(rate)} a cycle x {numbers.significant(latency)} cycles"
    return rate * latency, unit, reckoned
