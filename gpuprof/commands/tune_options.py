# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The options of `gpuprof tune`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuprof.commands import completion
from gpuprof.commands.options import (
    Arch,
    Block,
    Cluster,
    Define,
    DeviceOption,
    Dtype,
    Explain,
    Force,
    Include,
    Kernels,
    Open,
    Output,
    PoisonInout,
    Quiet,
    Reference,
    Seconds,
    Seed,
    Set,
    SimBlocks,
    Timeout,
)
from gpuprof.commands.settings import settings_as_arguments

What = Annotated[
    list[str],
    typer.Argument(
        metavar="KERNEL…",
        autocompletion=completion.tunable,
        help="A .cu file, a folder with operation.toml, or an operation or kernel that comes with gpuprof.",
    ),
]
Sizes = Annotated[
    str | None,
    typer.Option(
        metavar="N|NxM[,…]",
        autocompletion=completion.sizes,
        help="Problem sizes, each searched for itself.  [default: the operation's]",
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--values",
        metavar="P=V|V[,…]",
        help="Values to try besides those that headers declare: BM=32|64|128.",
    ),
]
BudgetOption = Annotated[
    str,
    typer.Option(
        "--budget",
        metavar="N|SECONDSs",
        help="Points to time at each size, or when to begin no further one: 40, 90s or 40,90s.",
    ),
]
TuneRounds = Annotated[
    int,
    typer.Option(
        "--rounds", min=1, max=200, metavar="N", help="Rounds in which the closest points meet at the end."
    ),
]
Write = Annotated[
    bool,
    typer.Option(
        "--write",
        help="Put the best values into the kernel's file and show what changed; where sizes differ, write a"
        " kernel that chooses by size.",
    ),
]
From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="RESULTS",
        help="Measure nothing: take what this results file found best, of a search or of any run. Several"
        " times for several files.",
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="KERNEL",
        help="With --from, the kernel that chooses among others already, to get new rules.",
    ),
]


def tune(
    context: typer.Context,
    paths: What,
    kernel: Kernels = None,
    values: Values = None,
    include: Include = None,
    define: Define = None,
    sizes: Sizes = None,
    block: Block = None,
    dtype: Dtype = "f32",
    set_: Set = None,
    device: DeviceOption = "auto",
    cluster: Cluster = None,
    arch: Arch = None,
    budget: BudgetOption = "20",
    rounds: TuneRounds = 10,
    seed: Seed = 0,
    timeout: Timeout = 60.0,
    seconds: Seconds = 0.25,
    sim_blocks: SimBlocks = None,
    poison_inout: PoisonInout = True,
    explain: Explain = False,
    reference: Reference = "vendor",
    output: Output = None,
    write: Write = False,
    from_: From = None,
    into: Into = None,
    open_: Open = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Search the values that a header declares for a kernel's parameters, and name the best at each size."""
    from gpuprof.commands.texts import parse_assignments, parse_blocks, parse_sim_blocks
    from gpuprof.commands.tune import Asked, Outputs, run_search
    from gpuprof.commands.tune_again import write_again
    from gpuprof.errors import InputError
    from gpuprof.kernels.preprocessing import parse_preprocessing
    from gpuprof.measure.run import RunOptions

    asked = Asked(
        what=tuple(paths),
        kernels=tuple(kernel or ()),
        values=tuple(values or ()),
        sizes=sizes,
        blocks=parse_blocks(block) if block is not None else (),
        dtype=dtype,
        scalars=parse_assignments(set_ or []),
        command=parse_preprocessing(include or [], define or []),
        references=reference,
        budget=budget,
    )
    options = RunOptions(
        device=device,
        cluster=cluster,
        arch=arch,
        seed=seed,
        timeout_s=timeout,
        seconds_per_case=seconds,
        sim_blocks=parse_sim_blocks(sim_blocks),
        poison_inout=poison_inout,
        explain=explain,
        rounds=rounds,
    )
    outputs = Outputs(output, force=force, quiet=quiet, write=write, browser=open_)
    if from_:
        raise typer.Exit(write_again(asked, from_, outputs, into))
    if into is not None:
        raise InputError("--into needs results.", fix="Name them with --from.")
    argv = (*sys.argv[1:], *settings_as_arguments(context))
    raise typer.Exit(run_search(asked, options, outputs, argv))
