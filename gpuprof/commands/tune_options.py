# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The options of `gpuprof tune`."""

from pathlib import Path
from typing import Annotated

import typer

from gpuprof.commands import completion
from gpuprof.commands.command_line import Given, Parameter, command_of
from gpuprof.errors import InputError
from gpuprof.measure.options import MEASURE, OUTPUT, SELECT

_FIRST: dict[str, Parameter] = {
    "what": (
        Annotated[
            list[str],
            typer.Argument(
                metavar="KERNEL…",
                autocompletion=completion.tunable,
                help="A .cu file, a folder with operation.toml, or an operation or kernel that comes with"
                " gpuprof.",
            ),
        ],
        ...,
    ),
    "values": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="P=V|V[,…]",
                help="Values to try besides those that headers declare: BM=32|64|128.",
                rich_help_panel=SELECT,
            ),
        ],
        None,
    ),
    "budget": (
        Annotated[
            str,
            typer.Option(
                metavar="N|SECONDSs",
                help="Points to time at each size, or a time budget: 40, 90s or 40,90s.",
                rich_help_panel=MEASURE,
            ),
        ],
        "20",
    ),
}
_LAST: dict[str, Parameter] = {
    "write": (
        Annotated[
            bool,
            typer.Option(
                "--write",
                help="Put the best values into the kernel's file and show what changed; where sizes differ,"
                " write a kernel that chooses by size.",
                rich_help_panel=OUTPUT,
            ),
        ],
        False,
    ),
    "from_": (
        Annotated[
            list[Path] | None,
            typer.Option(
                "--from",
                metavar="RESULTS",
                help="Measure nothing: take what this results file found best, of a search or of any run."
                " Several times for several files.",
                rich_help_panel=OUTPUT,
            ),
        ],
        None,
    ),
    "into": (
        Annotated[
            str | None,
            typer.Option(
                metavar="KERNEL",
                help="With --from, the kernel that chooses among others already, to get new rules.",
                rich_help_panel=OUTPUT,
            ),
        ],
        None,
    ),
}


def _tune(
    given: Given,
    what: list[str],
    values: list[str] | None,
    budget: str,
    write: bool,
    from_: list[Path] | None,
    into: str | None,
) -> int:
    from gpuprof.commands.texts import preprocessing_of
    from gpuprof.commands.tune import Asked, TuneOutputs, run_search
    from gpuprof.commands.tune_again import write_again

    select, output = given.select, given.output
    asked = Asked(
        what=tuple(what),
        select=select,
        values=tuple(values or ()),
        command=preprocessing_of(select),
        budget=budget,
    )
    outputs = TuneOutputs(
        output.output, force=output.force, quiet=output.quiet, write=write, browser=output.open_
    )
    if from_:
        return write_again(asked, from_, outputs, into)
    if into is not None:
        raise InputError("--into needs results.", fix="Name them with --from.")
    return run_search(asked, given.run, outputs, given.argv)


tune = command_of(
    "tune",
    _tune,
    "Search the values that a header declares for a kernel's parameters, and name the best at each size.",
    first=_FIRST,
    last=_LAST,
)
