# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tables of a run's cases: a figure as a cell, every case with every column."""

from collections.abc import Callable, Mapping, Sequence

from gpuprof.analysis import counts
from gpuprof.analysis.figures import FIGURES, Figure, Subject, headline_rate
from gpuprof.analysis.ladder import SizeLadder
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.models import disagreement, model_interval
from gpuprof.analysis.speed import is_noisy
from gpuprof.analysis.status import status_of
from gpuprof.records import replace
from gpuprof.report.document import Cell, Column, Row, Sentence, Table
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent

_NOTHING = Cell("–")
#: Times and rates stand in tables beside others of their kind: a digit more tells them apart.
_MORE_DIGITS = {"us": 4, "GFLOP/s": 4, "GB/s": 4}


def missing(reason: str | None) -> Cell:
    """A cell that was not measured."""
    return Cell(None, None, reason or "no reason was recorded")


def cell_of(figure: Figure, subject: Subject, *, fine: bool = False) -> Cell:
    """A figure as a cell; a `fine` one has a digit more of times and rates."""
    reading = figure.read(subject)
    if reading.value is None:
        return missing(reading.reason)
    if isinstance(reading.value, str):
        return Cell(reading.value, reading.value)
    digits = _MORE_DIGITS.get(figure.unit, 3) if fine else 3
    noisy = " ~" if figure.key == "median_us" and is_noisy(subject.case) else ""
    counter = counts.find(subject.case, figure.key)
    least = "≥ " if counter and counter.is_least and counter.value == reading.value else ""
    return Cell(least + figure.write(reading.value, digits) + noisy, reading.value)


def format_block(case: Measurement) -> str:
    """Block and tile parameters, for example `16x16 unroll_m=2`; a library tells none.

    A kernel that was chosen for the case stands in their place, as in `→ splitk_8x32 256x1`: its parameters
    are always those of its header.
    """
    if not case.has_launch:
        return "–"
    if case.chosen:
        return f"→ {case.chosen} {format_extent(case.block)}"
    return " ".join([format_extent(case.block), *(f"{name}={value}" for name, value in case.params.items())])


def block_phrase(case: Measurement) -> str:
    """The same for a place without a heading: behind the word block, or behind an arrow."""
    return format_block(case) if case.chosen else f"block {format_block(case)}"


#: A column of cases, and what fills it.
Filled = tuple[Column, Callable[[Subject], Cell]]


def of_figure(key: str, rank: int = 0, label: str = "") -> Filled:
    """A column of one figure; of modelled times each with its interval."""
    figure = FIGURES[key]
    column = Column(label or heading(key), True, rank, figure.meaning, key)
    if key == "model_us":
        return column, lambda row: modelled_cell(row.case) if row.usable else _NOTHING
    return column, lambda row: _figure_cell(figure, row)


def modelled_cell(case: Measurement) -> Cell:
    """A modelled time with its interval."""
    if case.model is None:
        return _NOTHING if case.is_reference else Cell(None, None, case.model_reason or "it was not modelled")
    return Cell(model_interval(case.model), case.model.median_us)


def heading(key: str) -> str:
    """A figure's name at the head of a narrow column."""
    short = FIGURES[key].short
    return short[:1].lower() + short[1:]


def _figure_cell(figure: Figure, row: Subject) -> Cell:
    """A figure of a case; a dash where it can have none."""
    if not row.usable:
        return _NOTHING
    cell = cell_of(figure, row)
    compares = figure.group == FIGURES["gain"].group
    return _NOTHING if cell.text is None and (row.rung.is_reference or compares) else cell


def filled_table(columns: Sequence[Filled], slices: Sequence[Sequence[Subject]], caption: str = "") -> Table:
    """A table with a gap between slices, and without columns that say nothing of any case.

    Below a case whose measured time the model does not allow it says so.
    """
    rows = [
        (row, bool(number and row is held[0]), [read(row) for _, read in columns])
        for number, held in enumerate(slices)
        for row in held
    ]
    kept = [
        at
        for at, (column, _) in enumerate(columns)
        if not column.rank or any((cells[at].text or "").strip("– ") for _, _, cells in rows)
    ]
    return Table(
        tuple(columns[at][0] for at in kept),
        tuple(
            Row(
                tuple(cells[at] for at in kept),
                tone="strong" if row.shown and row.rung.is_fastest else "",
                details=tuple(map(Sentence, filter(None, [disagreement(row.case)]))),
                begins=begins,
            )
            for row, begins, cells in rows
        ),
        caption,
    )


def case_table(
    run: Run, ladders: Sequence[SizeLadder], anchors: Mapping[str, str] | None = None, caption: str = ""
) -> Table:
    """Every case of some sizes, a ladder each, with the columns that the backend of the run can fill.

    The anchors say where a kernel's name leads on a page.
    """
    slices = [[Subject(run, case, rung) for rung in held.rungs for case in rung.cases] for held in ladders]
    columns = _columns(run, ladders, anchors or {})
    if anchors:  # long parameters and details must not hide what they did, and cards have the resources
        columns.sort(key=lambda filled: (filled[0].label == "block", filled[0].rank > 7))
        columns = [filled for filled in columns if run.backend != "gpu" or filled not in _RESOURCES]
    return filled_table(columns, slices, caption)


def _columns(run: Run, ladders: Sequence[SizeLadder], anchors: Mapping[str, str]) -> list[Filled]:
    # Where a kernel has several rows, only sizes and blocks tell them apart: they stay longest.
    several = any(len(rung.cases) > 1 for ladder in ladders for rung in ladder.rungs)
    computed = dict.fromkeys(rung.case.problem.operation for ladder in ladders for rung in ladder.rungs)
    names = " or ".join(run.operations[name].shape for name in computed)
    extents = f"{names}; one number for all."
    launch = "Threads of a block, and the kernel's parameters."
    outcome = "ok is a right result, element by element; the others say why."
    case: list[Filled] = [
        (
            Column("kernel", False, 0, "In rung order; (ref) is a library's, to compare with."),
            lambda row: _kernel(row, anchors),
        ),
        (
            Column("size", False, 0, extents),
            lambda row: Cell(row.case.problem.label),
        ),
        (
            Column("block", False, 1 if several else 7, launch),
            lambda row: Cell(format_extent(row.case.block) if row.case.chosen else format_block(row.case)),
        ),
        (Column("outcome", False, 2, outcome, folds=7), lambda row: outcome_of(row.run, row.case)),
    ]
    if len(ladders) == 1:
        del case[1]
    if run.backend == "gpu":
        return [*case, *_timed(run, ladders), *_RESOURCES]
    return [*case, *(_COUNTED if run.backend == "sim" else ()), *_RESOURCES]


def _kernel(row: Subject, anchors: Mapping[str, str]) -> Cell:
    name, own = row.case.kernel, not row.rung.is_reference
    chosen = f" → {row.case.chosen}" if row.case.chosen else ""
    text = f"{name}{chosen}" if own else f"{name} (ref)"
    return Cell(text, row.rung.kernel.rung, anchor=anchors.get(name, ""), code=own)


def outcome_of(run: Run, case: Measurement) -> Cell:
    """How a case ended."""
    status = status_of(run, case)
    return Cell(status.word, tone=status.tone, mark=status.mark)


def _timed(run: Run, ladders: Sequence[SizeLadder]) -> list[Filled]:
    rate = "Work that the problem needs over the cold median."
    return [
        of_figure("median_us"),
        of_figure("ci95_pct", 9),
        of_figure("warm_us", 10),
        of_figure("model_us", 8),
        (Column("rate", True, 6, rate), lambda row: _figure_cell(headline_rate(run, row.case), row)),
        _against(ladders, 3),
        of_figure("pct_of_limit", 5),
        (Column("limited by", False, 4, "Its largest part of the time, or latency.", folds=12), limiter_cell),
        (Column("gain", True, 7, FIGURES["gain"].meaning), _gain),
    ]


def _against(ladders: Sequence[SizeLadder], rank: int) -> Filled:
    """How many times as fast as the fastest reference; without any, as the fastest kernel."""
    # Each size has its own fastest reference; a name in the heading must hold for all of them.
    names = {ladder.reference_name for ladder in ladders if ladder.reference}
    key = "vs_reference" if names else "vs_fastest"
    name = "reference" if len(names) > 1 else next(iter(names), "fastest")
    return of_figure(key, rank, f"vs {name}")


def limiter_cell(row: Subject) -> Cell:
    """What limits a case, as far as counts and times tell."""
    found = limiter_of(row.run, row.case) if row.usable else None
    return Cell(found.brief) if found else _NOTHING


def _gain(row: Subject) -> Cell:
    if row.shown is None or row.shown.gain is None:
        return Cell("")
    cell = _figure_cell(FIGURES["gain"], row)
    return cell if row.shown.gain_is_clear else replace(cell, text=f"≈ {cell.text}")


_COUNTED = (
    of_figure("model_us", 2),
    of_figure("bound_us", 3),
    (
        Column("limited by", False, 2, "The part that limits it, as far as counts and modelled times tell."),
        limiter_cell,
    ),
    of_figure("sector_ratio", 5),
    of_figure("global_load_efficiency_pct", 5),
    of_figure("global_store_efficiency_pct", 5),
    of_figure("shared_wavefronts_per_step", 6),
    of_figure("bank_conflicts", 8),
)
_RESOURCES = (
    of_figure("registers_per_thread", 11),
    of_figure("shared_bytes", 13),
    of_figure("theoretical_occupancy_pct", 12),
)
