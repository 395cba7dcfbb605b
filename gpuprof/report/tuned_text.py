# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search as a document: the answer at each size, the points in front, and what went wrong."""

from collections.abc import Iterator

from gpuprof.analysis import numbers
from gpuprof.analysis.models import model_interval
from gpuprof.analysis.status import Mark, status_of
from gpuprof.analysis.tuned import (
    TunedRow,
    TunedSize,
    answer_sentence,
    space_sentence,
    tie_sentence,
    tuned_sizes,
    typed,
)
from gpuprof.report.document import Cell, Column, Content, Row, Section, Sentence, Table
from gpuprof.results import Run

#: Points that are shown before the rest is folded away.
_MOST_SHOWN = 10
_TIED, _DEFAULT = Mark("★", "*"), Mark("◇", "o")
_NOT_TIMED = {
    "model": "Not timed; ranked by modelled times: any that is too near to tell may be the fastest.",
    "bound": "Not timed; ranked by lower bounds: the point with the lower bound may still be the slower.",
}
_HEAD = {"time": "time", "model": "modelled", "bound": "at least"}


def search_content(run: Run) -> Iterator[Content]:
    """What a search found, size by size; nothing of a run that is not a search."""
    sizes = tuned_sizes(run)
    for by in dict.fromkeys(size.tuned.by for size in sizes if not size.by_time):
        yield Sentence(_NOT_TIMED[by], mark=Mark("!", "!"), tone="warning")
    for size in sizes:
        yield Section("", tuple(_size(run, size)))


def _size(run: Run, size: TunedSize) -> Iterator[Content]:
    ties = tie_sentence(size)
    answer = f"{size.title}: {answer_sentence(size)}.{f' {ties}.' if ties else ''}"
    yield Sentence(answer, mark=Mark("=", "="), tone="strong")
    yield Sentence(f"{space_sentence(size)}.", mark=Mark("–", "-"), tone="muted")
    shown, folded = size.rows[:_MOST_SHOWN], size.rows[_MOST_SHOWN:]
    if shown:
        yield _table(size, shown)
    if folded:
        points = "1 more point" if len(folded) == 1 else f"{len(folded):,} more points"
        yield Section(points, (_table(size, folded),), folded=True)
    for row in size.wrong:
        status = status_of(run, row.case)
        reason = (
            row.case.reason or row.case.bounds_reason or row.case.model_reason or "no reason was recorded"
        )
        text = f"{typed(row, several=size.several)} {status.word}: {reason}"
        yield Sentence(text, mark=status.mark, tone="bad")


def _table(size: TunedSize, rows: tuple[TunedRow, ...]) -> Table:
    best = size.rows[0].value_us or 1.0
    columns = (
        Column("", right=False),
        Column(_HEAD[size.tuned.by]),
        Column("of the best"),
        Column("point", right=False, folds=20),
    )
    return Table(columns, tuple(_row(size, row, best) for row in rows), f"Points at {size.title}")


def _row(size: TunedSize, row: TunedRow, best: float) -> Row:
    value = row.value_us or best
    point, model = typed(row, several=size.several), row.case.model
    return Row(
        (
            Cell("", mark=_TIED if row.is_tied else _DEFAULT if row.is_default else None),
            Cell(model_interval(model) if model and size.tuned.by == "model" else numbers.time_us(value)),
            Cell(numbers.ratio(best / value)),
            Cell(f"{point} (the header's)") if row.is_default else Cell(point, code=True),
        )
    )
