# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far a search is, on standard error: a bar on a terminal, a line per stage in a pipe."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpuprof.commands.progress import format_seconds, why_here
from gpuprof.console import tell
from gpuprof.measure.protocol import Opened
from gpuprof.text import one_line
from gpuprof.tuning.search_plan import Silent, Watcher

#: A pipe is told of a long stage so often.
_EVERY_S = 30.0


@contextmanager
def watch_search(*, quiet: bool) -> Iterator[Watcher]:
    """A progress display for the length of a search."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        bar = _SearchBar()
        try:
            yield bar
        finally:
            bar.stop()
    else:
        lines = _SearchLines()
        yield lines
        lines.end()


class _SearchLines(Silent):
    """A line for each stage, and one now and then within a long one."""

    def __init__(self) -> None:
        self._title, self._steps, self._done = "", 0, 0
        self._begun = self._told = time.monotonic()

    def opened(self, opened: Opened) -> None:
        if why := why_here(opened):
            tell(why)
        tell(", ".join(opened.labels) or opened.device.name)

    def stage(self, title: str, steps: int) -> None:
        """Say how long the stage before took, and begin this one."""
        self.end()
        self._title, self._steps, self._done = title, steps, 0
        self._begun = self._told = time.monotonic()

    def step(self, told: str = "") -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._told > _EVERY_S:
            self._told = now
            tell(f"{self._title}: {self._done:,} of {self._steps:,}")

    def end(self) -> None:
        """Say what the stage amounted to."""
        if self._title and self._steps:
            tell(f"{self._title}: {self._done:,} in {format_seconds(time.monotonic() - self._begun)}")
        self._title = ""


class _SearchBar(Silent):
    """A bar that shows the stage."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            *((BarColumn(bar_width=None),) if console.width >= 80 else ()),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task("Opening the device", total=None)

    def opened(self, opened: Opened) -> None:
        if why := why_here(opened):
            self._progress.console.print(one_line(why), markup=False)

    def stage(self, title: str, steps: int) -> None:
        self._progress.reset(self._task, description=one_line(title), total=max(1, steps))

    def step(self, told: str = "") -> None:
        self._progress.advance(self._task)

    def stop(self) -> None:
        self._progress.stop()
