# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Going on with a search: what an earlier part of it measured, if it is the same search."""

from dataclasses import dataclass
from pathlib import Path

from gpuprof.errors import ResultsError
from gpuprof.measure.resume import differences
from gpuprof.reading import read_run
from gpuprof.results import Measurement, Run


@dataclass(frozen=True, slots=True)
class Continued:
    """Points that were measured, references aside; or why they are of another search, as a clause."""

    cases: tuple[Measurement, ...] = ()
    why_not: str = ""


def find_earlier(path: Path, run: Run) -> Continued:
    """What an earlier part of a search measured, by a results file that exists."""
    try:
        old = read_run(path)
    except ResultsError:
        return Continued(why_not="it is not a results file")
    if old.tuning is None:
        return Continued(why_not="it holds a run that is not a search")
    for difference in differences(old, run):
        return Continued(why_not=f"it holds another search: {difference}")
    return Continued(tuple(case for case in old.cases if not case.is_reference))
