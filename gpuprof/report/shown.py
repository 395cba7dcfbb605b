# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run in the terminal: its answer, or on request every row."""

from itertools import pairwise
from pathlib import PurePath
from typing import TextIO

from gpuprof.report.answer_text import answer_document
from gpuprof.report.run_text import run_report
from gpuprof.report.terminal import print_document
from gpuprof.results import Run
from gpuprof.text import KERNEL_ENDINGS

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
