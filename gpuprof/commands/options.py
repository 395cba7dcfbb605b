# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The command line's options, each declared once, and what the commands that measure share."""

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuprof.commands import completion
from gpuprof.commands.gating import FailOn, Rounds, Strict, read_gates
from gpuprof.commands.settings import settings_as_arguments
from gpuprof.errors import InputError

if TYPE_CHECKING:
    from gpuprof.kernels.catalog import Ladder
    from gpuprof.measure.run import RunOptions
    from gpuprof.operation import Operation

Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        "-k",
        metavar="ID[:P=V][,…]",
        autocompletion=completion.kernels,
        help="Run only these kernels: ids or published names as `gpuprof list` shows them, or .cu files; with"
        " parameters as reg_8x8:BK=16, or BK=8|16 for a case each.",
    ),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all",
        help="All rungs of the ladder (the default without --kernel); other shapes run when they are named.",
    ),
]
Block = Annotated[
    str | None,
    typer.Option(
        metavar="XxY[,…]",
        autocompletion=completion.blocks,
        help="Block or list of blocks, e.g. 8x32 or 8x32,16x16.",
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar="f32|f64|f16|bf16",
        autocompletion=completion.words("f32", "f64", "f16", "bf16"),
        help="Element type of a run.",
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|N|all|sim|none",
        autocompletion=completion.devices,
        help="auto: the first GPU, else sim; N: that GPU; all; sim, sim:CARD: run on the CPU; none: compile"
        " only. Several as 0,1 or sim:h200,sim:a100.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|local:N",
        help="Measure on the workers of a Dask cluster: on every GPU they offer, or with --device sim on"
        " their CPUs.",
    ),
]
Arch = Annotated[
    str | None,
    typer.Option(metavar="sm_XX", help="Without a GPU: the architecture to stand in for."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of the random inputs.")]
Timeout = Annotated[
    float, typer.Option(min=1, max=86_400, metavar="SECONDS", help="Longest one case may take.")
]
CompileTimeout = Annotated[
    float,
    typer.Option(
        "--compile-timeout",
        min=1,
        max=86_400,
        metavar="SECONDS",
        help="Longest that compiling one case may take, before its --timeout.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds", min=0.01, max=3600, metavar="SECONDS", help="Kernel time to spend sampling one case."
    ),
]
SimBlocks = Annotated[
    str | None,
    typer.Option(
        "--sim-blocks", metavar="all|N", help="Blocks that sim runs of each grid.  [default: all when small]"
    ),
]
Lines = Annotated[
    bool,
    typer.Option(
        "--lines/--no-lines", help="On a GPU, count with sim too: bounds, and counts by source line."
    ),
]
PoisonInout = Annotated[
    bool,
    typer.Option(
        "--poison-inout/--no-poison-inout",
        help="Whether a kernel is wrong that reads what it must not, such as C where beta is 0; else it is"
        " measured with a remark.",
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain/--no-explain",
        help="Run a case that fails, hangs or is wrong on the executor too, for 20 s at most, to say line and"
        " thread.",
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="vendor|cpu|all|none",
        autocompletion=completion.words("vendor", "cpu", "all", "none"),
        help="On a GPU: what to measure beside the kernels; cpu is NumPy.",
    ),
]
Ncu = Annotated[bool, typer.Option("--ncu", help="Then profile each kernel with Nsight Compute.")]
NcuSet = Annotated[
    str | None, typer.Option("--ncu-set", metavar="SET", help="Metrics of one of ncu's sets too, e.g. full.")
]
NcuClocks = Annotated[
    str,
    typer.Option(
        "--ncu-clocks",
        metavar="none|base",
        autocompletion=completion.words("none", "base"),
        help="Clocks while ncu profiles: as they are, or base.",
    ),
]
NcuPath = Annotated[str | None, typer.Option("--ncu-path", metavar="FILE", help="The ncu to use.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Directory for results.json and report.html."),
]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", metavar="DIR", help="Go on with the run in there that was stopped."),
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE|-", help="Results file; - prints it too.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE|-", help="Report file; - prints it too.")]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE|-", help="Write the figures as CSV too, a row a case; - prints them."
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open the report in a browser.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")]

Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="KEY=VALUE",
        help="What gpuprof fleet groups by, e.g. host=node7; GPUPROF_LABEL_KEY in the environment too.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A number that the operation takes besides its sizes."),
]

Include = Annotated[
    list[Path] | None,
    typer.Option("--include", "-I", metavar="DIR", help="A folder of headers that your own kernels include."),
]
Define = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", metavar="NAME[=VALUE]", help="A macro for your own kernels."),
]

#: What every command that measures takes, in the order in which its help shows them: annotation and default.
_MEASURING: dict[str, tuple[Any, Any]] = {
    "kernel": (Kernels, None),
    "everything": (Everything, False),
    "include": (Include, None),
    "define": (Define, None),
    "sizes": (None, None),
    "block": (Block, None),
    "dtype": (Dtype, "f32"),
    "set_": (Set, None),
    "device": (DeviceOption, "auto"),
    "cluster": (Cluster, None),
    "arch": (Arch, None),
    "seed": (Seed, 0),
    "timeout": (Timeout, 60.0),
    "compile_timeout": (CompileTimeout, 120.0),
    "seconds": (Seconds, 0.25),
    "sim_blocks": (SimBlocks, None),
    "lines": (Lines, True),
    "poison_inout": (PoisonInout, True),
    "explain": (Explain, True),
    "reference": (Reference, "vendor"),
    "rounds": (Rounds, 1),
    "label": (Label, None),
    "fail_on": (FailOn, None),
    "strict": (Strict, False),
    "ncu": (Ncu, False),
    "ncu_set": (NcuSet, None),
    "ncu_clocks": (NcuClocks, "none"),
    "ncu_path": (NcuPath, None),
    "output": (Output, None),
    "resume": (Resume, None),
    "json": (Json, None),
    "html": (Html, None),
    "csv": (Csv, None),
    "open_": (Open, False),
    "force": (Force, False),
    "quiet": (Quiet, False),
}


def measuring_command(
    find_ladder: "Callable[..., Ladder]",
    help_text: str,
    operation: "Operation | None" = None,
    **more: tuple[Any, Any],
) -> Callable[..., None]:
    """A function that Typer makes a command of: it measures a ladder.

    Args:
        find_ladder: Gives the ladder, from the values of `more` and, as `command`, what the preprocessor is
            told.
        help_text: The command's help.
        operation: What is measured, where it is known before the command runs: its scalars become options.
        more: Further parameters in front of the shared ones: annotation and default.
    """
    sizes = "|".join(("N", "x".join(map(str.upper, operation.dimensions)))) if operation else "N|NxM"
    parameters = {"context": (typer.Context, inspect.Parameter.empty), **more, **_MEASURING}
    default = f"  [default: {operation.default_sizes}]" if operation else ""
    parameters["sizes"] = (
        Annotated[
            str | None,
            typer.Option(
                metavar=f"{sizes}[,…]",
                autocompletion=completion.sizes,
                help=f"Problem sizes.{default}",
            ),
        ],
        None,
    )
    for name, scalar in (operation.scalars if operation else {}).items():
        kind = Annotated[float | None, typer.Option(f"--{name}", metavar="NUMBER", help=_scalar_help(scalar))]
        parameters[f"scalar_{name}"] = (kind, None)

    def command(context: typer.Context, **values: Any) -> None:
        own = {name: values.pop(name) for name in more}
        scalars = {
            name.removeprefix("scalar_"): values.pop(name)
            for name in list(values)
            if name.startswith("scalar_")
        }
        given = {name: value for name, value in scalars.items() if value is not None}
        if operation is not None:
            _check_own_kernels(values)
        argv = (*sys.argv[1:], *settings_as_arguments(context))
        from gpuprof.measure.process import started_ahead

        with started_ahead() if values["cluster"] is None else nullcontext():
            raise typer.Exit(_measure(partial(find_ladder, **own), given, argv, **values))

    command.__doc__ = help_text
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for name, (kind, value) in parameters.items()
        ]
    )
    command.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    return command


def _scalar_help(scalar: Any) -> str:
    return f"{scalar.help or 'A number that kernels take.'}  [default: {scalar.default:g}]"


def _check_own_kernels(given: Mapping[str, Any]) -> None:
    """Refuse what would have no effect: the shipped kernels include nothing and know no macros of a user's.

    Raises:
        InputError: `-I` or `-D` came without a kernel file.
    """
    if (given["include"] or given["define"]) and not any(".cu" in text for text in given["kernel"] or []):
        raise InputError("-I and -D are for kernels of your own.", fix="Name one with -k FILE.cu.")


def _measure(
    find_ladder: "Callable[..., Ladder]",
    scalars: Mapping[str, float],
    argv: tuple[str, ...],
    **given: Any,
) -> int:
    """Measure as the options say; the exit status."""
    from gpuprof.commands.output import STANDARD_OUTPUT
    from gpuprof.commands.profile import Destination, ncu_options, profile
    from gpuprof.commands.texts import build_request, parse_assignments
    from gpuprof.kernels.preprocessing import parse_preprocessing
    from gpuprof.measure.labels import labels_of

    gates = read_gates(given["fail_on"], with_base=False)
    preprocessing = parse_preprocessing(given["include"] or [], given["define"] or [])
    request = build_request(
        find_ladder(command=preprocessing),
        given["kernel"] or [],
        given["everything"],
        given["sizes"],
        given["block"],
        given["dtype"],
        scalars={**parse_assignments(given["set_"] or []), **scalars},
        references=given["reference"],
        command=preprocessing,
    )
    options = run_options(
        given,
        poison_inout=given["poison_inout"],
        explain=given["explain"],
        compile_timeout_s=given["compile_timeout"],
        cluster=given["cluster"],
        labels=labels_of(given["label"] or ()),
    )
    counting = ncu_options(
        given["ncu"], given["ncu_path"], given["ncu_set"], given["ncu_clocks"], given["timeout"]
    )
    files = {name: given[name] for name in ("json", "html", "csv")}
    printed = [name for name, path in files.items() if path == STANDARD_OUTPUT]
    if len(printed) > 1:
        raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
    destination = Destination(
        given["output"],
        **(files | dict.fromkeys(printed)),
        force=given["force"],
        prints="".join(printed),
        resume=given["resume"],
    )
    return profile(
        request,
        options,
        destination,
        counting,
        quiet=given["quiet"],
        argv=argv,
        browser=given["open_"],
        gates=gates,
        strict=given["strict"],
    )


def run_options(given: Mapping[str, Any], **further: Any) -> "RunOptions":
    """How to measure, of the options that every command that measures has.

    Args:
        given: A command's options by the names of its parameters.
        further: What only this command knows.
    """
    from gpuprof.commands.texts import parse_sim_blocks
    from gpuprof.measure.run import RunOptions

    return RunOptions(
        device=given["device"],
        arch=given["arch"],
        seed=given["seed"],
        timeout_s=given["timeout"],
        seconds_per_case=given["seconds"],
        sim_blocks=parse_sim_blocks(given["sim_blocks"]),
        lines=given["lines"],
        rounds=given["rounds"],
        **further,
    )
