# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run in the terminal, whatever it is: what a search found, or the tables of what was measured."""

from typing import TextIO

from gpuprof.report.terminal import print_run
from gpuprof.report.tuned_terminal import print_search
from gpuprof.results import Run


def show_run(run: Run, *, file: TextIO) -> None:
    """Print a run.

    Args:
        run: What to show.
        file: Where to.
    """
    (print_search if run.tuning is not None else print_run)(run, file=file)
