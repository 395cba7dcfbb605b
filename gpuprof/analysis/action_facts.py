# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A thing to do about what limits a case, and the facts of the case that it is computed from."""

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.limiter import Limiter
from gpuprof.analysis.limits import Floor, Limits, limits_of
from gpuprof.analysis.speed import speed_of
from gpuprof.bounds.parts import WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.results import Measurement, Run

#: What allows less than this is not worth the work.
WORTHWHILE = 1.02
#: The widest access of a warp: 16 bytes a lane.
WIDEST = 16 * WARP_LANES


class Action(Struct, frozen=True):
    """One thing to do, why, and what it would allow at best.

    `least_us` is the bound that is left, set by the part `left`; None where no count tells. `factor` says how
    many times as fast as now that is, or how many times lower the bound, where the case has a time, measured
    or modelled, and it is the bound that changes and not how near this comes. Both have so many `digits`.
    """

    do: str
    why: str
    least_us: float | None = None
    left: str = ""
    factor: float | None = None
    lowers_bound: bool = False
    digits: int = 3

    @property
    def text(self) -> str:
        """For example `pad the tile: 8 of 9 passes conflict; would allow 94.0 ns at best (L2), 6.00×`."""
        return f"{self.do}: {self.why}{self._gain}"

    @property
    def brief(self) -> str:
        """The same without the reason, where it tells what it would allow."""
        return f"{self.do}{self._gain}" if self._gain else self.text

    @property
    def _gain(self) -> str:
        if self.least_us is None or self.factor is None:
            return ""
        left = f" ({self.left})" if self.left else ""
        least, factor = numbers.time_us(self.least_us, self.digits), numbers.ratio(self.factor, self.digits)
        if self.lowers_bound:
            return f"; would lower the bound {factor}, to {least}{left}"
        return f"; would allow {least} at best{left}, {factor}"


class CaseFacts:
    """A case with what its actions are computed from."""

    def __init__(self, run: Run, case: Measurement, limiter: Limiter | None) -> None:
        self.run, self.case, self.limiter = run, case, limiter
        self.limits: Limits | None = limits_of(run, case)
        self.device: Device = run.devices[case.device]

    @cached_property
    def now_us(self) -> float | None:
        """The time; without one the bound."""
        speed = speed_of(self.run, self.case)
        return speed.median_us if speed else self.limits.least_us if self.limits else None

    @cached_property
    def floor(self) -> Floor | None:
        """Of the part that limits, where it is one."""
        held = self.limits.floors if self.limits else ()
        return next((floor for floor in held if self.limiter and floor.key == self.limiter.key), None)

    def count(self, *names: str) -> float:
        return counts.known(self.case, *names)

    @cached_property
    def work(self) -> tuple[float, str]:
        """Warp-wide steps that the problem needs, and what one of them is."""
        problem = self.case.problem
        steps = counts.useful_warp_steps(self.case)
        if not problem.flops:
            return steps, "element moved"
        return (steps, "FMA") if _is_of_fmas(self.case, steps) else (2 * steps, "operation")

    def allowing(self, do: str, why: str, us: float, part: Floor) -> Iterator[Action]:
        """The action where it leaves `us` of a part: a bound that some other part may exceed."""
        assert self.limits is not None
        others = [floor for floor in self.limits.floors if floor.key != part.key]
        most = max(others, key=lambda floor: floor.bound.least_us, default=None)
        least, left = us, part
        if most is not None and most.bound.least_us >= us:
            least, left = most.bound.least_us, most
        factor = self.limits.least_us / least if least else 0.0
        if factor >= WORTHWHILE:
            has_time = bool(self.limits.measured_us or self.limits.modelled_us)
            yield Action(do, why, least, left.short, factor, has_time)

    def fewer(self, do: str, said: str, work: float, needed: float) -> Iterator[Action]:
        """The action that takes away what of the limiting part's work no result needs, told as `{gone}`."""
        if self.floor is None or self.limits is None or not work:
            return
        second = max((f.bound.least_us for f in self.limits.floors if f is not self.floor), default=0.0)
        least = max(second, self.floor.bound.least_us * min(1.0, needed / work))
        gone = work * (1 - least / self.floor.bound.least_us)
        yield from self.allowing(do, said.format(gone=numbers.count(gone)), least, self.floor)

    def to_the_bound(self, do: str, why: str) -> Action:
        """An action against what no bound holds: at best the highest bound is left."""
        if self.limits is None or self.now_us is None:
            return Action(do, why)
        least, left = self.limits.least_us, self.limits.binding.short
        if self.limiter and self.limiter.share_pct and self.now_us * self.limiter.share_pct / 100 > least:
            # The bytes and the arithmetic of the problem itself, where a bound leaves some to the caches.
            least, left = self.now_us * self.limiter.share_pct / 100, self.limiter.name
        ratio = self.now_us / least
        return Action(do, why, least, left, ratio) if ratio >= WORTHWHILE else Action(do, why)


def _is_of_fmas(case: Measurement, steps: float) -> bool:
    """Whether fused multiply-adds are at least half of a case's work; where nobody counted, they may be."""
    counted = [counts.value(case, f"{kind}fma_thread_instructions") for kind in "fd"]
    known = [fmas for fmas in counted if fmas is not None]
    return not known or 2 * max(known) >= WARP_LANES * steps
