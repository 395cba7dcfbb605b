# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: a bar on a terminal, a line per case in a pipe, nothing when quiet."""

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from gpuprof import timeline
from gpuprof.commands.pace import Pace, format_seconds
from gpuprof.console import tell
from gpuprof.measure.case import Case
from gpuprof.measure.protocol import Opened
from gpuprof.measure.run import Progress
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Columns of a terminal below which a bar, and from which the time gone by too, find room beside the words.
_NARROW, _WIDE = 80, 100


class Shown(Progress, Protocol):
    """A display that knows more than single cases."""

    def timed(self, run: Run) -> None:
        """All times are there, and the executor still counts."""
        ...


@contextmanager
def watch(*, quiet: bool) -> Iterator[Shown]:
    """A progress display for the length of a run."""
    if quiet:
        yield _Silent()
    elif sys.stderr.isatty():
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.stop()
    else:
        yield _Lines()


def why_here(opened: Opened) -> str:
    """Why the kernels run where they do, where that is not what one would expect; else nothing."""
    if not opened.backend_reason or opened.backend != "sim":
        return opened.backend_reason or ""
    instead = f"The kernels run on the CPU executor instead, which counts as {opened.device.name} would."
    return f"{opened.backend_reason} {instead}"


def _devices(opened: Opened) -> str:
    """What the run is on: of several, each with the number by which a bar calls it."""
    if not opened.labels:
        return opened.device.name
    return ", ".join(f"{number}: {label}" for number, label in enumerate(opened.labels))


def _parameters(params: Mapping[str, int]) -> str:
    """The parameters that tell one case of a kernel from another, as what follows its block."""
    return "".join(f" {name}={value}" for name, value in params.items())


class _Silent:
    def opened(self, opened: Opened, cases: int) -> None:
        """Say nothing, but for why nothing runs."""
        if why := why_here(opened):
            tell(why)

    def started(self, case: Case) -> None:
        """Say nothing."""

    def finished(self, measurement: Measurement) -> None:
        """Say nothing."""

    def profiling(self, case: Case) -> None:
        """Say nothing."""

    def timed(self, run: Run) -> None:
        """Say nothing."""


class _Lines(_Silent):
    """One line per finished case, for logs."""

    def __init__(self) -> None:
        self._total = 0
        self._done = 0
        self._pace = Pace(0)
        self._labels: tuple[str, ...] = ()

    def opened(self, opened: Opened, cases: int) -> None:
        """Name the device."""
        super().opened(opened, cases)
        self._total = cases
        self._pace = Pace(cases)
        self._labels = opened.labels
        tell(f"{_devices(opened)}: {cases} {'case' if cases == 1 else 'cases'}")

    def started(self, case: Case) -> None:
        """Note when the case begins."""
        self._pace.start(case)

    def finished(self, measurement: Measurement) -> None:
        """Name the case, how it ended, how long it took, and how long the others may take."""
        self._done += 1
        where = measurement.problem.label
        if self._labels:
            where = f"{where} on {self._labels[measurement.device]}"
        if measurement.chosen:
            where += f" → {measurement.chosen}"
        if measurement.has_launch:
            where += f" {format_extent(measurement.block)}"
            where += "" if measurement.chosen else _parameters(measurement.params)
        told = [f"[{self._done}/{self._total}] {measurement.kernel} {where}: {measurement.outcome}"]
        if (took := self._pace.finish(measurement)) is not None:
            told.append(format_seconds(took))
        if (rest := self._pace.rest_s()) is not None:
            told.append(f"about {format_seconds(rest)} left")
        tell(", ".join(told))

    def profiling(self, case: Case) -> None:
        """Name the case under Nsight Compute."""
        where = f"{case.problem.label} {format_extent(case.block)}{_parameters(case.params)}"
        tell(f"ncu: {case.name} {where}")

    def timed(self, run: Run) -> None:
        """Say what is still going on."""
        tell("All times are measured; the executor counts what explains them.")


class _Bar(_Silent):
    """A bar that shows which kernel runs, what the last one took, and what is left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        shown: list[RenderableType] = []

        class Beneath(RichProgress):
            """A bar with something beneath it, which goes with it."""

            def get_renderables(self) -> "Iterable[RenderableType]":
                yield from super().get_renderables()
                yield from shown

        self._beneath = shown
        console = Console(stderr=True)
        self._pace = Pace(0)
        self._narrow = console.width < _NARROW
        self._width = console.width
        self._labels: tuple[str, ...] = ()
        self._running: dict[int, str] = {}
        self._progress = Beneath(
            TextColumn("{task.description}", markup=False),
            *(() if self._narrow else (BarColumn(bar_width=None),)),
            MofNCompleteColumn(),
            *((TimeElapsedColumn(),) if console.width >= _WIDE else ()),
            TextColumn("{task.fields[told]}", markup=False),
            console=console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task("Opening the device", total=None, told="")

    def opened(self, opened: Opened, cases: int) -> None:
        """Show how many cases follow."""
        if why := why_here(opened):
            self._progress.console.print(one_line(why), markup=False)
        self._pace = Pace(cases)
        self._labels = opened.labels
        what = f"{len(opened.labels)} devices" if opened.labels else opened.device.name
        self._progress.update(self._task, description=one_line(what), total=cases)

    def started(self, case: Case) -> None:
        """Show the case's name."""
        self._pace.start(case)
        self._running[case.device] = one_line(f"{case.name} {case.problem.label}")
        self._progress.update(self._task, description=self._described())

    def finished(self, measurement: Measurement) -> None:
        """One more."""
        self._running.pop(measurement.device, None)
        if self._running:
            self._progress.update(self._task, description=self._described())
        told = []
        if (took := self._pace.finish(measurement)) is not None and not self._narrow:
            told.append(f"last {format_seconds(took)}")
        if (rest := self._pace.rest_s()) is not None:
            told.append(f"about {format_seconds(rest)} left")
        self._progress.update(self._task, advance=1, told=", ".join(told))

    def _described(self) -> str:
        """What runs now: on one device its name, on several as many as find room, by their numbers."""
        if not self._labels:
            return next(reversed(self._running.values()))
        shown: list[str] = []
        left = self._width // 2
        for number, what in sorted(self._running.items()):
            text = f"{number}: {what}"
            if shown and len(text) + 2 > left:
                return f"{', '.join(shown)} and {len(self._running) - len(shown)} more"
            shown.append(text if len(text) <= left else f"{text[: left - 1]}…")
            left -= len(text) + 2
        return ", ".join(shown)

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

        from gpuprof.report.shown import show_run

        table = io.StringIO()
        console = self._progress.console
        with timeline.span("times"):
            color = console.is_terminal and not console.no_color
            show_run(run, file=table, pending=True, width=console.width, color=color)
            self._beneath[:] = [Text.from_ansi(table.getvalue())]
            self._progress.update(
                self._task, description="All times measured; counting", told="", refresh=True
            )

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()
