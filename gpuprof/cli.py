# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The command line: parse, call, print, exit. Everything heavy is imported inside its command."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from gpuprof import __version__
from gpuprof.errors import ExitCode, GpuprofError

app = typer.Typer(
    name="gpuprof",
    help="Compile, prove, time and explain ladders of CUDA kernels.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        "-k",
        metavar="ID[,…]",
        help="Run only these kernels: ids or published names as `gpuprof list` shows them, or .cu files.",
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="The whole ladder (the default without --kernel).")]
Block = Annotated[
    str | None, typer.Option(metavar="XxY[,…]", help="Block or list of blocks, e.g. 8x32 or 8x32,16x16.")
]
Dtype = Annotated[str, typer.Option(metavar="f32|f64", help="Element type.")]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|N|sim|none",
        help="auto: the first GPU, else sim; N: that GPU; sim, sim:CARD: run on the CPU; none: compile only.",
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
Lines = Annotated[bool, typer.Option("--lines", help="On a GPU: also count per source line, with sim.")]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="vendor|cpu|all|none",
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
        "--ncu-clocks", metavar="none|base", help="Clocks while ncu profiles: as they are, or base."
    ),
]
NcuPath = Annotated[str | None, typer.Option("--ncu-path", metavar="FILE", help="The ncu to use.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Directory for results.json and report.html."),
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Results file.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Report file.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gpuprof {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def gemm(
    kernel: Kernels = None,
    everything: Everything = False,
    sizes: Annotated[str, typer.Option(metavar="N|MxNxK[,…]", help="Problem sizes.")] = "1024",
    block: Block = None,
    dtype: Dtype = "f32",
    alpha: Annotated[float, typer.Option(metavar="NUMBER", help="Factor of the product.")] = 1.0,
    beta: Annotated[float, typer.Option(metavar="NUMBER", help="Factor of C's old content.")] = 0.0,
    device: DeviceOption = "auto",
    arch: Arch = None,
    seed: Seed = 0,
    timeout: Timeout = 60.0,
    seconds: Seconds = 0.25,
    sim_blocks: SimBlocks = None,
    lines: Lines = False,
    reference: Reference = "vendor",
    ncu: Ncu = False,
    ncu_set: NcuSet = None,
    ncu_clocks: NcuClocks = "none",
    ncu_path: NcuPath = None,
    output: Output = None,
    json: Json = None,
    html: Html = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Matrix multiplication: C = alpha * A @ B + beta * C."""
    from gpuprof.commands.profile import Destination, ncu_options, profile
    from gpuprof.measure.request import build_request, parse_sim_blocks
    from gpuprof.measure.run import RunOptions

    request = build_request(
        "gemm", kernel or [], everything, sizes, block, dtype, alpha=alpha, beta=beta, references=reference
    )
    blocks = parse_sim_blocks(sim_blocks)
    options = RunOptions(device, arch, seed, timeout, seconds, blocks, lines)
    counting = ncu_options(ncu, ncu_path, ncu_set, ncu_clocks, timeout)
    destination = Destination(output, json, html, force)
    raise typer.Exit(profile(request, options, destination, counting, quiet=quiet))


@app.command()
def transpose(
    kernel: Kernels = None,
    everything: Everything = False,
    sizes: Annotated[str, typer.Option(metavar="N|NXxNY[,…]", help="Problem sizes.")] = "2048",
    block: Block = None,
    dtype: Dtype = "f32",
    device: DeviceOption = "auto",
    arch: Arch = None,
    seed: Seed = 0,
    timeout: Timeout = 60.0,
    seconds: Seconds = 0.25,
    sim_blocks: SimBlocks = None,
    lines: Lines = False,
    reference: Reference = "vendor",
    ncu: Ncu = False,
    ncu_set: NcuSet = None,
    ncu_clocks: NcuClocks = "none",
    ncu_path: NcuPath = None,
    output: Output = None,
    json: Json = None,
    html: Html = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Matrix transpose: out[nx, ny] = in[ny, nx] transposed, against the bandwidth ceiling."""
    from gpuprof.commands.profile import Destination, ncu_options, profile
    from gpuprof.measure.request import build_request, parse_sim_blocks
    from gpuprof.measure.run import RunOptions

    request = build_request("transpose", kernel or [], everything, sizes, block, dtype, references=reference)
    blocks = parse_sim_blocks(sim_blocks)
    options = RunOptions(device, arch, seed, timeout, seconds, blocks, lines)
    counting = ncu_options(ncu, ncu_path, ncu_set, ncu_clocks, timeout)
    destination = Destination(output, json, html, force)
    raise typer.Exit(profile(request, options, destination, counting, quiet=quiet))


@app.command()
def report(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS.json", help="A results file that gpuprof wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The report; beside the results by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is no report.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables instead.")] = False,
    quiet: Quiet = False,
) -> None:
    """Render a results file again, on any machine."""
    from gpuprof.commands.output import check_report_path, print_written, write_report
    from gpuprof.files import check_distinct
    from gpuprof.results import read_run

    run = read_run(results)
    if markdown:
        from gpuprof.report.markdown import render_markdown

        print(render_markdown(run))
        return
    path = output or results.with_suffix(".html")
    check_distinct(results, path)
    check_report_path(path, force)
    if not quiet:
        from gpuprof.report.terminal import print_run

        print_run(run, file=sys.stdout)
    write_report(run, path)
    print_written(path)


@app.command("import")
def import_counters(
    report: Annotated[Path, typer.Argument(metavar="FILE.ncu-rep", help="A report of Nsight Compute.")],
    results: Annotated[Path, typer.Argument(metavar="RESULTS.json", help="The results it belongs to.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Results file to write instead.")
    ] = None,
    ncu_path: NcuPath = None,
    force: Force = False,
) -> None:
    """Add an Nsight Compute report's counters to a results file."""
    from gpuprof.commands.import_ncu import import_report

    import_report(report, results, output, ncu_path, force=force)


@app.command()
def doctor(
    device: Annotated[int, typer.Option(min=0, metavar="N", help="The GPU to try Nsight Compute on.")] = 0,
) -> None:
    """Check what works here, and say how to mend the rest."""
    from gpuprof.commands.doctor import examine

    raise typer.Exit(examine(device))


@app.command("list")
def list_kernels(
    problem: Annotated[
        str | None, typer.Argument(metavar="[gemm|transpose]", help="One ladder only.")
    ] = None,
) -> None:
    """List the kernels of the ladders."""
    from gpuprof.commands.listing import print_ladders
    from gpuprof.errors import InputError
    from gpuprof.problems import OPERATIONS

    if problem is not None and problem not in OPERATIONS:
        raise InputError(f"There is no problem {problem!r}.", fix=f"Choose one of {', '.join(OPERATIONS)}.")
    print_ladders(problem)


@app.command()
def devices() -> None:
    """List the GPUs here and the cards that gpuprof knows."""
    from gpuprof.commands.listing import print_devices

    print_devices()


class _Stream(io.FileIO):
    """A standard stream whose reader may leave, as `| head` does: the command still writes its files."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def _forgiving(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream, deaf to a reader that has gone and to characters that its encoding lacks."""
    if stream is None:  # closed by the shell, as with `>&-`
        return open(os.devnull, "w", encoding="utf-8")
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(descriptor, "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=descriptor == 2 or stream.isatty(),
    )


def main() -> None:
    """Run the command line; turn every expected error into one message and its exit status."""
    sys.stdout = _forgiving(sys.stdout, 1)
    sys.stderr = _forgiving(sys.stderr, 2)
    try:
        app()
    except GpuprofError as error:
        print(f"gpuprof: {error.what}", file=sys.stderr)
        if error.fix:
            print(f"  {error.fix}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.INTERRUPTED))
