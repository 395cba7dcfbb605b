# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run in the terminal: its answer, or the whole as a document with every case, reasons and cautions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import TextIO

from gpuprof.analysis.answer import answer_of
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.analysis.status import Banner
from gpuprof.comparison.cautions import cautions
from gpuprof.report.answer_text import answer_content, answer_document, reasons, run_title
from gpuprof.report.case_table import case_table
from gpuprof.report.document import (
    Content,
    Document,
    Legend,
    Section,
)
from gpuprof.report.shortened import shortened
from gpuprof.report.terminal import print_document
from gpuprof.report.tuned_text import search_content, sweep_content
from gpuprof.results import Run
from gpuprof.text import KERNEL_ENDINGS

#: Said below the tables in any case, with each row's reason.
_SAID_BY_ROWS = {"incorrect", "failed", "over_limit"}
#: Said by the title; only what to do about it is left.
_SAID_BY_TITLE = {"sim", "compiled"}
_NAMING = ("-k", "--kernel")


def show_run(
    run: Run,
    *,
    file: TextIO,
    table: bool = False,
    pending: bool = False,
    hint: str = "",
    width: int | None = None,
    color: bool | None = None,
) -> None:
    """Print a run: its answer, or every row in a table.

    Width and colour are those of `print_document`, the others those of `answer_document`.
    """
    if table:
        document = run_report(run)
    else:
        document = answer_document(run, named=_named(run.argv), pending=pending, hint=hint)
    print_document(document, file=file, width=width, color=color)


def _named(argv: tuple[str, ...]) -> frozenset[str]:
    """Kernels that a command line names, by their ids: those of files are called as the files."""
    given = [value for option, value in pairwise(argv) if option in _NAMING]
    given += [text.partition("=")[2] for text in argv if text.startswith("--kernel=")]
    names = (name.partition(":")[0] for text in given for name in text.split(","))
    return frozenset(PurePath(name).stem if name.endswith(KERNEL_ENDINGS) else name for name in names)


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
