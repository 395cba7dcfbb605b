# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compare runs and cards from Python: verdicts, changes, gates and outliers as plain values."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from gpuprof import __version__
from gpuprof.api.finding import CaseFinder, ShownAsTables, told
from gpuprof.api.keywords import public
from gpuprof.api.measured_run import MeasuredCase, MeasuredRun, load
from gpuprof.comparison.compared import CaseVerdict as Record
from gpuprof.comparison.compared import ComparedRuns as Compared
from gpuprof.comparison.compared import case_name, compare_runs
from gpuprof.comparison.comparison_document import document
from gpuprof.comparison.fleet import FleetBuilder, FleetRuns
from gpuprof.comparison.gates import GateResult, hold_comparison, read_gates
from gpuprof.comparison.judging import Verdict
from gpuprof.comparison.outliers import Outlier
from gpuprof.results import Tool
from gpuprof.schema import to_json

if TYPE_CHECKING:
    from gpuprof.comparison.matching import Difference
    from gpuprof.report.document import Document

#: A run, or its results file.
RunOrFile = MeasuredRun | str | Path


class ComparedCase:
    """One case that both runs have, and what became of it."""

    def __init__(self, record: Record, base: MeasuredCase, new: MeasuredCase) -> None:
        self.record = record
        self.base = base
        self.new = new

    kernel: str = told("new.kernel", "Id of the kernel or of the reference.")
    size: str = told("new.size", "The problem's size as users type it.")
    name: str = told("record.name", "Kernel, size, block and parameters on one line.")
    verdict: str = told(
        "record.verdict", "`improved`, `same`, `regressed`, `uncertain`, or `unmeasured` where nothing tells."
    )
    basis: str = told(
        "record.basis",
        "What says so: `time`, `model`led time or exact `bound` where not timed, `outcome`, or `nothing`.",
    )
    sentence: str = told("record.sentence", "The verdict in words, with its figures.")

    @property
    def change(self) -> float | None:
        """Best estimate of the change of time: 0.02 is 2 % slower; None if not timed or modelled."""
        return self.record.judgement.change if self.record.judgement else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Between what that change lies; None where it was neither timed nor modelled."""
        found = self.record.judgement
        return (found.low, found.high) if found else None

    @property
    def detectable(self) -> float | None:
        """Smallest slowdown that these rounds would have shown nine times of ten; None if not timed."""
        return self.record.judgement.detectable if self.record.judgement else None

    @property
    def moved(self) -> Mapping[str, tuple[Any, Any]]:
        """Resources, occupancy, bounds and counters that changed: before and after, by the figure's name."""
        return {moved.figure.key: (moved.before, moved.after) for moved in self.record.moved}

    same_source: bool | None = told(
        "record.same_source", "Whether its code is that of the base; None where that is not known."
    )

    def __repr__(self) -> str:
        """The verdict in short."""
        return f"<{self.name}: {self.verdict}, {self.sentence}>"


class Comparison(CaseFinder[ComparedCase], ShownAsTables):
    """What became of every case of a base, in a new run."""

    words: ClassVar = {"verdict": get_args(Verdict)}

    def __init__(self, record: Compared, base: MeasuredRun, new: MeasuredRun) -> None:
        self.record = record
        self.base = base
        self.new = new

    @cached_property
    def cases(self) -> tuple[ComparedCase, ...]:
        """Cases that both runs have, in the new run's order."""
        bases = {id(case.record): case for case in self.base.cases}
        news = {id(case.record): case for case in self.new.cases}
        return tuple(
            ComparedCase(record, bases[id(record.base.case)], news[id(record.new.case)])
            for record in self.record.cases
        )

    verdict: str = told(
        "record.verdict",
        "The gravest verdict: `regressed`, `uncertain`, `improved` or `same`; `unmeasured` without any.",
    )

    @property
    def counts(self) -> Mapping[str, int]:
        """How many kernels' cases have each verdict."""
        return {str(verdict): count for verdict, count in self.record.counts.items()}

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the cases that only the base has."""
        return tuple(case_name(self.record.base, case) for case in self.record.missing)

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the cases that only the new run has."""
        return tuple(case_name(self.record.new, case) for case in self.record.added)

    differences: "tuple[Difference, ...]" = told(
        "record.differences",
        "What differs besides the kernels; `misleads` of one is empty where it only is worth knowing.",
    )

    @public
    def hold(self, *gates: str) -> tuple[GateResult, ...]:
        """Hold the comparison against gates, written as behind `--fail-on`.

        Returns:
            What became of each: `outcome` is `passed`, `failed`, `uncertain`, or `not judged` where no case
            has the figure; `failing` are the cases that meet its condition.

        Raises:
            InputError: One cannot be read.
        """
        return hold_comparison(read_gates(gates, with_base=True), self.record)

    def to_json(self) -> dict[str, Any]:
        """The document of docs/compare.schema.json."""
        found: dict[str, Any] = to_json(document([self.record], [()], Tool("gpuprof", __version__)))
        return found

    def to_html(self) -> str:
        """The page."""
        from gpuprof.report.compared_text import comparison_page

        return comparison_page([(self.record, ())], Tool("gpuprof", __version__))

    def _report(self) -> "Document":
        from gpuprof.report.compared_text import comparison_report

        return comparison_report(self.record)

    def __repr__(self) -> str:
        """The verdict in short."""
        return f"<{self.record.new_name} against {self.record.base_name}: {self.record.headline}>"


@public
def compare(base: RunOrFile, new: RunOrFile, *, force: bool = False) -> Comparison:
    """Say which cases regressed, improved or stayed the same from one run to another.

    One round a side tells 5 % above 100 us; the more rounds, `profile(rounds=16)`, the smaller a change. Runs
    without times are compared by their modelled times, else by exact bounds.

    Args:
        base: What to compare with: a run, or a results file.
        new: What to compare, likewise.
        force: Whether to compare what misleads, such as runs on different devices.

    Raises:
        InputError: One is no run, or the two must not be compared.
        ResultsError: A file is not a results file.
    """
    old, now = (one if isinstance(one, MeasuredRun) else load(one) for one in (base, new))
    named = {"base_name": base, "new_name": new}
    names = {key: str(one) for key, one in named.items() if not isinstance(one, MeasuredRun)}
    record = compare_runs(old.record, now.record, **names, force=force)
    return Comparison(record, old, now)


class Fleet(ShownAsTables):
    """Many cards side by side."""

    def __init__(self, record: FleetRuns) -> None:
        self.record = record

    cards: int = told("record.found.cards", "How many cards.")
    outliers: tuple[Outlier, ...] = told("record.confirmed", "The confirmed ones, of every model.")
    suspects: tuple[Outlier, ...] = told(
        "record.suspects", "Cards with a slow case that one process may have caused: to be measured again."
    )
    versions: Mapping[str, Mapping[str, int]] = told(
        "record.found.versions", "Software of several versions, and how many cards have each."
    )

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


@public
def fleet(runs: Iterable[RunOrFile]) -> Fleet:
    """Find the cards that differ from the fleet median.

    Args:
        runs: Runs or results files, of one card or several each. They are read one after the other, and none
            is kept: an iterator that measures or loads them holds one at a time.

    Raises:
        InputError: One is no run, or there is no card in them.
        ResultsError: A file is not a results file.
    """
    builder = FleetBuilder(Tool("gpuprof", __version__))
    for number, run in enumerate(runs):
        if isinstance(run, MeasuredRun):
            builder.add(run.record, f"run {number}")
        else:
            builder.add(load(run).record, str(run))
    return Fleet(builder.fleet())
