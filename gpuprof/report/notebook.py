# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as a notebook shows it: compact tables without scripts, in the colours of the page around them."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.banners import banners
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.status import status_of
from gpuprof.report.case_columns import CaseColumn, CaseRow, case_columns, says_anything
from gpuprof.report.cells import format_block
from gpuprof.report.device_facts import devices_text
from gpuprof.report.filling import templates
from gpuprof.report.parameters_text import parameter_lines
from gpuprof.report.shortened import shortened
from gpuprof.results import Run

#: Cases that a table shows; a whole report shows all of them.
_MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class _Row:
    row: CaseRow
    is_fastest: bool


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    columns: tuple[CaseColumn, ...]
    rows: tuple[_Row, ...]
    lines: tuple[str, ...]


def render_notebook(run: Run) -> str:
    """A run as a fragment of HTML: no script, no style sheet, every text escaped.

    Args:
        run: What to show.
    """
    run = shortened(run)
    return (
        templates()
        .get_template("notebook.html.j2")
        .render(
            device=devices_text(run),
            mode=MODES[run.backend].ran,
            tables=[_table(run, group) for group in groups(run)],
            cautions=[
                f"{banner.title}. {banner.fix}".strip() for banner in banners(run) if banner.level != "note"
            ],
        )
    )


def _table(run: Run, group: Group) -> _Table:
    ladders = [build_ladder(run, size) for size in group.sizes]
    rows = [CaseRow(run, rung, case) for ladder in ladders for rung in ladder.rungs for case in rung.cases]
    columns = [column for column in case_columns(run, ladders) if says_anything(column, rows)]
    title = group.title if len(ladders) > 1 else f"{group.title}, {ladders[0].size.label}"
    lines = [*_reasons(run, rows)]
    for ladder in ladders:
        answer = answer_of(run, ladder)
        found = (answer.text, *parameter_lines(run, group, answer.size))
        lines += [f"{answer.size}: {line}" for line in found]
    if len(rows) > _MOST_ROWS:
        lines.append(f"{len(rows) - _MOST_ROWS} more cases are in the whole report: save(), show().")
    return _Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(_Row(row, row.shown is not None and row.rung.is_fastest) for row in rows[:_MOST_ROWS]),
        lines=tuple(lines),
    )


def _reasons(run: Run, rows: list[CaseRow]) -> Iterator[str]:
    """Why cases have no figures."""
    for row in rows[:_MOST_ROWS]:
        status = status_of(run, row.case)
        if not status.usable:
            what = f"{row.case.kernel} {row.case.problem.label} {format_block(row.case, brief=True)}"
            reason = row.case.reason or "no reason was recorded"
            yield f"{status.symbol} {what} {status.word}: {reason}"
