# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel's card folds away, a column a size: figures, counters, shares, and what its header claims."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES, counter_figure
from gpuprof.analysis.kinds import blocks_of
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.models import REASONS, reasons_text, stalled
from gpuprof.devices.occupancy import occupancy_limits
from gpuprof.report.case_table import cell_of, format_block, missing, modelled_cell, outcome_of
from gpuprof.report.document import (
    Cell,
    CodeBlock,
    Column,
    Content,
    Drawing,
    Row,
    Section,
    Sentence,
    Table,
)
from gpuprof.report.svg.intervals import rounds_picture, samples_text
from gpuprof.results import KernelRecord, Measurement, Run
from gpuprof.text import format_extent

_SHOWN = (
    *(
        "median_us",
        "ci95_pct",
        "warm_us",
        "published_us",
        "model_us",
        "gflops",
        "gbps",
        "pct_of_peak_compute",
        "pct_of_peak_bandwidth",
    ),
    *("pct_of_copy", "pct_of_measured_limit", "registers_per_thread", "static_shared_bytes"),
    *("dynamic_shared_bytes", "spill_bytes", "theoretical_occupancy_pct", "achieved_occupancy_pct"),
    *("occupancy_limiter", "waves", "max_rel_error", "error_bound"),
)
_LEAST_SHARE_PCT = 1.0
_MOST_LINES = 8
_COUNTED_BY = {"sim": "the SIMT executor", "ncu": "Nsight Compute"}

Found = Sequence[tuple[SizeLadder, Rung]]


def kernel_figures(
    run: Run, found: Found, record: KernelRecord, before: str | None, anchor: str = ""
) -> Iterator[Content]:
    """All figures of one kernel by its rungs, one a size; `before` is the rung that it is compared with.

    The anchor is that of the kernel's source; empty without one.
    """
    cases = [rung.case for _, rung in found]
    yield from _claims(found, record.after or before or "")
    yield _figures(run, found)
    yield from _occupancy(run, *found[-1])
    for ladder, rung in reversed(found):
        size = ladder.size.heading
        yield from _modelled(rung.case, size)
    yield from _model_lines(found, record, anchor)
    yield from _counters(run, found)
    for case in cases:
        if case.timing and case.timing.cold:
            drawn, scale = rounds_picture({f"samples at {case.problem.label}": case.timing.cold})
            title = f"Samples at {case.problem.label}: {samples_text(case.timing.cold)}"
            yield Section(title, (Drawing(drawn), Sentence(scale, tone="muted")), folded=True)
    none = [counter_figure(name).label for name in counts.names_in(tuple(cases)) if _is_zero(cases, name)]
    if none:
        yield Sentence(f"Counted, and 0: {', '.join(none)}.", tone="muted")
    why = dict.fromkeys(
        case.counters_reason or "no reason was recorded" for case in cases if not counts.has_any(case)
    )
    if why and not found[0][1].is_reference:
        some = " at some sizes" if len(found) > 1 else ""
        yield Sentence(f"Not counted{some}: {'; '.join(why)}.", tone="muted")
    texts = [*(" ".join(case.compile_options) for case in cases), *(case.log or "" for case in cases)]
    if any(texts):
        compiler = map(CodeBlock, filter(None, dict.fromkeys(texts)))
        yield Section("Compiler", tuple(compiler), folded=True)


def _sizes(found: Found) -> list[Column]:
    return [Column(ladder.size.heading) for ladder, _ in found]


def _claims(found: Found, before: str) -> Iterator[Table]:
    """What the header says of the step, beside what each size measured of it; nothing where none did."""
    held = list(zip(*(rung.claims for _, rung in found), strict=True))
    if not any(claim.step for claims in held for claim in claims):
        return
    rows = []
    for claims in held:
        cells = [Cell(claims[0].label), Cell(claims[0].says)]
        for claim in claims:
            if claim.step is None:
                cells.append(missing(claim.reason))
            elif claim.contradicted:
                cells.append(Cell(f"{claim.step.figures} not here: {claim.moved}", tone="bad"))
            else:
                cells.append(Cell(claim.step.figures))
        rows.append(Row(tuple(cells)))
    caption = f"What its header says of the step from {before}, and what this run measured"
    columns = (Column("Figure", right=False), Column("Header", right=False), *_sizes(found))
    yield Table(columns, tuple(rows), caption)


def _figures(run: Run, found: Found) -> Table:
    cases = [rung.case for _, rung in found]
    rows = [
        _row(cases, "Outcome", "", lambda case: outcome_of(run, case)),
        _row(cases, "Block", "block", lambda case: Cell(format_block(case, brief=True))),
        _row(cases, "Grid (blocks)", "grid", _grid),
    ]
    if any(case.launches for case in cases):
        rows.append(_row(cases, "Launches in order, timed as one", "", _launches))
    for figure in map(FIGURES.__getitem__, _SHOWN):
        read = modelled_cell if figure.key == "model_us" else _reading(run, figure)
        row = _row(cases, f"{figure.group}: {figure.label}", figure.key, read)
        rows += [row] if any(cell.text is not None for cell in row.cells[1:]) else []
    others = sum(len(rung.cases) - 1 for _, rung in found)
    note = f", best block of each size; {others} more in the tables of all cases" if others else ""
    return Table((Column("Size", right=False), *_sizes(found)), tuple(rows), f"Figures{note}")


def _occupancy(run: Run, ladder: SizeLadder, rung: Rung) -> Iterator[Table]:
    """How the theoretical occupancy of the largest size follows from what a block takes."""
    case = rung.case
    if case.resources is None or case.occupancy is None:
        return
    limits = occupancy_limits(
        run.devices[case.device],
        threads_per_block=prod(case.block),
        registers_per_thread=case.resources.registers_per_thread,
        shared_bytes_per_block=case.resources.shared_bytes,
    )
    rows = (
        Row((Cell(one.name), Cell("any" if one.blocks is None else f"{one.blocks}"), Cell(one.reckoned)))
        for one in limits
    )
    held = f"{numbers.percent(case.occupancy.theoretical_pct)}, limited by {case.occupancy.limiter}"
    columns = (Column("Limit", right=False), Column("Blocks an SM"), Column("Because", right=False, folds=30))
    yield Table(columns, tuple(rows), f"Theoretical occupancy at {ladder.size.heading}: {held}")


def _row(cases: Sequence[Measurement], label: str, term: str, read: Callable[[Measurement], Cell]) -> Row:
    return Row((Cell(label, term=term), *map(read, cases)))


def _reading(run: Run, figure: Figure) -> Callable[[Measurement], Cell]:
    return lambda case: cell_of(figure, Subject(run, case), fine=True)


def _grid(case: Measurement) -> Cell:
    blocks = blocks_of(case)
    if not case.grid or not blocks:
        return missing("the launch was never worked out")
    return Cell(f"{format_extent(case.grid)} ({numbers.count(blocks)})")


def _launches(case: Measurement) -> Cell:
    """Block, grid and resources of the other rows are those of the launch with the most threads."""
    told = (
        f"{one.entry}: {format_extent(one.grid)} blocks of {format_extent(one.block)},"
        f" {one.resources.registers_per_thread} registers"
        for one in case.launches
    )
    return Cell("; ".join(told))


def _modelled(case: Measurement, size: str) -> Iterator[Table]:
    """Where the modelled time goes, beside what Nsight Compute saw of the cycles of warps."""
    if case.model is None or not case.model.reasons:
        return
    seen = stalled(case)
    rows = []
    for reason, (label, meaning) in REASONS.items():
        share, theirs = case.model.reasons.get(reason, 0.0), seen.get(reason, 0.0)
        if max(share, theirs) * 100 < _LEAST_SHARE_PCT:
            continue
        cells = [Cell(label), _share_cell(share)]
        if seen:
            other = "with latency" if reason == "bandwidth" else "–"
            cells.append(_share_cell(theirs) if reason in seen else Cell(other, tone="muted"))
        rows.append(Row((*cells, Cell(meaning, tone="muted"))))
    columns = [Column("Reason", right=False), Column("Modelled")]
    columns += [Column("Nsight Compute, of warps' cycles")] if seen else []
    columns.append(Column("What it is", right=False))
    yield Table(tuple(columns), tuple(rows), f"Where the modelled time goes at {size}")


def _model_lines(found: Found, record: KernelRecord, anchor: str) -> Iterator[Table]:
    """The source lines that a modelled time goes into, at the largest size that has one."""
    lines = record.source.splitlines()
    held = ((ladder, rung.case.model) for ladder, rung in reversed(found))
    ladder, model = next(((ladder, model) for ladder, model in held if model and model.lines), (None, None))
    if ladder is None or model is None:
        return
    rows = []
    for one in sorted(model.lines, key=lambda line: -line.share)[:_MOST_LINES]:
        code = lines[one.line - 1].strip() if one.line <= len(lines) else ""
        link = f"{anchor}-L{one.line}" if anchor else ""
        cells = Cell(f"Line {one.line}", anchor=link), _share_cell(one.share), Cell(reasons_text(one.reasons))
        rows.append(Row((*cells, Cell(code, code=True))))
    columns = (
        *(Column("Line", right=False), Column("Share"), Column("Of the whole", right=False)),
        Column("Source", right=False, folds=30),
    )
    caption = f"Source lines that the modelled time goes into at {ladder.size.heading}"
    yield Table(columns, tuple(rows), caption)


def _share_cell(share: float) -> Cell:
    part = max(0.0, min(1.0, share))
    return Cell(numbers.percent(100 * part), 100 * part, share=part)


def _is_zero(cases: Sequence[Measurement], name: str) -> bool:
    values = [counts.value(case, name) for case in cases]
    return any(value is not None for value in values) and not any(values)


def _counters(run: Run, found: Found) -> Iterator[Table]:
    """A table for each source of counts."""
    cases = [rung.case for _, rung in found]
    rows: dict[tuple[str, ...], list[Row]] = {}
    for name in counts.names_in(tuple(cases)):
        row = _row(cases, counter_figure(name).label, name, _reading(run, counter_figure(name)))
        if not _is_zero(cases, name):
            held = {counter.source for case in cases if (counter := counts.find(case, name))}
            rows.setdefault(tuple(sorted(held)), []).append(row)
    for sources, own in rows.items():
        caption = f"Counters, by {' and '.join(_COUNTED_BY[source] for source in sources)}"
        yield Table((Column("Counter", right=False), *_sizes(found)), tuple(own), caption)
