# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One kernel's section: its header's texts, its figures at every size, its counters and its source."""

import re
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from gpuprof.analysis import counters, numbers
from gpuprof.analysis.changes import counted
from gpuprof.analysis.claims import Claim
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.kinds import blocks_of, waves
from gpuprof.analysis.ladder import Ladder, Rung
from gpuprof.analysis.status import Status, status_of
from gpuprof.analysis.why import Share, speed_of_light, stalls
from gpuprof.report.bound_picture import BoundPicture, picture_of
from gpuprof.report.cells import (
    BRIEF_TIME,
    CHECK,
    RATE,
    RESOURCE,
    FigureColumn,
    counter_columns,
    format_block,
)
from gpuprof.report.document import Cell
from gpuprof.report.ladder_table import explanation
from gpuprof.report.occupancy_table import OccupancyTable, occupancy_tables
from gpuprof.report.source import Listing, difference, header_lines, line_count, listing
from gpuprof.results import KernelRecord, Measurement, Run
from gpuprof.text import format_extent

#: Counters that are shares of one whole or of a peak, shown as bars.
_AS_BARS = ("sol_", "stall_")
_LEAST_SHARE_PCT = 1.0
_COUNTERS_OF = {"sim": "SIMT executor", "ncu": "Nsight Compute"}


@dataclass(frozen=True, slots=True)
class SizeColumn:
    """A kernel at one size: the case that stands for it."""

    label: str
    block: str
    grid: str
    launches: tuple[str, ...]
    waves: str
    status: Status
    case: Measurement
    explanation: tuple[str, ...]
    bounds: BoundPicture | None


@dataclass(frozen=True, slots=True)
class ShareList:
    """Shares of one case as a list of bars: each part of the GPU against its peak, and where cycles went."""

    label: str
    speed_of_light: tuple[Share, ...]
    stalls: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One figure across sizes."""

    column: FigureColumn
    counted_by: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One figure that the header says moves: what it says, and what each size measured."""

    label: str
    says: str
    sizes: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class KernelSection:
    """Everything shown of one kernel.

    Args:
        brief: Its answer in a few words, at the largest size that it has one for.
        header: Licence and header of its source; None where there is neither, or nothing else.
        code: The rest of it, with counts; None without a source.
        counted_size: The size whose counts stand beside the lines, empty without any.
        bound_by: The part that binds at that size; empty where no line is known to work for it.
        claims: What the header says that its step moves.
        claims_measured: Whether any size measured any of it.
        figures: By the heading their columns share.
        occupancy: The arithmetic of each launch shape.
        shares: Sizes with Nsight Compute's shares, the largest size first.
        zero_counters: Counters that were counted and are 0 at every size.
        before: Id of the rung it is compared with, whose source `difference` starts from.
        other_cases: How many further blocks or parameters only the table of all figures shows.
    """

    anchor: str
    record: KernelRecord
    is_reference: bool
    sizes: tuple[SizeColumn, ...]
    claims: tuple[ClaimRow, ...]
    claims_measured: bool
    brief: str
    figures: tuple[tuple[str, tuple[FigureRow, ...]], ...]
    occupancy: tuple[OccupancyTable, ...]
    counters: tuple[FigureRow, ...]
    shares: tuple[ShareList, ...]
    zero_counters: tuple[str, ...]
    no_counters: tuple[str, ...]
    header: Listing | None
    code: Listing | None
    counted_size: str
    bound_by: str
    before: str | None
    difference: Markup
    options: tuple[str, ...]
    logs: tuple[str, ...]
    other_cases: int


def anchors_of(run: Run) -> dict[str, str]:
    """A distinct HTML id for each kernel, readable where its own id allows that."""
    anchors: dict[str, str] = {}
    for case in run.cases:
        if case.kernel not in anchors:
            slug = re.sub(r"[^A-Za-z0-9_]+", "-", case.kernel)[:60].strip("-")
            taken = f"kernel-{slug}" in anchors.values()
            anchors[case.kernel] = f"kernel-{slug}-{len(anchors)}" if taken or not slug else f"kernel-{slug}"
    return anchors


def kernel_sections(run: Run, ladders: list[Ladder], anchors: dict[str, str]) -> tuple[KernelSection, ...]:
    """One section per kernel, in ladder order."""
    held: dict[str, list[tuple[Ladder, Rung]]] = {}
    for ladder in ladders:
        for rung in ladder.rungs:
            held.setdefault(rung.kernel.id, []).append((ladder, rung))
    ordered = sorted(
        held.values(),
        key=lambda found: (found[0][1].is_reference, found[0][1].kernel.operation, found[0][1].kernel.rung),
    )
    return tuple(_section(run, found, anchors) for found in ordered)


def _section(run: Run, found: list[tuple[Ladder, Rung]], anchors: dict[str, str]) -> KernelSection:
    rungs = [rung for _, rung in found]
    cases = tuple(rung.case for rung in rungs)
    record = rungs[0].kernel
    # Counts of the largest size say most: there the tails weigh least.
    shown = next((case for case in reversed(cases) if case.lines), None)
    before = next((rung.previous for rung in reversed(rungs) if rung.previous), None)
    older = kernel_record(run, before) if before else None
    # A file that only chooses has no code to differ.
    old = older.source if older and not older.choices and not record.choices else ""
    binding = next(
        (
            rung.limits.binding.short
            for rung in rungs
            if rung.case is shown and rung.limits and rung.limits.hot
        ),
        "",
    )
    header, code = _listings(record, anchors[record.id], shown, binding, rungs)
    counted_rows = [
        row for row in _rows(run, counter_columns(cases), cases) if not row.column.key.startswith(_AS_BARS)
    ]
    return KernelSection(
        anchor=anchors[record.id],
        record=record,
        is_reference=rungs[0].is_reference,
        sizes=tuple(_size(run, ladder, rung) for ladder, rung in found),
        claims=tuple(
            ClaimRow(held[0].label, held[0].says, held)
            for held in zip(*(rung.claims for rung in rungs), strict=True)
        ),
        claims_measured=any(claim.step for rung in rungs for claim in rung.claims),
        figures=tuple(
            (name, tuple(rows))
            for name, rows in groupby(
                _rows(run, (*BRIEF_TIME, *RATE, *RESOURCE, *CHECK), cases),
                key=lambda row: row.column.group,
            )
        ),
        counters=tuple(row for row in counted_rows if not _is_zero(row)),
        brief=_brief(run, found),
        occupancy=occupancy_tables(run, cases),
        shares=_shares(found),
        zero_counters=tuple(row.column.label for row in counted_rows if _is_zero(row)),
        no_counters=tuple(
            dict.fromkeys(
                case.counters_reason or "no reason was recorded"
                for case in cases
                if not counted(case) and not rungs[0].is_reference
            )
        ),
        header=header,
        code=code,
        counted_size=shown.problem.label if shown else "",
        bound_by=binding,
        before=before,
        difference=difference(old, record.source) if old and record.source else Markup(""),
        options=tuple(
            dict.fromkeys(" ".join(case.compile_options) for case in cases if case.compile_options)
        ),
        logs=tuple(dict.fromkeys(case.log for case in cases if case.log)),
        other_cases=sum(len(rung.cases) - 1 for rung in rungs),
    )


def _listings(
    record: KernelRecord, anchor: str, shown: Measurement | None, binding: str, rungs: list[Rung]
) -> tuple[Listing | None, Listing | None]:
    """Licence and header, which are folded, and the code; a file that only chooses is shown whole."""
    if not record.source:
        return None, None
    folded = 0 if record.choices else header_lines(record.source)
    named = frozenset(rung.limits.hot.line for rung in rungs if rung.limits and rung.limits.hot)
    span = (folded, line_count(record.source))
    code = listing(record.source, anchor, span, shown, binding, named)
    return (listing(record.source, anchor, (0, folded)) if folded else None), code


def _brief(run: Run, found: list[tuple[Ladder, Rung]]) -> str:
    """For example `4096: 2.50 ms`; a bound is said to be one."""
    for ladder, rung in reversed(found):
        if rung.speed is not None:
            return f"{ladder.size.heading}: {numbers.time_us(rung.speed.median_us)}"
        if rung.limits is not None and status_of(run, rung.case).usable:
            return f"{ladder.size.heading}: at least {numbers.time_us(rung.limits.least_us)}"
    ladder, rung = found[-1]
    return f"{ladder.size.heading}: {status_of(run, rung.case).word}"


def _shares(found: list[tuple[Ladder, Rung]]) -> tuple[ShareList, ...]:
    """Bars of each size that has any; reasons that are next to nothing only lengthen the list."""
    lists = (
        ShareList(
            ladder.size.heading,
            speed_of_light(rung.case),
            tuple(share for share in stalls(rung.case) if share.pct >= _LEAST_SHARE_PCT),
        )
        for ladder, rung in reversed(found)
    )
    return tuple(item for item in lists if item.speed_of_light or item.stalls)


def _size(run: Run, ladder: Ladder, rung: Rung) -> SizeColumn:
    case = rung.case
    blocks, filled = blocks_of(case), waves(run, case)
    return SizeColumn(
        label=ladder.size.heading,
        block=format_block(case, brief=True),
        grid=f"{format_extent(case.grid)} ({numbers.count(blocks)})" if case.grid and blocks else "",
        launches=tuple(
            f"{one.entry}: {format_extent(one.grid)} blocks of {format_extent(one.block)},"
            f" {one.resources.registers_per_thread} registers"
            for one in case.launches
        ),
        waves=numbers.significant(filled) if filled is not None else "",
        status=status_of(run, case),
        case=case,
        explanation=() if rung.limits else explanation(run, rung),
        bounds=picture_of(ladder, rung),
    )


def _rows(
    run: Run, columns: tuple[FigureColumn, ...], cases: tuple[Measurement, ...]
) -> tuple[FigureRow, ...]:
    """Figures that at least one case has."""
    rows = []
    for column in columns:
        cells = tuple(column.read(run, case) for case in cases)
        if any(cell.text is not None for cell in cells):
            rows.append(FigureRow(column, _counted_by(column.key, cases), cells))
    return tuple(rows)


def _is_zero(row: FigureRow) -> bool:
    return all(cell.sort == 0 for cell in row.cells if cell.text is not None)


def _counted_by(key: str, cases: tuple[Measurement, ...]) -> str:
    """Who counted; the tool's own name for the counter stands in its hint."""
    sources = {counter.source for case in cases if (counter := counters.find(case, key))}
    return " and ".join(_COUNTERS_OF[source] for source in sorted(sources))
