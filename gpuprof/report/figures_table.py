# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table of every figure: one row per case."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from gpuprof.analysis import counters
from gpuprof.analysis.ladder import Ladder
from gpuprof.analysis.status import Status, status_of
from gpuprof.report.cells import FigureColumn, all_columns
from gpuprof.report.document import Cell
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class FiguresRow:
    """One case: its cells, in column order."""

    anchor: str
    status: Status
    is_reference: bool
    cells: tuple[Cell, ...]

    def pairs(self, columns: tuple[FigureColumn, ...]) -> Iterator[tuple[Cell, bool]]:
        """Each cell but the first, which heads the row, with whether it is a number."""
        for cell, column in zip(self.cells[1:], columns[1:], strict=True):
            yield cell, column.numeric


@dataclass(frozen=True, slots=True)
class FiguresTable:
    """The table.

    Args:
        columns: Those that at least one case has a figure for.
        spans: Heading and width of each run of columns that share a group.
        rows: Cases in ladder order.
        absent: Columns without any figure, with their reasons.
        zero: Counters that were counted and are 0 in every case.
        left_out: How many counters that gpuprof does not describe have no column.
    """

    columns: tuple[FigureColumn, ...]
    spans: tuple[tuple[str, int], ...]
    rows: tuple[FiguresRow, ...]
    absent: tuple[tuple[str, str], ...]
    zero: tuple[str, ...]
    left_out: int


def figures_table(run: Run, ladders: list[Ladder], anchors: dict[str, str]) -> FiguresTable:
    """Build the table; a column that nothing filled is named below it instead of shown empty."""
    cases = [(rung, case) for ladder in ladders for rung in ladder.rungs for case in rung.cases]
    columns = all_columns(run, tuple(case for _, case in cases))
    grid = [[column.read(run, case) for column in columns] for _, case in cases]
    filled = [any(row[index].text is not None for row in grid) for index in range(len(columns))]
    zero = [
        column.is_counter and all(row[index].sort == 0 for row in grid)
        for index, column in enumerate(columns)
    ]
    shown = [full and not nought for full, nought in zip(filled, zero, strict=True)]
    kept = tuple(column for column, keep in zip(columns, shown, strict=True) if keep)
    rows = [
        FiguresRow(
            anchor=anchors[case.kernel],
            status=status_of(run, case),
            is_reference=rung.is_reference,
            cells=tuple(cell for cell, keep in zip(cells, shown, strict=True) if keep),
        )
        for (rung, case), cells in zip(cases, grid, strict=True)
    ]
    absent = []
    if cases:
        for index, column in enumerate(columns):
            if not filled[index]:
                reasons = dict.fromkeys(row[index].reason for row in grid)
                absent.append((f"{column.group}: {column.label}", "; ".join(reasons)))
    return FiguresTable(
        columns=kept,
        spans=tuple((name, len(list(held))) for name, held in groupby(kept, key=lambda column: column.group)),
        rows=tuple(rows),
        absent=tuple(absent),
        zero=tuple(column.label for column, nought in zip(columns, zero, strict=True) if nought),
        left_out=counters.left_out(tuple(case for _, case in cases)),
    )
