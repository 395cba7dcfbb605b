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
    """A column; of those that do not fit, the ones with the highest `rank` go first.

    Args:
        label: Heading.
        rank: How soon it goes.
        read: Makes a row's cell.
        meaning: One sentence for the reader.
        right: Whether cells align right.
    """

    label: str
    rank: int
    read: Callable[[CaseRow], str]
    meaning: str
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

    # Where a kernel has several rows, only sizes and blocks tell them apart: they stay longest.
    several = any(len(rung.cases) > 1 for ladder in ladders for rung in ladder.rungs)
    case = [
        CaseColumn(
            "kernel", 0, kernel, "In rung order; (ref) is somebody else's, to compare with.", right=False
        ),
        CaseColumn(
            "size",
            1,
            lambda row: row.case.problem.label,
            f"{_extents(run, ladders)}; one number for all.",
            right=False,
        ),
        CaseColumn(
            "block",
            1 if several else 7,
            lambda row: format_block(row.case, brief=True),
            "Threads of a block, and the kernel's parameters.",
            right=False,
        ),
        CaseColumn(
            "outcome",
            2,
            outcome,
            "ok is a right result, element by element; the others say why.",
            right=False,
        ),
    ]
    if len(ladders) == 1:
        del case[1]
    if run.backend == "gpu":
        return [*case, *_timed(run, ladders), *_RESOURCES]
    return [*case, *(_COUNTED if run.backend == "sim" else ()), *_RESOURCES]


def _extents(run: Run, ladders: list[Ladder]) -> str:
    """The names of the sizes."""
    computed = dict.fromkeys(rung.case.problem.operation for ladder in ladders for rung in ladder.rungs)
    return " or ".join("x".join(run.operations[name].dimensions) for name in computed)


def _timed(run: Run, ladders: list[Ladder]) -> list[CaseColumn]:
    references = {ladder.reference for ladder in ladders if ladder.reference}
    # Each size has its own fastest reference; a name in the heading must hold for all of them.
    names = {ladder.reference_name for ladder in ladders if ladder.reference}
    yardstick = "reference" if len(references) > 1 else next(iter(names), "fastest")
    share = FIGURES["vs_reference" if references else "vs_fastest"]

    def relative(row: CaseRow) -> str:
        return "" if row.shown is None else _text_of(share, row).replace("–", "")

    def gain(row: CaseRow) -> str:
        if row.shown is None or row.shown.gain is None:
            return ""
        return ("" if row.shown.gain_is_clear else "≈ ") + _text_of(FIGURES["gain"], row)

    return [
        _of_figure(
            "median_us", 0, "Cold median: the L2 cache is flushed before each launch; ~ is a noisy one."
        ),
        _of_figure("ci95_pct", 9, "Half the median's 95 % confidence interval."),
        _of_figure("warm_us", 10),
        CaseColumn(
            "rate",
            3,
            lambda row: _text_of(headline_rate(run, row.case), row),
            "Work that the problem needs over the cold median.",
        ),
        _of_figure("pct_of_limit", 5, "Of the theoretical roof over this size: bandwidth or arithmetic."),
        _of_figure("bound_by", 7),
        _of_figure("pct_of_bound", 7),
        CaseColumn("gain", 6, gain, FIGURES["gain"].meaning),
        CaseColumn(f"vs {yardstick}", 8, relative, f"How many times as fast as {_whose(yardstick)}."),
    ]


def _whose(yardstick: str) -> str:
    return {"reference": "each size's fastest reference", "fastest": "the fastest here"}.get(
        yardstick, f"{yardstick}, the fastest reference"
    )


def _text_of(figure: Figure, row: CaseRow) -> str:
    return cell_of(figure, Subject(row.run, row.case, row.shown)).text or "–"


def _heading(key: str) -> str:
    short = FIGURES[key].short
    return short[:1].lower() + short[1:]


def _of_figure(key: str, rank: int, meaning: str = "") -> CaseColumn:
    """A column of one figure."""
    figure = FIGURES[key]
    return CaseColumn(_heading(key), rank, lambda row: _text_of(figure, row), meaning or figure.meaning)


def _plain(ranks: dict[str, int]) -> tuple[CaseColumn, ...]:
    """Columns of figures, each with its rank."""
    return tuple(_of_figure(key, rank) for key, rank in ranks.items())


_COUNTED = (
    _of_figure("bound_us", 3, "The highest bound, from exact counts: no launch can take less."),
    *_plain(
        {
            "bound_by": 4,
            "sector_ratio": 4,
            "global_load_efficiency_pct": 4,
            "global_store_efficiency_pct": 5,
            "shared_wavefronts_per_step": 6,
            "bank_conflicts": 8,
        }
    ),
)
_RESOURCES = _plain({"registers_per_thread": 11, "shared_bytes": 13, "theoretical_occupancy_pct": 12})
