# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison as a document, and as JUnit: what changed, what did not, why, and what became of gates."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from xml.etree import ElementTree

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.changes import FigureChange
from gpuprof.analysis.figures import FIGURES, Subject
from gpuprof.analysis.groups import kernel_record
from gpuprof.analysis.status import status_of
from gpuprof.comparison.compared import ATTENTION, CaseVerdict, ComparedRuns, case_name, percent
from gpuprof.comparison.comparison_document import document, most_rounds
from gpuprof.comparison.gates import GateResult
from gpuprof.comparison.judging import Verdict
from gpuprof.comparison.matching import SURROUNDINGS
from gpuprof.report.case_table import format_block
from gpuprof.report.document import (
    CAUTION,
    Cell,
    CodeBlock,
    Column,
    Content,
    Document,
    Drawing,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from gpuprof.report.document_page import render_page
from gpuprof.report.source import difference
from gpuprof.report.svg.intervals import change_picture, end_of_table, rounds_picture
from gpuprof.results import Run, Tool
from gpuprof.schema import to_json
from gpuprof.text import cut, listed, one_line

MARKS: dict[Verdict, tuple[str, Tone]] = {
    "regressed": ("▲", "bad"),
    "improved": ("▼", "good"),
    "same": ("=", ""),
    "uncertain": ("?", "warning"),
    "unmeasured": ("○", "muted"),
}
GATE_MARKS: dict[str, tuple[str, Tone]] = {
    "failed": ("✗", "bad"),
    "passed": ("✓", "good"),
    "uncertain": ("?", "warning"),
    "not judged": ("✗", "bad"),
}
#: Rows of unchanged cases that are shown: the rest is folded away.
_MOST_UNCHANGED = 12
#: Cases whose rounds and figures a page shows, and characters of a source that it compares.
_MOST_CASES, _LONGEST_SOURCE = 100, 400_000
_COLUMNS = (
    Column("", right=False),
    Column("kernel", right=False),
    Column("size"),
    Column("verdict", right=False, rank=1),
    Column("before", rank=2),
    Column("after"),
    Column("change"),
    Column("detectable", rank=3, meaning="Smallest detectable slowdown."),
)
_MOST_MOVED = 4
#: By what a verdict rests on: the figure in a row, what stands before it, and its digits.
_SHOWN = {"time": ("median_us", "", 4), "model": ("model_us", "", 2), "bound": ("bound_us", "≥ ", 4)}
#: Names of sources, or of cases that only one run has, that are written out.
_MOST_NAMES = 6
#: Share of the largest count of its unit by which a count must have moved to be worth a word.
_LEAST_SHARE = 0.01
_READING = (
    "A verdict compares the medians of rounds of both versions with what rounds of identical code differ "
    "by: that of recorded runs and, the more rounds there are, of these rounds themselves. It is wrong "
    "for identical code once in five thousand cases. Detectable is the smallest slowdown that these "
    "rounds would have shown nine times of ten; “same” says that nothing beyond that can hide. Below each "
    "change its interval is drawn, faster to the left. What was not timed is compared by its modelled time: "
    "what the model may err by between two versions of a kernel is uncertain. What was not modelled either "
    "is compared by its bound, the least time that exact counts allow. What is marked (ref) is a library's: "
    "the title does not count it."
)


def comparison_page(pairs: Sequence[tuple[ComparedRuns, Sequence[GateResult]]], tool: Tool) -> str:
    """Comparisons of new runs with one base, each with its gates: one HTML file that holds them as JSON."""
    comparisons, gates = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    reports = [comparison_report(*pair, prefix=f"case-{number}") for number, pair in enumerate(pairs)]
    base, *news = short_names([comparisons[0].base_name, *(one.new_name for one in comparisons)])
    title = reports[0].title if len(reports) == 1 else f"{', '.join(news)} against {base}"
    return render_page("gpuprof compare", title, reports, tool, to_json(document(comparisons, gates, tool)))


def comparison_report(
    comparison: ComparedRuns, gates: Sequence[GateResult] = (), *, prefix: str = ""
) -> Document:
    """A comparison: what changed, what did not, what only one run has, and the gates.

    The prefix begins the ids of what only a page can show; without one there is none of that.
    """
    cases = sorted(comparison.cases, key=lambda case: ATTENTION.index(case.verdict))
    details = dict(_details(cases, prefix)) if prefix else {}
    unchanged = [case for case in cases if case.verdict == "same"]
    idle = [case for case in cases if not (_ran(case.base) or _ran(case.new))]
    told = [case for case in cases if case.verdict != "same" and case not in idle]
    shown = told + unchanged[:_MOST_UNCHANGED]
    told_first = cautions(comparison, gates)
    content: list[Content] = [Sentence(text, mark=CAUTION, tone="warning") for text in told_first]
    judged = [case.judgement for case in cases if case.judgement is not None]
    end = end_of_table(judged) if prefix and judged else 0.0
    content += [Section("", (_table(shown, details, end),))] if shown else []
    for words, folded in (
        ("more are the same", unchanged[_MOST_UNCHANGED:]),
        ("did not run, as before", idle),
    ):
        if folded:
            table = _table(folded, details, end)
            content.append(Section(f"{len(folded)} {words}", (table,), folded=True))
    for word, mark, run, only in (
        ("missing", "−", comparison.base, comparison.missing),
        ("new", "+", comparison.new, comparison.added),
    ):
        if only:
            names = listed([case_name(run, case) for case in only], _MOST_NAMES)
            content.append(Sentence(f"{len(only)} {word}: {names}", mark=mark, tone="muted"))
    content += [Section("", gates_report(gates).content)] if gates else []
    if prefix:
        changed = tuple(_source_changes(comparison))
        content.append(Section("How to read this", (Sentence(_READING),), folded=True))
        content += [Section("Case by case", tuple(details.values()))] if details else []
        content += [Section("Sources that changed", changed)] if changed else []
    base, new = short_names((comparison.base_name, comparison.new_name))
    runs = ((comparison.base_name, comparison.base), (comparison.new_name, comparison.new))
    facts = (*((name, _origin(run)) for name, run in runs), *sources(comparison))
    return Document(f"{new} against {base}: {comparison.headline}", facts, tuple(content))


def _ran(subject: Subject) -> bool:
    """Whether a case was neither skipped nor too large for the device."""
    return subject.case.outcome != "skipped" and not subject.case.over_limit


def short_names(names: Sequence[str]) -> list[str]:
    """Names of files without the folders, and the file's name, that all of them share."""
    paths = [PurePath(name).parts for name in names]
    while len(set(paths)) > 1 and min(map(len, paths)) > 1 and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    while min(map(len, paths)) > 1 and len({path[0] for path in paths}) == 1:
        paths = [path[1:] for path in paths]
    return [str(PurePath(*path)) for path in paths]


def gates_report(gates: Sequence[GateResult]) -> Document:
    """What became of gates, in the order written."""
    found = ((result, *GATE_MARKS[result.outcome]) for result in gates)
    sentences = (
        Sentence(f"{result.text}: {result.sentence}", mark=mark, tone=tone) for result, mark, tone in found
    )
    return Document("", content=tuple(sentences))


def cautions(comparison: ComparedRuns, gates: Sequence[GateResult] = ()) -> Iterator[str]:
    """What differs besides the kernels, what references say of it, and what would tell what is uncertain."""
    for found in comparison.differences:
        yield f"{found.text}{f' ({found.misleads})' if found.misleads else ''}"
    moved = [
        f"{case.name} is {case.sentence}"
        for case in comparison.cases
        if case.is_reference and case.verdict in ("regressed", "improved")
    ]
    if moved:
        yield f"{listed(moved, 2)}: not your code, so something besides the kernels changed"
    rebuilt = [case.name for case in comparison.cases if _is_rebuilt(case)]
    if rebuilt and not any(found.what == SURROUNDINGS["nvrtc"] for found in comparison.differences):
        yield f"{listed(rebuilt, 2)}: NVRTC made other machine code of the same source: measure both again"
    if comparison.advice:
        yield f"uncertain: {comparison.advice}"
    elif comparison.new.backend == "gpu" and any(gate.outcome == "uncertain" for gate in gates):
        yield "a gate is uncertain: measure both in more --rounds, or interleaved by --against"
    modelled = [case.judgement for case in comparison.cases if case.basis == "model" and case.judgement]
    if modelled:
        least = percent(min(found.detectable for found in modelled), signed=False)
        yield f"not timed: verdicts are modelled, and a slowdown of less than {least} is uncertain"


def _is_rebuilt(case: CaseVerdict) -> bool:
    """Whether one compiler, told the same, gave a source other resources.

    It does by chance without a process of its own, and of what another gpuprof gave it.
    """
    base, new = case.base.case, case.new.case
    told_the_same = case.same_source and base.compile_options and base.compile_options == new.compile_options
    return bool(told_the_same and base.resources and new.resources and base.resources != new.resources)


def _origin(run: Run) -> str:
    """On what a run was made, when, and in how many rounds."""
    devices, rounds = ", ".join(dict.fromkeys(device.name for device in run.devices)), most_rounds(run)
    counted = f", {rounds} {'round' if rounds == 1 else 'rounds'}" if run.backend == "gpu" else ""
    how = {"gpu": "", "sim": " (executor)", "none": " (compiled only)"}[run.backend]
    return f"{devices}{how}, {run.created_utc}{counted}"


def sources(comparison: ComparedRuns) -> tuple[tuple[str, str], ...]:
    """Which kernels' sources differ, as a fact; none where nothing with a source was compared."""
    known = [case for case in comparison.cases if case.same_source is not None]
    changed = list(dict.fromkeys(case.new.case.kernel for case in known if not case.same_source))
    if not changed:
        return (("sources", "all the same"),) if known else ()
    return (("sources that differ", listed(changed, _MOST_NAMES)),)


def _table(cases: Sequence[CaseVerdict], details: dict[int, Section], end: float) -> Table:
    """One row a case, and with it why; its shape only where that tells it from another."""
    shapes = Counter((case.new.case.kernel, case.new.case.problem.label) for case in cases)
    rows = []
    for case in cases:
        several = shapes[case.new.case.kernel, case.new.case.problem.label] > 1
        anchor = details[id(case)].anchor if id(case) in details else ""
        rows.append(_row(case, several, anchor, end))
    drawn = f", with intervals from −{end:g} % to +{end:g} %" if end else ""
    return Table(_COLUMNS, tuple(rows), f"Cases{drawn}")


def _row(case: CaseVerdict, several: bool, anchor: str, end: float) -> Row:
    found, new = case.judgement, case.new.case
    mark, tone = MARKS[case.verdict]
    # A bound is no measured time, nor shown as one; of a modelled time the verdict says so.
    timed = any(FIGURES["median_us"].value(subject) for subject in (case.base, case.new))
    key, least, digits = _SHOWN[case.basis if case.basis in _SHOWN else "time" if timed else "bound"]
    values = [FIGURES[key].value(subject) for subject in (case.base, case.new)]
    before, after = (
        "–" if value is None else f"{least}{FIGURES[key].write(value, digits)}" for value in values
    )
    change, detectable, drawing = "–", "–", Markup("")
    if found is not None:
        change, detectable = percent(found.change), percent(found.detectable, signed=False)
        drawing = change_picture(found, case.verdict, end) if end else drawing
    elif case.basis == "outcome":
        change = status_of(case.new.run, new).word
    elif case.basis == "bound" and values[0] and values[1]:
        change = percent(values[1] / values[0] - 1)
    # The change stands in the row: what its sentence says more is the interval.
    said = f"between {percent(found.low)} and {percent(found.high)}" if found else case.sentence
    why = "; ".join(filter(None, ("" if case.verdict == "same" else said, *moved_texts(case))))
    verdict = f"{case.verdict}, modelled" if case.basis == "model" else case.verdict
    kernel = f"{new.kernel} {format_block(new)}" if several else new.kernel
    kernel = f"{kernel} (ref)" if case.is_reference else kernel
    cells = (
        Cell("", mark=mark),
        Cell(kernel, code=not (several or case.is_reference), anchor=anchor),
        *map(Cell, (new.problem.label, verdict, before, after)),
        Cell(change, drawing=drawing),
        Cell(detectable),
    )
    return Row(cells, tone, (Sentence(why),) if why else ())


def moved_texts(case: CaseVerdict) -> tuple[str, ...]:
    """What of source, launch, resources and counts is not what it was, in short."""
    found = [*(["source"] if case.same_source is False else []), *case.other_identity]
    moved = [item for item in case.moved if item.figure.key != "bound_us" or case.basis != "bound"]
    weighed = [(weight, item) for item, weight in zip(moved, _weights(moved), strict=True) if weight]
    weighed.sort(key=lambda pair: -pair[0])
    found += [item.text for _, item in weighed[:_MOST_MOVED]]
    more = len(weighed) - _MOST_MOVED
    return (*found, f"{more} more") if more > 0 else tuple(found)


def _weights(moved: Sequence[FigureChange]) -> Iterator[float]:
    """How much each figure says of a change; 0 for one that a row does well without.

    Resources and words come first, because they are few and have causes. A count is weighed by what it grew
    or shrank by, as a share of the largest of its unit: ten requests where there was one are nothing beside a
    million.
    """
    counts = [
        [value if isinstance(value, int | float) else 0.0 for value in (item.before, item.after)]
        for item in moved
    ]
    largest: dict[str, float] = {}
    for item, held in zip(moved, counts, strict=True):
        largest[item.figure.unit] = max(*map(abs, held), largest.get(item.figure.unit, 0.0))
    for item, (before, after) in zip(moved, counts, strict=True):
        share = abs(after - before) / (largest[item.figure.unit] or 1.0)
        yield 2.0 if item.figure.key in FIGURES else share if share >= _LEAST_SHARE else 0.0


def _details(cases: Sequence[CaseVerdict], prefix: str) -> Iterator[tuple[int, Section]]:
    """Cases of which there is more to say than their row does: rounds, bound, every figure that moved."""
    number = 0
    for case in cases:
        content: list[Content] = []
        timings = [each.case.timing.cold if each.case.timing else None for each in (case.base, case.new)]
        if case.judgement is not None and case.verdict != "same" and timings[0] and timings[1]:
            drawing, scale = rounds_picture({"the base": timings[0], "the new run": timings[1]})
            content += [Drawing(drawing), Sentence(scale, tone="muted")]
        if (case.moved or case.verdict != "same") and (shift := bound_shift(case)):
            content.append(Sentence(shift))
        if case.moved:
            content.append(CodeBlock(_moved_lines(case.moved)))
        if content and number < _MOST_CASES:
            mark = MARKS[case.verdict][0]
            title = f"{mark} {case.verdict} {case.name}: {case.sentence}"
            yield id(case), Section(title, tuple(content), f"{prefix}-{number}", folded=True)
            number += 1


def bound_shift(case: CaseVerdict) -> str:
    """What binds a case before and after, in words; empty where that is not known of both."""
    was, is_now = (FIGURES["bound_by"].read(subject).value for subject in (case.base, case.new))
    if not (was and is_now):
        return ""
    bounds = (FIGURES["bound_us"].value(subject) or 0.0 for subject in (case.base, case.new))
    times = " → ".join(map(numbers.time_us, bounds))
    return f"bound by {was}, {times}" if was == is_now else f"bound by {was} → {is_now}, {times}"


def _moved_lines(moved: Sequence[FigureChange]) -> str:
    """Label, before, after and factor of each, in columns of a monospaced text."""
    rows = [(one.figure.label, *one.texts, f"× {one.ratio:.3g}" if one.ratio else "–") for one in moved]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _source_changes(comparison: ComparedRuns) -> Iterator[Section]:
    """How the sources of kernels differ, each kernel once."""
    seen = set()
    for case in comparison.cases:
        kernel = case.new.case.kernel
        if case.same_source is not False or kernel in seen:
            continue
        seen.add(kernel)
        ran = (kernel_record(subject.run, subject.case.ran) for subject in (case.base, case.new))
        lines = difference(*(cut(record.source, _LONGEST_SOURCE) for record in ran))
        shown = lines or "Its code is the same; header or included files differ."
        box = Markup('<pre class="diff" tabindex="0" role="region" aria-label="Changes to {}">{}</pre>')
        yield Section(kernel, (Drawing(box.format(kernel, shown)),))


#: What XML 1.0 cannot hold even escaped, and `one_line` leaves: lone surrogates and two noncharacters.
_NO_XML = dict.fromkeys((*range(55296, 57344), 65534, 65535), "�")


def render_junit(comparisons: Sequence[ComparedRuns], gates: Sequence[Sequence[GateResult]]) -> str:
    """One suite for each new run: its cases, then its gates.

    A case fails where it regressed, and is skipped where it is uncertain or unmeasured. With gates, they
    decide alone: then a regressed case that no gate forbids is a test that passed, with the verdict in its
    output.
    """
    root = ElementTree.Element("testsuites", name="gpuprof compare")
    for comparison, results in zip(comparisons, gates, strict=True):
        suite = ElementTree.SubElement(root, "testsuite", name=_safe(comparison.new_name))
        for case in comparison.cases:
            _case(suite, case, decides=not results)
        for result in results:
            _gate(suite, result)
        _count(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ElementTree.Element, case: CaseVerdict, *, decides: bool) -> None:
    test = ElementTree.SubElement(
        suite, "testcase", classname=_safe(case.new.case.problem.operation), name=_safe(case.name)
    )
    message = _safe("; ".join((f"{case.verdict}: {case.sentence}", *moved_texts(case))))
    if case.is_reference:
        decides = False
    if decides and case.verdict == "regressed":
        ElementTree.SubElement(test, "failure", message=message, type="regressed")
    elif case.verdict == "unmeasured" or (decides and case.verdict == "uncertain"):
        ElementTree.SubElement(test, "skipped", message=message)
    else:
        ElementTree.SubElement(test, "system-out").text = message


def _gate(suite: ElementTree.Element, result: GateResult) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname="gates", name=_safe(result.text))
    message = _safe(result.sentence)
    if result.outcome in ("failed", "not judged"):
        ElementTree.SubElement(test, "failure", message=message, type="gate")
    elif result.outcome == "uncertain":
        ElementTree.SubElement(test, "skipped", message=message)


def _count(suite: ElementTree.Element) -> None:
    """The totals that readers of such files expect."""
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("errors", "0")


def _safe(text: str) -> str:
    return one_line(text).translate(_NO_XML)
