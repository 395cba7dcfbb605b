# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Profile the cases of a run under Nsight Compute: all in one process, and past those that break it."""

import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path

from gpuprof.kernels.entries import function_name
from gpuprof.measure.case import Case, on_host
from gpuprof.ncu.diagnosis import NcuError, NcuReadError, diagnose, diagnose_launch, first_error
from gpuprof.ncu.find import Ncu, find_ncu
from gpuprof.ncu.invocation import Ended, NcuOptions, run_ncu
from gpuprof.ncu.journal import Attempt, Event, Job, Task, attempts
from gpuprof.ncu.outcome import CaseProfile, NcuOutcome, merge, profilable, profile_of, without_profile
from gpuprof.ncu.read import ProfiledLaunch, read_report
from gpuprof.ncu.several_launches import combined
from gpuprof.results import Run
from gpuprof.store import write_run
from gpuprof.text import format_extent

Progress = Callable[[Case], None]
#: After this many ncu processes in a row that brought no profile, the fault is not the kernels'.
_MAX_BARREN = 5


def collect(
    cases: Sequence[tuple[int, Case]],
    *,
    device_ordinal: int,
    seed: int,
    options: NcuOptions,
    report_path: Path,
    progress: Progress,
    given_arrays: str = "",
) -> NcuOutcome:
    """Profile each case once.

    Whatever fails, fails for the cases it concerns only: the outcome holds every case, and one that could not
    be profiled carries the reason. Nothing is raised for a fault of Nsight Compute.

    Args:
        cases: Cases that run and are correct, with their index in the run.
        device_ordinal: The driver's number of the GPU.
        seed: Of the problems' random inputs.
        options: How to profile.
        report_path: The `.ncu-rep` file; should a second one be needed, it stands beside it with `-2`.
        progress: Told each case when its turn comes.
        given_arrays: Folder of the arrays that a program gave, for operations made of them.
    """
    collector = _Collector(cases, device_ordinal, seed, options, report_path, progress, given_arrays)
    try:
        ncu = find_ncu(options.path)
        collector.version = ncu.version
        collector.run(ncu)
    except NcuError as error:
        collector.problem = error
        collector.give_up(str(error))
    return NcuOutcome(collector.profiles, tuple(collector.reports), collector.version, collector.problem)


def add_counters(
    run: Run,
    cases: Sequence[Case],
    *,
    device: str,
    options: NcuOptions,
    json_path: Path,
    progress: Progress,
    given_arrays: str = "",
) -> tuple[Run, NcuOutcome]:
    """Profile the cases of a finished run that ended well, and keep the counters in its results file.

    Args:
        run: The run, measured on a GPU.
        cases: Its plan, in order.
        device: As `--device`, where the run does not tell which GPUs it had; `auto` is the first.
        options: How to profile.
        json_path: The results file; the report stands beside it under its name, those of further GPUs with
            their numbers.
        progress: Told each case when its turn comes.
        given_arrays: As in `collect`.

    Returns:
        The run with the counters, and how profiling went.

    Raises:
        InputError: The results file cannot be written.
    """
    outcomes = []
    for number in range(len(run.devices)):
        ordinal = run.place(number).selector or device
        name = json_path.stem if number == 0 else f"{json_path.stem}-gpu{ordinal}"
        outcomes.append(
            collect(
                # The host's references ran beside the first device only.
                profilable(run, [case for case in cases if number == 0 or not on_host(case)], number),
                device_ordinal=int(ordinal) if ordinal.isdecimal() else 0,
                seed=run.seed,
                options=options,
                report_path=json_path.with_name(f"{name}.ncu-rep"),
                progress=progress,
                given_arrays=given_arrays,
            )
        )
        if outcomes[-1].problem is not None:
            break  # what keeps Nsight Compute from one GPU keeps it from the others
    outcome = NcuOutcome(
        {index: profile for one in outcomes for index, profile in one.profiles.items()},
        tuple(report for one in outcomes for report in one.reports),
        outcomes[0].version,
        outcomes[-1].problem,
    )
    merged = merge(run, outcome)
    write_run(merged, json_path)
    return merged, outcome


class _Collector:
    """The profiles so far, and what is still to do."""

    def __init__(
        self,
        cases: Sequence[tuple[int, Case]],
        device_ordinal: int,
        seed: int,
        options: NcuOptions,
        report_path: Path,
        progress: Progress,
        given_arrays: str,
    ) -> None:
        self._cases = dict(cases)
        self._device_ordinal = device_ordinal
        self._seed = seed
        self._options = options
        self._report_path = report_path
        self._progress = progress
        self._given_arrays = given_arrays
        self._runs = 0
        self._barren = 0
        self.profiles: dict[int, CaseProfile] = {}
        self.reports: list[Path] = []
        self.version: str | None = None
        self.problem: NcuError | None = None

    def run(self, ncu: Ncu) -> None:
        """Profile everything, in as few ncu processes as the cases allow."""
        alone = False
        while pending := [index for index in self._cases if index not in self.profiles]:
            batch = pending[:1] if alone else pending
            ended, launches = self._profile(ncu, batch)
            if launches:
                self._barren = 0
            elif self._is_hopeless(ended):
                return
            settled = settle(ended, launches)
            if settled is None:
                # Which profile belongs to which launch cannot be told: one process per case leaves no doubt.
                settled = {batch[0]: without_profile(_DOUBT)} if len(batch) == 1 else {}
                alone = True
            elif not settled:
                self.give_up(f"Nsight Compute ended before any case: {_last_words(ended)}.")
            self.profiles.update(settled)

    def give_up(self, reason: str) -> None:
        """Give every case that has no profile yet the same reason."""
        for index in self._cases:
            self.profiles.setdefault(index, without_profile(reason))

    def _profile(self, ncu: Ncu, batch: list[int]) -> tuple[Ended, list[ProfiledLaunch]]:
        self._runs += 1
        path = self._report_path
        report = path if self._runs == 1 else path.with_name(f"{path.stem}-{self._runs}{path.suffix}")
        tasks = tuple(Task(index, self._cases[index]) for index in batch)
        ended = run_ncu(
            ncu,
            self._options,
            report,
            lambda journal: Job(
                self._device_ordinal, self._seed, journal, tasks, self._given_arrays, os.getpid()
            ),
            lambda index: self._progress(self._cases[index]),
        )
        if not report.exists():
            return ended, []
        try:
            launches = read_report(report, ncu)
        except NcuReadError as error:
            ended.events.append(Event("failed", reason=str(error)))
            return ended, []
        if launches:
            self.reports.append(report)
        return ended, launches

    def _is_hopeless(self, ended: Ended) -> bool:
        """Whether what ended this process without one profile will end every other one too."""
        self._barren += 1
        made = attempts(ended.events)
        words = _last_words(ended)
        problem = diagnose(ended.output)
        if problem is None and self._barren >= _MAX_BARREN:
            problem = NcuError(f"Nsight Compute failed {_MAX_BARREN} times in a row: {words}.")
        if problem is None and not any(event.kind == "started" for event in ended.events):
            problem = NcuError(f"Nsight Compute could not profile: {words}.")
        if problem is None and made and all(attempt.done for attempt in made):
            problem = NcuError(f"Nsight Compute profiled nothing: {words}.")
        if problem is not None:
            self.problem = problem if not self.reports else None
            self.give_up(str(problem))
        return problem is not None


_DOUBT = "Nsight Compute's report does not hold one profile for one launch"


def settle(ended: Ended, launches: Sequence[ProfiledLaunch]) -> Mapping[int, CaseProfile] | None:
    """What one ncu process brought for the cases whose turn came.

    Launches stand in a report in the order in which they were made, and the journal names them in that order.
    A report may lack only the launch that ended the process; every profile is held against its launch's
    kernel, block and grid. A case that takes several launches has a profile when all of them have one.

    Args:
        ended: The process's end and journal.
        launches: Its report.

    Returns:
        Profiles by case index, or None when it cannot be told which profile belongs to which launch.
    """
    made = attempts(ended.events)
    done = sum(attempt.done for attempt in made)
    if not done <= len(launches) <= len(made):
        return None
    profiles = {
        event.index: without_profile(event.reason or "it was not launched")
        for event in ended.events
        if event.kind in ("refused", "failed") and event.index is not None
    }
    brought: dict[int, list[tuple[Attempt, CaseProfile]]] = {}
    for attempt, launch in zip(made, launches, strict=False):
        brought.setdefault(attempt.index, []).append((attempt, _checked(attempt, launch)))
    for attempt in made:
        held = brought.get(attempt.index, [])
        if len(held) == attempt.launched.launches:
            profiles[attempt.index] = combined([profile for _, profile in held], _largest(held))
        else:
            profiles.setdefault(attempt.index, without_profile(_blame(ended)))
    started = [event.index for event in ended.events if event.kind == "started" and event.index is not None]
    if started and started[-1] not in profiles:
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
    known = diagnose_launch(ended.output)
    return str(known) if known else f"it ended under Nsight Compute's replay: {_last_words(ended)}"


def _last_words(ended: Ended) -> str:
    """Why a process ended, from its journal, from ncu, or from its status."""
    for event in reversed(ended.events):
        if event.kind == "failed" and event.reason:
            return event.reason.rstrip(".")
    if ended.timed_out:
        return "nothing happened for too long"
    lines = ended.output.strip().splitlines()
    words = first_error(ended.output) or (lines[-1] if lines else f"status {ended.status}")
    return words.strip().rstrip(".")
