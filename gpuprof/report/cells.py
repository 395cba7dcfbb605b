# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every figure of a case as a table cell: human text, the raw value it sorts by, or why it is missing."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpuprof.analysis import counters
from gpuprof.analysis.banners import is_noisy
from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES, counter_figure
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.status import status_of
from gpuprof.report.document import Cell
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """One column of a table of cases.

    Args:
        key: Stable name.
        label: Heading.
        group: Heading over neighbouring columns.
        meaning: One sentence for the reader.
        read: Makes the cell of a case.
        numeric: False for text, which aligns left.
        is_counter: True for an event count, of which 0 everywhere is worth no column.
        metric: Nsight Compute's name of a counter.
    """

    key: str
    label: str
    group: str
    meaning: str
    read: Callable[[Run, Measurement], Cell]
    numeric: bool = True
    is_counter: bool = False
    metric: str = ""

    @property
    def hint(self) -> str:
        """The meaning, and Nsight Compute's name where there is one."""
        return f"{self.meaning}\n{self.metric}" if self.metric else self.meaning


#: Times and rates stand in tables beside others of their kind: a digit more tells them apart.
_MORE_DIGITS = {"us": 4, "GFLOP/s": 4, "GB/s": 4}


def missing(reason: str | None) -> Cell:
    """A cell that was not measured."""
    return Cell(None, None, reason or "no reason was recorded")


def cell_of(figure: Figure, subject: Subject, *, fine: bool = False) -> Cell:
    """A figure as a cell.

    Args:
        figure: The figure.
        subject: Of what.
        fine: Whether times and rates have a digit more.
    """
    reading = figure.read(subject)
    if reading.value is None:
        return missing(reading.reason)
    if isinstance(reading.value, str):
        return Cell(reading.value, reading.value)
    digits = _MORE_DIGITS.get(figure.unit, 3) if fine else 3
    noisy = " ~" if figure.key == "median_us" and is_noisy(subject.case) else ""
    counter = counters.find(subject.case, figure.key)
    least = "≥ " if counter and counter.is_least and counter.value == reading.value else ""
    return Cell(least + figure.write(reading.value, digits) + noisy, reading.value)


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


def column_of(figure: Figure, *, group: str = "", label: str = "", fine: bool = False) -> FigureColumn:
    """A column of one figure.

    Args:
        figure: The figure.
        group: Heading over neighbouring columns, where it is not the figure's.
        label: Heading, where it is not the figure's.
        fine: Whether times and rates have a digit more.
    """
    return FigureColumn(
        figure.key,
        label or figure.label,
        group or figure.group,
        figure.meaning,
        _reader(figure.key, fine),
        numeric=not figure.is_text,
    )


@functools.cache
def _reader(key: str, fine: bool) -> Callable[[Run, Measurement], Cell]:
    """Makes a case's cell of a figure, once a report: the same cell stands in several tables."""
    figure = FIGURES.get(key) or counter_figure(key)
    return remembered(lambda run, case: cell_of(figure, Subject(run, case), fine=fine))


def _columns(*keys: str) -> tuple[FigureColumn, ...]:
    return tuple(column_of(FIGURES[key], fine=True) for key in keys)


def _device_column(run: Run) -> FigureColumn:
    def read(run: Run, case: Measurement) -> Cell:
        label = run.device_label(case.device)
        return Cell(label, label)

    return FigureColumn("device", "Device", "Case", "What it ran on.", read, numeric=False)


CASE = (
    FigureColumn(
        "kernel",
        "Kernel",
        "Case",
        "The kernel's id.",
        lambda _, case: Cell(case.kernel, case.kernel),
        numeric=False,
    ),
    FigureColumn(
        "size",
        "Size",
        "Case",
        "The problem's size, as typed.",
        lambda _, case: Cell(case.problem.label, case.problem.min_bytes),
        numeric=False,
    ),
    FigureColumn(
        "block",
        "Block",
        "Case",
        "Threads per block, and tile parameters where there are any.",
        lambda _, case: Cell(format_block(case), case.block[0] * 4096 + case.block[1]),
        numeric=False,
    ),
    FigureColumn(
        "outcome",
        "Outcome",
        "Case",
        "How the case ended.",
        lambda run, case: Cell(format_outcome(run, case), case.outcome),
        numeric=False,
    ),
)
#: Of the times, those that a short table shows; the samples themselves stand beside it as a strip.
BRIEF_TIME = _columns("median_us", "ci95_pct", "warm_us")
TIME = _columns(
    *("median_us", "p05_us", "p95_us", "ci95_pct", "samples", "launches_per_sample", "dropped"),
    *("throttled", "warm_us"),
)
RATE = _columns(
    *("gflops", "gbps", "pct_of_peak_compute", "pct_of_peak_bandwidth", "pct_of_copy"),
    "pct_of_measured_limit",
)
BOUND = _columns("bound_by", "bound_us", "pct_of_bound")
RESOURCE = _columns(
    *("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "spill_bytes"),
    *("theoretical_occupancy_pct", "achieved_occupancy_pct", "occupancy_limiter"),
)
CHECK = _columns("max_rel_error", "error_bound")
PUBLISHED = _columns("published_us")

_COUNTED_BY = {"ncu": "Counters, by Nsight Compute", "sim": "Counters, by the SIMT executor"}
_BY_BOTH = "Counters"
#: Families of counters that stand apart, with what their labels then need not repeat.
_FAMILIES = {
    "sol_": ("Share of peak, by Nsight Compute", " speed of light"),
    "stall_": ("Cycles per issued instruction of a warp, by Nsight Compute", "Stall: "),
}


def counter_columns(cases: tuple[Measurement, ...]) -> tuple[FigureColumn, ...]:
    """One column per counter that occurs, under a heading that says who counted."""
    columns = []
    for name in counters.names_in(cases):
        held = [counter for case in cases if (counter := counters.find(case, name)) is not None]
        sources = {counter.source for counter in held}
        figure = counter_figure(name)
        group, said = _COUNTED_BY[sources.pop()] if len(sources) == 1 else _BY_BOTH, ""
        for prefix, family in _FAMILIES.items():
            if name.startswith(prefix):
                group, said = family
        metrics = dict.fromkeys(counter.metric for counter in held if counter.metric)
        label = figure.label.removesuffix(said).removeprefix(said) if said else figure.label
        columns.append(
            replace(column_of(figure, group=group, label=label), is_counter=True, metric=", ".join(metrics))
        )
    order = [_BY_BOTH, *_COUNTED_BY.values(), *(group for group, _ in _FAMILIES.values())]
    return tuple(sorted(columns, key=lambda column: order.index(column.group)))


def all_columns(run: Run, cases: tuple[Measurement, ...]) -> tuple[FigureColumn, ...]:
    """Every figure a case can have; others' times stand only beside times of our own."""
    published = PUBLISHED if run.backend == "gpu" else ()
    device = (_device_column(run),) if len(run.devices) > 1 else ()
    return CASE + device + TIME + RATE + BOUND + RESOURCE + CHECK + counter_columns(cases) + published
