# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One kernel's section: its header's texts, its source, and what its card folds away, a column a size.

That is figures, counters, shares, and what its header claims.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod

from markupsafe import Markup
from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limiter import verdict
from gpuprof.analysis.limits import Floor, Limits
from gpuprof.analysis.models import REASONS, modelled_text, reasons_text, stalled
from gpuprof.analysis.status import blocks_of, status_of
from gpuprof.devices.occupancy import occupancy_limits
from gpuprof.records import grouped
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
from gpuprof.report.source import Listing, difference, header_lines, line_count, listing
from gpuprof.report.svg.intervals import rounds_picture, samples_text
from gpuprof.results import KernelRecord, Measurement, Run
from gpuprof.text import format_extent

#: A bar that ends at the axis' end would not show that it does.
_MARGIN = 1.04


class BoundPicture(Struct, frozen=True):
    """A case's bounds on one axis of time."""

    limits: Limits
    verdict: str
    shifts: str = ""
    next_steps: tuple[str, ...] = ()

    @property
    def axis_us(self) -> float:
        """Where the axis ends, which starts at 0."""
        return _MARGIN * max(self.limits.measured_us or 0.0, self.limits.least_us)

    def place(self, time_us: float | None) -> float | None:
        """Where a time lies along the axis, in percent; None for none."""
        return None if time_us is None else min(100.0, 100 * time_us / self.axis_us)

    def reachable(self, floor: Floor) -> float | None:
        """Where a floor ends at the rate that this device was measured to reach."""
        time_us = floor.bound.reachable_us
        return self.place(time_us) if time_us and time_us <= self.axis_us else None


def note(floor: Floor) -> str:
    """How a floor was calculated."""
    time_us = floor.bound.reachable_us
    own = f" At the rate measured here: {numbers.time_us(time_us)}." if time_us else ""
    return f"{floor.bound.formula}.{own}"


def picture_of(rung: Rung, *, alone: bool = True) -> BoundPicture | None:
    """The bounds of a rung, beside the steps up to it unless `alone`; None without exact counts."""
    if rung.limits is None:
        return None
    shifts = f"Against {rung.previous}: {'; '.join(rung.shifts)}." if alone and rung.shifts else ""
    said = _sentence(verdict(rung.limits, rung.limiter))
    return BoundPicture(rung.limits, said, shifts, tuple(_sentence(action.text) for action in rung.actions))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class KernelSection(Struct, frozen=True):
    """Everything shown of one kernel.

    Its claims stand here where no size measured any of them. `header` is what stands before the code of its
    source, None where there is nothing else; `before` the rung that `difference` starts from.
    """

    anchor: str
    record: KernelRecord
    is_reference: bool
    sizes: tuple[tuple[SizeLadder, Rung], ...]
    claims: tuple[str, ...]
    brief: str
    figures: tuple[Content, ...]
    header: Listing | None
    code: Listing | None
    counted_size: str
    before: str | None
    difference: Markup


def anchors_of(run: Run) -> dict[str, str]:
    """A distinct HTML id for each kernel, readable where its own id allows that."""
    anchors: dict[str, str] = {}
    for case in run.cases:
        if case.kernel not in anchors:
            slug = re.sub(r"[^A-Za-z0-9_]+", "-", case.kernel)[:60].strip("-")
            taken = f"kernel-{slug}" in anchors.values()
            anchors[case.kernel] = f"kernel-{slug}-{len(anchors)}" if taken or not slug else f"kernel-{slug}"
    return anchors


def kernel_sections(
    run: Run, ladders: list[SizeLadder], anchors: dict[str, str]
) -> tuple[KernelSection, ...]:
    """One section per kernel, in ladder order."""
    pairs = ((ladder, rung) for ladder in ladders for rung in ladder.rungs)
    ordered = sorted(
        grouped(pairs, lambda found: found[1].kernel.id).values(),
        key=lambda found: (found[0][1].is_reference, found[0][1].kernel.operation, found[0][1].kernel.rung),
    )
    return tuple(_section(run, found, anchors) for found in ordered)


def _section(run: Run, found: list[tuple[SizeLadder, Rung]], anchors: dict[str, str]) -> KernelSection:
    rungs = [rung for _, rung in found]
    cases = tuple(rung.case for rung in rungs)
    record = rungs[0].kernel
    # Counts of the largest size say most: there the tails weigh least.
    shown = next((case for case in reversed(cases) if case.lines), None)
    before = next((rung.previous for rung in reversed(rungs) if rung.previous), None)
    older = kernel_record(run, before) if before else None
    # A file that only chooses has no code to differ.
    old = older.source if older and not older.choices and not record.choices else ""
    limits = next((rung.limits for rung in rungs if rung.case is shown), None)
    binding = limits.binding.short if limits and limits.hot else ""
    header, code = _listings(record, anchors[record.id], shown, binding, rungs)
    claimed = any(claim.step for rung in rungs for claim in rung.claims)
    return KernelSection(
        anchor=anchors[record.id],
        record=record,
        is_reference=rungs[0].is_reference,
        sizes=tuple(found),
        claims=() if claimed else tuple(f"{claim.label}: {claim.says}" for claim in rungs[0].claims),
        brief=_brief(run, found),
        figures=tuple(kernel_figures(run, found, record, before, anchors[record.id] if code else "")),
        header=header,
        code=code,
        counted_size=shown.problem.label if shown else "",
        before=before,
        difference=difference(old, record.source) if old and record.source else Markup(""),
    )


def _listings(
    record: KernelRecord, anchor: str, shown: Measurement | None, binding: str, rungs: list[Rung]
) -> tuple[Listing | None, Listing | None]:
    """Licence and header, which are folded, and the code; a file that only chooses is shown whole."""
    if not record.source:
        return None, None
    folded = 0 if record.choices else header_lines(record.source)
    named = frozenset(rung.limits.hot.line for rung in rungs if rung.limits and rung.limits.hot)
    named |= {line.line for rung in rungs if rung.case.model for line in rung.case.model.lines}
    span = (folded, line_count(record.source))
    told = (case.explanation for rung in rungs for case in rung.cases)
    wrong = {found.line: found.cause for found in told if found and found.line}
    code = listing(record.source, anchor, span, shown, binding, named, wrong)
    return (listing(record.source, anchor, (0, folded)) if folded else None), code


def _brief(run: Run, found: list[tuple[SizeLadder, Rung]]) -> str:
    """For example `4096: 2.50 ms`; a modelled time or a bound is said to be one."""
    for ladder, rung in reversed(found):
        if rung.speed is not None:
            return f"{ladder.size.heading}: {numbers.time_us(rung.speed.median_us)}"
        if rung.case.model is not None and status_of(run, rung.case).usable:
            return f"{ladder.size.heading}: {modelled_text(rung.case.model)}"
        if rung.limits is not None and status_of(run, rung.case).usable:
            return f"{ladder.size.heading}: at least {numbers.time_us(rung.limits.least_us)}"
    ladder, rung = found[-1]
    return f"{ladder.size.heading}: {status_of(run, rung.case).word}"


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
        _row(cases, "Block", "block", lambda case: Cell(format_block(case))),
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
