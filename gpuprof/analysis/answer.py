# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The answer of one ladder in a sentence: who is fastest, by how much, and because of what."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.banners import is_noisy
from gpuprof.analysis.figure import Subject
from gpuprof.analysis.figures import headline_rate
from gpuprof.analysis.groups import Group
from gpuprof.analysis.ladder import Ladder, Rung, uncertainty
from gpuprof.analysis.limits import Limits
from gpuprof.analysis.status import status_of
from gpuprof.results import Run
from gpuprof.text import format_extent

#: Bounds within this factor count as equal.
_SAME_BOUND = 1.01
_MOST_NAMED = 3
#: No time can be below its bound; what is within the noise of one is not below it.
_BELOW = 0.99


@dataclass(frozen=True, slots=True)
class Answer:
    """What a ladder says, in parts that every renderer shows in the same words.

    Args:
        size: The size as a user types it.
        kernel: Id of the kernel that the answer names; None where there is none.
        lead: Who, in which time, against what: `streamk_12x16, 2.50 ms, 107 % of cublas`.
        because: What binds it; empty where that is not known.
        alike: Kernels and references that the figures do not tell apart from it.
        cautions: What else a reader must know before believing it: who is as fast, who has no result.
        detail: Rates and shares of peaks, and the distance to the slowest; empty without a time.
    """

    size: str
    kernel: str | None
    lead: str
    because: str
    alike: tuple[str, ...]
    cautions: tuple[str, ...]
    detail: str

    @property
    def text(self) -> str:
        """The whole sentence, without the size."""
        parts = [", ".join(filter(None, (self.lead, self.because))), *self.cautions]
        return f"{'; '.join(parts)}."


def answer_of(run: Run, group: Group, ladder: Ladder) -> Answer:
    """The answer of one ladder.

    Args:
        run: The run.
        group: What the ladder computes.
        ladder: All kernels of one size.

    Returns:
        By times where kernels were timed, else by bounds and said to be bounds; where neither exists it says
        that nothing can be told. Kernels without a correct result are named in each.
    """
    if ladder.fastest is not None:
        return _by_time(run, group, ladder, ladder.rung(ladder.fastest))
    return _by_bound(run, ladder) or _untold(run, ladder)


def _by_time(run: Run, group: Group, ladder: Ladder, rung: Rung) -> Answer:
    assert rung.speed is not None
    width = rung.speed.timing.ci95_rel
    noise = f" ±{numbers.percent(100 * width, 2)}" if width is not None and is_noisy(rung.case) else ""
    lead = [_named(rung), f"{numbers.time_us(rung.speed.median_us)}{noise}"]
    if rung.pct_of_reference is not None:
        lead.append(f"{numbers.percent(rung.pct_of_reference)} of {ladder.reference}")
    alike = tuple(_alike(ladder, rung))
    told = (f"within the noise of {_some(alike)}",) if alike else ()
    because = _because(rung)
    return Answer(
        size=ladder.size.label,
        kernel=rung.kernel.id,
        lead=", ".join(lead),
        because=because,
        alike=alike,
        cautions=(*told, *_without(run, ladder)),
        detail=_detail(run, group, ladder, rung, because),
    )


def _named(rung: Rung) -> str:
    """The kernel, what it chose, and of several blocks or parameters those that won."""
    case, name = rung.case, rung.kernel.id
    if case.chosen:
        name += f" → {case.chosen}"
    if len({other.block for other in rung.cases}) > 1:
        name += f" {format_extent(case.block)}"
    varied = (key for key in case.params if len({other.params.get(key) for other in rung.cases}) > 1)
    return " ".join([name, *(f"{key}={case.params[key]}" for key in varied)])


def _because(rung: Rung) -> str:
    """What binds, as far as it is known: by exact counts, else by the roofs."""
    limits = rung.limits
    if limits is not None and limits.ratio is not None:
        label = limits.binding.label
        if limits.ratio < _BELOW:
            return f"faster than its bound ({label}) allows: its counts or the rates are wrong"
        if limits.latency:
            return f"{numbers.ratio(limits.ratio)} its highest bound ({label}): latency is not hidden"
        return f"bound by {label} ({numbers.percent(100 / limits.ratio)} of the time)"
    if rung.verdict is not None and rung.verdict.kind != "neither":
        return rung.verdict.text
    speed = rung.speed
    if speed is not None and speed.limit is not None and speed.pct_of_limit is not None:
        return f"{numbers.percent(speed.pct_of_limit)} of the {speed.limit.name}"
    return ""


def _alike(ladder: Ladder, fastest: Rung) -> Iterator[str]:
    """Those whose time the two intervals do not tell apart from the fastest one's.

    A kernel that only chooses another runs that one's code: neither is named beside the other.
    """
    assert fastest.speed is not None
    code = fastest.case.chosen or fastest.kernel.id
    for rung in ladder.rungs:
        if rung is fastest or rung.is_ceiling or rung.speed is None:
            continue
        if (rung.case.chosen or rung.kernel.id) == code:
            continue
        gain = rung.speed.median_us / fastest.speed.median_us
        if abs(gain - 1.0) <= uncertainty(rung.speed) + uncertainty(fastest.speed):
            yield rung.kernel.id


def _detail(run: Run, group: Group, ladder: Ladder, rung: Rung, because: str) -> str:
    """What the sentence has no room for; what it says already is left out."""
    speed = rung.speed
    assert speed is not None
    figure = headline_rate(run, rung.case)
    rate = figure.value(Subject(run, rung.case, rung))
    parts = [figure.write(rate)] if rate is not None else []
    if speed.limit is not None and speed.pct_of_limit is not None:
        share = f"{numbers.percent(speed.pct_of_limit)} of the {speed.limit.name}"
        if share not in because:
            parts.append(share)
    if speed.pct_of_measured_limit is not None:
        parts.append(f"{numbers.percent(speed.pct_of_measured_limit)} of what this device reaches")
    if not group.rate_is_flops and speed.pct_of_copy_bandwidth is not None:
        parts.append(f"{numbers.percent(speed.pct_of_copy_bandwidth)} of the measured copy")
    timed = [
        (other.speed.median_us, other.kernel.id)
        for other in ladder.rungs
        if other.speed and not other.is_reference and not other.is_ceiling
    ]
    most, slowest = max(timed)
    if slowest != rung.kernel.id:
        parts.append(f"{numbers.ratio(most / speed.median_us)} as fast as {slowest}")
    return "; ".join(parts)


def _by_bound(run: Run, ladder: Ladder) -> Answer | None:
    """The order of a ladder that nobody timed; None where there are no bounds either."""
    bounded: list[tuple[float, str, Rung, Limits]] = sorted(
        (
            (rung.limits.least_us, rung.kernel.id, rung, rung.limits)
            for rung in ladder.rungs
            if rung.limits is not None and not rung.is_ceiling and status_of(run, rung.case).usable
        ),
        key=lambda item: item[:2],
    )
    if run.backend != "sim" or not bounded:
        return None
    least, kernel, _, limits = bounded[0]
    most, _, slowest, last = bounded[-1]
    alike = [rung for us, _, rung, _ in bounded if us <= least * _SAME_BOUND]
    who = _some(tuple(map(_named, alike)))
    slower = (f"{_named(slowest)} cannot be faster than {numbers.time_us(most)} ({last.binding.label})",)
    return Answer(
        size=ladder.size.label,
        kernel=kernel,
        lead=f"by bounds, no times: {who} cannot be faster than {numbers.time_us(least)}"
        f" ({limits.binding.label})",
        because="",
        alike=tuple(rung.kernel.id for rung in alike[1:]),
        cautions=(*(slower if most > least * _SAME_BOUND else ()), *_without(run, ladder)),
        detail="",
    )


def _untold(run: Run, ladder: Ladder) -> Answer:
    """What is left to say where no kernel has a time or a bound."""
    usable = sum(status_of(run, rung.case).usable for rung in ladder.rungs)
    kernels = "kernel" if len(ladder.rungs) == 1 else "kernels"
    if run.backend == "none":
        lead = f"nothing ran: {usable} of {len(ladder.rungs)} {kernels} compiled"
    else:
        ran = f"{usable} of {len(ladder.rungs)} {kernels} ran correctly"
        lead = f"no answer: {ran}, none with a figure to compare"
    return Answer(ladder.size.label, None, lead, "", (), tuple(_without(run, ladder)), "")


def _without(run: Run, ladder: Ladder) -> Iterator[str]:
    """Who has no correct result, by how it ended; what does not apply at this size is no failure."""
    ended: dict[str, list[str]] = {}
    for rung in ladder.rungs:
        status = status_of(run, rung.case)
        if not status.usable and rung.case.outcome != "skipped":
            how = _OVER if rung.case.over_limit else _END[rung.case.outcome]
            ended.setdefault(how, []).append(rung.kernel.id)
    for how, kernels in ended.items():
        yield f"{_some(tuple(kernels))} {how}"


_OVER = "asked for more than the device has"
_END = {"incorrect": "computed a wrong result", "failed": "failed", "timeout": "timed out"}


def _some(names: tuple[str, ...]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
