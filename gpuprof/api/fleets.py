# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Many cards from Python: which differ from the fleet median, as plain values."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuprof import __version__
from gpuprof.api.finding import ShownAsTables
from gpuprof.api.measured_run import MeasuredRun
from gpuprof.comparison.fleet import FleetBuilder
from gpuprof.comparison.fleet import FleetRuns as Record
from gpuprof.comparison.outliers import Outlier
from gpuprof.errors import InputError, in_sentences
from gpuprof.reading import read_run
from gpuprof.results import Tool
from gpuprof.schema import to_json

if TYPE_CHECKING:
    from gpuprof.report.document import Document

__all__ = ["Fleet", "Outlier", "fleet"]


class Fleet(ShownAsTables):
    """Many cards side by side."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def cards(self) -> int:
        """How many cards."""
        return self.record.found.cards

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """The confirmed ones, of every model."""
        return self.record.confirmed

    @property
    def suspects(self) -> tuple[Outlier, ...]:
        """Cards with a slow case that one process may have caused: to be measured again."""
        return self.record.suspects

    @property
    def versions(self) -> Mapping[str, Mapping[str, int]]:
        """Software of several versions, and how many cards have each."""
        return self.record.found.versions

    def to_dict(self) -> dict[str, Any]:
        """What `gpuprof fleet --json` writes."""
        found: dict[str, Any] = to_json(self.record.found)
        return found

    def to_html(self) -> str:
        """The page."""
        from gpuprof.report.fleet_text import fleet_page

        return fleet_page(self.record)

    def _report(self) -> "Document":
        from gpuprof.report.fleet_text import fleet_report

        return fleet_report(self.record)

    def __repr__(self) -> str:
        """The headline."""
        return f"<Fleet: {self.record.headline}>"


@in_sentences
def fleet(runs: Iterable[MeasuredRun | str | Path]) -> Fleet:
    """Find the cards that differ from the fleet median.

    Args:
        runs: Runs or results files, of one card or several each. They are read one after the other, and none
            is kept: an iterator that measures or loads them holds one at a time.

    Raises:
        InputError: There is no card in them.
        ResultsError: A file is not a results file.
    """
    if isinstance(runs, str | Path | MeasuredRun):
        raise InputError("A fleet is made of several runs.", fix="Give a list of runs or files.")
    builder = FleetBuilder(Tool("gpuprof", __version__))
    for number, run in enumerate(runs):
        if isinstance(run, MeasuredRun):
            builder.add(run.record, f"run {number}")
        else:
            builder.add(read_run(Path(run)), str(run))
    return Fleet(builder.fleet())
