# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Columns of a table with a row for every case, as the terminal and a notebook show it."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES, headline_rate
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.status import status_of
from gpuprof.report.cells import cell_of, format_block
from gpuprof.results import Measurement, Run


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case within its run and its ladder."""

    run: Run
    rung: Rung
    case: Measurement

    @property
    def shown(self) -> Rung | None:
        """The rung, for the one case that stands for it."""
        return self.rung if self.case is self.rung.case else None


@dataclass(frozen=True, slots=True)
class CaseColumn:
    """A column; of those that do not fit, the ones with the highest `rank` go first."""

    label: str
    rank: int
    read: Callable[[CaseRow], str]
    right: bool = True


def says_anything(column: CaseColumn, rows: list[CaseRow]) -> bool:
    """Whether any row has something in a column."""
    return any(column.read(row).strip("– ") for row in rows)


def case_columns(run: Run, ladders: list[Ladder], *, ascii_only: bool = False) -> list[CaseColumn]:
    """The columns that the backend of a run can fill.

    Args:
        run: The run.
        ladders: The sizes of the table.
        ascii_only: Whether outcomes are marked in ASCII.
    """

    def outcome(row: CaseRow) -> str:
        status = status_of(run, row.case)
        return f"{status.ascii_symbol if ascii_only else status.symbol} {status.word}"

    def kernel(row: CaseRow) -> str:
        return f"{row.case.kernel} (ref)" if row.rung.is_reference else row.case.kernel

    # Where a kernel has several rows, nothing else tells them apart.
    several = any(len(rung.cases) > 1 for ladder in ladders for rung in ladder.rungs)
    case = [
        CaseColumn("kernel", 0, kernel, right=False),
        CaseColumn("size", 2, lambda row: row.case.problem.label, right=False),
        CaseColumn("block", 1 if several else 5, lambda row: format_block(row.case, brief=True), right=False),
        CaseColumn("outcome", 1, outcome, right=False),
    ]
    if len(ladders) == 1:
        del case[1]
    if run.backend == "gpu":
        return [*case, *_timed(run, ladders), *_RESOURCES]
    return [*case, *(_COUNTED if run.backend == "sim" else ()), *_RESOURCES]


def _timed(run: Run, ladders: list[Ladder]) -> list[CaseColumn]:
    def figure(key: str, rank: int, label: str = "") -> CaseColumn:
        return CaseColumn(label or _heading(key), rank, lambda row: _text_of(FIGURES[key], row))

    references = {ladder.reference for ladder in ladders if ladder.reference}
    # Each size has its own fastest reference; a name in the heading must hold for all of them.
    yardstick = "reference" if len(references) > 1 else next(iter(references), "fastest")
    share = FIGURES["pct_of_reference" if references else "pct_of_fastest"]

    def relative(row: CaseRow) -> str:
        return "" if row.shown is None else _text_of(share, row).replace("–", "")

    def gain(row: CaseRow) -> str:
        if row.shown is None or row.shown.gain is None:
            return ""
        return ("" if row.shown.gain_is_clear else "≈ ") + _text_of(FIGURES["gain"], row)

    return [
        figure("median_us", 0),
        figure("ci95_pct", 7),
        figure("warm_us", 8),
        CaseColumn("rate", 1, lambda row: _text_of(headline_rate(run, row.case), row)),
        figure("pct_of_limit", 3),
        figure("bound_by", 5),
        figure("pct_of_bound", 5),
        CaseColumn("gain", 4, gain),
        CaseColumn(f"of {yardstick}", 6, relative),
    ]


def _text_of(figure: Figure, row: CaseRow) -> str:
    return cell_of(figure, Subject(row.run, row.case, row.shown)).text or "–"


def _heading(key: str) -> str:
    short = FIGURES[key].short
    return short[:1].lower() + short[1:]


def _plain(ranks: dict[str, int]) -> tuple[CaseColumn, ...]:
    """Columns of figures, each with its rank."""

    def column(key: str, rank: int) -> CaseColumn:
        return CaseColumn(_heading(key), rank, lambda row: _text_of(FIGURES[key], row))

    return tuple(column(key, rank) for key, rank in ranks.items())


_COUNTED = _plain(
    {
        "bound_us": 1,
        "bound_by": 2,
        "sector_ratio": 2,
        "global_load_efficiency_pct": 2,
        "global_store_efficiency_pct": 3,
        "shared_wavefronts_per_step": 4,
        "bank_conflicts": 6,
    }
)
_RESOURCES = _plain({"registers_per_thread": 9, "shared_bytes": 11, "theoretical_occupancy_pct": 10})
