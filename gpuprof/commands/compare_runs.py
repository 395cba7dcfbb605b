# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compare results files: read, match, judge, hold against gates, show, write."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.commands.gating import status_of_comparisons
from gpuprof.commands.output import STANDARD_OUTPUT, print_written, write_file
from gpuprof.console import hand_over
from gpuprof.errors import ExitCode, InputError, nearest_file
from gpuprof.files import check_writable, same_file
from gpuprof.results import Run, Tool

if TYPE_CHECKING:
    from gpuprof.comparison.compared import Comparison
    from gpuprof.comparison.gates import Gate


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to write besides what the terminal shows; None for none.

    One of them may be `-`, standard output, in place of what the terminal shows.
    """

    html: Path | None = None
    json: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    force: bool = False

    @property
    def paths(self) -> list[Path]:
        """Every file to write."""
        return [path for path in self._named if path != STANDARD_OUTPUT]

    @property
    def prints(self) -> bool:
        """Whether one of them takes standard output."""
        return STANDARD_OUTPUT in self._named

    @property
    def _named(self) -> list[Path]:
        return [path for path in (self.html, self.json, self.markdown, self.junit) if path is not None]

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Refuse what cannot be written, before any work is done.

        Raises:
            InputError: A file exists and may not be replaced, cannot be written, or is named twice.
        """
        if self._named.count(STANDARD_OUTPUT) > 1:
            raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
        for number, path in enumerate(self.paths):
            for other in (*inputs, *self.paths[:number]):
                if same_file(path, other):
                    raise InputError(f"{path} is named twice.", fix="Give every file a name of its own.")
            check_writable(path, self.force)

    def write(self, path: Path | None, text: Callable[[], str]) -> None:
        """Write one of them, where it is wanted, whole; or print it.

        Raises:
            InputError: The path cannot be written.
        """
        if path == STANDARD_OUTPUT:
            hand_over(text())
        elif path is not None:
            write_file(path, text())


def read_named(path: Path) -> Run:
    """One run: of a results file, or of a folder whose results files are rounds of one code.

    Raises:
        InputError: There is no such file, or the files of the folder do not belong together.
        ResultsError: A file is not a results file.
    """
    from gpuprof.reading import read_run

    if not path.is_dir():
        if not path.exists():
            raise InputError(
                f"There is no {path}.", fix=nearest_file(path) or "Name a results.json that gpuprof wrote."
            )
        return read_run(path)
    from gpuprof.comparison.matching import pooled

    files = sorted(path.glob("*.json"))
    if not files:
        raise InputError(
            f"{path} holds no results file, none that ends in .json.",
            fix="Name a results.json, or its folder.",
        )
    return pooled([read_run(file) for file in files], str(path))


def compare_files(
    base: Path,
    new: Sequence[Path],
    gates: "Sequence[Gate]",
    outputs: Outputs,
    *,
    strict: bool,
    quiet: bool,
) -> ExitCode:
    """Compare results files with a base."""
    from gpuprof.comparison.compared import compare_runs

    outputs.check([base, *new])
    base_run = read_named(base)
    comparisons = [
        compare_runs(base_run, read_named(path), base_name=str(base), new_name=str(path), force=outputs.force)
        for path in new
    ]
    return show(comparisons, gates, outputs, strict=strict, quiet=quiet)


def show(
    comparisons: "Sequence[Comparison]",
    gates: "Sequence[Gate]",
    outputs: Outputs,
    *,
    strict: bool,
    quiet: bool,
) -> ExitCode:
    """Print comparisons, write their files and name them.

    Returns:
        The exit status that verdicts and gates decide.
    """
    from gpuprof.comparison.comparison_document import document, dumps
    from gpuprof.comparison.gates import hold_comparison
    from gpuprof.report.compared_text import comparison_page, comparison_report, gates_report
    from gpuprof.report.junit import render_junit
    from gpuprof.report.markdown import markdown_of
    from gpuprof.report.terminal import print_document

    results = [hold_comparison(gates, comparison) for comparison in comparisons]
    status = status_of_comparisons(comparisons, results, strict=strict)
    pairs = list(zip(comparisons, results, strict=True))
    reports = [comparison_report(*pair) for pair in pairs]
    for report, held in () if outputs.prints else zip(reports, results, strict=True):
        if not quiet:
            print_document(report, file=sys.stdout)
        elif status is not ExitCode.OK:
            failed = [result for result in held if result.outcome != "passed"]
            print_document(gates_report(failed), file=sys.stdout)
    tool = Tool("gpuprof", __version__)
    outputs.write(outputs.json, lambda: dumps(document(comparisons, results, tool)))
    outputs.write(outputs.markdown, lambda: "\n".join(map(markdown_of, reports)))
    outputs.write(outputs.junit, lambda: render_junit(comparisons, results))
    outputs.write(outputs.html, lambda: comparison_page(pairs, tool))
    print_written(*outputs.paths, aside=outputs.prints)
    return status
