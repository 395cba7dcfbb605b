# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure that a report shows of a case, defined once: its names, its unit, and how it follows.

Where a figure does not exist, its reading says why. Renderers choose figures by key and decide only where and
how long to show them.
"""

from functools import partial
from math import prod

from gpuprof.analysis import counts
from gpuprof.analysis.figure import (
    Figure,
    Read,
    Reading,
    grid,
    interval,
    of_counter,
    of_counts,
    of_path,
    published,
    sample_count,
    waves_filled,
)
from gpuprof.counters import COUNTERS, Better, describe
from gpuprof.results import Measurement, Run


def _row(
    key: str,
    label: str,
    group: str,
    unit: str,
    read: str | Read,
    meaning: str,
    *,
    short: str = "",
    phrase: str = "",
    better: Better = "neither",
    telling: float = 1.0,
    absent: str = "",
) -> Figure:
    """A figure; `read` may be a path as of `of_path`, and `absent` its reason."""
    short = short or label
    phrase = phrase or short[:1].lower() + short[1:]
    how = of_path(read, absent) if isinstance(read, str) else read
    return Figure(key, label, group, short, phrase, unit, meaning, how, better, telling)


_higher, _lower = (partial(_row, better=better) for better in ("higher", "lower"))


def _sum(*names: str) -> Read:
    return of_counts(lambda case: counts.total(case, *names))


def _per_step(*names: str) -> Read:
    return of_counts(lambda case: counts.per_step(case, *names))


_COLD, _RATE, _LADDER, _LAUNCH, _CHECK = "Time, L2 cold", "Rate", "Ladder", "Launch", "Verification"
_PEAK, _MEASURED, _BOUND = "% of theoretical peak", "% of measured", "Bound, from exact counts"
_HELD, _OCCUPANCY, _TRAFFIC = "Resources", "Occupancy", "Global traffic and shared memory"
_NO_ARITHMETIC, _NO_PEAK = "this problem has no arithmetic", "the device's peak is unknown"
_COPIES = "not comparable: it only copies"

_FIGURES = (
    _lower(
        "median_us",
        "Median",
        _COLD,
        "us",
        "speed.median_us",
        "Median of the samples, L2 flushed before each.",
        short="Time",
    ),
    _row("p05_us", "p05", _COLD, "us", "speed.timing.p05_us", "5th percentile."),
    _row("p95_us", "p95", _COLD, "us", "speed.timing.p95_us", "95th percentile."),
    _row(
        "ci95_pct",
        "95 % CI",
        _COLD,
        "±%",
        interval,
        "Half width of the median's confidence interval.",
        short="±95 %",
    ),
    _row("samples", "Samples", _COLD, "", sample_count, "Samples kept."),
    _row(
        "launches_per_sample",
        "Launches each",
        _COLD,
        "",
        "speed.timing.launches_per_sample",
        "Back-to-back launches that one sample is the mean of.",
    ),
    _row(
        "dropped",
        "Dropped",
        _COLD,
        "",
        "speed.timing.dropped",
        "Samples excluded because the GPU was throttled.",
    ),
    _row(
        "throttled",
        "Throttled",
        _COLD,
        "",
        "speed.timing.throttled",
        "Samples kept although the GPU was throttled, because there were no others.",
    ),
    _lower(
        "warm_us",
        "Median",
        "L2 warm",
        "us",
        "speed.warm_us",
        "Median of launches back to back.",
        short="Warm",
        absent="not timed warm",
    ),
    _row(
        "published_us",
        "Time",
        "Authors', on their GPU",
        "us",
        published,
        "As published by the kernel's authors, on their own, different GPU: context, not a target.",
    ),
    _higher(
        "gflops",
        "Compute",
        _RATE,
        "GFLOP/s",
        "speed.gflops",
        "FLOPs the problem needs over the cold median.",
        absent=_NO_ARITHMETIC,
    ),
    _higher(
        "gbps",
        "Bandwidth",
        _RATE,
        "GB/s",
        "speed.gbps",
        "Minimum bytes of the problem over the cold median; not the actual traffic.",
    ),
    _higher(
        "pct_of_peak_compute",
        "Compute",
        _PEAK,
        "%",
        "speed.pct_of_peak_compute",
        "Compute rate over the theoretical peak at boost clock.",
        absent=f"{_NO_ARITHMETIC}, or {_NO_PEAK}",
    ),
    _higher(
        "pct_of_peak_bandwidth",
        "Bandwidth",
        _PEAK,
        "%",
        "speed.pct_of_peak_bandwidth",
        "Bandwidth over the theoretical peak.",
        absent=_NO_PEAK,
    ),
    _higher(
        "pct_of_copy",
        "Copy",
        _MEASURED,
        "%",
        "speed.pct_of_copy_bandwidth",
        "Bandwidth over that of a large device-to-device copy, measured in this run.",
        short="Of copy",
        absent="no copy bandwidth was measured",
    ),
    _higher(
        "pct_of_limit",
        "Of peak",
        _PEAK,
        "%",
        "speed.pct_of_limit",
        "Of the theoretical peak for this size: bandwidth or compute, whichever limits.",
        absent="the device's theoretical peak is unknown",
    ),
    _higher(
        "pct_of_measured_limit",
        "Of measured peak",
        _MEASURED,
        "%",
        "speed.pct_of_measured_limit",
        "Of the measured peak for this size: the rates that small kernels reached on this device.",
        absent="no such rates were measured on this device",
    ),
    _row(
        "bound_by",
        "Bound by",
        _BOUND,
        "text",
        "limits.binding.short",
        "The part of the GPU that needs longest for what the kernel asks of it, by exact counts.",
    ),
    _lower(
        "model_us",
        "Modelled",
        _BOUND,
        "us",
        "model.median_us",
        "The time that a model of the SM gives for its machine code and counts: not measured.",
        phrase="modelled time",
    ),
    *(
        _lower(
            f"model_{end}_us",
            f"Modelled, {what}",
            _BOUND,
            "us",
            f"model.{end}_us",
            f"What it takes at {what} by the model's error: not measured.",
        )
        for end, what in (("low", "least"), ("high", "most"))
    ),
    _lower(
        "bound_us",
        "At least",
        _BOUND,
        "us",
        "limits.least_us",
        "The time that part needs at its highest rate: no launch can take less.",
    ),
    _higher(
        "pct_of_bound",
        "Of bound",
        _BOUND,
        "%",
        "limits.share_pct",
        "That time as a share of the measured one: 100 % is all that this kernel's counts allow.",
    ),
    _higher(
        "gain",
        "Gain",
        _LADDER,
        "×",
        "rung.gain",
        "How many times as fast as the rung it is compared with; ≈ is within the noise.",
        absent="there is no rung to compare it with",
    ),
    _higher(
        "vs_reference",
        "vs reference",
        _LADDER,
        "×",
        "rung.vs_reference",
        "How many times as fast as the fastest reference on this GPU.",
        absent=_COPIES,
    ),
    _higher(
        "vs_fastest",
        "vs fastest",
        _LADDER,
        "×",
        "rung.vs_fastest",
        "How many times as fast as the fastest here.",
        absent=_COPIES,
    ),
    _row(
        "registers_per_thread",
        "Registers",
        _HELD,
        "registers",
        "resources.registers_per_thread",
        "Registers per thread.",
    ),
    _row(
        "static_shared_bytes",
        "Static shared",
        _HELD,
        "bytes",
        "resources.static_shared_bytes",
        "Static shared memory of one block.",
    ),
    _row(
        "dynamic_shared_bytes",
        "Dynamic shared",
        _HELD,
        "bytes",
        "resources.dynamic_shared_bytes",
        "Dynamic shared memory of one block.",
    ),
    _row(
        "shared_bytes",
        "Shared",
        _HELD,
        "bytes",
        "resources.shared_bytes",
        "Shared memory of one block, static and dynamic.",
        phrase="shared memory",
    ),
    _lower(
        "spill_bytes",
        "Spills",
        _HELD,
        "bytes",
        "resources.spill_bytes",
        "Bytes of registers spilled to local memory, per thread.",
        telling=3.0,
    ),
    _row(
        "theoretical_occupancy_pct",
        "Theoretical",
        _OCCUPANCY,
        "%",
        "occupancy.theoretical_pct",
        "Resident warps over the SM's limit.",
        short="Occupancy",
        telling=2.0,
    ),
    _row(
        "achieved_occupancy_pct",
        "Achieved",
        _OCCUPANCY,
        "%",
        "occupancy.achieved_pct",
        "Measured by Nsight Compute.",
    ),
    _row(
        "occupancy_limiter",
        "Limiter",
        _OCCUPANCY,
        "text",
        "occupancy.limiter",
        "What limits the resident blocks.",
    ),
    _row(
        "block_threads",
        "Threads",
        _LAUNCH,
        "threads",
        lambda subject: Reading(prod(subject.case.block)),
        "Threads of one block.",
        phrase="threads per block",
    ),
    _row(
        "grid_blocks", "Blocks", _LAUNCH, "blocks", grid, "Blocks of the grid.", phrase="blocks in the grid"
    ),
    _row(
        "waves",
        "Waves",
        _LAUNCH,
        "number",
        waves_filled,
        "How often the grid fills the device; below 1, some SMs get no block.",
    ),
    _row(
        "max_rel_error",
        "Max error",
        _CHECK,
        "error",
        "verification.max_rel_error",
        "Largest error of any element, relative to its magnitude, against a float64 reference.",
        absent="the result holds no number",
    ),
    _row("error_bound", "Bound", _CHECK, "error", "verification.bound", "Largest error that passes."),
    _lower(
        "sector_ratio",
        "Traffic",
        _TRAFFIC,
        "×",
        of_counts(counts.sector_ratio),
        "Bytes of global sectors requested over the minimum; before the caches.",
    ),
    _lower(
        "shared_wavefronts_per_step",
        "Shared/step",
        _TRAFFIC,
        "number",
        _per_step(*counts.SHARED_WAVEFRONTS),
        "Shared-memory passes per warp-wide step of useful work.",
        phrase="shared-memory passes a step",
    ),
    _lower(
        "bank_conflicts",
        "Conflicts",
        _TRAFFIC,
        "wavefronts",
        _sum(*counts.BANK_CONFLICTS),
        "Extra shared-memory passes.",
    ),
    _lower(
        "bank_conflicts_per_step",
        "Conflicts / step",
        _TRAFFIC,
        "number",
        _per_step(*counts.BANK_CONFLICTS),
        "Extra shared-memory passes per warp-wide step of useful work.",
    ),
    _lower(
        "global_sectors",
        "Global sectors",
        _TRAFFIC,
        "sectors",
        _sum(*counts.GLOBAL_SECTORS),
        "Sectors of global loads, stores, copies and atomics together.",
        telling=2.0,
    ),
    _lower(
        "global_requests",
        "Global requests",
        _TRAFFIC,
        "requests",
        _sum(*counts.GLOBAL_REQUESTS),
        "Warp-level accesses to global memory together.",
        telling=0.5,
    ),
    _lower(
        "shared_wavefronts",
        "Shared wavefronts",
        _TRAFFIC,
        "wavefronts",
        _sum(*counts.SHARED_WAVEFRONTS),
        "Passes through shared memory of loads, stores and copies together.",
    ),
    _lower(
        "address_conflicts",
        "Bank conflicts",
        _TRAFFIC,
        "wavefronts",
        of_counts(lambda case: counts.address_conflicts(case, "load", "store")),
        "Extra passes that the addresses of loads and stores cause, without what hardware adds to them.",
        telling=2.0,
    ),
)


def counter_figure(name: str) -> Figure:
    """The figure of one counter; a foreign one is shown by its own name."""
    row = describe(name)
    return Figure(
        name,
        row.label,
        "Counters",
        row.column or row.label,
        row.short,
        row.unit,
        row.meaning,
        of_counter(name),
        row.better,
        row.telling,
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
