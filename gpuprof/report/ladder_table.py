# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladder as a table: one row per rung, with what changed and what that did."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuprof.analysis import counters, numbers
from gpuprof.analysis.banners import is_noisy
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.references import on_host
from gpuprof.analysis.speed import why_no_speed
from gpuprof.analysis.status import status_of
from gpuprof.analysis.verdict import clues_of
from gpuprof.report.cells import ON_HOST, Cell, format_block, format_interval, missing
from gpuprof.results import Measurement, Run

_ONLY_COPIES = "not comparable: it only copies"
#: Traffic within this factor counts as equal.
_SAME_TRAFFIC = 1.001
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class RungColumn:
    """One column of the ladder's table.

    Args:
        label: Heading.
        meaning: One sentence for the reader.
        read: Makes a rung's cell.
        bar: True where the cell is a share that a small bar supports.
    """

    label: str
    meaning: str
    read: Callable[[Rung], Cell]
    bar: bool = False


def rung_columns(run: Run, group: Group, ladder: Ladder) -> tuple[RungColumn, ...]:
    """The columns between a rung's name and its explanation, by what the backend can know."""
    block = RungColumn(
        "Block",
        "Threads per block, and tile parameters; of several, the fastest.",
        # An arrow alone on its line would point at nothing.
        lambda rung: Cell(format_block(rung.case, brief=True).replace("→ ", "→\u00a0")),
    )
    if run.backend == "gpu":
        return (block, *_timed(run, group, ladder))
    return (block, *(_COUNTED if run.backend == "sim" else _COMPILED))


def explanation(run: Run, rung: Rung) -> tuple[str, ...]:
    """Why a rung stands where it stands: its reason if it has no figures, else changes, then the limiter."""
    if not status_of(run, rung.case).usable:
        return (rung.case.reason or "No reason was recorded.",)
    lines = []
    if rung.changes:
        lines.append(f"vs {rung.previous}: " + "; ".join(change.text for change in rung.changes))
    elif rung.gain is not None:
        what = "no recorded figure but the time moved" if rung.gain_is_clear else "nothing recorded moved"
        lines.append(f"vs {rung.previous}: {what}")
    moved = tuple(change.label for change in rung.changes)
    # What a change has just said needs no second mention.
    clues = [clue for clue in clues_of(rung.case) if not clue.startswith(moved)]
    if rung.verdict and rung.verdict.kind in ("memory", "compute"):
        lines.append(rung.verdict.text)
    elif rung.verdict and rung.verdict.kind == "grid":
        lines.append("; ".join([rung.verdict.text, *clues]))
    elif clues:
        lines.append("; ".join(clues))
    elif rung.verdict and not lines and not rung.is_reference:
        lines.append(rung.verdict.text)
    return tuple(lines)


def headline(run: Run, group: Group, ladder: Ladder) -> str:
    """The answer in one sentence; empty where the run cannot give one."""
    if ladder.fastest is not None:
        return _fastest(group, ladder, ladder.rung(ladder.fastest))
    if run.backend != "sim":
        return ""
    ratios = [
        (ratio, rung.kernel.id)
        for rung in ladder.rungs
        if status_of(run, rung.case).usable and not rung.is_ceiling
        for ratio in [counters.sector_ratio(rung.case)]
        if ratio is not None
    ]
    if not ratios:
        return ""
    least = min(ratio for ratio, _ in ratios)
    sharing = [kernel for ratio, kernel in ratios if ratio <= least * _SAME_TRAFFIC]
    who = ", ".join(sharing) if len(sharing) <= _MOST_NAMED else f"{len(sharing)} kernels alike"
    return f"Least global traffic: {who}, {numbers.ratio(least)} the fewest bytes possible."


def _fastest(group: Group, ladder: Ladder, rung: Rung) -> str:
    speed = rung.speed
    if speed is None:
        return ""
    flops = group.rate_is_flops and speed.gflops is not None
    rate = numbers.gflops(speed.gflops or 0.0) if flops else numbers.gbps(speed.gbps)
    chosen = f" → {rung.case.chosen}" if rung.case.chosen else ""
    parts = [f"Fastest: {rung.kernel.id}{chosen}, {numbers.time_us(speed.median_us)}, {rate}"]
    if speed.limit is not None and speed.pct_of_limit is not None:
        parts.append(f"{numbers.percent(speed.pct_of_limit)} of the {speed.limit.name}")
    if not flops and speed.pct_of_copy_bandwidth is not None:
        parts.append(f"{numbers.percent(speed.pct_of_copy_bandwidth)} of the measured copy")
    if rung.pct_of_reference is not None:
        parts.append(f"{numbers.percent(rung.pct_of_reference)} of {ladder.reference}")
    slowest = max(
        (other for other in ladder.rungs if other.speed and not other.is_reference and not other.is_ceiling),
        key=lambda other: other.speed.median_us if other.speed else 0.0,
    )
    if slowest is not rung and slowest.speed:
        factor = slowest.speed.median_us / speed.median_us
        parts.append(f"{numbers.ratio(factor)} as fast as {slowest.kernel.id}")
    return "; ".join(parts) + "."


def _timed(run: Run, group: Group, ladder: Ladder) -> tuple[RungColumn, ...]:
    flops = group.rate_is_flops

    def time(rung: Rung) -> Cell:
        if rung.speed is None:
            return missing(why_no_speed(run, rung.case))
        mark = " ~" if is_noisy(rung.case) else ""
        return Cell(
            f"{numbers.time_us(rung.speed.median_us)} {format_interval(rung.speed.timing.ci95_rel)}{mark}"
        )

    def rate(rung: Rung) -> Cell:
        if rung.speed is None:
            return missing(why_no_speed(run, rung.case))
        if flops and rung.speed.gflops is not None:
            return Cell(numbers.gflops(rung.speed.gflops))
        return Cell(numbers.gbps(rung.speed.gbps))

    def share(rung: Rung, value: float | None, absent: str) -> Cell:
        if rung.speed is None:
            return missing(why_no_speed(run, rung.case))
        return missing(absent) if value is None else Cell(numbers.percent(value), value)

    def gain(rung: Rung) -> Cell:
        if rung.speed is None:
            return missing(why_no_speed(run, rung.case))
        if rung.gain is None:
            return Cell("")
        mark = "≈" if not rung.gain_is_clear else "▲" if rung.gain > 1 else "▼"
        return Cell(f"{mark} {numbers.ratio(rung.gain)}", rung.gain)

    peak = "the device's theoretical peak is unknown"
    columns = [
        RungColumn("Time", "Cold median and its 95 % confidence interval; ~ marks a noisy one.", time),
        RungColumn("Rate", "From the cold median.", rate),
        RungColumn(
            "Of peak",
            "Of the THEORETICAL roof over this size: bandwidth or compute, whichever binds.",
            lambda rung: share(
                rung,
                rung.speed.pct_of_limit if rung.speed else None,
                ON_HOST if on_host(run, rung.case) else peak,
            ),
            bar=True,
        ),
    ]
    if not flops and run.device.measured_copy_bandwidth_gbps:
        columns.append(
            RungColumn(
                "Of copy",
                "Of a large device-to-device copy's bandwidth, measured in this run.",
                lambda rung: share(rung, rung.speed.pct_of_copy_bandwidth if rung.speed else None, ON_HOST),
                bar=True,
            )
        )
    columns.append(
        RungColumn(
            "Gain", "How many times as fast as the rung it is compared with; ≈ is within the noise.", gain
        )
    )
    if ladder.reference is not None:
        columns.append(
            RungColumn(
                f"Of {ladder.reference}",
                f"Speed relative to {ladder.reference}, the fastest reference on this GPU.",
                lambda rung: share(rung, rung.pct_of_reference, _ONLY_COPIES),
            )
        )
    elif ladder.fastest is not None:
        columns.append(
            RungColumn(
                "Of fastest",
                f"Speed relative to {ladder.fastest}, the fastest here.",
                lambda rung: share(rung, rung.pct_of_fastest, _ONLY_COPIES),
            )
        )
    return tuple(columns)


def _figure(
    label: str,
    meaning: str,
    read: Callable[[Measurement], float | None],
    write: Callable[[float], str],
    absent: Callable[[Measurement], str | None],
    bar: bool = False,
) -> RungColumn:
    def cell(rung: Rung) -> Cell:
        value = read(rung.case)
        if value is None:
            return missing(absent(rung.case) or rung.case.reason or "this kernel has no such counter")
        return Cell(write(value), value)

    return RungColumn(label, meaning, cell, bar)


def resource_columns() -> tuple[RungColumn, ...]:
    """Registers and theoretical occupancy, which explain much in little space."""
    return tuple(column for column in _COMPILED if column.label in ("Registers", "Occupancy"))


def _no_counters(case: Measurement) -> str | None:
    return case.counters_reason


def _no_resources(case: Measurement) -> str | None:
    return case.resources_reason


_COUNTED = (
    _figure(
        "Traffic",
        "Bytes of global sectors requested over the fewest bytes possible; before the caches.",
        counters.sector_ratio,
        numbers.ratio,
        _no_counters,
    ),
    _figure(
        "Load eff.",
        "Useful bytes in the sectors of global loads.",
        lambda case: counters.value(case, "global_load_efficiency_pct"),
        numbers.percent,
        _no_counters,
        bar=True,
    ),
    _figure(
        "Store eff.",
        "Useful bytes in the sectors of global stores.",
        lambda case: counters.value(case, "global_store_efficiency_pct"),
        numbers.percent,
        _no_counters,
        bar=True,
    ),
    _figure(
        "Shared / step",
        "Shared-memory passes per warp-wide step of useful work.",
        counters.shared_wavefronts_per_step,
        numbers.significant,
        _no_counters,
    ),
    _figure("Conflicts", "Extra shared-memory passes.", counters.bank_conflicts, numbers.count, _no_counters),
)
_COMPILED = (
    _figure(
        "Registers",
        "Registers per thread.",
        lambda case: case.resources.registers_per_thread if case.resources else None,
        numbers.count,
        _no_resources,
    ),
    _figure(
        "Shared",
        "Shared memory of one block, static and dynamic.",
        lambda case: (
            case.resources.static_shared_bytes + case.resources.dynamic_shared_bytes
            if case.resources
            else None
        ),
        numbers.size,
        _no_resources,
    ),
    _figure(
        "Spills",
        "Bytes of registers spilled to local memory, per thread.",
        lambda case: case.resources.spill_bytes if case.resources else None,
        numbers.size,
        _no_resources,
    ),
    _figure(
        "Occupancy",
        "Theoretical: resident warps over the SM's limit.",
        lambda case: case.occupancy.theoretical_pct if case.occupancy else None,
        numbers.percent,
        lambda case: case.occupancy_reason,
        bar=True,
    ),
)
