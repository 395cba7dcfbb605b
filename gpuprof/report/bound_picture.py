# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The picture of a case's bounds: a bar for each part's least time on one axis, the measured time a line."""

from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limits import Floor, Limits

#: A bar that ends at the axis' end would not show that it does.
_MARGIN = 1.04
#: A rung below that is slower than this would squeeze the picture.
_COMPARABLE = 3.0


@dataclass(frozen=True, slots=True)
class BoundPicture:
    """A case's bounds on one axis of time, beside those of the rung that it is compared with.

    Args:
        limits: The case's.
        axis_us: Where the axis ends, which starts at 0.
        below: The bounds of the other rung; None without one, and where they would squeeze the picture.
        previous: Id of that rung.
        shifts: Which bounds moved since it.
        next_steps: What less work of the binding part would allow.
    """

    limits: Limits
    axis_us: float
    below: Limits | None = None
    previous: str = ""
    shifts: str = ""
    next_steps: tuple[str, ...] = ()

    def place(self, time_us: float | None) -> float | None:
        """Where a time lies along the axis, in percent; None for none."""
        return None if time_us is None else min(100.0, 100 * time_us / self.axis_us)

    def before(self, floor: Floor) -> float | None:
        """Where the other rung's floor of the same part ends."""
        theirs = self.below.floors if self.below else ()
        return self.place(next((other.bound.least_us for other in theirs if other.key == floor.key), None))

    def reachable(self, floor: Floor) -> float | None:
        """Where a floor ends at the rate that this device was measured to reach."""
        time_us = floor.bound.reachable_us
        return self.place(time_us) if time_us and time_us <= self.axis_us else None

    @property
    def text(self) -> str:
        """What binds."""
        return _sentence(self.limits.text)

    @property
    def hot_line(self) -> int | None:
        """The line that causes most of the binding part's work; None where lines were not counted."""
        return self.limits.hot.line if self.limits.hot else None


def note(floor: Floor) -> str:
    """How a floor was calculated."""
    time_us = floor.bound.reachable_us
    own = f" At the rate measured here: {numbers.time_us(time_us)}." if time_us else ""
    return f"{floor.bound.formula}.{own}"


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
    """A case's bounds, the rung that it stands for, and the bounds of the one that this is compared with."""
    longest = max(limits.measured_us or 0.0, limits.least_us)
    theirs = max(below.measured_us or 0.0, below.least_us) if below else 0.0
    if theirs > _COMPARABLE * longest:
        below, theirs = None, 0.0
    if rung is None:
        return BoundPicture(limits, _MARGIN * max(longest, theirs), below)
    return BoundPicture(
        limits,
        _MARGIN * max(longest, theirs),
        below,
        rung.previous or "",
        f"Against {rung.previous}: {'; '.join(rung.shifts)}." if rung.shifts else "",
        tuple(_sentence(action.text) for action in rung.actions),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
