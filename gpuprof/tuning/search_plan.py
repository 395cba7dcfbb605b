# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search is asked for, and whom it tells how far it is."""

import re
from dataclasses import dataclass
from pathlib import Path

from gpuprof.errors import InputError, ResultsError
from gpuprof.measure.options import RunOptions, TuneOptions
from gpuprof.measure.protocol import Opened
from gpuprof.measure.request import Request
from gpuprof.measure.resume import differences
from gpuprof.reading import read_run
from gpuprof.results import Measurement, Run
from gpuprof.tuning.space import SearchSpace


def find_earlier(path: Path, run: Run) -> tuple[Measurement, ...] | str:
    """What an earlier part of a search measured, by a results file that exists, references aside.

    Or why what it holds is of another search, as a clause.
    """
    try:
        old = read_run(path)
    except ResultsError:
        return "it is not a results file"
    if old.tuning is None:
        return "it holds a run that is not a search"
    for difference in differences(old, run):
        return f"it holds another search: {difference}"
    return tuple(case for case in old.cases if not case.is_reference)


#: Points that are timed at each size unless something else is asked for.
USUAL_POINTS = int(TuneOptions.budget)
MOST_POINTS = 10_000
_LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Points to time at each size, or to count without a GPU; and when to begin no further one."""

    points: int = USUAL_POINTS
    seconds: float | None = None


def read_budget(text: str) -> Budget:
    """Read `--budget`: a number of points, a time such as `90s`, or both: `40,90s`.

    Raises:
        InputError: It is neither.
    """
    points: int | None = None
    seconds: float | None = None
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)(s?)\s*", item)
        if match is None or (not match[2] and "." in match[1]):
            raise InputError(
                f"--budget {text!r} is not a budget.", fix="Write points, seconds or both: 40, 90s or 40,90s."
            )
        if match[2]:
            seconds = float(match[1])
        else:
            points = int(match[1])
    return checked_budget(USUAL_POINTS if points is None else points, seconds)


def checked_budget(points: int, seconds: float | None = None) -> Budget:
    """A budget that makes sense.

    Raises:
        InputError: It does not.
    """
    if not 1 <= points <= MOST_POINTS:
        raise InputError(f"A budget of {points} points makes no sense.", fix=f"Give 1 to {MOST_POINTS:,}.")
    if seconds is not None and not 0 < seconds <= _LONGEST_S:
        raise InputError(f"A budget of {seconds:g} s makes no sense.", fix=f"Give up to {_LONGEST_S:g} s.")
    return Budget(points, seconds)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is searched; the `rounds` of its options are those of the last stage."""

    request: Request
    space: SearchSpace
    options: RunOptions
    budget: Budget = Budget()


class Watcher:
    """Whom a search tells how far it is; need not listen."""

    def opened(self, opened: Opened) -> None:
        """The device is open."""

    def stage(self, title: str, steps: int) -> None:
        """A stage of so many steps begins."""

    def step(self) -> None:
        """One step of the stage is done."""
