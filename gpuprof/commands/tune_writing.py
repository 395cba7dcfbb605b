# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune --write`: what was found best, put into a kernel's file, with the difference shown."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuprof.commands.output import write_file
from gpuprof.console import say_lines, tell
from gpuprof.errors import InputError
from gpuprof.files import check_writable, read_input
from gpuprof.kernels.header import KernelFile, read_kernels
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.operation import Operation
from gpuprof.results import Run
from gpuprof.text import listed
from gpuprof.tuning.rewriting import with_defaults
from gpuprof.tuning.ties import best_everywhere

#: Sizes that a sentence names at which another point is better.
_MOST_NAMED = 4


def check_sources(kernels: Sequence[Kernel], sources: Mapping[str, Path]) -> None:
    """Refuse to write kernels that are not the user's, before anything is measured."""
    for kernel in kernels:
        if kernel.id not in sources:
            raise InputError(
                f"{kernel.id} comes with gpuprof: --write does not change it.",
                fix="Copy its file, and tune the copy.",
            )
        check_writable(sources[kernel.id], force=True)


def write_best(
    run: Run, kernels: Mapping[str, Kernel], sources: Mapping[str, Path], operation: Operation
) -> list[Path]:
    """Make the best point of a search its kernel's default.

    Returns:
        The files that were written: one, or none where the header says so already.

    Raises:
        InputError: The header cannot be edited so, or the file cannot be written; nothing was written then.
    """
    point, behind = best_everywhere(run, kernels)
    if point is None:
        tell("Nothing is written: no point gave a right result.")
        return []
    if run.backend != "gpu":
        modelled = run.tuning and any(tuned.by == "model" for tuned in run.tuning.sizes)
        by = "modelled time" if modelled else "bound"
        tell(f"Nothing was timed: what is written is the best by its {by} only.")
    if behind:
        worst = sorted(behind, key=lambda size: -behind[size])
        named = listed([f"{size} ({100 * behind[size]:.0f} %)" for size in worst], _MOST_NAMED)
        tell(f"No point is best everywhere. The one that is closest takes longer at {named}.")
    path = sources[point.kernel]
    source = read_input(path, "utf-8")

    def read(text: str) -> KernelFile:
        return read_kernels(text, path, shipped_operation, operation)

    # As its file says it, without what the command line adds.
    kernel = next(kernel for kernel in read(source).kernels if kernel.id == point.kernel)
    text = with_defaults(source, kernel, point, read)
    if text == source:
        tell("The header says so already: nothing is written.")
        return []
    lines = source.splitlines(keepends=True), text.splitlines(keepends=True)
    say_lines("".join(difflib.unified_diff(*lines, str(path), str(path), n=2)).rstrip("\n"))
    write_file(path, text)
    return [path]
