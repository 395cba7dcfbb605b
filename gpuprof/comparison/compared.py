# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Two runs, case by case: what became of each, by how much, and what moved with it."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, get_args

from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.changes import FigureChange
from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.analysis.status import is_reference, name_of_case, on_host, status_of
from gpuprof.comparison.judging import Judgement, Verdict, judge, judge_modelled, times_of
from gpuprof.comparison.matching import Difference, differences, match
from gpuprof.errors import InputError
from gpuprof.results import Measurement, Run
from gpuprof.text import listed

#: What a verdict rests on: times by round; where nothing was timed, modelled times, or the exact bound where
#: nothing was modelled; or how the case ended.
Basis = Literal["time", "model", "bound", "outcome", "nothing"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
#: The same in the order in which they ask for attention.
ATTENTION: tuple[Verdict, ...] = ("regressed", "improved", "uncertain", "unmeasured", "same")
#: A bound that moves by less is rounding: counts are exact, and no time is claimed.
_LEAST_BOUND = 0.01
#: By how much Nsight Compute's counters differ from one run of a kernel to the next.
_NOISE_OF_HARDWARE = 0.05
#: Shares that follow from addresses alone.
_EFFICIENCIES = ("global_load_efficiency_pct", "global_store_efficiency_pct")
#: Figures of a case that no noise touches, besides its counters.
EXACT = (
    "registers_per_thread",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "spill_bytes",
    "theoretical_occupancy_pct",
    "occupancy_limiter",
    "block_threads",
    "grid_blocks",
    "bound_by",
    "bound_us",
)


class CaseVerdict(Struct, frozen=True):
    """A case that both runs have; `same_source` is None where a library ran."""

    base: Subject
    new: Subject
    verdict: Verdict
    basis: Basis
    sentence: str
    judgement: Judgement | None
    moved: tuple[FigureChange, ...]
    same_source: bool | None
    other_identity: tuple[str, ...]
    is_reference: bool

    @property
    def name(self) -> str:
        """Kernel, size and launch shape on one line, and the device where the run has several."""
        return case_name(self.new.run, self.new.case)


class ComparedRuns(Struct, frozen=True, dict=True):
    """A base and a new run, with their names: cases of both in the new run's order, and those of one only."""

    base_name: str
    new_name: str
    base: Run
    new: Run
    cases: tuple[CaseVerdict, ...]
    missing: tuple[Measurement, ...]
    added: tuple[Measurement, ...]
    differences: tuple[Difference, ...]

    @cached_property
    def counts(self) -> dict[Verdict, int]:
        """How many kernels' cases have each verdict; references are no subject of a verdict of the whole."""
        found = Counter(case.verdict for case in self.cases if not case.is_reference)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def verdict(self) -> Verdict:
        """The gravest: regressed, else uncertain, improved or same; unmeasured where nothing was."""
        order: tuple[Verdict, ...] = ("regressed", "uncertain", "improved", "same")
        return next((verdict for verdict in order if self.counts[verdict]), "unmeasured")

    @property
    def headline(self) -> str:
        """For example `2 regressed, 37 same; 1 missing`, or `2 improved, 5 uncertain (modelled)`."""
        words = [f"{self.counts[verdict]} {verdict}" for verdict in ATTENTION if self.counts[verdict]]
        of_one_only = (("missing", self.missing), ("new", self.added))
        lists = [f"{len(cases)} {word}" for word, cases in of_one_only if cases]
        how = " (modelled)" if any(case.basis == "model" for case in self.cases) else ""
        verdicts = f"{', '.join(words)}{how}" if words else "nothing to compare"
        return "; ".join(filter(None, (verdicts, ", ".join(lists))))

    @property
    def advice(self) -> str:
        """What would tell of the times that are uncertain; empty where none is."""
        needed = max((case.judgement.needed for case in self.cases if case.judgement), default=0)
        return f"measure both with --rounds {needed}, or interleaved by --against" if needed else ""


def compare_runs(
    base: Run, new: Run, *, base_name: str = "base", new_name: str = "new", force: bool = False
) -> ComparedRuns:
    """Compare two runs, under the names that a user gave them.

    Raises:
        InputError: The two are of different devices, clocks or ways to measure, or have no case in common,
            and `force` is False.
    """
    found = differences(base, new)
    misleading = [difference for difference in found if difference.misleads]
    if misleading and not force:
        raise InputError(
            f"{base_name} and {new_name} cannot be compared: {'; '.join(item.text for item in misleading)}"
            f" ({misleading[0].misleads}).",
            fix="Measure both in one way on one device, or add --force to see them side by side.",
        )
    pairs = match(base, new)
    if not force and not any(pair.base and pair.new for pair in pairs):
        raise InputError(
            f"{base_name} and {new_name} have no case in common: the one holds {_held(base)}, the other"
            f" {_held(new)}.",
            fix="Measure the same kernels at the same sizes, or add --force to list what each of them has.",
        )
    cases = tuple(
        _compared(Subject(base, pair.base), Subject(new, pair.new), pair.moved)
        for pair in pairs
        if pair.base and pair.new
    )
    missing = tuple(pair.base for pair in pairs if pair.base and not pair.new)
    added = tuple(pair.new for pair in pairs if pair.new and not pair.base)
    return ComparedRuns(base_name, new_name, base, new, cases, missing, added, found)


def case_name(run: Run, case: Measurement) -> str:
    """Kernel, size, block and parameters of a case, and the device where the run has several, on one line."""
    name = name_of_case(case)
    return f"{name} on {run.device_label(case.device)}" if len(run.devices) > 1 else name


def _held(run: Run, most: int = 2) -> str:
    return listed([case_name(run, case) for case in run.cases], most) or "none"


def _compared(base: Subject, new: Subject, other_identity: tuple[str, ...]) -> CaseVerdict:
    hashes = base.case.source_hash, new.case.source_hash
    same_source = hashes[0] == hashes[1] if all(hashes) else None
    reference = is_reference(new.run, new.case)
    moved = tuple(_moved(base, new))
    return CaseVerdict(base, new, *_verdict(base, new), moved, same_source, other_identity, reference)


def _verdict(base: Subject, new: Subject) -> tuple[Verdict, Basis, str, Judgement | None]:
    was, is_now = status_of(base.run, base.case), status_of(new.run, new.case)
    if not (was.usable and is_now.usable):
        return (*_by_outcome(base, new), None)
    times = times_of(base.case), times_of(new.case)
    timed = [bool(each.medians_us) for each in times]
    if all(timed):
        judgement = judge(*times)
        told = _of_change(judgement)
        if judgement.verdict == "same":
            told = f"a slowdown of {percent(judgement.detectable, signed=False)} would have been detected"
        return judgement.verdict, "time", told, judgement
    if any(timed):
        return "unmeasured", "nothing", "timed in one run only, and nothing else is like a time", None
    if base.case.model and new.case.model:
        judgement = judge_modelled(base.case.model, new.case.model)
        told = "as before" if judgement.verdict == "same" else _of_change(judgement)
        if judgement.verdict == "uncertain":
            told += ", which the model cannot tell from no change"
        return judgement.verdict, "model", f"modelled {told}; not timed", judgement
    return (*_by_bound(base, new), None)


def _by_outcome(base: Subject, new: Subject) -> tuple[Verdict, Basis, str]:
    """What became of a case without figures in one of the runs: one that was not run tells no change."""
    was, is_now = status_of(base.run, base.case), status_of(new.run, new.case)
    why = (base.case if is_now.usable else new.case).reason or "no reason was recorded"
    if was == is_now:
        return "unmeasured", "outcome", f"{is_now.word} as before: {why}"
    verdict: Verdict = "improved" if is_now.usable else "regressed" if was.usable else "unmeasured"
    if "skipped" in (was.word, is_now.word):
        verdict = "unmeasured"
    words = [f"was {was.word}", f"now {is_now.word}"]  # last the one that the reason is of
    return verdict, "outcome", f"{', '.join(reversed(words) if is_now.usable else words)}: {why.rstrip('.')}"


def _of_change(found: Judgement) -> str:
    interval = f"{percent(found.low)} to {percent(found.high)}"
    if found.verdict == "uncertain":
        return f"{percent(found.change)} ({interval})"
    slower = "slower" if found.change > 0 else "faster"
    return f"{percent(abs(found.change), signed=False)} {slower} ({interval})"


def _by_bound(base: Subject, new: Subject) -> tuple[Verdict, Basis, str]:
    """What exact counts say of two versions that were not timed."""
    figure = FIGURES["bound_us"]
    old, now = figure.value(base), figure.value(new)
    if old is None or now is None:
        why = figure.read(base if old is None else new).reason
        return "unmeasured", "nothing", f"neither times, nor modelled ones, nor bounds to compare: {why}"
    how = "by exact counts; not timed or modelled"
    if on_host(new.run, new.case) or abs(now / old - 1) < _LEAST_BOUND:
        return "same", "bound", f"bound {figure.write(now)} as before, {how}"
    verdict: Verdict = "regressed" if now > old else "improved"
    return verdict, "bound", f"bound {figure.write(old)} → {figure.write(now)}, {how}"


def _moved(base: Subject, new: Subject) -> Iterator[FigureChange]:
    names = counts.names_in((base.case, new.case))
    own = [FIGURES[key] for key in EXACT]
    counted = [counter_figure(name) for name in names if name not in EXACT]
    for figure in (*own, *counted):
        before, after = figure.read(base).value, figure.read(new).value
        if before == after:
            continue
        if before is None:
            is_told = _counts_none(base.case, new.case, figure.key)
        elif after is None:
            is_told = _counts_none(new.case, base.case, figure.key)
        else:
            is_told = not _is_noise(figure, before, after, base.case, new.case)
        if is_told:
            yield FigureChange(figure, before, after)


def _counts_none(absent: Measurement, present: Measurement, name: str) -> bool:
    """Whether a counter is missing because the executor met nothing of the kind, not for want of measuring.

    The executor leaves out what a kernel does not do; what was not counted stands there with its reason, and
    what Nsight Compute counted of one version only says how that was measured.
    """
    counted = counts.held(present).get(name)
    if counted is None or counted.source != "sim" or name in counts.held(absent):
        return False
    return any(item.source == "sim" and item.value is not None for item in counts.held(absent).values())


def _is_noise(
    figure: Figure, before: float | str, after: float | str, base: Measurement, new: Measurement
) -> bool:
    """Whether Nsight Compute may well say both of the same code.

    Its rates, hit rates and stalls follow from when things happened, and even its counts differ a little. Of
    the same code they say nothing; of other code, counts and efficiencies that moved clearly do.
    """
    found = [counts.held(case).get(figure.key) for case in (base, new)]
    if isinstance(before, str) or isinstance(after, str) or not any(c and c.source == "ncu" for c in found):
        return False
    # A count over another, as cycles a warp waits for each instruction, is a rate too.
    counted = numbers.is_count(figure.unit) and "/" not in figure.unit
    counted = counted or figure.unit == "bytes" or figure.key in _EFFICIENCIES
    if not counted or base.source_hash == new.source_hash:
        return True
    return abs(after - before) <= _NOISE_OF_HARDWARE * abs(before)


def percent(change: float, *, signed: bool = True) -> str:
    """A relative change for a reader, in two significant digits: 0.023 is `+2.3 %`."""
    share = 100 * change
    text = numbers.percent(abs(share), 2 if abs(share) < 100 else 3)
    return f"{'+' if share > 0 else '−' if share < 0 else ''}{text}" if signed else text
