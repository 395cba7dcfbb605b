# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a sweep over blocks found: the best block, what it gains, and what the record says differs."""

from gpuprof.analysis import numbers
from gpuprof.analysis.blocks import Cell, Sweep
from gpuprof.analysis.changes import changed_counts, changes, counted
from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.limits import limits_of, shifts
from gpuprof.analysis.parameters import is_clear_gain
from gpuprof.analysis.speed import speed_of
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent

#: By backend, what a table of blocks shows of each beside the figure that is compared.
BLOCK_COLUMNS = {
    "gpu": ("median_us", "ci95_pct", "theoretical_occupancy_pct", "registers_per_thread"),
    "sim": ("global_load_efficiency_pct", "global_store_efficiency_pct", "theoretical_occupancy_pct"),
    "none": ("registers_per_thread",),
}


def block_sentence(run: Run, sweep: Sweep) -> str:
    """For example `Best block 8x32, 17.4 µs: 1.54× as fast as 32x32, the largest, because …`."""
    measured = [cell for cell in sweep.all_cells if cell.value is not None]
    best = next((cell for cell in measured if cell.is_best), None)
    if best is None:
        return f"None of {len(sweep.all_cells)} blocks of {sweep.kernel} gave a figure to compare."
    alike = [cell for cell in measured if cell.is_best]
    if len(alike) == len(measured) > 1:
        return f"All {len(alike)} blocks of {sweep.kernel} have the same figure: {_figure(run, sweep, best)}."
    head = f"Best block {' or '.join(map(_name, alike))}, {_figure(run, sweep, best)}"
    base = _base(measured, best)
    if base is None:
        return f"{head}; no other gave a figure."
    return f"{head}: {_gains(run, sweep, measured, best, base)}{_because(run, base.case, best.case)}."


def _name(cell: Cell) -> str:
    return format_extent(cell.case.block)


def _threads(cell: Cell) -> int:
    x, y, z = cell.case.block
    return x * y * z


def _figure(run: Run, sweep: Sweep, cell: Cell) -> str:
    speed = speed_of(run, cell.case)
    figure = FIGURES[sweep.metric]
    assert cell.value is not None
    return numbers.time_us(speed.median_us) if speed else f"{figure.phrase} {figure.write(cell.value)}"


def _base(measured: list[Cell], best: Cell) -> Cell | None:
    """The largest block; where that is the best, the worst one."""
    others = [cell for cell in measured if not cell.is_best]
    if not others:
        return None
    largest = max(measured, key=lambda cell: (_threads(cell), cell.case.block))
    return _worst(others, best) if largest.is_best else largest


def _worst(others: list[Cell], best: Cell) -> Cell:
    return max(others, key=lambda cell: abs((cell.value or 0.0) - (best.value or 0.0)))


def _gains(run: Run, sweep: Sweep, measured: list[Cell], best: Cell, base: Cell) -> str:
    others = [cell for cell in measured if not cell.is_best]
    worst = _worst(others, best)
    said = [_gain(run, sweep, best, base)]
    if base.value == worst.value:
        largest = max(map(_threads, measured))
        said[0] += ", the largest and the worst" if _threads(base) == largest else ", the worst"
    else:
        said[0] += ", the largest,"
        said.append(f"{_gain(run, sweep, best, worst)}, the worst")
    return " and ".join(said)


def _gain(run: Run, sweep: Sweep, best: Cell, other: Cell) -> str:
    assert best.value is not None
    assert other.value is not None
    if speed_of(run, best.case) is None:
        return f"{_name(other)} has {FIGURES[sweep.metric].write(other.value)}"
    if not is_clear_gain(run, best.case, other.case):
        return f"within the noise of {_name(other)}"
    return f"{numbers.ratio(best.value / other.value)} as fast as {_name(other)}"


def _because(run: Run, base: Measurement, best: Measurement) -> str:
    """What counters, bounds, resources and occupancy differ in; a reason only where something was counted."""
    name = format_extent(base.block)
    before, after = limits_of(run, base), limits_of(run, best)
    done = [shift.text for shift in shifts(before, after)] if before and after else []
    done += [change.text for change in changed_counts(run, base, best)]
    if done:
        return f", because against {name}: {'; '.join(done)}"
    given = "; ".join(change.text for change in changes(run, base, best))
    reason = best.counters_reason or base.counters_reason or "no reason was recorded"
    why = "no bound and no count of its work differs" if counted(base) and counted(best) else reason
    return f". Why is not known: {why}" + (f". Against {name} it was given: {given}" if given else "")
