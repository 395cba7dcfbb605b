# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Going on with a search: what an earlier part of it measured, if it is the same search."""

from dataclasses import dataclass
from pathlib import Path

from gpuprof.errors import ResultsError
from gpuprof.reading import read_run
from gpuprof.results import Measurement, ProblemRecord, Run

#: Of an environment, what changes no measured code.
_OF_NO_CONSEQUENCE = ("python", "numpy", "platform")


@dataclass(frozen=True, slots=True)
class Continued:
    """Points that were measured, references aside; or why they are of another search, as a clause."""

    cases: tuple[Measurement, ...] = ()
    why_not: str = ""


def find_earlier(path: Path, run: Run, problem: ProblemRecord) -> Continued:
    """What an earlier part of a search measured, by a results file that exists."""
    try:
        old = read_run(path)
    except ResultsError:
        return Continued(why_not="it is not a results file")
    cases = tuple(case for case in old.cases if not case.is_reference)
    why_not = _difference(old, run) or next(filter(None, (_other(case, problem) for case in cases)), "")
    return Continued(() if why_not else cases, why_not)


def _other(case: Measurement, problem: ProblemRecord) -> str:
    """What makes a case one of another search, as a clause; empty where it is of this one."""
    if case.problem.dtype != problem.dtype:
        return f"its search was in {case.problem.dtype}"
    return "" if case.problem.scalars == problem.scalars else "its scalars are others"


def _difference(old: Run, new: Run) -> str:
    """What makes two runs different searches, as a clause; empty where they are one."""
    if old.tuning is None or new.tuning is None:
        return "it holds a run that is not a search"
    if old.backend != new.backend or _devices(old) != _devices(new):
        return f"its search ran on {' and on '.join(map(old.device_label, range(len(old.devices))))}"
    sources = {kernel.id: kernel.source_hash for kernel in old.kernels if not kernel.is_reference}
    for kernel in new.kernels:
        if not kernel.is_reference and sources.pop(kernel.id, None) != kernel.source_hash:
            return f"its search was of another {kernel.id}"
    if sources:
        return f"its search was of {next(iter(sources))} too"
    if old.operations != new.operations:
        return "its operation is declared differently"
    if old.seed != new.seed:
        return f"its seed is {old.seed}"
    if _telling(old) != _telling(new):
        return "it was measured with another driver or compiler"
    return ""


def _devices(run: Run) -> list[str]:
    """What tells the devices: of one its name, of several where they are too."""
    return [run.device_label(number) for number in range(len(run.devices))]


def _telling(run: Run) -> dict[str, str]:
    return {name: value for name, value in run.environment.items() if name not in _OF_NO_CONSEQUENCE}
