# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison as a document, and what its page says in the same words: marks, rows, sentences."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.figure import Figure
from gpuprof.analysis.figures import FIGURES
from gpuprof.comparison.compared import ATTENTION, ComparedCase, Comparison, Moved, case_name, percent
from gpuprof.comparison.comparison_document import most_rounds
from gpuprof.comparison.gates import GateResult
from gpuprof.comparison.judging import Verdict
from gpuprof.report.cells import format_block
from gpuprof.report.document import Cell, Column, Content, Document, Mark, Row, Section, Sentence, Table, Tone
from gpuprof.results import Run

MARKS: dict[Verdict, tuple[Mark, Tone]] = {
    "regressed": (Mark("▲", "^"), "bad"),
    "improved": (Mark("▼", "v"), "good"),
    "same": (Mark("=", "="), "muted"),
    "uncertain": (Mark("?", "?"), "warning"),
    "unmeasured": (Mark("○", "o"), "muted"),
}
GATE_MARKS: dict[str, tuple[Mark, Tone]] = {
    "failed": (Mark("✗", "x"), "bad"),
    "passed": (Mark("✓", "+"), "good"),
    "uncertain": (Mark("?", "?"), "warning"),
    "not judged": (Mark("✗", "x"), "bad"),
}
_CAUTION = Mark("!", "!")
#: Rows of unchanged cases that are shown: the rest is folded away.
_MOST_UNCHANGED = 12
_COLUMNS = (
    Column("", right=False),
    Column("verdict", right=False, rank=3),
    Column("kernel", right=False),
    Column("size"),
    Column("before", rank=1),
    Column("after"),
    Column("change"),
    Column("detectable", rank=2, meaning="Smallest detectable slowdown."),
)
_MOST_MOVED = 4
#: Names of sources, or of cases that only one run has, that are written out.
_MOST_NAMES = 6
#: Share of the largest count of its unit by which a count must have moved to be worth a word.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One compared case as a table shows it.

    Args:
        case: The case.
        kernel: Its kernel.
        size: The problem's size.
        shape: Block and parameters.
        before: Time of the base; of what was not timed its bound, behind a sign that says so.
        after: Of the new run.
        change: The change; empty where there is none to tell.
        detectable: The smallest change that would have been detected.
        moved: What else moved, most telling first.
    """

    case: ComparedCase
    kernel: str
    size: str
    shape: str
    before: str
    after: str
    change: str
    detectable: str
    moved: tuple[str, ...]


def rows_of(comparison: Comparison) -> list[ComparedRow]:
    """A row for each case that both runs have, in the new run's order."""
    return [_row(case) for case in comparison.cases]


def _row(case: ComparedCase) -> ComparedRow:
    figure = headline_figure(case)
    values = [figure.value(subject) for subject in (case.base, case.new)]
    least = "" if case.judgement is not None else "≥ "  # a bound is no measured time, nor shown as one
    before, after = ("–" if value is None else f"{least}{figure.write(value, 4)}" for value in values)
    found = case.judgement
    change = detectable = ""
    if found is not None:
        change, detectable = percent(found.change), percent(found.detectable, signed=False)
    elif case.basis == "outcome":
        change = case.new.case.outcome
    elif case.basis == "bound" and values[0] and values[1]:
        change = percent(values[1] / values[0] - 1)
    return ComparedRow(
        case,
        case.new.case.kernel,
        case.new.case.problem.label,
        format_block(case.new.case),
        before,
        after,
        change,
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
                f"{case.name}, which is not your code, is {case.sentence}:"
                " something besides the kernels changed"
            )
    return tuple(found)


def sources(comparison: Comparison) -> str:
    """Which kernels' sources differ, as a sentence; empty where nothing with a source was compared."""
    known = [case for case in comparison.cases if case.same_source is not None]
    changed = list(dict.fromkeys(case.new.case.kernel for case in known if not case.same_source))
    if not changed:
        return "Every source is the same." if known else ""
    return f"Sources that differ: {_few(changed)}."


def _few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def facts_of(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Both runs: where each came from, when, on what, in how many rounds; and which sources differ."""
    runs = ((comparison.base_name, comparison.base), (comparison.new_name, comparison.new))
    found = [(name, _origin(run, most_rounds(run))) for name, run in runs]
    changed = sources(comparison)
    return (*found, *((("sources", changed),) if changed else ()))


def _origin(run: Run, rounds: int) -> str:
    devices = ", ".join(dict.fromkeys(device.name for device in run.devices))
    counted = f", {rounds} {'round' if rounds == 1 else 'rounds'}" if run.backend == "gpu" else ""
    how = {"gpu": "", "sim": " (executor)", "none": " (compiled only)"}[run.backend]
    return f"{devices}{how}, {run.created_utc}{counted}"


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


def comparison_report(comparison: Comparison, gates: Sequence[GateResult] = ()) -> Document:
    """A comparison: what changed, what did not, what only one run has, and the gates.

    Args:
        comparison: What to show.
        gates: What became of the gates.
    """
    rows = sorted(rows_of(comparison), key=lambda row: ATTENTION.index(row.case.verdict))
    unchanged = [row for row in rows if row.case.verdict == "same"]
    shown = [row for row in rows if row.case.verdict != "same"] + unchanged[:_MOST_UNCHANGED]
    folded = unchanged[_MOST_UNCHANGED:]
    cautions = [f"uncertain: {comparison.advice}"] if comparison.advice else []
    content: list[Content] = [
        Sentence.of(text, mark=_CAUTION, tone="warning") for text in (*surroundings(comparison), *cautions)
    ]
    content += [Section("", (_table(shown),))] if shown else []
    if folded:
        content.append(Section(f"{len(folded)} more are the same", (_table(folded),), folded=True))
    for word, mark, run, cases in (
        ("missing", Mark("−", "-"), comparison.base, comparison.missing),
        ("new", Mark("+", "+"), comparison.new, comparison.added),
    ):
        if cases:
            names = _few([case_name(run, case) for case in cases])
            content.append(Sentence.of(f"{len(cases)} {word}: {names}", mark=mark, tone="muted"))
    return Document(
        f"{comparison.new_name} against {comparison.base_name}: {comparison.headline}",
        facts_of(comparison),
        (*content, *([Section("", gates_report(gates).content)] if gates else [])),
    )


def gates_report(gates: Sequence[GateResult]) -> Document:
    """What became of gates, in the order written."""
    return Document(
        "",
        content=tuple(
            Sentence.of(f"{result.gate.text}: {result.sentence}", mark=mark, tone=tone)
            for result in gates
            for mark, tone in [GATE_MARKS[result.outcome]]
        ),
    )


def _table(rows: Sequence[ComparedRow]) -> Table:
    """One row a case, and below it why; its shape only where that tells it from another."""
    shapes = Counter((row.kernel, row.size) for row in rows)
    return Table(_COLUMNS, tuple(_table_row(row, shapes[row.kernel, row.size] > 1) for row in rows))


def _table_row(row: ComparedRow, several: bool) -> Row:
    verdict = row.case.verdict
    mark, tone = MARKS[verdict]
    is_same = verdict == "same"
    why = "; ".join(filter(None, ("" if is_same else row.case.sentence, *row.moved)))
    texts = (row.size, row.before, row.after, row.change or "–", row.detectable or "–")
    kernel = Cell(f"{row.kernel} {row.shape}") if several else Cell(row.kernel, code=True)
    return Row(
        (Cell("", mark=mark), Cell(verdict), kernel, *map(Cell, texts)),
        "" if is_same else tone,
        (Sentence.of(why),) if why else (),
    )
