# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Points of a search, or of a run with several, as a document: the answer at each size, who is in front."""

import math
from collections.abc import Iterator, Mapping

from gpuprof.analysis import numbers
from gpuprof.analysis.groups import Group
from gpuprof.analysis.limits import limits_of, shifts
from gpuprof.analysis.models import model_interval
from gpuprof.analysis.status import status_of
from gpuprof.comparison.tuned import (
    BLOCK,
    TunedRow,
    TunedSize,
    answer_sentence,
    space_sentence,
    swept,
    tie_sentence,
    tuned_sizes,
    typed,
)
from gpuprof.report.document import (
    CAUTION,
    Cell,
    Column,
    Content,
    Row,
    Section,
    Sentence,
    Table,
    folded_table,
)
from gpuprof.results import Run

#: Points that are shown before the rest is folded away.
_MOST_SHOWN = 10
_TIED, _DEFAULT = "★", "◇"
_NOT_TIMED = {
    "model": "Not timed; ranked by modelled times: any that is too near to tell may be the fastest.",
    "bound": "Not timed; ranked by lower bounds: the point with the lower bound may still be the slower.",
}
_HEAD = {"time": "time", "model": "modelled", "bound": "at least"}


def search_content(run: Run) -> Iterator[Content]:
    """What a search found, size by size; nothing of a run that is not a search."""
    sizes = tuned_sizes(run)
    for by in dict.fromkeys(size.by for size in sizes if size.rows and not size.by_time):
        yield Sentence(_NOT_TIMED[by], mark=CAUTION, tone="warning")
    for size in sizes:
        yield Section("", tuple(_size(run, size)))


def sweep_content(run: Run, group: Group, *, briefly: bool) -> Iterator[Content]:
    """Kernels that ran with several blocks or sets of parameters; briefly only the best of each."""
    # A search looks at few points of many: it tells of them itself.
    for kernel, size in () if run.tuning else swept(run, group):
        content = tuple(_size(run, size, kernel))
        yield from content[:1] if briefly else [Section("", content)]


def _size(run: Run, size: TunedSize, kernel: str = "") -> Iterator[Content]:
    ties, what = tie_sentence(size), f"{kernel} {size.title}".strip()
    answer = f"{what}: {answer_sentence(size)}.{f' {ties}.' if ties else ''}"
    yield Sentence(answer, mark=_TIED if size.rows else "–", tone="strong")
    if size.tuned:
        yield Sentence(f"{space_sentence(size)}.", mark="–", tone="muted")
    if because := _because(run, size):
        yield Sentence(because, mark="–", tone="muted")
    caption = f"Points{f' of {kernel}' if kernel else ''} at {size.title}"
    best = size.rows[0].value_us or 1.0 if size.rows else 1.0
    columns = (
        Column("", right=False),
        Column("point", right=False, folds=20),
        Column(_HEAD[size.by]),
        Column("of the best"),
    )
    rows = [_row(size, row, best) for row in size.rows]
    yield from _map(size, f"{caption}, {_HEAD[size.by]}")
    yield from folded_table(columns, rows, _MOST_SHOWN, "point", f"{caption}, the best first")
    for row in size.wrong:
        status = status_of(run, row.case)
        reason = (
            row.case.reason or row.case.bounds_reason or row.case.model_reason or "no reason was recorded"
        )
        text = f"{typed(row, several=size.several)} {status.word}: {reason}"
        yield Sentence(text, mark=status.mark, tone="bad")


def _map(size: TunedSize, caption: str) -> Iterator[Table]:
    """Points over two axes as a table that is its own heat map; nothing where fewer or more of them move.

    Nor where most places would be empty.
    """
    points = [(_axes(row.values), row) for row in size.rows]
    names = dict.fromkeys(name for values, _ in points for name in values)
    along = {name: sorted({values.get(name, 0) for values, _ in points}) for name in names}
    moving = [name for name, values in along.items() if len(values) > 1]
    places = math.prod(len(along[name]) for name in moving)
    if size.several or len(moving) != 2 or 2 * len(points) < places:
        return
    down, across = sorted(moving, key=lambda name: len(along[name]), reverse=True)
    found = {(values.get(down, 0), values.get(across, 0)): row for values, row in points}
    best = size.rows[0].value_us or 1.0
    yield Table(
        (Column(f"{down} \\ {across}"), *(Column(f"{value:,}") for value in along[across])),
        tuple(
            Row((Cell(f"{y:,}"), *(_place(size, found.get((y, x)), best) for x in along[across])))
            for y in along[down]
        ),
        caption,
        tinted=True,
    )


def _axes(values: Mapping[str, str]) -> dict[str, int]:
    """A point's values as numbers, its block's extents one by one."""
    block = zip("xyz", values.get(BLOCK, "").split("x"), strict=False)
    held = {f"block {axis}": extent for axis, extent in block if extent}
    return {name: int(value) for name, value in {**values, **held}.items() if name != BLOCK}


def _place(size: TunedSize, row: TunedRow | None, best: float) -> Cell:
    """A point's cell, the fuller the nearer it is to the best."""
    if row is None:
        return Cell("–")
    value = row.value_us or best
    digits = 2 if size.by == "model" else 3
    return Cell(numbers.time_us(value, digits), mark=_mark(row), share=best / value)


def _mark(row: TunedRow) -> str:
    return _TIED if row.is_tied else _DEFAULT if row.is_default else ""


def _because(run: Run, size: TunedSize) -> str:
    """Which bounds tell the best from the header's own values, or from the slowest, by time."""
    other = size.default or (size.rows[-1] if size.rows else None)
    if other is None or other.is_tied or not size.by_time:
        return ""
    cases = other.case, size.rows[0].case
    before, after = (limits_of(run, case) for case in cases)
    moved = shifts(before, after) if before and after else ()
    return f"From {typed(other, several=size.several)} to the best: {'; '.join(moved)}." if moved else ""


def _row(size: TunedSize, row: TunedRow, best: float) -> Row:
    value = row.value_us or best
    point, model = typed(row, several=size.several), row.case.model
    digits = 2 if size.by == "model" else 3
    return Row(
        (
            Cell("", mark=_mark(row)),
            Cell(f"{point} (the default)") if row.is_default else Cell(point, code=True),
            Cell(model_interval(model) if model and size.by == "model" else numbers.time_us(value)),
            Cell(numbers.ratio(best / value, digits), share=best / value),
        )
    )
