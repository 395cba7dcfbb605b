# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report's page shows of a search: the answer at each size, a picture of the points, and a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.status import status_of
from gpuprof.analysis.tuned import (
    TunedRow,
    TunedSize,
    answer_sentence,
    searched_values,
    space_sentence,
    tie_sentence,
    tuned_sizes,
    typed,
)
from gpuprof.report.svg.heat_table import heat_table
from gpuprof.report.svg.parallel_lines import Line, Lines, parallel_lines
from gpuprof.results import Run
from gpuprof.text import visible

#: Lines that can still be told apart.
_MOST_LINES = 60
#: Figures that span this factor are told apart by their logarithm.
_WIDE = 4.0


@dataclass(frozen=True, slots=True)
class TunedView:
    """One size of a search.

    Args:
        label: The size, and the device where there are several.
        answer: Who is best.
        ties: Who cannot be told apart from it; may be empty.
        space: What was searched, and what was ruled out.
        tabs: What tells this from the others: `Size`, or `Size and device`.
        is_whole: Whether every point that can run was looked at.
        is_map: Whether the picture is a map of two parameters; else lines across axes.
        picture: The picture; None where there is nothing to compare.
        figure: `Time` or `Bound`.
        columns: Names of what was searched.
        rows: Of each point with a figure: mark, figure, share of the best, values.
        wrong: Of each other point: what it is, how it ended, and why.
    """

    label: str
    answer: str
    ties: str
    space: str
    tabs: str
    is_whole: bool
    is_map: bool
    picture: Markup | None
    figure: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]
    wrong: tuple[tuple[str, str, str], ...]


def tuned_views(run: Run) -> tuple[TunedView, ...]:
    """Every size of a search; none of a run that is not a search."""
    return tuple(_view(run, size) for size in tuned_sizes(run))


def _view(run: Run, size: TunedSize) -> TunedView:
    axes = searched_values(size)
    best = size.rows[0].value_us if size.rows else None
    columns = (*(("kernel",) if size.several else ()), *size.names)
    is_map = len(axes) == 2 and not size.several
    return TunedView(
        label=size.title,
        answer=_begun(answer_sentence(size)),
        ties=tie_sentence(size),
        space=space_sentence(size),
        tabs="Size and device" if size.device_label else "Size",
        is_whole=size.tuned.evaluated == size.allowed,
        is_map=is_map,
        picture=(_map(size, axes) if is_map else _lines(size, axes)) if axes and len(size.rows) > 1 else None,
        figure="Time" if size.by_time else "Bound",
        columns=columns,
        rows=tuple(_row(size, row, best or 1.0) for row in size.rows),
        wrong=tuple(
            (
                typed(row, several=size.several),
                status_of(run, row.case).word,
                row.case.reason or row.case.bounds_reason or "no reason was recorded",
            )
            for row in size.wrong
        ),
    )


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _row(size: TunedSize, row: TunedRow, best: float) -> tuple[str, str, str, tuple[str, ...]]:
    value = row.value_us or best
    marks = ("★" if row.is_tied else "") + ("◇" if row.is_default else "")
    kernel = (row.case.kernel,) if size.several else ()
    values = (*kernel, *(row.values.get(name, "–") for name in size.names))
    return marks, numbers.time_us(value), numbers.ratio(best / value), values


def _lines(size: TunedSize, axes: Sequence[tuple[str, list[str]]]) -> Markup:
    shown = size.rows[:_MOST_LINES]
    figures = [row.value_us or 0.0 for row in shown]
    what = "time" if size.by_time else "bound"
    named = tuple((name, tuple(values)) for name, values in axes)
    if size.several:
        kernels = tuple(dict.fromkeys(row.case.kernel for row in shown))
        named = (("kernel", kernels), *named)
    return parallel_lines(
        Lines(
            title=f"Points at {size.title}",
            description=f"{len(shown)} of {len(size.rows)} points; {answer_sentence(size)}.",
            axes=named,
            figure=what,
            lowest=numbers.time_us(min(figures)),
            highest=numbers.time_us(max(figures)),
            lines=tuple(
                Line(
                    (
                        *((row.case.kernel,) if size.several else ()),
                        *(row.values.get(name, "") for name, _ in axes),
                    ),
                    row.value_us or 0.0,
                    f"{typed(row, several=size.several)}: {numbers.time_us(row.value_us or 0.0)}",
                    "best" if row.is_tied else "default" if row.is_default else "",
                )
                for row in shown
            ),
        )
    )


def _map(size: TunedSize, axes: Sequence[tuple[str, list[str]]]) -> Markup:
    (x_name, xs), (y_name, ys) = axes
    # Points that differ in nothing else: each place has one.
    held = {(row.values[x_name], row.values[y_name]): row for row in reversed(size.rows)}
    rows = [[held.get((x, y)) for x in xs] for y in ys]
    values = [row.value_us for row in size.rows if row.value_us is not None]
    what = "time" if size.by_time else "bound"
    return heat_table(
        {
            "logarithmic": _WIDE * min(values) < max(values),
            "caption": f"{what.capitalize()} at {size.title}",
            "reversed": True,
            "x_title": visible(x_name),
            "y_title": visible(y_name),
            "xs": xs,
            "ys": ys,
            "low": min(values),
            "high": max(values),
            "z": [[row.value_us if row else None for row in line] for line in rows],
            "text": [[numbers.time_us(row.value_us or 0.0) if row else "" for row in line] for line in rows],
            "best": [[bool(row and row.is_tied) for row in line] for line in rows],
            "default": [[bool(row and row.is_default) for row in line] for line in rows],
        }
    )
