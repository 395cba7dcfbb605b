# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What Nsight Compute says of a ladder in the columns that optimisation studies print, with the reason."""

from dataclasses import dataclass

from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.why import observed, reasons
from gpuprof.report.cells import column_of
from gpuprof.report.document import Cell
from gpuprof.results import Run

#: Their headings stand alone, without those of groups.
PROFILE_COLUMNS = tuple(
    column_of(FIGURES[key], label=label)
    for key, label in {
        "theoretical_occupancy_pct": "Theoretical occupancy",
        "achieved_occupancy_pct": "Achieved occupancy",
        "global_load_throughput_gbps": "Load throughput",
        "global_load_efficiency_pct": "Load efficiency",
        "global_store_efficiency_pct": "Store efficiency",
    }.items()
)


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One kernel: a cell per column, and why it is as fast as it is."""

    rung: Rung
    cells: tuple[Cell, ...]
    why: tuple[str, ...]


def profile_rows(run: Run, ladder: Ladder) -> tuple[ProfileRow, ...]:
    """The rungs that Nsight Compute has counted."""
    return tuple(
        ProfileRow(
            rung,
            tuple(column.read(run, rung.case) for column in PROFILE_COLUMNS),
            # What the counts say, bounds say in times.
            observed(rung.case) if rung.limits else reasons(rung.case),
        )
        for rung in ladder.rungs
        if any(
            counter.source == "ncu" and counter.value is not None for counter in rung.case.counters.values()
        )
    )
