# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a device shows of a case that goes wrong, and which causes of that the executor may find."""

from dataclasses import dataclass
from typing import Literal

from gpuprof.results import Cause

#: What a device showed: a kernel that it stopped, one that did not end, a wrong result.
Symptom = Literal["fault", "hang", "wrong"]

#: What the executor may find for a symptom to be explained; anything else is another fault.
CAUSES: dict[Symptom, frozenset[Cause]] = {
    "fault": frozenset({"illegal address", "misaligned address", "trap", "barrier", "mbarrier"}),
    "hang": frozenset({"endless loop", "barrier", "mbarrier", "race"}),
    "wrong": frozenset(
        {
            *("illegal address", "misaligned address", "write to an input", "race", "undefined value"),
            *("barrier", "mbarrier", "asynchronous copy", "missing fence", "wrong store", "never written"),
        }
    ),
}


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for.

    Args:
        symptom: What the device showed.
        output: The array whose element was wrong first; empty where that is not known.
        element: That element, in storage order.
        as_run: Whether the executor itself ran the case, so that the same blocks show it again.
    """

    symptom: Symptom
    output: str = ""
    element: int = 0
    as_run: bool = False
