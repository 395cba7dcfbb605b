# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure of a case as a table cell: human text, the raw value it sorts by, or why it is missing."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuprof.analysis import counters, numbers
from gpuprof.analysis.banners import is_noisy
from gpuprof.analysis.groups import format_extent, kernel_record
from gpuprof.analysis.references import on_host
from gpuprof.analysis.speed import Speed, speed_of, why_no_speed
from gpuprof.analysis.status import status_of
from gpuprof.results import Measurement, Resources, Run


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Args:
        text: What is shown; None when it was not measured.
        sort: Raw value, for sorting.
        reason: Why `text` is None.
    """

    text: str | None
    sort: float | str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of every case.

    Args:
        key: Stable name.
        label: Heading.
        group: Heading over neighbouring columns.
        meaning: One sentence for the reader.
        read: Makes the cell of a case.
        numeric: False for text, which aligns left.
        metric: Nsight Compute's name of a counter.
    """

    key: str
    label: str
    group: str
    meaning: str
    read: Callable[[Run, Measurement], Cell]
    numeric: bool = True
    metric: str = ""

    @property
    def is_counter(self) -> bool:
        """True for an event count, of which 0 everywhere is worth no column."""
        return self.group in (_BY_BOTH, *_COUNTED_BY.values(), *_PREFIXED.values())

    @property
    def hint(self) -> str:
        """The meaning, and Nsight Compute's name where there is one."""
        return f"{self.meaning}\n{self.metric}" if self.metric else self.meaning


#: Why a reference has no share of the GPU's peaks.
ON_HOST = "it ran on the CPU"


def missing(reason: str | None) -> Cell:
    """A cell that was not measured."""
    return Cell(None, None, reason or "no reason was recorded")


def format_block(case: Measurement, *, brief: bool = False) -> str:
    """Block and tile parameters, for example `16x16 unroll_m=2`; a library tells none.

    Args:
        case: The case. A kernel that was chosen for it is named first, for example `→ splitk_8x32 256x1`.
        brief: Whether to leave out a chosen kernel's parameters, which are always those of its header.
    """
    if not case.has_launch:
        return "–"
    chosen = [f"→ {case.chosen}"] if case.chosen else []
    params = [f"{name}={value}" for name, value in case.params.items()] if not (chosen and brief) else []
    return " ".join([*chosen, format_extent(case.block), *params])


def block_phrase(case: Measurement) -> str:
    """The same for a place without a heading: behind the word block, or behind an arrow."""
    return format_block(case) if case.chosen else f"block {format_block(case)}"


def format_outcome(run: Run, case: Measurement) -> str:
    """Symbol and word."""
    status = status_of(run, case)
    return f"{status.symbol} {status.word}"


def format_interval(ci95_rel: float | None) -> str:
    """Half width of the 95 % confidence interval as a percentage."""
    return "n/a" if ci95_rel is None else f"±{numbers.percent(100 * ci95_rel, 2)}"


def format_error(value: float) -> str:
    """An error with two significant digits."""
    return "0" if value == 0 else f"{value:.1e}"


def _speed(
    read: Callable[[Speed], float | None], write: Callable[[float], str], absent: str
) -> Callable[[Run, Measurement], Cell]:
    def cell(run: Run, case: Measurement) -> Cell:
        speed = speed_of(run, case)
        if speed is None:
            return missing(why_no_speed(run, case))
        value = read(speed)
        if value is None and on_host(run, case):
            return missing(ON_HOST)
        return missing(absent) if value is None else Cell(write(value), value)

    return cell


def _resource(
    read: Callable[[Resources], int], write: Callable[[float], str]
) -> Callable[[Run, Measurement], Cell]:
    def cell(_run: Run, case: Measurement) -> Cell:
        if case.resources is None:
            return missing(case.resources_reason or case.reason)
        return Cell(write(read(case.resources)), read(case.resources))

    return cell


def _cold(run: Run, case: Measurement) -> Cell:
    speed = speed_of(run, case)
    if speed is None:
        return missing(why_no_speed(run, case))
    mark = " ~" if is_noisy(case) else ""
    return Cell(numbers.time_us(speed.median_us, 4) + mark, speed.median_us)


def _interval(run: Run, case: Measurement) -> Cell:
    speed = speed_of(run, case)
    if speed is None:
        return missing(why_no_speed(run, case))
    width = speed.timing.ci95_rel
    return (
        missing("too few samples for an interval") if width is None else Cell(format_interval(width), width)
    )


def _occupancy(_run: Run, case: Measurement) -> Cell:
    if case.occupancy is None:
        return missing(case.occupancy_reason or case.reason)
    return Cell(numbers.percent(case.occupancy.theoretical_pct), case.occupancy.theoretical_pct)


def _limiter(_run: Run, case: Measurement) -> Cell:
    if case.occupancy is None:
        return missing(case.occupancy_reason or case.reason)
    return Cell(case.occupancy.limiter, case.occupancy.limiter)


def _achieved(_run: Run, case: Measurement) -> Cell:
    if case.occupancy is None:
        return missing(case.occupancy_reason or case.reason)
    achieved = case.occupancy.achieved_pct
    if achieved is None:
        return missing(case.occupancy.achieved_reason)
    return Cell(numbers.percent(achieved), achieved)


def _error(_run: Run, case: Measurement) -> Cell:
    check = case.verification
    if check is None:
        return missing(case.verification_reason or case.reason)
    if check.max_rel_error is None:
        return missing(check.detail or "the result holds no number")
    return Cell(format_error(check.max_rel_error), check.max_rel_error)


def _bound(_run: Run, case: Measurement) -> Cell:
    if case.verification is None:
        return missing(case.verification_reason or case.reason)
    return Cell(format_error(case.verification.bound), case.verification.bound)


def counter_cell(name: str) -> Callable[[Run, Measurement], Cell]:
    """What makes the cell of one counter."""

    def cell(_run: Run, case: Measurement) -> Cell:
        counter = counters.held(case).get(name)
        if counter is None:
            return missing(case.counters_reason or case.reason or "this case has no such counter")
        if counter.value is None:
            return missing(counter.reason)
        return Cell(numbers.counter(counter.value, counter.unit), counter.value)

    return cell


_COUNTED_BY = {"ncu": "Counters, by Nsight Compute", "sim": "Counters, by the SIMT executor"}
_BY_BOTH = "Counters"
_PREFIXED = {
    "sol_": "Share of peak, by Nsight Compute",
    "stall_": "Cycles per issued instruction of a warp, by Nsight Compute",
}
_NO_ARITHMETIC = "this problem has no arithmetic"
_NO_PEAK = "the device's peak is unknown"
_NO_COPY = "no copy bandwidth was measured"

CASE = (
    Column(
        "kernel", "Kernel", "Case", "The kernel's id.", lambda _, case: Cell(case.kernel, case.kernel), False
    ),
    Column(
        "size",
        "Size",
        "Case",
        "The problem's size, as typed.",
        lambda _, case: Cell(case.problem.label, case.problem.min_bytes),
        False,
    ),
    Column(
        "block",
        "Block",
        "Case",
        "Threads per block, and tile parameters where there are any.",
        lambda _, case: Cell(format_block(case), case.block[0] * 4096 + case.block[1]),
        False,
    ),
    Column(
        "outcome",
        "Outcome",
        "Case",
        "How the case ended.",
        lambda run, case: Cell(format_outcome(run, case), case.outcome),
        False,
    ),
)
TIME = (
    Column("cold", "Median", "Time, L2 cold", "Median of the samples, L2 flushed before each.", _cold),
    Column(
        "p05",
        "p05",
        "Time, L2 cold",
        "5th percentile.",
        _speed(lambda speed: speed.timing.p05_us, lambda value: numbers.time_us(value, 4), ""),
    ),
    Column(
        "p95",
        "p95",
        "Time, L2 cold",
        "95th percentile.",
        _speed(lambda speed: speed.timing.p95_us, lambda value: numbers.time_us(value, 4), ""),
    ),
    Column("ci", "95 % CI", "Time, L2 cold", "Half width of the median's confidence interval.", _interval),
    Column(
        "samples",
        "Samples",
        "Time, L2 cold",
        "Samples kept.",
        _speed(lambda speed: len(speed.timing.samples_us), numbers.count, ""),
    ),
    Column(
        "launches",
        "Launches each",
        "Time, L2 cold",
        "Back-to-back launches that one sample is the mean of.",
        _speed(lambda speed: speed.timing.launches_per_sample, numbers.count, ""),
    ),
    Column(
        "dropped",
        "Dropped",
        "Time, L2 cold",
        "Samples set aside because the GPU was throttled.",
        _speed(lambda speed: speed.timing.dropped, numbers.count, ""),
    ),
    Column(
        "throttled",
        "Throttled",
        "Time, L2 cold",
        "Samples kept although the GPU was throttled, because there were no others.",
        _speed(lambda speed: speed.timing.throttled, numbers.count, ""),
    ),
    Column(
        "warm",
        "Median",
        "L2 warm",
        "Median of launches back to back.",
        _speed(lambda speed: speed.warm_us, lambda value: numbers.time_us(value, 4), "not timed warm"),
    ),
)
RATE = (
    Column(
        "gflops",
        "Compute",
        "Rate",
        "FLOPs the problem needs over the cold median.",
        _speed(lambda speed: speed.gflops, lambda value: numbers.gflops(value, 4), _NO_ARITHMETIC),
    ),
    Column(
        "gbps",
        "Bandwidth",
        "Rate",
        "Fewest bytes the problem can move over the cold median; not the traffic that was caused.",
        _speed(lambda speed: speed.gbps, lambda value: numbers.gbps(value, 4), ""),
    ),
    Column(
        "pct_compute",
        "Compute",
        "% of theoretical peak",
        "Compute rate over the theoretical peak at boost clock.",
        _speed(lambda speed: speed.pct_of_peak_compute, numbers.percent, f"{_NO_ARITHMETIC}, or {_NO_PEAK}"),
    ),
    Column(
        "pct_bandwidth",
        "Bandwidth",
        "% of theoretical peak",
        "Bandwidth over the theoretical peak.",
        _speed(lambda speed: speed.pct_of_peak_bandwidth, numbers.percent, _NO_PEAK),
    ),
    Column(
        "pct_copy",
        "Copy",
        "% of measured",
        "Bandwidth over that of a large device-to-device copy, measured in this run.",
        _speed(lambda speed: speed.pct_of_copy_bandwidth, numbers.percent, _NO_COPY),
    ),
)
RESOURCE = (
    Column(
        "registers",
        "Registers",
        "Resources",
        "Registers per thread.",
        _resource(lambda held: held.registers_per_thread, numbers.count),
    ),
    Column(
        "static_shared",
        "Static shared",
        "Resources",
        "Static shared memory of one block.",
        _resource(lambda held: held.static_shared_bytes, numbers.size),
    ),
    Column(
        "dynamic_shared",
        "Dynamic shared",
        "Resources",
        "Dynamic shared memory of one block.",
        _resource(lambda held: held.dynamic_shared_bytes, numbers.size),
    ),
    Column(
        "spills",
        "Spills",
        "Resources",
        "Bytes of registers spilled to local memory, per thread.",
        _resource(lambda held: held.spill_bytes, numbers.size),
    ),
    Column("occupancy", "Theoretical", "Occupancy", "Resident warps over the SM's limit.", _occupancy),
    Column("achieved", "Achieved", "Occupancy", "Measured by Nsight Compute.", _achieved),
    Column("limiter", "Limiter", "Occupancy", "What keeps another block off an SM.", _limiter, False),
)
#: Of the times, those that a short table shows; the samples themselves stand beside it as a strip.
BRIEF_TIME = tuple(column for column in TIME if column.key in ("cold", "ci", "warm"))
CHECK = (
    Column(
        "error",
        "Max error",
        "Verification",
        "Largest error of any element, relative to its magnitude, against a float64 reference.",
        _error,
    ),
    Column("bound", "Bound", "Verification", "Largest error that passes.", _bound),
)


def _published(run: Run, case: Measurement) -> Cell:
    for figure in kernel_record(run, case.kernel).published:
        if figure.size == case.problem.label and figure.time_ms is not None:
            return Cell(numbers.time_us(figure.time_ms * 1e3, 4), figure.time_ms)
    return missing("its authors published no time for this size")


PUBLISHED = Column(
    "published",
    "Time",
    "Authors', on THEIR GPU",
    "As published by the kernel's authors, on their own, different GPU: context, not a target.",
    _published,
)


def counter_columns(cases: tuple[Measurement, ...]) -> tuple[Column, ...]:
    """One column per counter that occurs, under a heading that says who counted."""
    columns = []
    for name in counters.names_in(cases):
        held = [found[name] for case in cases if name in (found := counters.held(case))]
        sources = {counter.source for counter in held}
        prefix = next((prefix for prefix in _PREFIXED if name.startswith(prefix)), None)
        group = _PREFIXED[prefix] if prefix else _COUNTED_BY[sources.pop()] if len(sources) == 1 else _BY_BOTH
        info = counters.info(name)
        label = info.label.removesuffix(" speed of light").removeprefix("Stall: ")
        metrics = dict.fromkeys(counter.metric for counter in held if counter.metric)
        columns.append(
            Column(name, label, group, info.meaning, counter_cell(name), metric=", ".join(metrics))
        )
    order = [_BY_BOTH, *_COUNTED_BY.values(), *_PREFIXED.values()]
    return tuple(sorted(columns, key=lambda column: order.index(column.group)))


def all_columns(run: Run, cases: tuple[Measurement, ...]) -> tuple[Column, ...]:
    """Every figure a case can have; others' times stand only beside times of our own."""
    published = (PUBLISHED,) if run.backend == "gpu" else ()
    return CASE + TIME + RATE + RESOURCE + CHECK + counter_columns(cases) + published
