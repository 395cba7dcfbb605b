# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What Nsight Compute had profiled when the run that wanted it was ended: its reports, and their journals."""

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from gpuprof.ncu.diagnosis import NcuReadError
from gpuprof.ncu.find import Ncu
from gpuprof.ncu.invocation import JOURNAL_SUFFIX, Ended
from gpuprof.ncu.journal import read_journal
from gpuprof.ncu.outcome import CaseProfile
from gpuprof.ncu.read import read_report
from gpuprof.ncu.settling import settle


def profiles_left(
    report: Path, run: str, cases: Container[int], ncu: Ncu
) -> Iterator[tuple[Path, dict[int, CaseProfile]]]:
    """Profiles that a part of a run made which was ended before it could keep them.

    Args:
        report: The first of the run's reports on this GPU.
        run: What tells the run.
        cases: Indices of those that may be taken.
        ncu: What to read reports with.

    Yields:
        A report, and what it holds of the cases: those that were done when the end came.
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
    """Where further reports go: `run.ncu-rep`, `run-2.ncu-rep` and so on.

    Args:
        report: The first.
        goes_on: Whether those that are there are the run's own, and stay.
    """
    for number in count(1):
        path = report if number == 1 else report.with_name(f"{report.stem}-{number}{report.suffix}")
        if not (goes_on and (path.exists() or path.with_suffix(JOURNAL_SUFFIX).exists())):
            yield path


def _journals(report: Path) -> list[Path]:
    """The journals of a run's reports on one GPU."""
    own = re.compile(rf"{re.escape(report.stem)}(-\d+)?{re.escape(JOURNAL_SUFFIX)}")
    try:
        return sorted(path for path in report.parent.iterdir() if own.fullmatch(path.name))
    except OSError:
        return []
