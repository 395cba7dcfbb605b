# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The picture of a case's bounds: a bar for each part's least time on one axis, the measured time a line."""

from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.ladder import Rung
from gpuprof.analysis.limiter import verdict
from gpuprof.analysis.limits import Floor, Limits

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

    @property
    def hot_line(self) -> int | None:
        """The line that causes most of the binding part's work; None where lines were not counted."""
        return self.limits.hot.line if self.limits.hot else None


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
