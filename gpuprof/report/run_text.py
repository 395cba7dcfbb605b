# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A whole run as a document: answers, every case with every column, reasons, cautions."""

from collections.abc import Iterator
from dataclasses import replace

from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.banner import Banner
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.comparison.cautions import cautions
from gpuprof.report.answer_text import answer_content, reasons, run_title
from gpuprof.report.case_table import case_table
from gpuprof.report.document import (
    Content,
    Document,
    Legend,
    Section,
)
from gpuprof.report.shortened import shortened
from gpuprof.report.tuned_text import search_content, sweep_content
from gpuprof.results import Run

#: Said below the tables in any case, with each row's reason.
_SAID_BY_ROWS = {"incorrect", "failed", "over_limit"}
#: Said by the title; only what to do about it is left.
_SAID_BY_TITLE = {"sim", "compiled"}


def run_report(run: Run) -> Document:
    """Everything that a terminal or Markdown shows of a run."""
    run = shortened(run)
    content: list[Content] = list(search_content(run))
    content += [Section(group.title, tuple(_group(run, group))) for group in groups(run)]
    notes = tuple(_note(banner) for banner in cautions(run) if banner.code not in _SAID_BY_ROWS)
    content += [Legend(), *([Section("", notes)] if notes else [])]
    facts = ((f"gpuprof {run.tool.version}", run.created_utc),)
    return Document(run_title(run), facts, tuple(content))


def _note(banner: Banner) -> Banner:
    short = banner.level == "note" or banner.code in _SAID_BY_TITLE
    return replace(banner, detail="") if short else banner


def _group(run: Run, group: Group) -> Iterator[Content]:
    ladders = [build_ladder(run, size) for size in group.sizes]
    for ladder in ladders:
        yield answer_content(answer_of(run, ladder), ladder.size.heading)
    yield Section("", (case_table(run, ladders),))
    yield from reasons(run, (case for ladder in ladders for rung in ladder.rungs for case in rung.cases))
    yield from sweep_content(run, group, briefly=True)
