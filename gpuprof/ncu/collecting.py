# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Profile the cases of a run under Nsight Compute: all in one process, and past those that break it.

Which profile belongs to which case is told by the journal that names the launches of a report; also of a
report that was left behind when the run that wanted it was ended.
"""

import os
import re
import signal
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from math import prod
from pathlib import Path

from msgspec import Struct

from gpuprof.kernels.entries import function_name
from gpuprof.measure.case import Case, on_host
from gpuprof.measure.request import Request, plan_cases
from gpuprof.ncu.invocation import JOURNAL_SUFFIX, Ended, NcuOptions, patience, run_ncu
from gpuprof.ncu.journal import Attempt, Job, JournalEvent, attempts, read_journal
from gpuprof.ncu.metrics import has_async_copies
from gpuprof.ncu.outcome import (
    CaseProfile,
    NcuOutcome,
    combined,
    is_profiled,
    merge,
    profilable,
    profile_of,
    without_profile,
)
from gpuprof.ncu.read import ProfiledLaunch, read_report
from gpuprof.ncu.tool import Ncu, NcuError, NcuReadError, diagnose, find_ncu, first_error
from gpuprof.options import RunOptions
from gpuprof.records import grouped, replace
from gpuprof.results import Run
from gpuprof.store import ResultsFile
from gpuprof.text import format_extent


def settle(ended: Ended, launches: Sequence[ProfiledLaunch]) -> Mapping[int, CaseProfile] | None:
    """What one ncu process brought for the cases whose turn came.

    Launches stand in a report in the order in which they were made, and the journal names them in that order.
    A report may lack only the launch that ended the process; every profile is held against its launch's
    kernel, block and grid. A case that takes several launches has a profile when all of them have one.

    Returns:
        Profiles by case index, or None when it cannot be told which profile belongs to which launch.
    """
    made = attempts(ended.events)
    done = sum(attempt.done for attempt in made)
    if not done <= len(launches) <= len(made):
        return None
    if ended.cut:
        made = [attempt for attempt in made if attempt.done]
    profiles = {
        event.index: without_profile(event.reason or "it was not launched")
        for event in ended.events
        if event.kind in ("refused", "failed") and event.index is not None
    }
    pairs = [(attempt, _checked(attempt, launch)) for attempt, launch in zip(made, launches, strict=False)]
    brought = grouped(pairs, lambda pair: pair[0].index)
    for attempt in made:
        held = brought.get(attempt.index, [])
        if len(held) == attempt.launched.launches:
            profiles[attempt.index] = combined([profile for _, profile in held], _largest(held))
        elif not ended.cut:
            profiles.setdefault(attempt.index, without_profile(_blame(ended)))
    started = [event.index for event in ended.events if event.kind == "started" and event.index is not None]
    if started and started[-1] not in profiles and not ended.cut:
        profiles[started[-1]] = without_profile(_blame(ended))
    return profiles


def _largest(held: Sequence[tuple[Attempt, CaseProfile]]) -> int:
    """Which of a case's launches has the most threads."""
    threads = [prod(attempt.launched.grid) * prod(attempt.launched.block) for attempt, _ in held]
    return threads.index(max(threads))


def _checked(attempt: Attempt, launch: ProfiledLaunch) -> CaseProfile:
    made = attempt.launched
    if (function_name(launch.kernel), launch.block, launch.grid) == (made.entry, made.block, made.grid):
        return profile_of(launch, made.copies)
    return without_profile(
        f"the profile in its place is of {launch.kernel} with {format_extent(launch.block)} threads in"
        f" {format_extent(launch.grid)} blocks, not of this launch"
    )


def _blame(ended: Ended) -> str:
    if ended.timed_out:
        return (
            "the kernel did not end under Nsight Compute's replay in time and was stopped: allow more with"
            " --timeout, or profile a smaller size"
        )
    known = diagnose(ended.output, of_launch=True)
    return str(known) if known else f"it ended under Nsight Compute's replay: {last_words(ended)}"


def last_words(ended: Ended) -> str:
    """Why a process ended, from its journal, from ncu, or from its status."""
    for event in reversed(ended.events):
        if event.kind == "failed" and event.reason:
            return event.reason.rstrip(".")
    if ended.timed_out:
        return "nothing happened for too long"
    lines = ended.output.strip().splitlines()
    words = first_error(ended.output) or (lines[-1] if lines else f"status {ended.status}")
    return words.strip().rstrip(".")


def profiles_left(
    report: Path, run: str, cases: Container[int], ncu: Ncu
) -> Iterator[tuple[Path, dict[int, CaseProfile]]]:
    """Profiles of a run that was ended before it could keep them: reports, and what each has of the cases.

    `report` is the first of the run's reports on this GPU.
    """
    for journal in _journals(report):
        events = read_journal(journal)
        left = journal.with_suffix(report.suffix)
        if not events or events[0].run != run or not left.exists():
            continue
        with suppress(NcuReadError):
            settled = settle(Ended(events, "", 0, timed_out=False, cut=True), read_report(left, ncu))
            yield left, {index: profile for index, profile in (settled or {}).items() if index in cases}


def remove_journals(report: Path) -> None:
    """Nothing is left to take from them: what they tell of stands in the results."""
    for journal in _journals(report):
        with suppress(OSError):
            journal.unlink()


def free_reports(report: Path, *, goes_on: bool) -> Iterator[Path]:
    """Where reports go: `run.ncu-rep`, `run-2.ncu-rep` and so on, past those that a run which goes on has."""
    for number in count(1):
        path = report if number == 1 else report.with_name(f"{report.stem}-{number}{report.suffix}")
        if not (goes_on and (path.exists() or path.with_suffix(JOURNAL_SUFFIX).exists())):
            yield path


def _journals(report: Path) -> list[Path]:
    own = re.compile(rf"{re.escape(report.stem)}(-\d+)?{re.escape(JOURNAL_SUFFIX)}")
    try:
        return sorted(path for path in report.parent.iterdir() if own.fullmatch(path.name))
    except OSError:
        return []


Progress = Callable[[Case], None]
#: Keeps profiles as soon as there are some, by case index, with the version of what made them.
Keep = Callable[[Mapping[int, CaseProfile], str | None], None]
#: After this many ncu processes in a row that brought no profile, the fault is not the kernels'.
_MAX_BARREN = 5
_DOUBT = "Nsight Compute's report does not hold one profile for one launch"


def add_counters(
    run: Run, request: Request, path: Path, options: RunOptions, ncu: NcuOptions, progress: Progress
) -> tuple[Run, NcuOutcome]:
    """Profile the cases of a finished run that ended well, and keep the counters in its results file.

    Cases that Nsight Compute is done with already are left out. When the command is asked to end, what was
    profiled until then is in the file or in the reports.

    The device of `options` counts where the run does not tell which GPUs it had; `auto` is the first. Reports
    stand beside the results file under its name, those of further GPUs with their numbers.

    Raises:
        OutputError: There is no room for the results, wherever; it holds the run.
    """
    cases = plan_cases(request, references=True)
    outcomes: list[NcuOutcome] = []
    earlier_version = run.environment.get("ncu") if any(map(is_profiled, run.cases)) else None
    measured = run
    file = (
        ResultsFile.resumed(path, lambda: measured)
        if path.is_file()
        else ResultsFile(path, run, replace=False)
    )

    def keep(profiles: Mapping[int, CaseProfile], version: str | None) -> None:
        nonlocal run
        run = merge(run, NcuOutcome(profiles, version=version))
        file.compact(run)

    try:
        for number in range(len(run.devices)):
            ordinal = run.place(number).selector or options.device
            name = path.stem if number == 0 else f"{path.stem}-gpu{ordinal}"
            # The host's references ran beside the first device only.
            own = profilable(run, [case for case in cases if number == 0 or not on_host(case)], number)
            outcomes.append(
                Collector(
                    cases={index: case for index, case in own if not is_profiled(run.cases[index])},
                    device_ordinal=int(ordinal) if ordinal.isdecimal() else 0,
                    seed=run.seed,
                    options=replace(ncu, timeout_s=patience(options.timeout_s)),
                    report_path=path.with_name(f"{name}.ncu-rep"),
                    progress=progress,
                    given_arrays=options.given_arrays,
                    run=run.created_utc,
                    earlier_version=earlier_version,
                    keep=keep,
                ).collect()
            )
            if outcomes[-1].problem is not None:
                break  # what keeps Nsight Compute from one GPU keeps it from the others
        outcome = NcuOutcome(
            {index: profile for one in outcomes for index, profile in one.profiles.items()},
            tuple(report for one in outcomes for report in one.reports),
            next((one.version for one in outcomes if one.version), None),
            outcomes[-1].problem,
        )
        merged = merge(run, outcome)
        file.finish(merged)
    except KeyboardInterrupt:
        return run, NcuOutcome({}, stopped=True)
    finally:
        file.close()
    return merged, outcome


def _copies(case: Case) -> bool:
    """Whether a case may run a kernel with cp.async."""
    kernels = (case.kernel, *case.alternatives) if case.kernel else ()
    return any(map(has_async_copies, kernels))


class Collector(Struct, kw_only=True):
    """Profiles cases once each: the profiles so far, and what is still to do.

    `cases` run and are correct; each has its index in the run. Should a second report be needed, it stands
    beside `report_path` with `-2`. Counts of another Nsight Compute than `earlier_version`, which profiled
    other cases of the run, do not belong beside them.
    """

    cases: Mapping[int, Case]
    device_ordinal: int
    seed: int
    options: NcuOptions
    report_path: Path
    progress: Progress
    given_arrays: str = ""
    run: str = ""
    earlier_version: str | None = None
    keep: Keep = lambda profiles, version: None
    profiles: dict[int, CaseProfile] = {}
    reports: list[Path] = []
    version: str | None = None
    problem: NcuError | None = None
    _barren: int = 0
    _was_killed: bool = False

    def collect(self) -> NcuOutcome:
        """Profile all.

        Whatever fails, fails for the cases it concerns only: the outcome holds every case, and one that could
        not be profiled carries the reason. Nothing is raised for a fault of Nsight Compute. What an earlier
        part of the same run profiled, and could not keep before it was ended, is taken from its reports.

        Raises:
            KeyboardInterrupt: The command was asked to end. The reports stay, for a run that goes on.
        """
        try:
            if self.cases:
                ncu = find_ncu(self.options.path)
                if self.earlier_version not in (None, ncu.version):
                    raise NcuError(
                        f"Nsight Compute {self.earlier_version} has profiled the cases before, this is"
                        f" {ncu.version}.",
                        fix="Name the one before with --ncu-path.",
                    )
                self.version = ncu.version
                # What an earlier part of the run profiled and could not keep.
                for report, found in profiles_left(self.report_path, self.run, self.cases, ncu):
                    self.reports.append(report)
                    self._settle(found)
                self._run_all(ncu, goes_on=bool(self.earlier_version or self.profiles))
        except NcuError as error:
            self.problem = error
            self._give_up(str(error))
        remove_journals(self.report_path)
        return NcuOutcome(self.profiles, tuple(self.reports), self.version, self.problem)

    def _run_all(self, ncu: Ncu, *, goes_on: bool) -> None:
        """Profile everything, in as few ncu processes as the cases allow."""
        alone = False
        reports = free_reports(self.report_path, goes_on=goes_on)
        while pending := [index for index in self.cases if index not in self.profiles]:
            batch = pending[:1] if alone else pending
            ended, launches = self._profile(ncu, batch, next(reports))
            if launches:
                self._barren = 0
            elif self._is_hopeless(ended):
                return
            settled = settle(ended, launches)
            if settled is None and ended.status == -signal.SIGKILL and not self._was_killed:
                self._was_killed = True  # by something else on this machine: once more
            elif settled is None:
                # Which profile belongs to which launch cannot be told: one process per case leaves no doubt.
                self._settle({batch[0]: without_profile(_DOUBT)} if len(batch) == 1 else {})
                alone = True
            elif settled:
                self._settle(settled)
            else:
                self._give_up(f"Nsight Compute ended before any case: {last_words(ended)}.")

    def _give_up(self, reason: str) -> None:
        """Give every case that has no profile yet the same reason."""
        for index in self.cases:
            self.profiles.setdefault(index, CaseProfile({}, reason))

    def _settle(self, found: Mapping[int, CaseProfile]) -> None:
        self.profiles.update(found)
        if found:
            self.keep(found, self.version)

    def _profile(self, ncu: Ncu, batch: list[int], report: Path) -> tuple[Ended, list[ProfiledLaunch]]:
        cases = tuple((index, self.cases[index]) for index in batch)
        ended = run_ncu(
            ncu,
            replace(self.options, opcodes=not any(_copies(self.cases[index]) for index in batch)),
            report,
            lambda journal: Job(
                self.device_ordinal, self.seed, journal, cases, self.given_arrays, os.getpid(), self.run
            ),
            lambda index: self.progress(self.cases[index]),
        )
        if not report.exists():
            return ended, []
        try:
            launches = read_report(report, ncu)
        except NcuReadError as error:
            ended.events.append(JournalEvent("failed", reason=str(error)))
            return ended, []
        if launches:
            self.reports.append(report)
        return ended, launches

    def _is_hopeless(self, ended: Ended) -> bool:
        """Whether what ended this process without one profile will end every other one too."""
        self._barren += 1
        made = attempts(ended.events)
        words = last_words(ended)
        problem = diagnose(ended.output)
        if problem is None and self._barren >= _MAX_BARREN:
            problem = NcuError(f"Nsight Compute failed {_MAX_BARREN} times in a row: {words}.")
        if problem is None and not any(event.kind == "started" for event in ended.events):
            problem = NcuError(f"Nsight Compute could not profile: {words}.")
        if problem is None and made and all(attempt.done for attempt in made):
            problem = NcuError(f"Nsight Compute profiled nothing: {words}.")
        if problem is not None:
            self.problem = problem if not self.reports else None
            self._give_up(str(problem))
        return problem is not None
