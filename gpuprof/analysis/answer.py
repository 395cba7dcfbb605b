# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The answer of one ladder: who is fastest, by how much, what limits it, and what to do about that."""

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.action_facts import Action
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limiter import Limiter, Overhead, beats_its_bound, launch_overhead
from gpuprof.analysis.models import model_interval, modelled_text, too_near
from gpuprof.analysis.speed import Speed, differ, is_noisy
from gpuprof.analysis.status import status_of
from gpuprof.records import replace
from gpuprof.results import Measurement, Model, Run
from gpuprof.text import format_extent, listed

#: Bounds within this factor count as equal.
_SAME_BOUND = 1.01
_MOST_NAMED = 3
#: By what an answer says: how others are that cannot be told from it.
_NEAR = {
    "timed": "within the noise of",
    "modelled": "too near to tell from",
    "bounded": "the same as",
}


class Versus(Struct, frozen=True):
    """How many times as fast as another kernel of the ladder, named as a reader knows it: `cuBLAS`."""

    name: str
    factor: float

    @property
    def text(self) -> str:
        """For example `1.07× cuBLAS`."""
        return f"{numbers.speedup(self.factor)} {self.name}"


class Answer(Struct, frozen=True):
    """What a ladder says, as data: every renderer picks from it and shows the same words.

    Args:
        kind: `timed`; `modelled` where nothing was timed and kernels are ordered by their modelled times;
            `bounded` by lower bounds; `none` where neither exists, which `lead` then explains.
        kernel: Id of the rung that the answer names; None where there is none.
        ran: Id of the kernel whose code ran: not `kernel` where that one chose another.
        shape: Of several blocks or parameters those that won; else empty.
        time_us: Cold median; where it is noisy, `noise` is its interval, as `±1.6 %`.
        alike: Kernels and references that the figures do not tell apart from it.
        unknown: Why not, of each kernel that has no modelled time; one of them may be faster.
        doubt: Why not to believe it; else empty.
    """

    size: str
    kind: Literal["timed", "modelled", "bounded", "none"]
    kernel: str | None = None
    ran: str = ""
    shape: str = ""
    time_us: float | None = None
    noise: str = ""
    model: Model | None = None
    bound_us: float | None = None
    reference: Versus | None = None
    simplest: Versus | None = None
    peak: str = ""
    limiter: Limiter | None = None
    overhead: Overhead | None = None
    alike: tuple[str, ...] = ()
    unknown: Mapping[str, str] = {}
    doubt: str = ""
    action: Action | None = None
    lead: str = ""

    @property
    def alias(self) -> str:
        """Id of the kernel that chose the one that ran; empty where none did."""
        return self.kernel if self.kernel and self.kernel != self.ran else ""

    @property
    def time(self) -> str:
        """The time or its lower bound, as text; empty without either."""
        if self.time_us is None and self.model is not None:
            return modelled_text(self.model)
        return self.short_time

    @property
    def short_time(self) -> str:
        """The same; of a modelled time only its middle, where the rest stands beside it."""
        if self.time_us is not None:
            return " ".join(filter(None, (numbers.time_us(self.time_us), self.noise)))
        if self.model is not None:
            return model_interval(self.model).partition(" (")[0]
        return f"at least {numbers.time_us(self.bound_us)}" if self.bound_us is not None else ""

    @property
    def beside(self) -> str:
        """What a tile says beside its time: a factor, or by how much a model may be off."""
        versus = self.reference or self.simplest
        if versus is None and self.model is not None:
            return model_interval(self.model).removeprefix(f"{self.short_time} ")
        return versus.text if versus else ""

    def near(self, most: int = _MOST_NAMED) -> str:
        """Who cannot be told apart from it: `within the noise of cuBLAS and 2 more`; empty for nobody."""
        return f"{_NEAR[self.kind]} {listed(self.alike, most)}" if self.alike else ""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What else to know before believing it."""
        unknown = f"not modelled: {listed([*self.unknown], _MOST_NAMED)}" if self.unknown else ""
        return tuple(filter(None, (self.doubt, unknown)))

    @property
    def tile(self) -> tuple[str, ...]:
        """What a tile says below the time: one share of a peak, what limits it, the launch overhead."""
        overhead = self.overhead.text if self.overhead else ""
        if self.action and overhead in self.action.brief:
            overhead = ""
        limiter = ""
        if found := self.limiter:
            # Where the share is one of a peak, that stands there already.
            limiter = f"limited by {found.brief if found.key == 'grid' else found.name}"
            if found.share_pct and not found.evidence:
                limiter += f", busy {numbers.percent(found.share_pct, 2)} of the time"
        return tuple(filter(None, (self.peak, overhead, limiter)))


def answer_of(run: Run, ladder: SizeLadder) -> Answer:
    """The answer of one ladder: by times, else by bounds, which it says; else that nothing can be told."""
    if ladder.fastest is not None:
        return _by_time(run, ladder, ladder.rung(ladder.fastest))
    return _untimed(run, ladder) or _untold(run, ladder)


def _by_time(run: Run, ladder: SizeLadder, rung: Rung) -> Answer:
    speed = rung.speed
    assert speed is not None
    width = speed.timing.ci95_rel
    doubt = ""
    if rung.limits is not None and beats_its_bound(rung.limits):
        doubt = (
            f"faster than its bound ({rung.limits.binding.label}) allows: its counts or the rates are wrong"
        )
    return replace(
        _naming(run, ladder, rung),
        kind="timed",
        doubt=doubt,
        time_us=speed.median_us,
        noise=f"±{numbers.percent(100 * width, 2)}" if width is not None and is_noisy(rung.case) else "",
        reference=Versus(ladder.reference_name, rung.vs_reference) if rung.vs_reference else None,
        simplest=_simplest(ladder, rung, speed),
        peak=_peak(speed),
        alike=tuple(_alike(ladder, rung)),
    )


def _naming(run: Run, ladder: SizeLadder, rung: Rung) -> Answer:
    return Answer(
        size=ladder.size.label,
        kind="bounded",
        kernel=rung.kernel.id,
        ran=rung.case.ran,
        shape=shape_of(rung, rung.case),
        bound_us=rung.limits.least_us if rung.limits else None,
        limiter=rung.limiter,
        overhead=launch_overhead(run, rung.case),
        action=next(iter(rung.actions), None),
    )


def shape_of(rung: Rung, case: Measurement) -> str:
    """Of several blocks or parameters of a kernel those of one case; empty where there are no others."""
    block = [format_extent(case.block)] if len({other.block for other in rung.cases}) > 1 else []
    varied = (key for key in case.params if len({other.params.get(key) for other in rung.cases}) > 1)
    return " ".join([*block, *(f"{key}={case.params[key]}" for key in varied)])


def _simplest(ladder: SizeLadder, rung: Rung, speed: Speed) -> Versus | None:
    """Against the first rung of the ladder that has a time."""
    first = next(
        (other for other in ladder.rungs if other.speed and not (other.is_reference or other.is_ceiling)),
        rung,
    )
    if first is rung or first.speed is None:
        return None
    return Versus(first.kernel.id, first.speed.median_us / speed.median_us)


def _peak(speed: Speed) -> str:
    """The rate as a share of a peak, of memory the measured one where known: `83.1 % of peak compute`."""
    if speed.limit is None or speed.pct_of_limit is None:
        return ""
    if speed.pct_of_copy_bandwidth is not None and speed.limit.name == "bandwidth":
        return f"{numbers.percent(speed.pct_of_copy_bandwidth)} of measured copy bandwidth"
    return f"{numbers.percent(speed.pct_of_limit)} of peak {speed.limit.name}"


def _alike(ladder: SizeLadder, fastest: Rung) -> Iterator[str]:
    """Those whose time the two intervals do not tell apart from the fastest one's.

    A kernel that only chooses another runs that one's code: neither is named beside the other.
    """
    assert fastest.speed is not None
    for rung in ladder.rungs:
        if rung is fastest or rung.is_ceiling or rung.speed is None or rung.case.ran == fastest.case.ran:
            continue
        if not differ(rung.speed, fastest.speed):
            yield ladder.reference_name if rung.kernel.id == ladder.reference else rung.kernel.id


def _untimed(run: Run, ladder: SizeLadder) -> Answer | None:
    """The order of a ladder that nobody timed, by modelled times or else by bounds; None without either."""
    usable = [rung for rung in ladder.rungs if not rung.is_ceiling and status_of(run, rung.case).usable]
    modelled = any(rung.case.model for rung in usable)
    known = []
    for rung in usable:
        bound_us = rung.limits.least_us if rung.limits and not modelled else None
        if us := rung.case.model.median_us if rung.case.model else bound_us:
            known.append((us, rung.kernel.rung, rung))
    if run.backend != "sim" or not known:
        return None
    (least, _, rung), *others = sorted(known, key=lambda item: item[:2])
    model = rung.case.model if modelled else None
    alike = tuple(
        other.kernel.id
        for us, _, other in others
        if other.case.ran != rung.case.ran
        and (too_near(model, other.case.model) if model and other.case.model else us <= least * _SAME_BOUND)
    )
    without = {
        other.kernel.id: other.case.model_reason or ""
        for other in usable
        if not other.case.model and (modelled or other.case.model_reason)
    }
    kind: Literal["modelled", "bounded"] = "modelled" if modelled else "bounded"
    return replace(_naming(run, ladder, rung), kind=kind, model=model, alike=alike, unknown=without)


def _untold(run: Run, ladder: SizeLadder) -> Answer:
    """What is left to say where no kernel has a time or a bound."""
    candidates = [rung for rung in ladder.rungs if not (rung.is_reference or rung.is_ceiling)]
    rungs = candidates or ladder.rungs
    usable = sum(status_of(run, rung.case).usable for rung in rungs)
    kernels = numbers.plural(len(rungs), "kernel")
    if run.backend == "none":
        lead = f"nothing ran: {usable} of {kernels} compiled"
    elif usable and not candidates:
        lead = "no answer: only a ceiling ran, which bounds what other kernels can reach"
    else:
        skipped = all(rung.case.outcome == "skipped" for rung in rungs)
        ran = f"{usable} of {kernels} ran{'' if skipped else ' correctly'}"
        lead = f"no answer: {ran}{', none with a figure to compare' if usable else ''}"
    return Answer(ladder.size.label, "none", lead=lead)
