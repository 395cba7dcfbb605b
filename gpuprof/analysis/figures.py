# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure that a report shows of a case, defined once: its names, its unit, and how it follows.

A figure is read from a `Subject`, a case within its run and perhaps within its ladder; where it does not
exist the reading says why. Renderers choose figures by key and decide only where and how long to show them.
"""

from math import prod

from gpuprof.analysis import counters, readings
from gpuprof.analysis.figure import Figure, Read, Reading
from gpuprof.counters import COUNTERS, Better, describe
from gpuprof.results import Measurement, Run


def _figure(
    key: str,
    label: str,
    group: str,
    unit: str,
    meaning: str,
    read: Read,
    *,
    short: str = "",
    phrase: str = "",
    better: Better = "neither",
    telling: float = 1.0,
) -> Figure:
    short = short or label
    phrase = phrase or short[:1].lower() + short[1:]
    return Figure(key, label, group, short, phrase, unit, meaning, read, better, telling)


_TIME = "Time, L2 cold"
_PEAK = "% of theoretical peak"
_RESOURCES, _OCCUPANCY, _CHECK, _LADDER = "Resources", "Occupancy", "Verification", "Ladder"
_BOUND = "Bound, from exact counts"
_TRAFFIC = "Global traffic and shared memory"

_TIMES = (
    _figure(
        "median_us",
        "Median",
        _TIME,
        "us",
        "Median of the samples, L2 flushed before each.",
        readings.of_speed(lambda speed: speed.median_us),
        short="Time",
        better="lower",
    ),
    _figure(
        "p05_us", "p05", _TIME, "us", "5th percentile.", readings.of_speed(lambda speed: speed.timing.p05_us)
    ),
    _figure(
        "p95_us", "p95", _TIME, "us", "95th percentile.", readings.of_speed(lambda speed: speed.timing.p95_us)
    ),
    _figure(
        "ci95_pct",
        "95 % CI",
        _TIME,
        "±%",
        "Half width of the median's confidence interval.",
        readings.interval,
        short="±95 %",
    ),
    _figure(
        "samples",
        "Samples",
        _TIME,
        "",
        "Samples kept.",
        readings.of_speed(lambda speed: len(speed.timing.samples_us)),
    ),
    _figure(
        "launches_per_sample",
        "Launches each",
        _TIME,
        "",
        "Back-to-back launches that one sample is the mean of.",
        readings.of_speed(lambda speed: speed.timing.launches_per_sample),
    ),
    _figure(
        "dropped",
        "Dropped",
        _TIME,
        "",
        "Samples excluded because the GPU was throttled.",
        readings.of_speed(lambda speed: speed.timing.dropped),
    ),
    _figure(
        "throttled",
        "Throttled",
        _TIME,
        "",
        "Samples kept although the GPU was throttled, because there were no others.",
        readings.of_speed(lambda speed: speed.timing.throttled),
    ),
    _figure(
        "warm_us",
        "Median",
        "L2 warm",
        "us",
        "Median of launches back to back.",
        readings.of_speed(lambda speed: speed.warm_us, "not timed warm"),
        short="Warm",
        better="lower",
    ),
    _figure(
        "published_us",
        "Time",
        "Authors', on their GPU",
        "us",
        "As published by the kernel's authors, on their own, different GPU: context, not a target.",
        readings.published,
    ),
)
_RATES = (
    _figure(
        "gflops",
        "Compute",
        "Rate",
        "GFLOP/s",
        "FLOPs the problem needs over the cold median.",
        readings.of_speed(lambda speed: speed.gflops, readings.NO_ARITHMETIC),
        better="higher",
    ),
    _figure(
        "gbps",
        "Bandwidth",
        "Rate",
        "GB/s",
        "Minimum bytes of the problem over the cold median; not the actual traffic.",
        readings.of_speed(lambda speed: speed.gbps),
        better="higher",
    ),
    _figure(
        "pct_of_peak_compute",
        "Compute",
        _PEAK,
        "%",
        "Compute rate over the theoretical peak at boost clock.",
        readings.of_speed(
            lambda speed: speed.pct_of_peak_compute, f"{readings.NO_ARITHMETIC}, or {readings.NO_PEAK}"
        ),
        better="higher",
    ),
    _figure(
        "pct_of_peak_bandwidth",
        "Bandwidth",
        _PEAK,
        "%",
        "Bandwidth over the theoretical peak.",
        readings.of_speed(lambda speed: speed.pct_of_peak_bandwidth, readings.NO_PEAK),
        better="higher",
    ),
    _figure(
        "pct_of_copy",
        "Copy",
        "% of measured",
        "%",
        "Bandwidth over that of a large device-to-device copy, measured in this run.",
        readings.of_speed(lambda speed: speed.pct_of_copy_bandwidth, "no copy bandwidth was measured"),
        short="Of copy",
        better="higher",
    ),
    _figure(
        "pct_of_limit",
        "Of peak",
        _PEAK,
        "%",
        "Of the theoretical peak for this size: bandwidth or compute, whichever limits.",
        readings.of_speed(lambda speed: speed.pct_of_limit, "the device's theoretical peak is unknown"),
        better="higher",
    ),
    _figure(
        "pct_of_measured_limit",
        "Of measured peak",
        "% of measured",
        "%",
        "Of the measured peak for this size: the rates that small kernels reached on this device.",
        readings.of_speed(
            lambda speed: speed.pct_of_measured_limit, "no such rates were measured on this device"
        ),
        better="higher",
    ),
)
_BOUNDS = (
    _figure(
        "bound_by",
        "Bound by",
        _BOUND,
        "text",
        "The part of the GPU that needs longest for what the kernel asks of it, by exact counts.",
        readings.of_limits(lambda limits: limits.binding.short),
    ),
    _figure(
        "bound_us",
        "At least",
        _BOUND,
        "us",
        "The time that part needs at its highest rate: no launch can take less.",
        readings.of_limits(lambda limits: limits.least_us),
        better="lower",
    ),
    _figure(
        "pct_of_bound",
        "Of bound",
        _BOUND,
        "%",
        "That time as a share of the measured one: 100 % is all that this kernel's counts allow.",
        readings.of_limits(lambda limits: 100 / limits.ratio if limits.ratio else None),
        better="higher",
    ),
)
_COMPARED = (
    _figure(
        "gain",
        "Gain",
        _LADDER,
        "×",
        "How many times as fast as the rung it is compared with; ≈ is within the noise.",
        readings.of_rung(lambda rung: rung.gain, "there is no rung to compare it with"),
        better="higher",
    ),
    _figure(
        "vs_reference",
        "vs reference",
        _LADDER,
        "×",
        "How many times as fast as the fastest reference on this GPU.",
        readings.of_rung(lambda rung: rung.vs_reference, "not comparable: it only copies"),
        better="higher",
    ),
    _figure(
        "vs_fastest",
        "vs fastest",
        _LADDER,
        "×",
        "How many times as fast as the fastest here.",
        readings.of_rung(lambda rung: rung.vs_fastest, "not comparable: it only copies"),
        better="higher",
    ),
)
_HELD = (
    _figure(
        "registers_per_thread",
        "Registers",
        _RESOURCES,
        "registers",
        "Registers per thread.",
        readings.of_resources(lambda held: held.registers_per_thread),
    ),
    _figure(
        "static_shared_bytes",
        "Static shared",
        _RESOURCES,
        "bytes",
        "Static shared memory of one block.",
        readings.of_resources(lambda held: held.static_shared_bytes),
    ),
    _figure(
        "dynamic_shared_bytes",
        "Dynamic shared",
        _RESOURCES,
        "bytes",
        "Dynamic shared memory of one block.",
        readings.of_resources(lambda held: held.dynamic_shared_bytes),
    ),
    _figure(
        "shared_bytes",
        "Shared",
        _RESOURCES,
        "bytes",
        "Shared memory of one block, static and dynamic.",
        readings.of_resources(lambda held: held.shared_bytes),
        phrase="shared memory",
    ),
    _figure(
        "spill_bytes",
        "Spills",
        _RESOURCES,
        "bytes",
        "Bytes of registers spilled to local memory, per thread.",
        readings.of_resources(lambda held: held.spill_bytes),
        better="lower",
        telling=3.0,
    ),
    _figure(
        "theoretical_occupancy_pct",
        "Theoretical",
        _OCCUPANCY,
        "%",
        "Resident warps over the SM's limit.",
        readings.of_occupancy(lambda held: held.theoretical_pct),
        short="Occupancy",
        telling=2.0,
    ),
    _figure(
        "achieved_occupancy_pct",
        "Achieved",
        _OCCUPANCY,
        "%",
        "Measured by Nsight Compute.",
        readings.of_occupancy(
            lambda held: held.achieved_pct,
            lambda held: held.achieved_reason,
        ),
    ),
    _figure(
        "occupancy_limiter",
        "Limiter",
        _OCCUPANCY,
        "text",
        "What limits the resident blocks.",
        readings.of_occupancy(lambda held: held.limiter),
    ),
    _figure(
        "block_threads",
        "Threads",
        "Launch",
        "threads",
        "Threads of one block.",
        lambda subject: Reading(prod(subject.case.block)),
        phrase="threads per block",
    ),
    _figure(
        "grid_blocks",
        "Blocks",
        "Launch",
        "blocks",
        "Blocks of the grid.",
        readings.grid,
        phrase="blocks in the grid",
    ),
    _figure(
        "waves",
        "Waves",
        "Launch",
        "number",
        "How often the grid fills the device; below 1, some SMs get no block.",
        readings.waves_filled,
    ),
)
_CHECKS = (
    _figure(
        "max_rel_error",
        "Max error",
        _CHECK,
        "error",
        "Largest error of any element, relative to its magnitude, against a float64 reference.",
        readings.error,
    ),
    _figure("error_bound", "Bound", _CHECK, "error", "Largest error that passes.", readings.error_bound),
)
_MADE_OF_COUNTERS = (
    _figure(
        "sector_ratio",
        "Traffic",
        _TRAFFIC,
        "×",
        "Bytes of global sectors requested over the minimum; before the caches.",
        readings.of_counters(counters.sector_ratio),
        better="lower",
    ),
    _figure(
        "shared_wavefronts_per_step",
        "Shared/step",
        _TRAFFIC,
        "number",
        "Shared-memory passes per warp-wide step of useful work.",
        readings.of_counters(counters.shared_wavefronts_per_step),
        phrase="shared-memory passes a step",
        better="lower",
    ),
    _figure(
        "bank_conflicts",
        "Conflicts",
        _TRAFFIC,
        "wavefronts",
        "Extra shared-memory passes.",
        readings.of_counters(counters.bank_conflicts),
        better="lower",
    ),
    _figure(
        "bank_conflicts_per_step",
        "Conflicts / step",
        _TRAFFIC,
        "number",
        "Extra shared-memory passes per warp-wide step of useful work.",
        readings.of_counters(counters.bank_conflicts_per_step),
        better="lower",
    ),
    _figure(
        "global_sectors",
        "Global sectors",
        _TRAFFIC,
        "sectors",
        "Sectors of global loads, stores, copies and atomics together.",
        readings.of_counters(counters.global_sectors),
        better="lower",
        telling=2.0,
    ),
    _figure(
        "global_requests",
        "Global requests",
        _TRAFFIC,
        "requests",
        "Warp-level accesses to global memory together.",
        readings.of_counters(lambda case: counters.total(case, *counters.GLOBAL_REQUESTS)),
        better="lower",
        telling=0.5,
    ),
    _figure(
        "shared_wavefronts",
        "Shared wavefronts",
        _TRAFFIC,
        "wavefronts",
        "Passes through shared memory of loads, stores and copies together.",
        readings.of_counters(lambda case: counters.total(case, *counters.SHARED_WAVEFRONTS)),
        better="lower",
    ),
    _figure(
        "address_conflicts",
        "Bank conflicts",
        _TRAFFIC,
        "wavefronts",
        "Extra passes that the addresses of loads and stores cause, without what hardware adds to them.",
        readings.of_counters(lambda case: counters.address_conflicts(case, "load", "store")),
        better="lower",
        telling=2.0,
    ),
)
#: How much a change of a counter explains of the time, where it is more or less than usual.
_TELLING = {
    "global_load_efficiency_pct": 4.0,
    "global_store_efficiency_pct": 4.0,
    "barriers": 0.3,
    "dram_read_bytes": 0.5,
}
#: Short names that differ from a counter's own: a column has little room.
_SHORT = {"global_load_efficiency_pct": "Load eff.", "global_store_efficiency_pct": "Store eff."}


def counter_figure(name: str) -> Figure:
    """The figure of one counter; a foreign one is shown by its own name."""
    row = describe(name)
    return Figure(
        key=name,
        label=row.label,
        group="Counters",
        short=_SHORT.get(name, row.label),
        phrase=row.short,
        unit=row.unit,
        meaning=row.meaning,
        read=readings.of_counter(name),
        better=row.better,
        telling=_TELLING.get(name, 1.0),
    )


_OWN = (*_TIMES, *_RATES, *_BOUNDS, *_COMPARED, *_HELD, *_CHECKS, *_MADE_OF_COUNTERS)
#: By key. A counter that shares its key with a figure of the compiler's or the occupancy's gives way to it.
FIGURES: dict[str, Figure] = {
    **{name: counter_figure(name) for name in COUNTERS},
    **{figure.key: figure for figure in _OWN},
}


def headline_rate(run: Run, case: Measurement) -> Figure:
    """The rate that a case is judged by: GFLOP/s or GB/s, as its operation says."""
    flops = run.operations[case.problem.operation].work.rate == "flops"
    return FIGURES["gflops" if flops else "gbps"]
