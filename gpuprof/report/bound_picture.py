# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The picture of a case's bounds: a bar for each part's least time on one axis, the measured time a line."""

from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limits import Floor, Limits
from gpuprof.results import Bound

#: A bar that ends at the axis' end would not show that it does.
_MARGIN = 1.04
#: A rung below that is slower than this would squeeze the picture.
_COMPARABLE = 3.0


@dataclass(frozen=True, slots=True)
class BoundBar:
    """One part of the GPU. Places are shares of the axis in percent.

    Args:
        key: The part's, which its definition goes by.
        label: The part.
        least: Where its floor ends.
        even: Where it would end if all SMs shared the work evenly; None where they do.
        most: Where it would end if caches absorbed nothing; None where they have no part in it.
        is_beyond: Whether that lies beyond the axis.
        reachable: Where it ends at the rate that this device was measured to reach; None where it was not.
        before: Where the rung below ends; None where there is none to compare with.
        time: Its floor.
        share: Of the measured time; empty without one.
        note: Formula.
        binds: Whether no other ends later.
    """

    key: str
    label: str
    least: float
    even: float | None
    most: float | None
    is_beyond: bool
    reachable: float | None
    before: float | None
    time: str
    share: str
    note: str
    binds: bool


@dataclass(frozen=True, slots=True)
class BoundPicture:
    """All bars of one case.

    Args:
        bars: The one that binds first.
        measured: Where the measured time lies; None without one.
        measured_time: The same as a time; empty without one.
        before: Where the measured time of the rung below lies; None without one.
        below: Id of the rung below, empty where its marks are not drawn.
        text: What binds.
        shifts: Which bounds moved since the rung below; empty without one.
        uncached: What levels below the caches would need without them.
        latency: Why it takes far longer; empty where it does not.
        steps: What less work of the binding part would allow.
        hot_line: The line that causes most of that work; None where lines were not counted.
        hot_share: Its share.
    """

    bars: tuple[BoundBar, ...]
    measured: float | None
    measured_time: str
    before: float | None
    below: str
    text: str
    shifts: str
    uncached: str
    latency: str
    steps: tuple[str, ...]
    hot_line: int | None
    hot_share: str


def picture_of(ladder: SizeLadder, rung: Rung) -> BoundPicture | None:
    """The bounds of a rung beside those of the one that it is compared with; None without exact counts.

    One that chose another's code is no step from any.
    """
    if rung.limits is None:
        return None
    if rung.case.chosen or not rung.previous:
        return bound_picture(rung.limits)
    return bound_picture(rung.limits, rung, ladder.rung(rung.previous).limits)


def bound_picture(limits: Limits, rung: Rung | None = None, below: Limits | None = None) -> BoundPicture:
    """Lay a case's bounds out on one time axis that starts at 0.

    Args:
        limits: The case's.
        rung: The rung that it stands for, which tells what moved.
        below: The bounds of the rung that it is compared with, marked beside its own.
    """
    longest = max(limits.measured_us or 0.0, limits.least_us)
    if below is not None:
        theirs = max(below.measured_us or 0.0, below.least_us)
        below, longest = (below, max(longest, theirs)) if theirs <= _COMPARABLE * longest else (None, longest)
    axis = _MARGIN * longest
    marks = {floor.key: floor.bound.least_us for floor in below.floors} if below else {}
    hot = limits.hot
    previous = rung.previous or "" if rung else ""
    return BoundPicture(
        bars=tuple(_bar(floor, axis, marks.get(floor.key)) for floor in limits.floors),
        measured=100 * limits.measured_us / axis if limits.measured_us else None,
        measured_time=numbers.time_us(limits.measured_us) if limits.measured_us else "",
        before=100 * below.measured_us / axis if below and below.measured_us else None,
        below=previous if below else "",
        text=_sentence(limits.text),
        shifts=f"Against {previous}: {'; '.join(shift.text for shift in rung.shifts)}."
        if rung and rung.shifts
        else "",
        uncached=limits.uncached,
        latency=limits.latency,
        steps=tuple(_sentence(step.text) for step in (rung.actions if rung else ())),
        hot_line=hot.line if hot else None,
        hot_share=numbers.percent(hot.share_pct) if hot else "",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _note(bound: Bound) -> str:
    reachable = bound.reachable_us
    own = f" At the rate measured here: {numbers.time_us(reachable)}." if reachable else ""
    return f"{bound.formula}.{own}"


def _bar(floor: Floor, axis: float, before_us: float | None) -> BoundBar:
    def place(time_us: float | None) -> float | None:
        return None if time_us is None else min(100.0, 100 * time_us / axis)

    bound = floor.bound
    reachable = bound.reachable_us if bound.reachable_us and bound.reachable_us <= axis else None
    return BoundBar(
        key=floor.key,
        label=floor.label,
        least=place(bound.least_us) or 0.0,
        even=place(bound.even_us),
        most=place(bound.most_us),
        is_beyond=bound.most_us is not None and bound.most_us > axis,
        reachable=place(reachable),
        before=place(before_us),
        time=numbers.time_us(bound.least_us),
        share="" if floor.share_pct is None else numbers.percent(floor.share_pct),
        note=_note(bound),
        binds=floor.binds,
    )
