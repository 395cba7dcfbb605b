# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The options of `gpuprof compare`, and which of its two ways they ask for."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpuprof.commands.compare_runs import Outputs, compare_files
from gpuprof.commands.gating import FailOn, Strict, read_gates
from gpuprof.commands.options import (
    Arch,
    Block,
    Define,
    DeviceOption,
    Dtype,
    Include,
    Kernels,
    Lines,
    Quiet,
    Resume,
    Seconds,
    Seed,
    Set,
    SimBlocks,
    Timeout,
    run_options,
)
from gpuprof.errors import ExitCode, InputError

Named = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="BASE NEW…",
        help="Results files, or folders whose files are rounds of one code; after --against, the kernels: a"
        " folder, .cu files, or an operation of a gpuprof checkout.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="REVISION",
        help="Measure the kernels as they are and as they were at a git revision, in turns, and compare.",
    ),
]
CompareRounds = Annotated[
    int,
    typer.Option("--rounds", min=1, max=200, metavar="N", help="With --against: rounds of each version."),
]
Page = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the page.")]
Document = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE|-", help="Write every verdict as JSON; - prints it instead."),
]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE|-", help="Write Markdown tables; - prints them instead."),
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit file.")]
Directory = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="With --against: where both results files go."),
]
CompareForce = Annotated[
    bool, typer.Option("--force", help="Compare what misleads, and replace existing files.")
]

#: Options that say what and how to measure: without `--against` they have no effect.
_MEASURING = {
    "kernel": "--kernel",
    "sizes": "--sizes",
    "block": "--block",
    "set_": "--set",
    "include": "-I",
    "define": "-D",
    "arch": "--arch",
    "sim_blocks": "--sim-blocks",
    "output": "--output",
    "resume": "--resume",
}


def compare(
    named: Named = None,
    against: Against = None,
    fail_on: FailOn = None,
    strict: Strict = False,
    html: Page = None,
    json: Document = None,
    markdown: Markdown = None,
    junit: Junit = None,
    force: CompareForce = False,
    quiet: Quiet = False,
    rounds: CompareRounds = 16,
    kernel: Kernels = None,
    sizes: Annotated[str | None, typer.Option(metavar="N|NxM[,…]", help="Problem sizes.")] = None,
    block: Block = None,
    dtype: Dtype = "f32",
    set_: Set = None,
    include: Include = None,
    define: Define = None,
    device: DeviceOption = "auto",
    arch: Arch = None,
    seed: Seed = 0,
    timeout: Timeout = 60.0,
    seconds: Seconds = 1.0,
    sim_blocks: SimBlocks = None,
    lines: Lines = True,
    output: Directory = None,
    resume: Resume = None,
) -> None:
    """Say which cases regressed, improved or stayed the same, and hold them against gates."""
    outputs = Outputs(html, json, markdown, junit, force)
    gates = read_gates(fail_on, with_base=True)
    paths = named or []
    if against is None:
        given = locals()
        idle = next((option for name, option in _MEASURING.items() if given[name]), None)
        if idle is not None:
            raise InputError(
                f"{idle} has no effect on results files.", fix="Add --against REVISION to measure."
            )
        if len(paths) < 2:
            raise InputError(
                "Name a base and at least one new results file.",
                fix="gpuprof compare BASE.json NEW.json, or --against REVISION to measure both.",
            )
        raise typer.Exit(compare_files(paths[0], paths[1:], gates, outputs, strict=strict, quiet=quiet))
    raise typer.Exit(_measure_and_compare(against, paths, locals(), gates, outputs))


def _measure_and_compare(
    against: str, paths: list[Path], given: dict[str, Any], gates: Any, outputs: Outputs
) -> ExitCode:
    from gpuprof.commands.compare_against import Wanted, compare_against
    from gpuprof.commands.compare_place import ComparePlace
    from gpuprof.commands.texts import parse_assignments
    from gpuprof.kernels.preprocessing import parse_preprocessing

    wanted = Wanted(
        tuple(paths),
        tuple(given["kernel"] or ()),
        given["sizes"],
        given["block"],
        given["dtype"],
        parse_assignments(given["set_"] or []),
        parse_preprocessing(given["include"] or [], given["define"] or []),
    )
    options = run_options(given)
    return compare_against(
        against,
        wanted,
        options,
        gates,
        outputs,
        ComparePlace.named(given["output"], given["resume"]),
        strict=given["strict"],
        quiet=given["quiet"],
    )
