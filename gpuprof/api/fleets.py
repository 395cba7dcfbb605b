# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Many cards from Python: which are not like the others, as plain values."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuprof import __version__
from gpuprof.api.run import Run
from gpuprof.comparison.fleet import Finding, FleetBuilder
from gpuprof.comparison.fleet import Fleet as Record
from gpuprof.comparison.fleet_document import fleet_document
from gpuprof.errors import InputError, in_sentences
from gpuprof.reading import read_run
from gpuprof.report.fleet_text import where, why
from gpuprof.results import Tool
from gpuprof.schema import to_json


class Outlier:
    """A card that is not like the others."""

    def __init__(self, record: Finding) -> None:
        self.record = record

    @property
    def card(self) -> str:
        """What it is called: by its label, its host's, or its file."""
        return self.record.card.title

    @property
    def labels(self) -> Mapping[str, str]:
        """Those of its run."""
        return self.record.card.labels

    @property
    def change(self) -> float:
        """How far it lies off where that says most: 0.02 is 2 % slower than the middle of all cards."""
        return self.record.outlier.gravest.change

    @property
    def confirmed(self) -> bool:
        """Whether it is more than a chance of one process."""
        return self.record.outlier.confirmed

    @property
    def causes(self) -> tuple[str, ...]:
        """What else of it is unlike the others, in words."""
        return self.record.causes

    @property
    def sentence(self) -> str:
        """How far it lies off, in what, and what else differs."""
        return f"{where(self.record)}: {why(self.record)}"

    def __repr__(self) -> str:
        """The card and its sentence."""
        return f"<{self.card}: {self.sentence}>"


class Fleet:
    """Many cards side by side."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def cards(self) -> int:
        """How many cards."""
        return self.record.cards

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """The confirmed ones, of every model."""
        return tuple(map(Outlier, self.record.confirmed))

    @property
    def suspects(self) -> tuple[Outlier, ...]:
        """Cards with a slow case that one process may have caused: to be measured again."""
        found = [finding for kind in self.record.kinds for finding in kind.findings]
        return tuple(Outlier(finding) for finding in found if not finding.outlier.confirmed)

    @property
    def versions(self) -> Mapping[str, Mapping[str, int]]:
        """Software of several versions, and how many cards have each."""
        return {mixture.what: mixture.cards for mixture in self.record.mixtures}

    def to_dict(self) -> dict[str, Any]:
        """What `gpuprof fleet --json` writes."""
        found: dict[str, Any] = to_json(fleet_document(self.record, Tool("gpuprof", __version__)))
        return found

    def to_markdown(self) -> str:
        """Tables for a page of Markdown."""
        from gpuprof.report.fleet_text import fleet_report
        from gpuprof.report.markdown import markdown_of

        return markdown_of(fleet_report(self.record))

    def to_html(self) -> str:
        """The page."""
        from gpuprof.report.fleet_html import render_fleet_html

        return render_fleet_html(self.record, Tool("gpuprof", __version__))

    def _repr_html_(self) -> str:
        """What a notebook shows: compact tables."""
        from gpuprof.report.fleet_text import fleet_report
        from gpuprof.report.notebook import render_notebook

        return render_notebook(fleet_report(self.record))

    def __repr__(self) -> str:
        """The headline."""
        return f"<Fleet: {self.record.headline}>"


@in_sentences
def fleet(runs: Iterable[Run | str | Path]) -> Fleet:
    """Find the cards that are not like the others.

    Args:
        runs: Runs or results files, of one card or several each. They are read one after the other, and none
            is kept: an iterator that measures or loads them holds one at a time.

    Raises:
        InputError: There is no card in them.
        ResultsError: A file is not a results file.
    """
    if isinstance(runs, str | Path | Run):
        raise InputError("A fleet is made of several runs.", fix="Give a list of runs or files.")
    builder = FleetBuilder()
    for number, run in enumerate(runs):
        if isinstance(run, Run):
            builder.add(run.record, f"run {number}")
        else:
            builder.add(read_run(Path(run)), str(run))
    return Fleet(builder.fleet())
