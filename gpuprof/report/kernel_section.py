# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One kernel's section: its header's texts, its figures at every size, its counters and its source."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limiter import verdict
from gpuprof.analysis.limits import Floor, Limits
from gpuprof.analysis.models import modelled_text
from gpuprof.analysis.status import status_of
from gpuprof.report.document import Content
from gpuprof.report.kernel_tables import kernel_figures
from gpuprof.report.ladder_table import explanation, told_of
from gpuprof.report.source import Listing, difference, header_lines, line_count, listing
from gpuprof.results import KernelRecord, Measurement, Run

#: A bar that ends at the axis' end would not show that it does.
_MARGIN = 1.04


@dataclass(frozen=True, slots=True)
class BoundPicture:
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


class SizeColumn(NamedTuple):
    """A kernel at one size: the case that stands for it."""

    label: str
    case: Measurement
    told: tuple[str, ...]
    explanation: tuple[str, ...]
    bounds: BoundPicture | None


@dataclass(frozen=True, slots=True)
class KernelSection:
    """Everything shown of one kernel.

    Its claims stand here where no size measured any of them. `header` is what stands before the code of its
    source, None where there is nothing else; `before` the rung that `difference` starts from.
    """

    anchor: str
    record: KernelRecord
    is_reference: bool
    sizes: tuple[SizeColumn, ...]
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
    held: dict[str, list[tuple[SizeLadder, Rung]]] = {}
    for ladder in ladders:
        for rung in ladder.rungs:
            held.setdefault(rung.kernel.id, []).append((ladder, rung))
    ordered = sorted(
        held.values(),
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
        sizes=tuple(
            SizeColumn(
                ladder.size.heading,
                rung.case,
                tuple(told_of(rung)),
                () if rung.limits else explanation(run, rung),
                picture_of(rung),
            )
            for ladder, rung in found
        ),
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
    code = listing(record.source, anchor, span, shown, binding, named)
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
