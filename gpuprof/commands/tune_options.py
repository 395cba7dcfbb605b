# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The options of `gpuprof tune`."""

from typing import Annotated

import typer

from gpuprof.commands import completion
from gpuprof.commands.command_line import Given, Parameter, command_of
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
                " those that lose least.",
                rich_help_panel=OUTPUT,
            ),
        ],
        False,
    ),
}


def _tune(
    given: Given,
    what: list[str],
    values: list[str] | None,
    budget: str,
    write: bool,
) -> int:
    from gpuprof.commands.texts import preprocessing_of
    from gpuprof.commands.tune import Asked, TuneOutputs, run_search

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
    return run_search(asked, given.run, outputs, given.argv)


tune = command_of(
    "tune",
    _tune,
    "Search the values that a header declares for a kernel's parameters, and name the best at each size.",
    first=_FIRST,
    last=_LAST,
)
