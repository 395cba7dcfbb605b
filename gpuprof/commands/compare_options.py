# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The options of `gpuprof compare`, and which of its two ways they ask for."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpuprof.commands.command_line import Given, Parameter, command_of, output_option
from gpuprof.commands.compare_runs import Outputs, compare_files
from gpuprof.commands.gating import read_gates
from gpuprof.errors import InputError
from gpuprof.measure.options import SELECT, only_measuring


def _file(flag: str, metavar: str, text: str) -> Parameter:
    return Annotated[Path | None, output_option(flag, text, metavar)], None


_FIRST: dict[str, Parameter] = {
    "named": (
        Annotated[
            list[Path] | None,
            typer.Argument(
                metavar="BASE NEW…",
                help="Results files, or folders whose files are rounds of one code; after --against, the"
                " kernels: a folder, .cu files, or an operation of a gpuprof checkout.",
            ),
        ],
        None,
    ),
    "against": (
        Annotated[
            str | None,
            typer.Option(
                metavar="REVISION",
                help="Measure the kernels as they are and as they were at a git revision, in turns, and"
                " compare.",
                rich_help_panel=SELECT,
            ),
        ],
        None,
    ),
}
_LAST = {
    "html": _file("html", "FILE", "Write the page."),
    "json": _file("json", "FILE|-", "Write every verdict as JSON; - prints it instead."),
    "markdown": _file("markdown", "FILE|-", "Write Markdown tables; - prints them instead."),
    "junit": _file("junit", "FILE", "Write a JUnit file."),
}


def _compare(
    given: Given,
    named: list[Path] | None,
    against: str | None,
    html: Path | None,
    json: Path | None,
    markdown: Path | None,
    junit: Path | None,
) -> int:
    outputs = Outputs(html, json, markdown, junit, given.output.force)
    gates = read_gates(given.gate.fail_on, with_base=True)
    paths = named or []
    how: dict[str, Any] = {"strict": given.gate.strict, "quiet": given.output.quiet}
    if against is None:
        held = (given.select, given.run, given.output)
        values = {name: value for each in held for name, value in vars(each).items()}
        idle = next((row.long for row in only_measuring("compare") if values[row.name] is not None), None)
        if idle is not None:
            raise InputError(
                f"{idle} has no effect on results files.", fix="Add --against REVISION to measure."
            )
        if len(paths) < 2:
            raise InputError(
                "Name a base and at least one new results file.",
                fix="gpuprof compare BASE.json NEW.json, or --against REVISION to measure both.",
            )
        return compare_files(paths[0], paths[1:], gates, outputs, **how)
    from gpuprof.commands.compare_against import compare_against
    from gpuprof.commands.compare_place import ComparePlace

    place = ComparePlace.named(given.output.output, given.output.resume)
    return compare_against(against, paths, given.select, given.run, gates, outputs, place, **how)


compare = command_of(
    "compare",
    _compare,
    "Say which cases regressed, improved or stayed the same, and hold them against gates.",
    first=_FIRST,
    last=_LAST,
)
