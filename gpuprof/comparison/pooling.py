# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Several results files of one code as one run: each file's samples are rounds of the same cases."""

from collections.abc import Sequence
from dataclasses import replace

from gpuprof.comparison.matching import match
from gpuprof.comparison.surroundings import differences
from gpuprof.errors import InputError
from gpuprof.results import Run
from gpuprof.statistics import with_round


def pooled(runs: Sequence[Run], name: str) -> Run:
    """One run with the rounds of several; a case that one of them lacks, or that failed in one, shows it.

    Args:
        runs: At least one; the first gives everything but times.
        name: Where they come from, for messages.

    Raises:
        InputError: They are of different code, or of devices or clocks that must not be compared.
    """
    first, *others = runs
    cases = list(first.cases)
    places = {id(case): index for index, case in enumerate(first.cases)}
    for other in others:
        misleading = [difference for difference in differences(first, other) if difference.misleads]
        if misleading:
            raise InputError(
                f"The results files in {name} are not rounds of one run: {misleading[0].text}.",
                fix="Keep files of one device and one way to measure in a folder.",
            )
        for pair in match(first, other):
            if pair.base is None or pair.new is None or pair.moved:
                continue
            if pair.base.source_hash != pair.new.source_hash:
                raise InputError(
                    f"The results files in {name} are not rounds of one run: the source of {pair.new.kernel}"
                    " differs.",
                    fix="Keep files of one version of the kernels in a folder.",
                )
            index = places[id(pair.base)]
            cases[index] = with_round(cases[index], pair.new, first.devices[cases[index].device])
    return replace(first, cases=tuple(cases), complete=all(run.complete for run in runs))
