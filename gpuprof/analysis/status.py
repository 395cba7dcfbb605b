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


#: What a launch may ask too much of, as reasons call it, and the limit that it then exceeds.
_LIMITS = ("shared memory", "registers", "threads", "cooperative grid")


def exceeded_limit(case: Measurement) -> str:
    """Which of the device's limits a case exceeds, for example `shared-memory limit`."""
    name = next((name for name in _LIMITS if name in (case.reason or "")), "")
    return f"{name.removesuffix('s').replace(' ', '-')} limit" if name else "device limit"


def status_of(run: Run, case: Measurement) -> Status:
    """The status of a case; without a backend that executes, one that compiled counts as done."""
    if run.backend == "none" and case.outcome == "skipped" and case.resources is not None:
        return _COMPILED
    return _STATUS[case.outcome]
