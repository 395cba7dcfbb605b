# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a run asks of the profiled process, and the journal in which that process says what it launched.

The journal is a file of one JSON object a line, written before and after each launch: whatever ends the
process, it tells which case was on the GPU then, and so which launch of the report belongs to which case.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from gpuprof.measure.case import Case
from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.records import replace
from gpuprof.schema import SchemaError, from_json, to_text
from gpuprof.text import Extent


class Job(Struct, frozen=True):
    """Everything that the profiled process needs; each case with its index in the run."""

    device_ordinal: int
    seed: int
    journal: str
    cases: tuple[tuple[int, Case], ...]
    given_arrays: str = ""
    owner: int = 0
    run: str = ""


class Launched(Struct, frozen=True):
    """One launch as it was made.

    `entry` is the function's own name, without namespaces and a template's arguments.
    """

    entry: str
    block: Extent
    grid: Extent
    copies: CopyMetrics
    launches: int = 1


class JournalEvent(Struct, frozen=True):
    """One line of the journal.

    `opened` the GPU, `started` a case, `refused` it before a launch, `launching` one of its launches, `done`
    with that, or `failed`, after which nothing follows.
    """

    kind: Literal["opened", "started", "refused", "launching", "done", "failed"]
    index: int | None = None
    pid: int | None = None
    reason: str | None = None
    launched: Launched | None = None
    run: str = ""


def write_job(job: Job, path: Path) -> None:
    """Store a job for `read_job`."""
    path.write_text(to_text(job), encoding="utf-8")


def read_job(path: Path) -> Job:
    """The job of a file."""
    return from_json(Job, json.loads(path.read_text(encoding="utf-8")))


class JournalWriter:
    """Appends events so that each is on disk before anything else happens."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, event: JournalEvent) -> None:
        self._file.write(to_text(event) + "\n")
        self._file.flush()


def read_journal(path: Path) -> list[JournalEvent]:
    """The events so far; a line that is still being written is left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return []
    events = []
    for line in text.splitlines(keepends=True):
        try:
            if line.endswith("\n"):
                events.append(from_json(JournalEvent, json.loads(line)))
        except (ValueError, SchemaError):
            break
    return events


class Attempt(Struct, frozen=True):
    """One launch that a journal tells of."""

    index: int
    launched: Launched
    done: bool


def attempts(events: Sequence[JournalEvent]) -> list[Attempt]:
    """The launches of a journal that reached the GPU, in order, and whether each came back."""
    made: list[Attempt] = []
    for event in events:
        if event.kind == "launching" and event.index is not None and event.launched is not None:
            made.append(Attempt(event.index, event.launched, False))
        elif made and event.index == made[-1].index and not made[-1].done:
            if event.kind == "done":
                made[-1] = replace(made[-1], done=True)
            elif event.kind == "refused":
                made.pop()
    return made
