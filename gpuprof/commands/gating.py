# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Gates on the command line: their options, their lines, and the exit status that they decide."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuprof.errors import ExitCode

if TYPE_CHECKING:
    from gpuprof.comparison.compared import ComparedRuns
    from gpuprof.comparison.gates import GateCondition, GateResult
    from gpuprof.results import Run


def read_gates(texts: Sequence[str] | None, *, with_base: bool) -> "tuple[GateCondition, ...]":
    """The gates of a command line, checked before anything is measured."""
    if not texts:
        return ()
    from gpuprof.comparison.gates import read_gates as read

    return read(texts, with_base=with_base)


def hold(
    run: "Run",
    gates: "Sequence[GateCondition]",
    *,
    strict: bool,
    quiet: bool = False,
    aside: bool = False,
) -> ExitCode:
    """Hold one run against gates, and say what became of them; `aside` where standard output holds a file."""
    if not gates:
        return ExitCode.OK
    from gpuprof.comparison.gates import hold_run
    from gpuprof.report.compared_text import gates_report

    results = hold_run(gates, run)
    status = status_of_gates(results, strict=strict)
    if not quiet or status is not ExitCode.OK:
        from gpuprof.report.terminal import print_document

        print_document(gates_report(results), file=sys.stderr if aside else sys.stdout)
    return status


def status_of_gates(results: "Sequence[GateResult]", *, strict: bool) -> ExitCode:
    """0 where no gate failed; 1 where one did or guards nothing; 3 where one is uncertain and that counts."""
    outcomes = {result.outcome for result in results}
    if outcomes & {"failed", "not judged"}:
        return ExitCode.CASES_FAILED
    return ExitCode.ENVIRONMENT if strict and "uncertain" in outcomes else ExitCode.OK


def status_of_comparisons(
    comparisons: "Sequence[ComparedRuns]", results: "Sequence[Sequence[GateResult]]", *, strict: bool
) -> ExitCode:
    """The same of comparisons; without gates, an uncertain verdict is what `--strict` minds."""
    status = status_of_gates([result for held in results for result in held], strict=strict)
    undecided = any(
        comparison.counts["uncertain"] or comparison.verdict == "unmeasured" for comparison in comparisons
    )
    return ExitCode.ENVIRONMENT if status is ExitCode.OK and strict and undecided else status
