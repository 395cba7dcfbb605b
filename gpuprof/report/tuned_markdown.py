# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A search as Markdown: the answer at each size, and a table of its points."""

from gpuprof.analysis import numbers
from gpuprof.analysis.tuned import TunedSize, answer_sentence, space_sentence, tie_sentence, typed
from gpuprof.report.markdown_text import code, text

#: Points that a table holds.
_MOST_SHOWN = 20


def search_markdown(size: TunedSize) -> str:
    """One size of a search.

    Args:
        size: The size.
    """
    figure = "Time" if size.by_time else "Bound"
    lines = [f"### {text(f'The search at {size.title}')}", ""]
    if not size.by_time:
        lines += ["Ranked by bounds, nothing was timed.", ""]
    ties = tie_sentence(size)
    lines.append(text(f"{size.title}: {answer_sentence(size)}.{f' {ties}.' if ties else ''}"))
    lines += ["", text(f"{space_sentence(size)}.")]
    if size.rows:
        lines += ["", f"| | Point | {figure} | Of the best |", "|:--|:--|--:|--:|"]
    best = size.rows[0].value_us or 1.0 if size.rows else 1.0
    for row in size.rows[:_MOST_SHOWN]:
        value = row.value_us or best
        marks = ("★" if row.is_tied else "") + ("◇" if row.is_default else "")
        point = code(typed(row, several=size.several))
        lines.append(f"| {marks} | {point} | {numbers.time_us(value)} | {numbers.ratio(best / value)} |")
    if size.wrong:
        lines.append("")
    for row in size.wrong:
        reason = row.case.reason or row.case.bounds_reason or "no reason was recorded"
        lines.append(f"- {code(typed(row, several=size.several))} {row.case.outcome}: {text(reason)}")
    return "\n".join(lines)
