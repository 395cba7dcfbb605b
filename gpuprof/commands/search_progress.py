# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How far a search is, on standard error: a bar on a terminal, a line per stage in a pipe."""

import time
from contextlib import AbstractContextManager

from gpuprof.commands.progress import display, format_seconds, why_here
from gpuprof.console import tell
from gpuprof.measure.protocol import Opened
from gpuprof.text import one_line
from gpuprof.tuning.search_plan import Watcher

#: A pipe is told of a long stage so often.
_EVERY_S = 30.0


def watch_search(*, quiet: bool) -> AbstractContextManager[Watcher]:
    """A progress display for the length of a search."""
    return display(_NoSearch, _SearchBar, _SearchLines, quiet=quiet)


class _NoSearch(Watcher):
    def stop(self) -> None: ...


class _SearchLines(_NoSearch):
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
        self.stop()
        self._title, self._steps, self._done = title, steps, 0
        self._begun = self._told = time.monotonic()

    def step(self, told: str = "") -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._told > _EVERY_S:
            self._told = now
            tell(f"{self._title}: {self._done:,} of {self._steps:,}")

    def stop(self) -> None:
        """Say what the stage amounted to."""
        if self._title and self._steps:
            tell(f"{self._title}: {self._done:,} in {format_seconds(time.monotonic() - self._begun)}")
        self._title = ""


class _SearchBar(_NoSearch):
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
