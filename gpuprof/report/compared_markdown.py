# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, for the summary of a CI job or a comment on a change."""

from collections.abc import Iterator, Sequence

from gpuprof.comparison.compared import ATTENTION, Comparison, case_name
from gpuprof.comparison.comparison_document import most_rounds
from gpuprof.comparison.gates import GateResult
from gpuprof.report.compared_text import (
    GATE_MARKS,
    MARKS,
    Row,
    facts,
    rows_of,
    sources,
    surroundings,
)
from gpuprof.report.markdown_text import code, text


def render_comparison_markdown(comparison: Comparison, gates: Sequence[GateResult]) -> str:
    """What changed in a table, what did not folded away below it, gates first.

    Args:
        comparison: What to show.
        gates: What became of the gates.

    Returns:
        Markdown text, ending in a newline.
    """
    names = text(comparison.new_name), text(comparison.base_name)
    parts = [f"### {names[0]} against {names[1]}: {text(comparison.headline)}"]
    if gates:
        parts.append("\n".join(_gate(result) for result in gates))
    rows = sorted(rows_of(comparison), key=lambda row: ATTENTION.index(row.case.verdict))
    changed = [row for row in rows if row.case.verdict != "same"]
    unchanged = [row for row in rows if row.case.verdict == "same"]
    if comparison.advice:
        parts.append(f"Uncertain: {text(comparison.advice)}.")
    if changed:
        parts.append("\n".join(_table(changed)))
    if unchanged:
        summary = f"{len(unchanged)} the same"
        parts.append(
            "\n".join((f"<details><summary>{summary}</summary>", "", *_table(unchanged), "", "</details>"))
        )
    alone = [
        f"- {word}: {text(case_name(run, case))}"
        for word, run, cases in (
            ("missing", comparison.base, comparison.missing),
            ("new", comparison.new, comparison.added),
        )
        for case in cases
    ]
    if alone:
        parts.append("\n".join(alone))
    runs = ((comparison.base_name, comparison.base), (comparison.new_name, comparison.new))
    notes = [f"- {text(facts(name, run, most_rounds(run)))}" for name, run in runs]
    notes += [f"- {text(sentence)}" for sentence in [sources(comparison)] if sentence]
    notes += [f"- ⚠ {text(sentence)}" for sentence in surroundings(comparison)]
    parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"


def render_gates_markdown(gates: Sequence[GateResult]) -> str:
    """What became of gates, as a list; empty without any."""
    return "\n".join(_gate(result) for result in gates) + "\n" if gates else ""


def _gate(result: GateResult) -> str:
    return f"- {GATE_MARKS[result.outcome][0]} {text(result.gate.text)}: {text(result.sentence)}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| | Kernel | Size | Before | After | Change | Interval | Found from | What else changed |"
    yield "|:--|:--|--:|--:|--:|--:|--:|--:|:--|"
    for row in rows:
        verdict = row.case.verdict
        cells = (row.size, row.before, row.after, row.change, row.interval, row.detectable)
        why = "" if row.case.basis == "time" and verdict in ("improved", "regressed") else row.case.sentence
        texts = "; ".join(filter(None, (*row.moved, why if verdict != "same" else "")))
        yield (
            f"| {MARKS[verdict][0]} {verdict} | {code(row.kernel)} {text(row.shape)} | "
            f"{' | '.join(text(cell) or '–' for cell in cells)} | {text(texts)} |"
        )
