# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What terminal, Markdown and HTML say alike of a comparison: symbols, columns, sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.figure import Figure
from gpuprof.analysis.figures import FIGURES
from gpuprof.comparison.compared import ComparedCase, Comparison, Moved, percent
from gpuprof.comparison.gates import GateResult
from gpuprof.comparison.judging import Verdict
from gpuprof.report.cells import format_block
from gpuprof.results import Run

#: Symbol, its ASCII stand-in, and the tone that supports it: no reader depends on colour.
MARKS: dict[Verdict, tuple[str, str, str]] = {
    "regressed": ("▲", "^", "bad"),
    "improved": ("▼", "v", "good"),
    "same": ("=", "=", "muted"),
    "uncertain": ("?", "?", "warning"),
    "unmeasured": ("○", "o", "muted"),
}
GATE_MARKS = {
    "failed": ("✗", "x", "bad"),
    "passed": ("✓", "+", "good"),
    "uncertain": ("?", "?", "warning"),
    "not judged": ("✗", "x", "bad"),
}
_MOST_MOVED = 4
#: Share of the largest count of its unit by which a count must have moved to be worth a word.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """One compared case as a table shows it.

    Args:
        case: The case.
        kernel: Its kernel.
        size: The problem's size.
        shape: Block and parameters.
        before: Time of the base; of what was not timed its bound, behind a sign that says so.
        after: Of the new run.
        change: The change; empty where there is none to tell.
        interval: Its interval.
        detectable: The smallest change that would have been seen.
        moved: What else moved, most telling first.
    """

    case: ComparedCase
    kernel: str
    size: str
    shape: str
    before: str
    after: str
    change: str
    interval: str
    detectable: str
    moved: tuple[str, ...]


def rows_of(comparison: Comparison) -> list[Row]:
    """A row for each case that both runs have, in the new run's order."""
    return [_row(case) for case in comparison.cases]


def _row(case: ComparedCase) -> Row:
    figure = headline_figure(case)
    values = [figure.value(subject) for subject in (case.base, case.new)]
    least = "" if case.judgement is not None else "≥ "  # a bound is no measured time, nor shown as one
    before, after = ("–" if value is None else f"{least}{figure.write(value, 4)}" for value in values)
    found = case.judgement
    change = interval = detectable = ""
    if found is not None:
        change, interval = percent(found.change), f"{percent(found.low)} … {percent(found.high)}"
        detectable = percent(found.detectable, signed=False)
    elif case.basis == "outcome":
        change = case.new.case.outcome
    elif case.basis == "bound" and values[0] and values[1]:
        change = percent(values[1] / values[0] - 1)
    return Row(
        case,
        case.new.case.kernel,
        case.new.case.problem.label,
        format_block(case.new.case),
        before,
        after,
        change,
        interval,
        detectable,
        moved_texts(case),
    )


def headline_figure(case: ComparedCase) -> Figure:
    """What a row shows of a case: its time, or its bound where it was not timed."""
    return FIGURES["median_us" if case.judgement is not None else "bound_us"]


def moved_texts(case: ComparedCase, most: int = _MOST_MOVED) -> tuple[str, ...]:
    """What of source, launch, resources and counts is not what it was, in short."""
    found = list(case.other_identity)
    if case.same_source is False:
        found.insert(0, "source")
    moved = [item for item in case.moved if item.figure.key != "bound_us" or case.basis != "bound"]
    weights = {id(item): weight for item, weight in zip(moved, _weights(moved), strict=True)}
    telling = sorted((item for item in moved if weights[id(item)]), key=lambda item: -weights[id(item)])
    found += [item.text for item in telling[:most]]
    return (*found, f"{len(telling) - most} more") if len(telling) > most else tuple(found)


def _weights(moved: Sequence[Moved]) -> Iterator[float]:
    """How much each figure says of a change; 0 for one that a row does well without.

    Resources and words come first, because they are few and have causes. A count is weighed by what it grew
    or shrank by, as a share of the largest of its unit: ten requests where there was one are nothing beside a
    million.
    """
    largest: dict[str, float] = {}
    for item in moved:
        values = [abs(value) for value in (item.before, item.after) if isinstance(value, int | float)]
        largest[item.figure.unit] = max([*values, largest.get(item.figure.unit, 0.0)])
    for item in moved:
        if item.figure.key in FIGURES:
            yield 2.0
            continue
        before, after = (
            value if isinstance(value, int | float) else 0.0 for value in (item.before, item.after)
        )
        share = abs(after - before) / (largest[item.figure.unit] or 1.0)
        yield share if share >= _LEAST_SHARE else 0.0


def surroundings(comparison: Comparison) -> tuple[str, ...]:
    """What differs besides the kernels, each as a sentence; and what references say of it."""
    found = [
        f"{difference.text}{f' ({difference.misleads})' if difference.misleads else ''}"
        for difference in comparison.differences
    ]
    for case in comparison.cases:
        if case.is_reference and case.verdict in ("regressed", "improved"):
            found.append(
                f"{case.name}, which is no code of yours, is {case.sentence}:"
                " something besides the kernels changed"
            )
    return tuple(found)


def sources(comparison: Comparison, most: int = 6) -> str:
    """Which kernels' sources differ, as a sentence; empty where nothing with a source was compared."""
    known = [case for case in comparison.cases if case.same_source is not None]
    changed = list(dict.fromkeys(case.new.case.kernel for case in known if not case.same_source))
    if not changed:
        return "Every source is the same." if known else ""
    more = f" and {len(changed) - most} more" if len(changed) > most else ""
    return f"Sources that differ: {', '.join(changed[:most])}{more}."


def facts(name: str, run: Run, rounds: int) -> str:
    """A run on one line: where it came from, when, on what, in how many rounds."""
    devices = ", ".join(dict.fromkeys(device.name for device in run.devices))
    counted = f", {rounds} {'round' if rounds == 1 else 'rounds'}" if run.backend == "gpu" else ""
    how = {"gpu": "", "sim": " (executor)", "none": " (compiled only)"}[run.backend]
    return f"{name}: {devices}{how}, {run.created_utc}{counted}"


def bound_shift(case: ComparedCase) -> str:
    """What binds a case before and after, in words; empty where that is not known of both."""
    read = [FIGURES["bound_by"].read(subject).value for subject in (case.base, case.new)]
    if not all(read):
        return ""
    was, is_now = read
    times = " → ".join(
        numbers.time_us(FIGURES["bound_us"].value(subject) or 0.0) for subject in (case.base, case.new)
    )
    return f"bound by {was}, {times}" if was == is_now else f"bound by {was} → {is_now}, {times}"


def failed(results: Sequence[GateResult]) -> bool:
    """Whether a gate failed, or guards nothing because no case could be held against it."""
    return any(result.outcome in ("failed", "not judged") for result in results)
