# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison as a JSON document with a version of its own; docs/compare.schema.json is its schema."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from gpuprof.analysis.changes import FigureChange
from gpuprof.analysis.figures import Subject
from gpuprof.analysis.status import is_reference
from gpuprof.comparison.compared import Basis, CaseVerdict, ComparedRuns
from gpuprof.comparison.gates import GateResult, Held
from gpuprof.comparison.gates import Outcome as GateOutcome
from gpuprof.comparison.judging import Verdict, times_of
from gpuprof.comparison.matching import Difference
from gpuprof.results import BackendName, Outcome, Run, Tool
from gpuprof.schema import Count, Extent, Integer, NonNegative, to_text


class ComparedRun(Struct, frozen=True):
    """One of the runs.

    Args:
        name: What the user called it: a file, a folder, a revision.
        rounds: Most rounds of any of its cases.
    """

    name: str
    created_utc: str
    tool: Tool
    backend: BackendName
    devices: tuple[str, ...]
    complete: bool
    rounds: Count


class MovedFigure(Struct, frozen=True):
    """A figure that no noise touches and that is not what it was.

    Args:
        figure: Its stable name, that of a counter for a counter.
        unit: Of both values; `text` for words.
        before: In the base; null where it was not known.
        after: In the new run; null where it is not known.
    """

    figure: str
    label: str
    unit: str
    before: float | str | None
    after: float | str | None


class TimeChange(Struct, frozen=True):
    """How the time of a case changed, or its modelled time where the verdict's basis is `model`.

    All changes are relative: 0.02 is 2 % slower.

    Args:
        change: Best estimate.
        detectable: Smallest slowdown that would have been found nine times of ten.
        base_rounds_us: Median of each round of the base; none of a modelled time.
        new_rounds_us: Median of each round of the new run.
    """

    change: float
    low: float
    high: float
    detectable: float
    base_rounds_us: tuple[NonNegative, ...]
    new_rounds_us: tuple[NonNegative, ...]


class CaseDocument(Struct, frozen=True):
    """One case of either run.

    Args:
        state: Whether both have it, only the base, or only the new run.
        verdict: What became of it; null unless both have it.
        basis: What the verdict rests on; null likewise.
        time: How its time changed; null where it was not timed, or modelled, in both.
        same_source: Whether its code is that of the base; null where that is not known.
        other_identity: What of block or parameters differs, where the two were paired all the same.
        is_reference: Whether it is what kernels are compared with; no verdict of the whole rests on it.
    """

    kernel: str
    operation: str
    sizes: Mapping[str, Extent]
    dtype: str
    scalars: Mapping[str, float]
    options: Mapping[str, str]
    block: tuple[Extent, Extent, Extent]
    params: Mapping[str, Integer]
    device: str
    state: Literal["matched", "missing", "new"]
    base_outcome: Outcome | None
    new_outcome: Outcome | None
    verdict: Verdict | None
    basis: Basis | None
    sentence: str
    time: TimeChange | None
    moved: tuple[MovedFigure, ...]
    same_source: bool | None
    other_identity: tuple[str, ...]
    is_reference: bool


class GateDocument(Struct, frozen=True):
    """One gate, and what became of it."""

    gate: str
    outcome: GateOutcome
    sentence: str
    cases: tuple[Held, ...]


class ComparedWithBase(Struct, frozen=True):
    """One new run beside the base.

    Args:
        verdict: The gravest of its kernels' verdicts.
        counts: How many kernels' cases have each.
        differences: What differs besides the kernels; `misleads` says why that forbids comparing.
    """

    new: ComparedRun
    verdict: Verdict
    counts: Mapping[str, Count]
    differences: tuple[Difference, ...]
    cases: tuple[CaseDocument, ...]
    gates: tuple[GateDocument, ...]


class ComparisonDocument(Struct, frozen=True):
    """What `gpuprof compare --json` writes."""

    schema_version: Literal[2]
    tool: Tool
    base: ComparedRun
    comparisons: tuple[ComparedWithBase, ...]


def document(
    comparisons: Sequence[ComparedRuns], gates: Sequence[Sequence[GateResult]], tool: Tool
) -> ComparisonDocument:
    """Comparisons, at least one, of new runs with one base; with what became of the gates in each of them."""
    first = comparisons[0]
    return ComparisonDocument(
        2,
        tool,
        _run(first.base_name, first.base),
        tuple(
            _with_base(comparison, results) for comparison, results in zip(comparisons, gates, strict=True)
        ),
    )


def dumps(found: object) -> str:
    """The text of a document, of a comparison or a fleet."""
    return to_text(found, indent=1, ensure_ascii=False) + "\n"


def most_rounds(run: Run) -> int:
    """Most rounds that any case of a run was measured in."""
    return max((len(times_of(case).medians_us) for case in run.cases), default=0)


def _run(name: str, run: Run) -> ComparedRun:
    devices = tuple(dict.fromkeys(device.name for device in run.devices))
    return ComparedRun(name, run.created_utc, run.tool, run.backend, devices, run.complete, most_rounds(run))


def _with_base(comparison: ComparedRuns, gates: Sequence[GateResult]) -> ComparedWithBase:
    return ComparedWithBase(
        _run(comparison.new_name, comparison.new),
        comparison.verdict,
        {str(verdict): count for verdict, count in comparison.counts.items()},
        comparison.differences,
        (
            *(_case(case.new, "matched", case) for case in comparison.cases),
            *(_case(Subject(comparison.base, case), "missing") for case in comparison.missing),
            *(_case(Subject(comparison.new, case), "new") for case in comparison.added),
        ),
        tuple(GateDocument(held.text, held.outcome, held.sentence, held.held) for held in gates),
    )


def _case(
    subject: Subject, state: Literal["matched", "missing", "new"], found: CaseVerdict | None = None
) -> CaseDocument:
    run, case = subject.run, subject.case
    problem = case.problem
    old = found.base.case.outcome if found else case.outcome if state == "missing" else None
    only = f"only in {'the base' if state == 'missing' else 'the new run'}"
    return CaseDocument(
        case.kernel,
        problem.operation,
        problem.sizes,
        problem.dtype,
        problem.scalars,
        problem.options,
        case.block,
        case.params,
        run.device_label(case.device),
        state,
        old,
        None if state == "missing" else case.outcome,
        found.verdict if found else None,
        found.basis if found else None,
        found.sentence if found else only,
        _time(found) if found else None,
        tuple(map(_figure, found.moved)) if found else (),
        found.same_source if found else None,
        found.other_identity if found else (),
        is_reference(run, case),
    )


def _time(case: CaseVerdict) -> TimeChange | None:
    found = case.judgement
    if found is None:
        return None
    base, new = (tuple(times_of(subject.case).medians_us) for subject in (case.base, case.new))
    return TimeChange(found.change, found.low, found.high, found.detectable, base, new)


def _figure(moved: FigureChange) -> MovedFigure:
    before, after = (
        float(value) if isinstance(value, int | float) else value for value in (moved.before, moved.after)
    )
    return MovedFigure(moved.figure.key, moved.figure.label, moved.figure.unit, before, after)
