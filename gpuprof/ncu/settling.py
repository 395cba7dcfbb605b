# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which profile of a report belongs to which case: its launches, held against the journal that names them.

Also of reports that were left behind when the run that wanted them was ended.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from math import prod
from pathlib import Path

from gpuprof.kernels.entries import function_name
from gpuprof.ncu.diagnosis import NcuReadError, diagnose_launch, first_error
from gpuprof.ncu.find import Ncu
from gpuprof.ncu.invocation import JOURNAL_SUFFIX, Ended
from gpuprof.ncu.journal import Attempt, attempts, read_journal
from gpuprof.ncu.outcome import CaseProfile, combined, profile_of, without_profile
from gpuprof.ncu.read import ProfiledLaunch, read_report
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
    brought: dict[int, list[tuple[Attempt, CaseProfile]]] = {}
    for attempt, launch in zip(made, launches, strict=False):
        brought.setdefault(attempt.index, []).append((attempt, _checked(attempt, launch)))
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
    known = diagnose_launch(ended.output)
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
