# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as Markdown, for the summary of a CI job or a table in a README."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.banners import banners, is_noisy
from gpuprof.analysis.blocks import build_sweeps
from gpuprof.analysis.figure import Subject
from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Ladder, Rung, build_ladder
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.speed import Speed, rate, why_no_speed
from gpuprof.analysis.status import status_of
from gpuprof.analysis.tuned import tuned_sizes
from gpuprof.report.blocks_text import BLOCK_COLUMNS, block_sentence
from gpuprof.report.cells import cell_of, format_block, missing
from gpuprof.report.device_facts import devices_text
from gpuprof.report.document import Cell
from gpuprof.report.ladder_table import explanation, resource_columns, rung_columns
from gpuprof.report.markdown_text import code, text
from gpuprof.report.parameters_text import parameter_lines
from gpuprof.report.profile_table import PROFILE_COLUMNS, profile_rows
from gpuprof.report.shortened import shortened
from gpuprof.report.tuned_markdown import search_markdown
from gpuprof.results import Run

_LEVELS = {"bad": "✗", "warning": "⚠", "note": "ℹ"}
#: Said below the tables in any case, with each row's reason.
_SAID_BY_ROWS = {"incorrect", "failed", "over_limit"}
_NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its heading, and a rung's cell in its unit."""

    label: str
    read: Callable[[Rung], Cell]


def render_markdown(run: Run) -> str:
    """One table per problem and size, short enough for a README; reasons and cautions stand below.

    Args:
        run: What to show.

    Returns:
        Markdown text, ending in a newline; what was not measured says so.
    """
    run = shortened(run)
    device = f"**{text(devices_text(run))}**"
    parts = [
        ", ".join(
            (device, MODES[run.backend].ran, text(run.created_utc), f"gpuprof {text(run.tool.version)}")
        )
    ]
    parts += map(search_markdown, tuned_sizes(run))
    for group in groups(run):
        for size in group.sizes:
            parts.append(_section(run, group, build_ladder(run, size)))
    cautions = [
        f"- {_LEVELS[banner.level]} **{text(banner.title)}.** {text(banner.detail)}"
        for banner in banners(run)
        if banner.level != "note" and banner.code not in _SAID_BY_ROWS
    ]
    if cautions:
        parts.append("\n".join(cautions))
    return "\n\n".join(parts) + "\n"


def _section(run: Run, group: Group, ladder: Ladder) -> str:
    columns = _columns(run, group, ladder)
    title = f"{group.title}, {ladder.size.label}"
    blocks = {format_block(rung.case) for rung in ladder.rungs if not rung.is_reference}
    if len(blocks) == 1 and len(ladder.rungs) > 1:
        title += f", block {blocks.pop()}"
    lines = [
        f"### {text(title)}",
        "",
        "| Kernel | " + " | ".join(text(column.label) for column in columns) + " |",
        "|:--|" + "--:|" * len(columns),
        *(_row(run, rung, columns) for rung in ladder.rungs),
    ]
    answer = answer_of(run, ladder)
    details = f" {'; '.join(answer.details)}." if answer.details else ""
    lines += ["", text(f"{ladder.size.label}: {answer.text}{details}")]
    if run.tuning is None:
        for line in parameter_lines(run, group, ladder.size.label):
            lines += ["", text(line)]
        lines += _blocks(run, group, ladder.size.label)
    remarks = [(rung, remark) for rung in ladder.rungs for remark in rung.case.remarks]
    if remarks:
        lines += ["", *(f"- {code(rung.kernel.id)}: {text(remark)}" for rung, remark in remarks)]
    without = [rung for rung in ladder.rungs if not status_of(run, rung.case).usable]
    if without:
        lines.append("")
    for rung in without:
        reason = " ".join(explanation(run, rung))
        lines.append(f"- {code(rung.kernel.id)} {status_of(run, rung.case).word}: {text(reason)}")
    return "\n".join([*lines, *_profile(run, ladder)])


def _blocks(run: Run, group: Group, size: str) -> Iterator[str]:
    """Every block of each kernel that ran with several, the best in bold."""
    for sweep in build_sweeps(run, group):
        if sweep.size != size:
            continue
        yield from ("", f"Blocks of {code(sweep.kernel)}. {text(block_sentence(run, sweep))}", "")
        columns = (sweep.metric, *BLOCK_COLUMNS[run.backend])
        yield "| Block | " + " | ".join(text(FIGURES[key].short) for key in columns) + " |"
        yield "|:--|" + "--:|" * len(columns)
        for cell in sweep.all_cells:
            name = text(format_block(cell.case))
            status = status_of(run, cell.case)
            if status.usable:
                found = (cell_of(FIGURES[key], Subject(run, cell.case)) for key in columns)
                texts = [_NOT_MEASURED if one.text is None else text(one.text) for one in found]
            else:
                texts = [f"{status.symbol} {status.word}", *["–"] * (len(columns) - 1)]
            yield f"| {f'**{name}** ★' if cell.is_best else name} | {' | '.join(texts)} |"


def _profile(run: Run, ladder: Ladder) -> Iterator[str]:
    """The columns that optimisation studies print, where Nsight Compute counted."""
    rows = profile_rows(run, ladder)
    if not rows:
        return
    yield from ("", "Counted by Nsight Compute:", "")
    yield "| Kernel | " + " | ".join(text(column.label) for column in PROFILE_COLUMNS) + " |"
    yield "|:--|" + "--:|" * len(PROFILE_COLUMNS)
    for row in rows:
        cells = [_NOT_MEASURED if cell.text is None else text(cell.text) for cell in row.cells]
        yield f"| {code(row.rung.kernel.id)} | {' | '.join(cells)} |"


def _row(run: Run, rung: Rung, columns: tuple[_Column, ...]) -> str:
    status = status_of(run, rung.case)
    name = f"**{code(rung.kernel.id)}**" if rung.is_fastest else code(rung.kernel.id)
    if len(rung.cases) > 1:
        name += f" {text(format_block(rung.case))}"
    elif rung.case.chosen:
        name += f" → {code(rung.case.chosen)}"
    if rung.is_reference:
        name += f" ({text(rung.kernel.title or 'reference')})"
    if not status.usable:
        cells = [f"{status.symbol} {status.word}", *["–"] * (len(columns) - 1)]
    else:
        found = [column.read(rung) for column in columns]
        cells = [_NOT_MEASURED if cell.text is None else text(cell.text) for cell in found]
    return f"| {name} | {' | '.join(cells)} |"


def _columns(run: Run, group: Group, ladder: Ladder) -> tuple[_Column, ...]:
    resources = tuple(_Column(column.label, column.read) for column in resource_columns(run))
    if run.backend != "gpu":
        counts = tuple(_Column(column.label, column.read) for column in rung_columns(run, group, ladder)[1:])
        return counts if run.backend == "none" else (*counts, *resources)
    return (
        *_timed(run, group, ladder),
        *(_Column(column.label, _of_rungs(column.read)) for column in resources),
    )


def _of_rungs(read: Callable[[Rung], Cell]) -> Callable[[Rung], Cell]:
    """A library's resources are its own affair."""
    return lambda rung: Cell("–") if rung.is_reference else read(rung)


def _timed(run: Run, group: Group, ladder: Ladder) -> Iterator[_Column]:
    flops = group.rate_is_flops
    rates = [rate(rung.speed, flops) for rung in ladder.rungs if rung.speed]
    units = numbers.COMPUTE_UNITS if flops else ((1.0, "GB/s"),)
    divisor, unit = numbers.unit_for(max(rates, default=1.0), units)

    def time(speed: Speed, rung: Rung) -> str:
        return numbers.time_us(speed.median_us) + (" ~" if is_noisy(rung.case) else "")

    def share(value: float | None) -> str:
        return "–" if value is None else numbers.significant(value)

    def times(value: float | None) -> str:
        return "–" if value is None else numbers.ratio(value)

    def by_speed(write: Callable[[Speed, Rung], str]) -> Callable[[Rung], Cell]:
        def cell(rung: Rung) -> Cell:
            return (
                missing(why_no_speed(run, rung.case)) if rung.speed is None else Cell(write(rung.speed, rung))
            )

        return cell

    yield _Column("Time", by_speed(time))
    digits = 4 if unit == "GB/s" else 3
    yield _Column(
        unit,
        by_speed(
            lambda speed, _: numbers.significant(
                rate(speed, flops) / divisor, digits if rate(speed, flops) >= 1000 * divisor else 3
            )
        ),
    )
    if ladder.reference is not None:
        yield _Column(f"vs {ladder.reference_name}", by_speed(lambda _, rung: times(rung.vs_reference)))
    yield _Column("% of limit", by_speed(lambda speed, _: share(speed.pct_of_limit)))
