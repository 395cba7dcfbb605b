# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A case's outcome as one word and one symbol, so that no reader depends on colour."""

from dataclasses import dataclass
from typing import Literal

from gpuprof.results import Measurement, Run

Tone = Literal["good", "bad", "muted"]


@dataclass(frozen=True, slots=True)
class Status:
    """How a case ended.

    Args:
        word: For a table.
        symbol: One character of the same meaning.
        ascii_symbol: The same where only ASCII can be written.
        tone: Which colour family supports it.
        usable: Its figures may be compared with those of other cases.
    """

    word: str
    symbol: str
    ascii_symbol: str
    tone: Tone
    usable: bool = False


_STATUS = {
    "ok": Status("ok", "✓", "+", "good", usable=True),
    "incorrect": Status("incorrect", "≠", "!", "bad"),
    "failed": Status("failed", "✗", "x", "bad"),
    "timeout": Status("timeout", "◷", "t", "bad"),
    "skipped": Status("skipped", "○", "-", "muted"),
}
_COMPILED = Status("compiled", "◇", "c", "muted", usable=True)


def status_of(run: Run, case: Measurement) -> Status:
    """The status of a case; without a backend that executes, one that compiled counts as done."""
    if run.backend == "none" and case.outcome == "skipped" and case.resources is not None:
        return _COMPILED
    return _STATUS[case.outcome]
