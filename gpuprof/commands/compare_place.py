# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where `compare --against` keeps both versions, and how one that was stopped goes on."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gpuprof.commands.compare_runs import Outputs
from gpuprof.commands.resuming import finished_run, go_on, refuse_what_was_stopped
from gpuprof.errors import InputError
from gpuprof.measure.options import RunOptions
from gpuprof.measure.request import Request
from gpuprof.measure.run import Keep
from gpuprof.results import Run
from gpuprof.store import ResultsFile


@dataclass(frozen=True, slots=True)
class ComparePlace:
    """Where both results files of a comparison stand, and whether it goes on."""

    folder: Path
    goes_on: bool = False

    @classmethod
    def named(cls, output: Path | None, resume: Path | None) -> "ComparePlace":
        """The folder of `--output` or `--resume`, or a new one.

        Raises:
            InputError: Both are given, or there is nothing to go on with.
        """
        if resume is None:
            return cls(output or Path("gpuprof-results") / f"compare-{datetime.now():%Y%m%d-%H%M%S}")
        if output is not None:
            raise InputError(
                "--resume names the folder of the comparison: --output does not go with it.",
                fix="Leave one of them out.",
            )
        place = cls(resume, goes_on=True)
        if not place.base.is_file():
            raise InputError(
                f"There is no comparison to resume: {place.base} does not exist.",
                fix="Begin one with -o.",
            )
        return place

    @property
    def base(self) -> Path:
        """The results file of the base."""
        return self.folder / "base.json"

    @property
    def new(self) -> Path:
        """The results file of the working tree."""
        return self.folder / "new.json"

    def check(self, outputs: Outputs) -> Outputs:
        """Refuse what cannot be written, before any work is done.

        Returns:
            What to write: the page stands beside the results files unless it is named.

        Raises:
            InputError: A file exists and may not be replaced, cannot be written, or is named twice.
        """
        if not (self.goes_on or outputs.force):
            for file in (self.base, self.new):
                refuse_what_was_stopped(file, self.folder)
        page = self.folder / "comparison.html"
        if outputs.html is None:
            outputs = replace(outputs, html=page)
        own_page = self.goes_on and outputs.html == page
        (replace(outputs, force=True) if own_page else outputs).check([self.base, self.new])
        if not self.goes_on:
            Outputs(json=self.base, markdown=self.new, force=outputs.force).check()
        return outputs

    def finished(self, requests: tuple[Request, Request], options: RunOptions) -> tuple[Run, Run] | None:
        """Both runs where nothing is left to measure; None for those that go on.

        Raises:
            InputError: They were asked for otherwise.
        """
        if not (self.goes_on and self.new.is_file()):
            return None
        base, new = (
            finished_run(file, request, options, counters=False)
            for file, request in zip((self.base, self.new), requests, strict=True)
        )
        return (base, new) if base and new else None

    def keeper(self, path: Path, replace_it: bool) -> Keep:
        """Opens one of the files: that of the run which goes on, or a new one."""

        def keep(run: Run) -> ResultsFile:
            if self.goes_on and path.exists():
                return go_on(path, run)
            path.parent.mkdir(parents=True, exist_ok=True)
            return ResultsFile(path, run, replace=replace_it)

        return keep
