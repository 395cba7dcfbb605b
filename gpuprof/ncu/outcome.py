# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From profiled launches to the counters of cases, and into a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gpuprof.bounds import with_bounds
from gpuprof.counters import COUNTERS, OCCUPANCY, OF_NCU, OPCODES, CounterInfo
from gpuprof.measure.case import Case
from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.ncu.read import MetricCell, ProfiledLaunch
from gpuprof.ncu.tool import NcuError
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, Run
from gpuprof.schema import Tally, complaint_about

#: Base units with what turns them into the unit shown; a count's unit is the name of what it counts.
_FACTORS: dict[str, dict[str, float]] = {
    "%": {"%": 1.0},
    "GB/s": {"byte/second": 1e-9, "byte/s": 1e-9},
    "bytes": {"byte": 1.0},
    "us": {"ns": 1e-3, "nsecond": 1e-3},
}
_CHANGED = (
    "Nsight Compute counted instructions by opcode beside it, which changes the code of cp.async:"
    " collect it without sass__inst_executed_per_opcode"
)
_EACH_ITS_OWN = "each of the case's launches has its own: open the report in ncu-ui"
_NO_COUNT = "it was not collected for one of the case's launches"
#: Units that only a scaled value has.
_SCALED = ("K", "M", "G", "T")
#: Shares of peaks come out a little above 100, by the clocks; that of bytes used at 400 for some loads.
_MOST_PCT = 110


class CaseProfile(Struct, frozen=True):
    """What Nsight Compute says of one case.

    Counters without a value carry the reason. A case without any, but with a reason, has not had its turn:
    the fault is not its own.
    """

    counters: Mapping[str, Counter]
    reason: str | None = None


class NcuOutcome(Struct, frozen=True):
    """What profiling brought.

    `profiles` has every case asked for by its index, unless the command was asked to end and it `stopped`;
    `problem` kept Nsight Compute from profiling anything.
    """

    profiles: Mapping[int, CaseProfile]
    reports: tuple[Path, ...] = ()
    version: str | None = None
    problem: NcuError | None = None
    stopped: bool = False


def is_profiled(case: Measurement) -> bool:
    """Whether Nsight Compute is done with a case, even if it has no value."""
    return any(counter.source == "ncu" for counter in case.counters.values())


def lacks_counters(run: Run) -> bool:
    """Whether there are cases that Nsight Compute could still profile."""
    return run.backend == "gpu" and any(
        case.outcome == "ok" and not case.is_reference and not is_profiled(case) for case in run.cases
    )


def without_profile(reason: str) -> CaseProfile:
    """A case that Nsight Compute did not profile: every counter is there, with the reason."""
    counters = {
        row.name: Counter(None, row.unit, "ncu", row.metrics[0], reason)
        for row in OF_NCU
        if not row.only_with
    }
    return CaseProfile(counters, reason)


def profile_of(launch: ProfiledLaunch, copies: CopyMetrics) -> CaseProfile:
    """The counters of one profiled launch; `copies` says which cannot see all that its kernel does."""
    read = {row.name: _counter(row, launch) for row in OF_NCU if row.only_with in (None, *copies.kinds)}
    for name, counter in read.items():
        over = COUNTERS[name].over
        if over and read[over].value == 0:
            read[name] = replace(counter, value=None, reason=f"there were no {COUNTERS[over].label.lower()}")
    changed = OPCODES in launch.cells and "async" in copies.kinds
    hidden = {row.name: _CHANGED for row in OF_NCU if row.only_with == "async"} if changed else {}
    for name, reason in {**hidden, **copies.hidden}.items():
        if name in read:
            read[name] = replace(read[name], value=None, reason=reason)
    return CaseProfile(read)


def _counter(row: CounterInfo, launch: ProfiledLaunch) -> Counter:
    held = [name for name in row.metrics if name in launch.cells]
    name = next((name for name in held if launch.cells[name].value is not None), (held or row.metrics)[0])
    missing = "the report does not hold this metric"
    if row.opcode:
        missing += ", which is not collected beside cp.async"
    cell = launch.cells.get(name, MetricCell(None, "", missing))
    value, why = cell.value, cell.why
    if value is not None and row.opcode:
        if cell.parts is None:
            value, why = None, "the report does not tell instructions by opcode"
        else:
            value = cell.parts.get(row.opcode, 0)
    elif value is not None:
        value, why = _converted(value, cell.unit, row.unit)
    if value is not None and complaint_about(Tally, value):
        value, why = None, f"Nsight Compute gives {value:g}, which counts nothing"
    if value is not None and row.unit == "%" and value > _MOST_PCT:
        value, why = None, f"Nsight Compute gives {value:g} %, more than there is"
    return Counter(value, row.unit, "ncu", name, why)


def _converted(value: float | int, unit: str, wanted: str) -> tuple[float | int | None, str | None]:
    """A value in the unit shown; a unit that is not the documented base unit gives a reason instead."""
    factors = _FACTORS.get(wanted)
    if factors is None:
        scaled = len(unit) > 1 and unit[0] in _SCALED and unit[1].islower()
        return (None, f"Nsight Compute gives it in {unit}, no base unit") if scaled else (value, None)
    if unit not in factors:
        return None, f"Nsight Compute gives it in {unit or 'no unit'}, which gpuprof does not know"
    factor = factors[unit]
    return (value if factor == 1.0 else value * factor), None


def profilable(run: Run, cases: Sequence[Case], device: int = 0) -> list[tuple[int, Case]]:
    """The cases of a run that ended well on one of its devices, each with its index in `run.cases`.

    `cases` is the plan of that device; a run that was stopped early holds a prefix of it.
    """
    own = [(index, case) for index, case in enumerate(run.cases) if case.device == device]
    return [
        # The block that ran, which a kernel that chooses does not know beforehand.
        (index, replace(case, block=measurement.block))
        for (index, measurement), case in zip(own, cases, strict=False)
        if measurement.outcome == "ok" and not measurement.is_reference
    ]


def merge(run: Run, outcome: NcuOutcome) -> Run:
    """The run with Nsight Compute's counters and achieved occupancy; times are left as they were measured."""
    cases = tuple(
        with_bounds(_with_profile(case, outcome.profiles[index]), run.devices[case.device])
        if index in outcome.profiles
        else case
        for index, case in enumerate(run.cases)
    )
    environment = dict(run.environment)
    if outcome.version:
        environment["ncu"] = outcome.version
    return replace(run, cases=cases, environment=environment)


def _with_profile(case: Measurement, profile: CaseProfile) -> Measurement:
    occupancy = case.occupancy
    if occupancy is not None:
        counter = profile.counters.get(OCCUPANCY)
        achieved, why = (counter.value, counter.reason) if counter else (None, profile.reason)
        occupancy = replace(occupancy, achieved_pct=achieved, achieved_reason=why)
    # What another source counted stays where Nsight Compute has no value.
    gained = {
        name: counter
        for name, counter in profile.counters.items()
        if counter.value is not None or name not in case.counters
    }
    return replace(
        case,
        occupancy=occupancy,
        counters={**case.counters, **gained},
        counters_reason=profile.reason,
    )


def combined(profiles: Sequence[CaseProfile], largest: int) -> CaseProfile:
    """What the launches of a case come to together.

    Counts and durations are added up. A share of a count, a rate or a ratio per instruction is the mean of
    the launches', weighted by what it is relative to: exactly what all of them together have. Registers and
    occupancy are the largest launch's, like all that a case says of its launch; the rest has no such sum.

    `profiles` holds one of each launch, in order; `largest` says which has the most threads.
    """
    if len(profiles) == 1:
        return profiles[0]
    for profile in profiles:
        if profile.reason:
            return profile
    names = dict.fromkeys(name for profile in profiles for name in profile.counters)
    return CaseProfile({name: _combined(name, profiles, largest) for name in names})


def _combined(name: str, profiles: Sequence[CaseProfile], largest: int) -> Counter:
    rule = COUNTERS[name].over_launches
    # A kind of copy that a launch does not make is in its profile not at all.
    held = [profile for profile in profiles if name in profile.counters]
    first = held[0].counters[name]
    if rule == "largest":
        return profiles[largest].counters.get(name, first)
    if rule == "none":
        return replace(first, value=None, reason=_EACH_ITS_OWN)
    if rule == "sum":
        weights: list[float | int | None] = [1] * len(held)
    else:
        weights = [profile.counters[rule].value if rule in profile.counters else None for profile in held]
    parts = [(profile.counters[name], weight) for profile, weight in zip(held, weights, strict=True)]
    # Where there is nothing to be a share of, there is no share, and none is lacking.
    counted = [(counter, weight) for counter, weight in parts if weight != 0] or parts
    for counter, weight in counted:
        if counter.value is None or weight is None:
            return replace(first, value=None, reason=counter.reason or _NO_COUNT)
    total = sum((counter.value or 0) * (weight or 0) for counter, weight in counted)
    if rule == "sum":
        return replace(first, value=total, reason=None)
    return replace(first, value=total / sum(weight or 0 for _, weight in counted), reason=None)
