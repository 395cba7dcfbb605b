# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladder: every kernel of one problem size in rung order, each against the rung before it."""

from collections.abc import Mapping

from msgspec import Struct

from gpuprof.analysis import counts
from gpuprof.analysis.action_facts import Action
from gpuprof.analysis.actions import actions_of
from gpuprof.analysis.changes import FigureChange, changes
from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.analysis.groups import SizeSlice, groups, kernel_record, name_of
from gpuprof.analysis.limiter import Limiter, limiter_of
from gpuprof.analysis.limits import Limits, limits_of, shifts
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import Speed, differ, speed_of
from gpuprof.analysis.status import is_ceiling, is_reference, on_host, status_of
from gpuprof.records import grouped, replace
from gpuprof.results import Direction, KernelRecord, Measurement, Run

#: A figure that moves by no more than this share of what it was stays.
STAYS = 0.02
#: Counts in which the executor goes first, because hardware adds the conflicts between instructions.
_CONFLICTS_OF = {"shared_load_bank_conflicts": "load", "shared_store_bank_conflicts": "store"}


class Claim(Struct, frozen=True):
    """One figure that a header says moves, or stays.

    `step` is what it did in this run, None where that was not measured, for a reason; `moved` the same in a
    word, None too where hardware's own noise may explain it.
    """

    label: str
    says: Direction
    step: FigureChange | None = None
    moved: Direction | None = None
    reason: str = ""

    @property
    def contradicted(self) -> bool:
        """Whether the figure did something else in this run."""
        return self.moved is not None and self.moved != self.says


def direction(old: float, new: float) -> Direction:
    """What a figure does that goes from one value to another."""
    if abs(new - old) <= STAYS * abs(old):
        return "stays"
    return "rises" if new > old else "falls"


def _claim(name: str, says: Direction, before: Subject | None, after: Subject, absent: str) -> Claim:
    figure = FIGURES.get(name) or counter_figure(name)
    label = figure.label if figure.group == "Counters" else figure.phrase[:1].upper() + figure.phrase[1:]
    if before is None:
        return Claim(label, says, reason=absent)
    old, new = (_value(figure, subject) for subject in (before, after))
    if old is None or new is None:
        missing = before if old is None else after
        reason = figure.read(missing).reason or f"{missing.case.kernel} has no such figure"
        return Claim(label, says, reason=reason)
    # What hardware adds when instructions contend for the pipe may be all that moved.
    held = [counter for one in (before, after) if (counter := counts.held(one.case).get(name))]
    arbitrates = name in counts.SHARED_WAVEFRONTS and any(counter.source == "ncu" for counter in held)
    is_small = abs(new - old) <= counts.ARBITRATION * max(old, new)
    moved = None if arbitrates and is_small else direction(old, new)
    return Claim(label, says, FigureChange(figure, old, new), moved)


def _value(figure: Figure, subject: Subject) -> float | None:
    kind = _CONFLICTS_OF.get(figure.key)
    return counts.address_conflicts(subject.case, kind) if kind else figure.value(subject)


_OUTCOME_ORDER = {"ok": 0, "incorrect": 1, "failed": 2, "timeout": 3, "skipped": 4}


class Rung(Struct, frozen=True):
    """One kernel at one size, over blocks and parameters.

    Args:
        case: The case that stands for it: the fastest correct one, measured or modelled, else of those that
            got furthest the first with its header's parameters, or else the first.
        actions: What to do about what limits it, the most telling first.
        is_ceiling: It computes less, and bounds what the others can reach.
        previous: Id of the rung it is compared with: the one that its header names with `after`, where that
            has a correct result, else the nearest below. Gain, changes and shifts are those since that rung.
        claims: What its header says moves, held against `previous` where the header speaks of that rung.
        vs_reference: How many times as fast as the fastest reference that solves the same problem on the GPU.
    """

    kernel: KernelRecord
    case: Measurement
    cases: tuple[Measurement, ...]
    speed: Speed | None
    limits: Limits | None
    limiter: Limiter | None
    actions: tuple[Action, ...]
    is_reference: bool
    is_ceiling: bool
    is_fastest: bool = False
    previous: str | None = None
    gain: float | None = None
    gain_is_clear: bool = False
    changes: tuple[FigureChange, ...] = ()
    shifts: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    vs_reference: float | None = None
    vs_fastest: float | None = None


class SizeLadder(Struct, frozen=True):
    """All rungs of one size in order, references last.

    `reference` is the fastest one: one that only copies or runs on the CPU is no base to compare with.
    """

    size: SizeSlice
    rungs: tuple[Rung, ...]
    reference: str | None
    reference_name: str
    fastest: str | None

    def rung(self, kernel_id: str) -> Rung:
        return next(rung for rung in self.rungs if rung.kernel.id == kernel_id)


@remembered
def build_ladder(run: Run, size: SizeSlice) -> SizeLadder:
    """Put the kernels of one size in order and compare neighbours."""
    rungs = _in_order(run, size)
    bases = (rung for rung in rungs if rung.is_reference and not rung.is_ceiling)
    reference = _fastest([rung for rung in bases if not on_host(run, rung.case)])
    fastest = _fastest([rung for rung in rungs if not rung.is_reference and not rung.is_ceiling])
    finished: list[Rung] = []
    for index, rung in enumerate(rungs):
        compared = replace(
            rung,
            vs_reference=_times(reference, rung),
            vs_fastest=_times(fastest, rung),
            is_fastest=rung is fastest,
        )
        finished.append(_climb(run, compared, _before(run, rungs, index)))
    return SizeLadder(
        size=size,
        rungs=tuple(finished),
        reference=reference.kernel.id if reference else None,
        reference_name=name_of(run, reference.kernel) if reference else "",
        fastest=fastest.kernel.id if fastest else None,
    )


def standing(run: Run, case: Measurement) -> tuple[int, float]:
    """Order of cases: by time, else by modelled time; behind those by bound; last, what has none."""
    speed, limits = speed_of(run, case), limits_of(run, case)
    if speed is not None or case.model is not None:
        return 0, speed.median_us if speed else case.model.median_us if case.model else 0.0
    return (1, limits.least_us) if limits else (2, 0.0)


def rungs_of(run: Run) -> dict[int, Rung]:
    """The rung that a case stands for, by the case's identity: for figures that compare rungs."""
    ladders = (build_ladder(run, size) for group in groups(run) for size in group.sizes)
    return {id(rung.case): rung for ladder in ladders for rung in ladder.rungs}


def _in_order(run: Run, size: SizeSlice) -> list[Rung]:
    rungs = []
    for kernel_id, cases in grouped(size.cases, lambda case: case.kernel).items():
        record = kernel_record(run, kernel_id)
        case = min(cases, key=lambda item: _standing(run, item, record.parameters))
        rungs.append(
            Rung(
                kernel=record,
                case=case,
                cases=tuple(cases),
                speed=speed_of(run, case),
                limits=limits_of(run, case),
                limiter=limiter_of(run, case),
                actions=actions_of(run, case),
                is_reference=is_reference(run, case),
                is_ceiling=is_ceiling(run, case),
            )
        )
    return sorted(rungs, key=lambda rung: (rung.is_reference, rung.kernel.rung))


def _standing(run: Run, case: Measurement, default: Mapping[str, int]) -> tuple[int, float, bool]:
    speed, model = speed_of(run, case), case.model
    other = any(case.params.get(name) != value for name, value in default.items())
    us = speed.median_us if speed else model.median_us if model else float("inf")
    return _OUTCOME_ORDER[case.outcome], us, other


def _fastest(rungs: list[Rung]) -> Rung | None:
    timed = [(rung.speed.median_us, index) for index, rung in enumerate(rungs) if rung.speed]
    return rungs[min(timed)[1]] if timed else None


def _times(other: Rung | None, rung: Rung) -> float | None:
    if other is None or other.speed is None or rung.speed is None or rung.is_ceiling:
        return None
    return other.speed.median_us / rung.speed.median_us


def _before(run: Run, rungs: list[Rung], index: int) -> Rung | None:
    """The rung to compare with: the one its header names, else the nearest of the same study and result.

    Only a correct one will do. Each study is a ladder of its own: the first rung of one does not answer the
    last rung of another unless its header says so. A kernel that belongs to no study is compared with
    whatever stands below it. One that chose another's code is no step from any.
    """
    rung = rungs[index]
    if rung.is_reference or rung.case.chosen:
        return None
    for other in rungs:
        named = rung.kernel.after and other.kernel.id == rung.kernel.after
        if named and status_of(run, other.case).usable:
            return other
    for other in reversed(rungs[:index]):
        same_study = not rung.kernel.study or other.kernel.study == rung.kernel.study
        if same_study and other.is_ceiling == rung.is_ceiling and status_of(run, other.case).usable:
            return other
    return None


def _climb(run: Run, rung: Rung, before: Rung | None) -> Rung:
    rung = replace(rung, claims=_claims(run, rung, before))
    if before is None or not status_of(run, rung.case).usable:
        return rung
    gain = before.speed.median_us / rung.speed.median_us if before.speed and rung.speed else None
    return replace(
        rung,
        previous=before.kernel.id,
        gain=gain,
        gain_is_clear=differ(before.speed, rung.speed),
        changes=changes(run, before.case, rung.case),
        shifts=shifts(before.limits, rung.limits) if before.limits and rung.limits else (),
    )


def _claims(run: Run, rung: Rung, before: Rung | None) -> tuple[Claim, ...]:
    """What a header says, held against two cases: it speaks of one step only, and of no other rung."""
    record, start = rung.kernel, Subject(run, before.case) if before else None
    absent = f"no correct result of {record.after or 'a rung below'} to compare with"
    if not status_of(run, rung.case).usable:
        start, absent = None, rung.case.reason or "this kernel has no correct result"
    elif before is not None and record.after not in ("", before.kernel.id):
        start = None
    now = Subject(run, rung.case)
    return tuple(_claim(name, says, start, now, absent) for name, says in record.moves.items())
