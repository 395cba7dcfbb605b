# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure that a report shows of a case, defined once: its names, its unit, and how it follows.

Where a figure does not exist, its reading says why. Renderers choose figures by key and decide only where and
how long to show them.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from operator import attrgetter
from typing import Any

from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.limits import limits_of
from gpuprof.analysis.speed import speed_of, why_no_speed
from gpuprof.analysis.status import blocks_of, on_host, status_of, waves
from gpuprof.counters import COUNTERS, describe
from gpuprof.results import Measurement, Run


class Subject(Struct, frozen=True):
    """What a figure is read from: a case of a run, and its kernel's `Rung` where that is looked at."""

    run: Run
    case: Measurement
    rung: Any = None

    @property
    def shown(self) -> Any:
        """The rung, for the one case that stands for it."""
        return self.rung if self.rung and self.rung.case is self.case else None

    @property
    def usable(self) -> bool:
        """Whether its figures may be compared with those of others."""
        return status_of(self.run, self.case).usable


class Reading(Struct, frozen=True):
    """A figure of one subject; its value is None where it does not exist, and `reason` says why."""

    value: float | str | None
    reason: str = ""


Read = Callable[[Subject], Reading]


class Figure(Struct, frozen=True):
    """One figure; its key is a stable name, a counter's own for a counter.

    The unit is as `numbers.in_unit` takes it, or `text`.
    """

    key: str
    label: str
    short: str
    phrase: str
    meaning: str
    read: Read
    group: str
    unit: str = ""

    def value(self, subject: Subject) -> float | None:
        """The figure as a number; None where it does not exist or is not a number."""
        value = self.read(subject).value
        return value if isinstance(value, int | float) else None

    def write(self, value: float, digits: int = 3) -> str:
        return numbers.in_unit(value, self.unit, digits)


def _reading(value: float | str | None, *reasons: str | None) -> Reading:
    """The value, or the first reason that there is for having none."""
    why = next(filter(None, reasons), "no reason was recorded")
    return Reading(value, why if value is None else "")


#: What a figure may be read from: the object, and where there is none, why.
_Held = tuple[Any, tuple[str | None, ...]]


def _speed(subject: Subject) -> _Held:
    speed = speed_of(subject.run, subject.case)
    return speed, () if speed else (why_no_speed(subject.run, subject.case),)


def _rung(subject: Subject) -> _Held:
    """Only the case that stands for its rung is compared with others."""
    speed, why = _speed(subject)
    return (subject.shown, ("another case represents the kernel",)) if speed else (None, why)


_SOURCES: dict[str, Callable[[Subject], _Held]] = {
    "speed": _speed,
    "rung": _rung,
    "resources": lambda of: (of.case.resources, (of.case.resources_reason, of.case.reason)),
    "occupancy": lambda of: (of.case.occupancy, (of.case.occupancy_reason, of.case.reason)),
    "verification": lambda of: (of.case.verification, (of.case.verification_reason, of.case.reason)),
    "model": lambda of: (of.case.model, (of.case.model_reason, of.case.reason)),
    "limits": lambda of: (
        limits_of(of.run, of.case),
        (of.case.bounds_reason, of.case.reason, "exact counts are missing"),
    ),
}


def of_path(path: str, absent: str, then: Callable[[Any], float | str]) -> Read:
    """What `then` makes of what a case holds, by path: `speed.timing.p05_us`; `absent` is why it may not."""
    name, _, rest = path.partition(".")
    source, get = _SOURCES[name], attrgetter(rest)

    def read(subject: Subject) -> Reading:
        held, why = source(subject)
        if held is None:
            return _reading(None, *why)
        value = get(held)
        if value is None:
            return _reading(None, *_reasons(name, held, subject), absent)
        return Reading(then(value))

    return read


def _reasons(name: str, held: Any, subject: Subject) -> tuple[str | None, ...]:
    """Why an object that is there does not hold a figure, where that depends on the case."""
    match name:
        case "speed" if on_host(subject.run, subject.case):
            return ("it ran on the CPU",)
        case "occupancy":
            return (held.achieved_reason,)
        case "verification":
            return (held.detail,)
        case "limits":
            return (why_no_speed(subject.run, subject.case),)
    return ()


def of_counts(read: Callable[[Measurement], float | None]) -> Read:
    """A figure made of several counters."""
    return lambda of: _reading(
        read(of.case), of.case.counters_reason, of.case.reason, "this kernel has no such counter"
    )


def of_counter(name: str) -> Read:
    """One counter."""

    def read(subject: Subject) -> Reading:
        case = subject.case
        counter = counts.find(case, name)
        if counter is None:
            return _reading(None, case.counters_reason, case.reason, "this case has no such counter")
        return _reading(counter.value, counter.reason)

    return read


def published(subject: Subject) -> Reading:
    """The time that a kernel's authors published for this size."""
    case = subject.case
    for figure in kernel_record(subject.run, case.kernel).published:
        if figure.size == case.problem.label and figure.time_ms is not None:
            return Reading(figure.time_ms * 1e3)
    return _reading(None, "its authors published no time for this size")


def of_grid(read: Callable[[Subject], float | None]) -> Read:
    """A figure of the grid, which is worked out of what was compiled."""
    return lambda of: _reading(read(of), of.case.resources_reason, of.case.occupancy_reason, of.case.reason)


def _row(
    key: str,
    label: str,
    meaning: str,
    *,
    source: str = "",
    read: str | Read = "",
    then: Callable[[Any], float | str] = lambda value: value,
    short: str = "",
    phrase: str = "",
    absent: str = "",
    **more: Any,
) -> Figure:
    """A figure; `read` is a path as of `of_path`, by default the key in `source`, and `absent` its reason."""
    short = short or label
    phrase = phrase or short[:1].lower() + short[1:]
    read = read or f"{source}.{key}"
    how = of_path(read, absent, then) if isinstance(read, str) else read
    return Figure(key, label, short, phrase, meaning, how, **more)


def _sum(*names: str) -> Read:
    return of_counts(lambda case: counts.total(case, *names))


def _per_step(*names: str) -> Read:
    return of_counts(lambda case: counts.per_step(case, *names))


_NO_ARITHMETIC, _NO_PEAK = "this problem has no arithmetic", "the device's peak is unknown"
_COPIES = "not comparable: it only copies"
_cold = partial(_row, group="Time, L2 cold", source="speed.timing")
_rate = partial(_row, group="Rate", source="speed")
_peak = partial(_row, group="% of theoretical peak", unit="%", source="speed")
_reached = partial(_row, group="% of measured", unit="%", source="speed")
_bound = partial(_row, group="Bound, from exact counts", unit="us")
_ladder = partial(_row, group="Ladder", unit="×", source="rung")
_held = partial(_row, group="Resources", unit="bytes", source="resources")
_occupancy = partial(_row, group="Occupancy", unit="%")
_launch = partial(_row, group="Launch")
_check = partial(_row, group="Verification", unit="error")
_traffic = partial(_row, group="Global traffic and shared memory")

_FIGURES = (
    _cold(
        "median_us",
        "Median",
        "Median of the samples, L2 flushed before each; ~ is a noisy one.",
        unit="us",
        source="speed",
        short="Time",
    ),
    _cold("p05_us", "p05", "5th percentile.", unit="us"),
    _cold("p95_us", "p95", "95th percentile.", unit="us"),
    _cold(
        "ci95_pct",
        "95 % CI",
        "Half width of the median's confidence interval.",
        unit="±%",
        read="speed.timing.ci95_rel",
        then=lambda width: 100.0 * width,
        short="±95 %",
        absent="too few samples for an interval",
    ),
    _cold("samples", "Samples", "Samples kept.", read="speed.timing.samples_us", then=len),
    _cold("launches_per_sample", "Launches each", "Back-to-back launches that one sample is the mean of."),
    _cold("dropped", "Dropped", "Samples excluded because the GPU was throttled."),
    _cold(
        "throttled", "Throttled", "Samples kept although the GPU was throttled, because there were no others."
    ),
    _row(
        "warm_us",
        "Median",
        "Median of launches back to back.",
        group="L2 warm",
        unit="us",
        source="speed",
        short="Warm",
        absent="not timed warm",
    ),
    _row(
        "published_us",
        "Time",
        "As published by the kernel's authors, on their own, different GPU: context, not a target.",
        group="Authors', on their GPU",
        unit="us",
        read=published,
    ),
    _rate(
        "gflops",
        "Compute",
        "FLOPs the problem needs over the cold median.",
        unit="GFLOP/s",
        absent=_NO_ARITHMETIC,
    ),
    _rate(
        "gbps",
        "Bandwidth",
        "Minimum bytes of the problem over the cold median; not the actual traffic.",
        unit="GB/s",
    ),
    _peak(
        "pct_of_peak_compute",
        "Compute",
        "Compute rate over the theoretical peak at boost clock.",
        absent=f"{_NO_ARITHMETIC}, or {_NO_PEAK}",
    ),
    _peak("pct_of_peak_bandwidth", "Bandwidth", "Bandwidth over the theoretical peak.", absent=_NO_PEAK),
    _reached(
        "pct_of_copy",
        "Copy",
        "Bandwidth over that of a large device-to-device copy, measured in this run.",
        read="speed.pct_of_copy_bandwidth",
        short="Of copy",
        absent="no copy bandwidth was measured",
    ),
    _peak(
        "pct_of_limit",
        "Of peak",
        "Of the theoretical peak for this size: bandwidth or compute, whichever limits.",
        absent="the device's theoretical peak is unknown",
    ),
    _reached(
        "pct_of_measured_limit",
        "Of measured peak",
        "Of the measured peak for this size: the rates that small kernels reached on this device.",
        absent="no such rates were measured on this device",
    ),
    _bound(
        "bound_by",
        "Bound by",
        "The part of the GPU that needs longest for what the kernel asks of it, by exact counts.",
        unit="text",
        read="limits.binding.short",
    ),
    _bound(
        "model_us",
        "Modelled",
        "The time that a model of the SM gives for its machine code and counts: not measured.",
        read="model.median_us",
        phrase="modelled time",
    ),
    *(
        _bound(
            f"model_{end}_us",
            f"Modelled, {what}",
            f"What it takes at {what} by the model's error: not measured.",
            read=f"model.{end}_us",
        )
        for end, what in (("low", "least"), ("high", "most"))
    ),
    _bound(
        "bound_us",
        "At least",
        "The time that the busiest part needs at its highest rate: no launch can take less.",
        read="limits.least_us",
    ),
    _bound(
        "pct_of_bound",
        "Of bound",
        "That time as a share of the measured one: 100 % is all that this kernel's counts allow.",
        unit="%",
        read="limits.share_pct",
    ),
    _ladder(
        "gain",
        "Gain",
        "How many times as fast as the rung it is compared with; ≈ is within the noise.",
        absent="there is no rung to compare it with",
    ),
    _ladder(
        "vs_reference",
        "vs reference",
        "How many times as fast as the fastest reference on this GPU.",
        absent=_COPIES,
    ),
    _ladder("vs_fastest", "vs fastest", "How many times as fast as the fastest here.", absent=_COPIES),
    _held("registers_per_thread", "Registers", "Registers per thread.", unit="registers"),
    _held("static_shared_bytes", "Static shared", "Static shared memory of one block."),
    _held("dynamic_shared_bytes", "Dynamic shared", "Dynamic shared memory of one block."),
    _held(
        "shared_bytes", "Shared", "Shared memory of one block, static and dynamic.", phrase="shared memory"
    ),
    _held(
        "spill_bytes",
        "Spills",
        "Bytes of registers spilled to local memory, per thread.",
    ),
    _occupancy(
        "theoretical_occupancy_pct",
        "Theoretical",
        "Resident warps over the SM's limit.",
        read="occupancy.theoretical_pct",
        short="Occupancy",
    ),
    _occupancy(
        "achieved_occupancy_pct", "Achieved", "Measured by Nsight Compute.", read="occupancy.achieved_pct"
    ),
    _occupancy(
        "occupancy_limiter",
        "Limiter",
        "What limits the resident blocks.",
        unit="text",
        read="occupancy.limiter",
        phrase="occupancy limiter",
    ),
    _launch(
        "block_threads",
        "Threads",
        "Threads of one block.",
        unit="threads",
        read=lambda subject: Reading(prod(subject.case.block)),
        phrase="threads per block",
    ),
    _launch(
        "grid_blocks",
        "Blocks",
        "Blocks of the grid.",
        unit="blocks",
        read=of_grid(lambda of: blocks_of(of.case)),
        phrase="blocks in the grid",
    ),
    _launch(
        "waves",
        "Waves",
        "How often the grid fills the device; below 1, some SMs get no block.",
        unit="number",
        read=of_grid(lambda of: waves(of.run, of.case)),
    ),
    _check(
        "max_rel_error",
        "Max error",
        "Largest error of any element, relative to its magnitude, against a float64 reference.",
        source="verification",
        absent="the result holds no number",
    ),
    _check("error_bound", "Bound", "Largest error that passes.", read="verification.bound"),
    _traffic(
        "sector_ratio",
        "Traffic",
        "Bytes of global sectors requested over the minimum; before the caches.",
        unit="×",
        read=of_counts(counts.sector_ratio),
    ),
    _traffic(
        "shared_wavefronts_per_step",
        "Shared/step",
        "Shared-memory passes per warp-wide step of useful work.",
        unit="number",
        read=_per_step(*counts.SHARED_WAVEFRONTS),
        phrase="shared-memory passes a step",
    ),
    _traffic(
        "bank_conflicts",
        "Conflicts",
        "Extra shared-memory passes.",
        unit="wavefronts",
        read=_sum(*counts.BANK_CONFLICTS),
    ),
    _traffic(
        "bank_conflicts_per_step",
        "Conflicts / step",
        "Extra shared-memory passes per warp-wide step of useful work.",
        unit="number",
        read=_per_step(*counts.BANK_CONFLICTS),
    ),
    _traffic(
        "global_sectors",
        "Global sectors",
        "Sectors of global loads, stores, copies and atomics together.",
        unit="sectors",
        read=_sum(*counts.GLOBAL_SECTORS),
    ),
    _traffic(
        "global_requests",
        "Global requests",
        "Warp-level accesses to global memory together.",
        unit="requests",
        read=_sum(*counts.GLOBAL_REQUESTS),
    ),
    _traffic(
        "shared_wavefronts",
        "Shared wavefronts",
        "Passes through shared memory of loads, stores and copies together.",
        unit="wavefronts",
        read=_sum(*counts.SHARED_WAVEFRONTS),
    ),
    _traffic(
        "address_conflicts",
        "Bank conflicts",
        "Extra passes that the addresses of loads and stores cause, without what hardware adds to them.",
        unit="wavefronts",
        read=of_counts(lambda case: counts.address_conflicts(case, "load", "store")),
    ),
)


def counter_figure(name: str) -> Figure:
    """The figure of one counter; a foreign one is shown by its own name."""
    row = describe(name)
    return Figure(
        *(name, row.label, row.column or row.label, row.short, row.meaning, of_counter(name)),
        *("Counters", row.unit),
    )


#: By key. A counter that shares its key with a figure of the compiler's or the occupancy's gives way to it.
FIGURES: dict[str, Figure] = {
    **{name: counter_figure(name) for name in COUNTERS},
    **{figure.key: figure for figure in _FIGURES},
}


def headline_rate(run: Run, case: Measurement) -> Figure:
    """The rate that a case is judged by: GFLOP/s or GB/s, as its operation says."""
    flops = run.operations[case.problem.operation].work.rate == "flops"
    return FIGURES["gflops" if flops else "gbps"]
