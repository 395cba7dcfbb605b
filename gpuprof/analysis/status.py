# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A case's outcome as one word and one symbol, so that no reader depends on colour; and what a caution is."""

from dataclasses import dataclass
from typing import Literal

from gpuprof.results import Measurement, Run

Tone = Literal["good", "bad", "muted"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign, so that no reader depends on colour: one character, and the same for a stream of ASCII."""

    symbol: str
    ascii: str


@dataclass(frozen=True, slots=True)
class Status:
    """How a case ended: word, sign and colour family; where it is usable, its figures may be compared."""

    word: str
    mark: Mark
    tone: Tone
    usable: bool = False


_STATUS = {
    "ok": Status("ok", Mark("✓", "+"), "good", usable=True),
    "incorrect": Status("incorrect", Mark("≠", "!"), "bad"),
    "failed": Status("failed", Mark("✗", "x"), "bad"),
    "timeout": Status("timeout", Mark("◷", "t"), "bad"),
    "skipped": Status("skipped", Mark("○", "-"), "muted"),
}
_COMPILED = Status("compiled", Mark("◇", "c"), "muted", usable=True)


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


Level = Literal["bad", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Banner:
    """One caution: `bad` when a figure must not be used, `warning` when it may be off, `note` for context.

    The detail says what was measured, against which threshold, and of which cases.
    """

    code: str
    level: Level
    title: str
    detail: str
    fix: str = ""
