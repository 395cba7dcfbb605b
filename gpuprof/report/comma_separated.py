# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as CSV: one row a case, every figure in full, for a spreadsheet or a data frame."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuprof.analysis import counts
from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.analysis.ladder import rungs_of
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent, one_line

#: Units as a heading says them, where it does not say their last word; pure numbers have none.
_UNITS = {
    "%": "pct",
    "±%": "pct",
    "GFLOP/s": "gflops",
    "GB/s": "gbps",
    "×": "ratio",
    "cycles/instruction": "cycles_per_instruction",
    "number": "",
    "error": "",
    "text": "",
}
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
#: A heading, and the value of a row below it; None leaves the field empty.
_Column = tuple[str, Callable[[Subject], Any]]


def render_csv(run: Run) -> str:
    """One row a case in the order of the results file, below one row of headings: CSV as of RFC 4180.

    A figure's heading is its key in `Case.figures`, with the unit where the key does not tell it; numbers are
    written in full, unrounded. A field is empty where nothing was measured, never 0. A text that a
    spreadsheet would take for a formula gets an apostrophe in front.
    """
    columns = (*_identity(run), *_figures(run))
    rungs = rungs_of(run)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_safe(head) for head, _ in columns)
    for case in run.cases:
        subject = Subject(run, case, rungs.get(id(case)))
        writer.writerow(_field(read(subject)) for _, read in columns)
    return text.getvalue()


def heading(figure: Figure) -> str:
    """A figure's key, followed by its unit unless the key tells it."""
    unit = _UNITS.get(figure.unit, re.sub(r"\W", "_", figure.unit.rpartition(" ")[2]))
    return figure.key if not unit or f"_{unit}_" in f"_{figure.key}_" else f"{figure.key}_{unit}"


def _identity(run: Run) -> Iterator[_Column]:
    """What a case is, and how it ended."""
    yield _of_case("operation", lambda case: case.problem.operation)
    yield _of_case("size", lambda case: case.problem.label)
    yield from _spread(run, "size", lambda case: case.problem.sizes)
    yield from _spread(run, "scalar", lambda case: case.problem.scalars)
    yield from _spread(run, "option", lambda case: case.problem.options)
    yield _of_case("dtype", lambda case: case.problem.dtype)
    yield _of_case("kernel", lambda case: case.kernel)
    yield _of_case("is_reference", lambda case: int(case.is_reference))
    yield _of_case("chosen", lambda case: case.chosen)
    yield _of_case("block", lambda case: format_extent(case.block) if case.has_launch else None)
    yield _of_case("grid", lambda case: format_extent(case.grid) if case.grid else None)
    yield from _spread(run, "param", lambda case: case.params)
    yield _of_case("device", lambda case: run.device_label(case.device))
    yield _of_case("backend", lambda case: run.backend)
    yield _of_case("outcome", lambda case: case.outcome)
    yield _of_case("reason", lambda case: case.reason)


def _spread(run: Run, prefix: str, held: Callable[[Measurement], Mapping[str, Any]]) -> Iterator[_Column]:
    """A column for each name under which any case holds something."""

    def column(name: str) -> _Column:
        return _of_case(f"{prefix}_{name}", lambda case: held(case).get(name))

    return map(column, dict.fromkeys(name for case in run.cases for name in held(case)))


def _of_case(name: str, read: Callable[[Measurement], Any]) -> _Column:
    return name, lambda subject: read(subject.case)


def _figures(run: Run) -> Iterator[_Column]:
    """Every figure; counters stand behind what is made of them, those without a description last."""
    foreign = {name: None for case in run.cases for name in counts.held(case) if name not in FIGURES}
    own = sorted(FIGURES.values(), key=lambda figure: figure.group == "Counters")
    return map(_of_figure, (*own, *map(counter_figure, foreign)))


def _of_figure(figure: Figure) -> _Column:
    return heading(figure), lambda subject: figure.read(subject).value


def _field(value: Any) -> Any:
    """A field: text is one line and no formula, a whole number has no point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return _safe(value) if isinstance(value, str) else value


def _safe(text: str) -> str:
    line = one_line(text)
    return f"'{line}" if _FORMULA.match(line) else line
