# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof list`: the ladders that come with gpuprof."""

import json
import sys
from typing import Any

from gpuprof.console import hand_over
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names
from gpuprof.kernels.kernel import Kernel
from gpuprof.report.document import Cell, Column, Document, Row, Section, Sentence, Table
from gpuprof.report.terminal import print_document
from gpuprof.text import format_extent


def print_ladders(operation: str | None) -> None:
    """Every shipped rung in order, the names of its other shapes, and where its study was published.

    Raises:
        InputError: There is no such operation.
    """
    names = [operation] if operation else shipped_names()
    sections = tuple(_section(shipped_ladder(name)) for name in names)
    print_document(Document("", content=sections), file=sys.stdout)


def print_ladders_as_json(operation: str | None) -> None:
    """The same for programs: a list of ladders, each with its kernels in rung order.

    Raises:
        InputError: There is no such operation.
    """
    names = [operation] if operation else shipped_names()
    hand_over(json.dumps([_ladder_record(shipped_ladder(name)) for name in names], indent=1) + "\n")


def _ladder_record(ladder: Ladder) -> dict[str, Any]:
    return {
        "operation": ladder.operation.name,
        "title": ladder.operation.title,
        "dimensions": list(ladder.operation.dimensions),
        "default_sizes": ladder.operation.default_sizes,
        "kernels": [_kernel_record(kernel) for kernel in ladder.kernels],
    }


def _kernel_record(kernel: Kernel) -> dict[str, Any]:
    chooses = bool(kernel.choices)
    return {
        "id": kernel.id,
        "title": kernel.title,
        "idea": kernel.idea,
        "published_as": list(kernel.aliases),
        "study": kernel.study.name or None,
        "citation": kernel.study.citation or None,
        "url": kernel.study.url or None,
        "block": None if chooses else list(kernel.launch.block),
        "any_block": kernel.launch.any_block and not chooses,
        "parameters": dict(kernel.parameters),
        "shape_of": kernel.shape_of or None,
        "dtypes": list(kernel.dtypes),
        "file": kernel.file_name,
    }


def _section(ladder: Ladder) -> Section:
    """A line a kernel, and where the studies were published."""
    table = Table(_COLUMNS, tuple(_row(kernel) for kernel in ladder.kernels))
    notes = [Sentence("* any block with --block", tone="muted")]
    for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
        text = f"Study {study.name}: {study.citation} {study.url}".strip()
        notes.append(Sentence(text, tone="muted"))
    return Section(f"gpuprof {ladder.operation.name}", (table, *notes))


def _row(kernel: Kernel) -> Row:
    block = format_extent(kernel.launch.block) + (" *" if kernel.launch.any_block else "")
    texts = (
        kernel.id,
        ", ".join(kernel.aliases) or "-",
        kernel.study.name or "-",
        "varies" if kernel.choices else block,
        "/".join(kernel.dtypes) or "varies",
        kernel.title,
    )
    return Row(tuple(map(Cell, texts)))


_COLUMNS = (
    Column("kernel", right=False),
    Column("published as", right=False, rank=2),
    Column("study", right=False, rank=4),
    Column("block", right=False, rank=1),
    Column("types", right=False, rank=3),
    Column("title", right=False, folds=46),
)
