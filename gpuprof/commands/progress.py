# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: a bar on a terminal, lines in a pipe, nothing when quiet."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from gpuprof import timeline
from gpuprof.analysis.numbers import plural, time_us
from gpuprof.analysis.status import status_on
from gpuprof.console import tell
from gpuprof.measure.case import Case
from gpuprof.measure.run import Progress
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Task

#: Columns of a terminal below which a bar, and from which the time gone by too, find room beside the words.
_NARROW, _WIDE = 80, 100
#: Cases that must have ended before the rest is reckoned: the first ones also warm caches and workers.
_FEWEST = 3
#: A rest shorter than this is not worth a word.
_SHORTEST_S = 2.0
#: A pipe is told of a long stage of a search so often.
_EVERY_S = 30.0
#: What `TERM` says of a terminal that cannot move its cursor.
_DUMB = ("dumb", "unknown")


class Shown(Progress):
    """A display of a run, or of a search; it says nothing but why nothing runs."""

    def __init__(self) -> None:
        self._pace = Pace(0)
        self._labels: tuple[str, ...] = ()
        self._backend = ""
        self._turn = ""

    def opened(self, run: Run, cases: int = 0) -> None:
        self._pace, self._labels, self._backend = Pace(cases), run.device_labels, run.backend
        if why := why_here(run):
            tell(why)

    def turn(self, name: str) -> None:
        """Have what follows say whose turn it is."""
        self._turn = name and f"{name}: "

    def stop(self) -> None:
        """Nothing follows."""


@contextmanager
def watch(*, quiet: bool) -> Iterator[Shown]:
    """What shows how far something is: nothing when quiet, a bar on a terminal that draws, else lines."""
    draws = sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in _DUMB
    shown = (Shown if quiet else _Bar if draws else _Lines)()
    try:
        yield shown
    finally:
        shown.stop()


def why_here(run: Run) -> str:
    """Why the kernels run where they do, where that is not what one would expect; else nothing."""
    if not run.backend_reason or run.backend != "sim":
        return run.backend_reason or ""
    instead = f"The kernels run on the CPU executor instead, which counts as {run.device.name} would."
    return f"{run.backend_reason} {instead}"


def _parameters(params: Mapping[str, int]) -> str:
    """The parameters that tell one case of a kernel from another, as what follows its block."""
    return "".join(f" {name}={value}" for name, value in params.items())


class _Lines(Shown):
    """For logs: a line for each case, or for each stage of a search and now and then within a long one."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._told = 0.0
        #: What each kernel's header says of its parameters: a line tells what is otherwise.
        self._defaults: dict[str, Mapping[str, int]] = {}

    def started(self, case: Case) -> None:
        self._defaults[case.name] = case.kernel.parameters if case.kernel else {}

    def opened(self, run: Run, cases: int = 0) -> None:
        super().opened(run, cases)
        # Of several devices each has the number by which a bar calls it.
        several = len(self._labels) > 1
        named = [f"{number}: {label}" if several else label for number, label in enumerate(self._labels)]
        tell(", ".join(named) + (f": {plural(cases, 'case')}" if cases else ""))

    def finished(self, measurement: Measurement) -> None:
        """Name the case, its time or how it ended, and how long the others may take."""
        where = measurement.problem.label
        if measurement.chosen:
            where += f" → {measurement.chosen}"
        if measurement.has_launch:
            where += f" {format_extent(measurement.block)}"
            usual = self._defaults.get(measurement.kernel, {})
            others = {name: value for name, value in measurement.params.items() if usual.get(name) != value}
            where += "" if measurement.chosen else _parameters(others)
        if len(self._labels) > 1:
            where += f" on {self._labels[measurement.device]}"
        self._pace.done += 1
        ended = _time_of(measurement) or status_on(self._backend, measurement).word
        told = [f"[{self._pace.done}/{self._pace.cases}] {self._turn}{measurement.kernel} {where}: {ended}"]
        if (rest := self._pace.rest_s()) is not None:
            told.append(f"about {format_seconds(rest)} left")
        tell(", ".join(told))

    def profiling(self, case: Case) -> None:
        where = f"{case.problem.label} {format_extent(case.block)}{_parameters(case.params)}"
        tell(f"ncu: {case.name} {where}")

    def timed(self, run: Run) -> None:
        _show_times(run, sys.stderr)
        tell("All times are measured; the executor counts what explains them.")

    def stage(self, title: str, steps: int, most_s: float | None = None) -> None:
        """Say how long the stage before took, and begin this one."""
        self.stop()
        self._stage, self._pace, self._told = title, Pace(steps), 0.0
        if steps:
            limit = "" if most_s is None else f", {format_seconds(most_s)} at most"
            tell(f"{title}: {steps:,} to do{limit}")

    def step(self) -> None:
        self._pace.done += 1
        if self._pace.gone_s - self._told > _EVERY_S:
            self._told = self._pace.gone_s
            tell(f"{self._stage}: {self._pace.done:,} of {self._pace.cases:,}")

    def stop(self) -> None:
        if self._stage and self._pace.cases:
            tell(f"{self._stage}: {self._pace.done:,} in {format_seconds(self._pace.gone_s)}")
        self._stage = ""


class _Bar(Shown):
    """A bar that shows which kernel runs, what the last one took, and what is left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        shown: list[RenderableType] = []

        class Beneath(RichProgress):
            """A bar with something beneath it, which goes with it."""

            def get_renderables(self) -> "Iterable[RenderableType]":
                yield from super().get_renderables()
                yield from shown

        class Counted(MofNCompleteColumn):
            """How many of how many, once that is known."""

            def render(self, task: "Task") -> "Text":
                return super().render(task) if task.total else Text()

        super().__init__()
        self._beneath = shown
        console = Console(stderr=True, highlight=False)
        self._narrow = console.width < _NARROW
        self._progress = Beneath(
            TextColumn("{task.description}", markup=False),
            *(() if self._narrow else (BarColumn(bar_width=None),)),
            Counted(),
            *((TimeElapsedColumn(),) if console.width >= _WIDE else ()),
            TextColumn("{task.fields[told]}", markup=False),
            console=console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task("Opening the device", total=None, told="")

    def opened(self, run: Run, cases: int = 0) -> None:
        if why := why_here(run):
            self._progress.console.print(one_line(why), markup=False)
        self._pace, self._labels, self._backend = Pace(cases), run.device_labels, run.backend
        what = f"{len(self._labels)} devices" if len(self._labels) > 1 else self._labels[0]
        self._progress.update(self._task, description=one_line(what), total=cases or None)

    def started(self, case: Case) -> None:
        where = self._turn + (f"{case.device}: " if len(self._labels) > 1 else "")
        self._progress.update(self._task, description=one_line(f"{where}{case.name} {case.problem.label}"))

    def finished(self, measurement: Measurement) -> None:
        time, ended = _time_of(measurement), status_on(self._backend, measurement).word
        self._advance([] if self._narrow else [f"{ended}, {time}" if time else ended])

    def _advance(self, told: list[str]) -> None:
        self._pace.done += 1
        if (rest := self._pace.rest_s()) is not None:
            told.append(f"about {format_seconds(rest)} left")
        self._progress.update(self._task, advance=1, told=", ".join(told))

    def stage(self, title: str, steps: int, most_s: float | None = None) -> None:
        title += "" if most_s is None else f", {format_seconds(most_s)} at most"
        self._pace = Pace(steps)
        self._progress.reset(self._task, description=one_line(title), total=max(1, steps), told="")

    def step(self) -> None:
        self._advance([])

    def profiling(self, case: Case) -> None:
        """Show the case under Nsight Compute; the bar goes back to counting up."""
        self._progress.update(
            self._task,
            description=one_line(f"Nsight Compute: {case.name} {case.problem.label}"),
            total=None,
            told="",
        )

    def timed(self, run: Run) -> None:
        """Show the answer by the times, until the one that holds the counts takes its place."""
        from rich.text import Text

        table, console = io.StringIO(), self._progress.console
        color = console.is_terminal and not console.no_color
        _show_times(run, table, width=console.width, color=color)
        self._beneath[:] = [Text.from_ansi(table.getvalue())]
        self._progress.update(self._task, description="All times measured; counting", told="", refresh=True)

    def stop(self) -> None:
        self._progress.stop()


def _time_of(measurement: Measurement) -> str:
    """What a case was measured to take; empty where it was not."""
    cold = measurement.timing.cold if measurement.timing and measurement.outcome == "ok" else None
    return "" if cold is None else time_us(cold.median_us)


def _show_times(run: Run, file: TextIO, **how: Any) -> None:
    """The answer of a run by its times; for `how` see `show_run`."""
    from gpuprof.report.run_text import show_run

    with timeline.span("times"):
        show_run(run, file=file, pending=True, **how)


class Pace:
    """How many cases of a run are done, and how long the others may take."""

    def __init__(self, cases: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.cases = cases
        self._clock = clock
        self._begun = clock()
        self.done = 0

    @property
    def gone_s(self) -> float:
        """Seconds since the first case could begin."""
        return self._clock() - self._begun

    def rest_s(self) -> float | None:
        """Seconds that the cases to come may take, as long as those before on average; None while unknown."""
        if self.done < _FEWEST or self.done >= self.cases:
            return None
        rest = self.gone_s / self.done * (self.cases - self.done)
        return rest if rest >= _SHORTEST_S else None


def format_seconds(seconds: float) -> str:
    """A duration as people say it: `0.2 s`, `48 s`, `3 min 10 s`, `1 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h {whole % 3600 // 60} min"
