# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A wrong result in a sentence: how many elements, where they lie, what they look like, and the first."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.problems.problem import Problem
from gpuprof.problems.wrong_places import describe_places
from gpuprof.problems.wrong_values import WrongResult, describe_values


def describe_wrong(
    problem: Problem, output: str, result: WrongResult, checked: NDArray[np.intp] | None
) -> str:
    """What is wrong with an output: how many elements, where they lie, what they look like, and the first."""
    count, total = int(result.wrong.sum()), len(result.wrong)
    name = f" of {output}" if len(problem.outputs) > 1 else ""
    kind = "elements" if checked is None else "checked elements"
    if count == total:
        text = f"all {total} {kind}{name} are wrong" if total > 1 else f"its one element{name} is wrong"
    else:
        be = "is" if count == 1 else "are"
        text = f"{count} of {total} {kind}{name} ({_percent(count, total)}) {be} wrong"
    places = describe_places(result.wrong.reshape(result.shape), result.axes) if checked is None else ""
    values = describe_values(result)
    facts = [places, f"they {values}" if values else ""]
    listed = "; ".join(fact for fact in facts if fact)
    first = int(np.flatnonzero(result.wrong)[0])
    where = problem.describe_element(output, int(checked[first]) if checked is not None else first)
    got, wanted = told_apart(result.got[first], result.expected.values[first])
    return f"{text}{f': {listed}' if listed else ''}; first: {where} is {got}, expected {wanted}"


def _percent(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.3g} %" if share < 99 else f"{min(share, 99.99):.4g} %"


def told_apart(got: Any, expected: Any) -> tuple[str, str]:
    """Two values that differ, each as short as still shows that: integers in full."""
    if isinstance(got, Integral) and isinstance(expected, Integral):
        return str(got), str(expected)
    shown = ("", "")
    for digits in (6, 9, 17):
        shown = f"{got:.{digits}g}", f"{expected:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown
