# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The command line: parse, call, print, exit. Everything heavy is imported inside its command."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuprof import __version__, console, signals, timeline
from gpuprof.commands.command_line import Parameter, command_of, measuring_command, parameter
from gpuprof.commands.settings import ConfiguredCommand
from gpuprof.errors import ExitCode, GpuprofError, InputError, ToolError, did_you_mean, reason, refused_start
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.options import OUTPUT, Given
from gpuprof.text import KERNEL_ENDINGS

if TYPE_CHECKING:
    from gpuprof.kernels.kernel import Ladder
    from gpuprof.kernels.preprocessing import Preprocessing

app = typer.Typer(
    name="gpuprof",
    help="Say which of several CUDA kernels is fastest, how far it is from the hardware's limits, and why.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.say(f"gpuprof {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _shipped(name: str, command: "Preprocessing", wanted: tuple[str, ...]) -> "Ladder":
    """A ladder that comes with gpuprof; what the preprocessor is told is for kernels beside it."""
    from gpuprof.kernels.catalog import shipped_ladder

    return shipped_ladder(name, wanted)


def _ladder_of(paths: list[Path], command: "Preprocessing", wanted: tuple[str, ...]) -> "Ladder":
    from gpuprof.kernels.paths import ladder_of

    return ladder_of(paths, command=command)


def _argument(kind: Any, metavar: str, text: str, default: Any = ...) -> Parameter:
    return Annotated[kind, typer.Argument(metavar=metavar, help=text)], default


for _name in shipped_names():
    _operation = shipped_operation(_name)
    _made = measuring_command(partial(_shipped, _name), _operation.help, _operation)
    app.command(_name, cls=ConfiguredCommand)(_made)
app.command("run", cls=ConfiguredCommand)(
    measuring_command(
        _ladder_of,
        "Measure kernels of your own: a folder with an operation.toml, or .cu, .ptx and .cubin files.",
        paths=_argument(list[Path], "PATH…", "A folder with operation.toml and kernels, or kernel files."),
    )
)


@app.command()
def new(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help="One that comes with gpuprof, a folder with operation.toml, or CUDA C++, PTX or machine code"
            " without a header.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.cu", help="The kernel file to write; of several kernels its name picks one."
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    include: Annotated[list[Path] | None, parameter("include", group=None)] = None,
    define: Annotated[list[str] | None, parameter("define", group=None)] = None,
) -> None:
    """Write a commented kernel file to start from, or a header for one that has none."""
    from gpuprof.commands.new import write_starting_point

    write_starting_point(operation, file, force=force, include=include or (), define=define or ())


def _of(module: str, name: str) -> Callable[..., int]:
    """A function of one of the modules of commands, which is loaded when it is called."""
    return lambda given, **own: getattr(import_module(f"gpuprof.commands.{module}"), name)(given, **own)


def _compare(given: Given, named: list[Path] | None) -> int:
    if given.select.against is None:
        from gpuprof.commands.compare_runs import compare_files

        return compare_files(given, named or [])
    from gpuprof.commands.compare_against import compare_against

    return compare_against(given, named or [])


def _add(
    name: str, called: Callable[..., int], text: str, first: str, argument: Parameter, **last: Parameter
) -> None:
    """A command whose options are the table's: what it calls, its help, its argument, what it has more."""
    made = command_of(name, called, text, first={first: argument}, last=last)
    app.command(name, cls=ConfiguredCommand)(made)


_add(
    "report",
    _of("rendering", "report"),
    "Render a results file again, on any machine.",
    "results",
    _argument(
        Path | None,
        "RESULTS.json",
        "A results file, or the folder of a run; gpuprof-results/latest by default.",
        None,
    ),
    markdown=(
        Annotated[
            bool,
            typer.Option(
                "--markdown",
                help="Markdown tables instead, printed or in the file of -o.",
                rich_help_panel=OUTPUT,
            ),
        ],
        False,
    ),
)
_add(
    "compare",
    _compare,
    "Say which cases regressed, improved or stayed the same, and hold them against gates.",
    "named",
    _argument(
        list[Path] | None,
        "BASE NEW…",
        "Results files, or folders of runs; after --against, the kernels: a folder, or .cu files.",
        None,
    ),
)
_add(
    "fleet",
    _of("compare_runs", "fleet"),
    "Say which of many cards differ from the fleet median, from a results file of each.",
    "results",
    _argument(
        list[str], "RESULTS…", "Results files, folders that hold some, or patterns such as 'r/*.json'."
    ),
)
_add(
    "tune",
    _of("tune", "run_search"),
    "Search a kernel's parameters, of the values that its header declares, and name the best at each size.",
    "what",
    _argument(
        list[str],
        "KERNEL…",
        "A .cu file, a folder with operation.toml, or an operation or kernel that comes with gpuprof.",
    ),
)


@app.command("import")
def import_counters(
    report: Annotated[Path, typer.Argument(metavar="FILE.ncu-rep", help="A report of Nsight Compute.")],
    results: Annotated[Path, typer.Argument(metavar="RESULTS.json", help="The results it belongs to.")],
    output: Annotated[
        Path | None, parameter("output", metavar="FILE", help="Results file to write instead.")
    ] = None,
    ncu_path: Annotated[str | None, parameter("ncu_path")] = None,
    force: Annotated[bool, parameter("force")] = False,
) -> None:
    """Add an Nsight Compute report's counters to a results file."""
    from gpuprof.commands.rendering import import_report

    import_report(report, results, output, ncu_path, force=force)


def _number_of_gpu(value: int) -> int:
    if value < 0:  # of a range that Typer knows the help would say `x>=0`
        raise typer.BadParameter(f"{value} is no GPU's number.")
    return value


@app.command()
def doctor(
    device: Annotated[
        int,
        typer.Option(callback=_number_of_gpu, metavar="N", help="The GPU to try Nsight Compute on."),
    ] = 0,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS|local:N", help="Check a Dask cluster and its workers, too."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Check what works here, and say how to fix the rest."""
    from gpuprof.commands.doctor import examine

    raise typer.Exit(examine(device, cluster, as_json=json))


@app.command("list")
def list_kernels(
    operation: Annotated[
        str | None,
        typer.Argument(
            metavar="|".join(shipped_names()),
            help="One ladder only.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the kernels that come with gpuprof."""
    from gpuprof.commands.listing import print_ladders, print_ladders_as_json

    (print_ladders_as_json if json else print_ladders)(operation)


@app.command()
def devices(
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure what each GPU here reaches, and keep it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the GPUs here and the cards that gpuprof knows."""
    from gpuprof.commands.listing import print_devices, print_devices_as_json, print_measured_rates

    if json:
        print_devices_as_json(measure=measure)
    elif measure:
        print_measured_rates()
    else:
        print_devices()


#: Every mistake in a command line; Typer brings its own Click or takes the one installed.
_USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError"
)


def main() -> None:
    """Run the command line; whatever ends it becomes an exit status, and an error its one message."""
    console.open_streams()
    status = _run()
    signals.disregard()
    lost = console.close_streams()
    if lost is not None:
        console.tell(f"gpuprof: Cannot write to standard output: {reason(lost)}.")
        status = status or ExitCode.ENVIRONMENT
    sys.exit(signals.status() or int(status))


def _run() -> int:
    """Run the command that the arguments name; its exit status."""
    try:
        _refuse_empty(sys.argv[1:])
        _refuse_spaces(sys.argv[1:])
        _refuse_second_values(sys.argv[1:])
        timeline.begin()
        with timeline.span("command"):
            return int(_command()(standalone_mode=False, terminal_width=_help_width()) or ExitCode.OK)
    except _USAGE_ERROR as error:
        return _usage_error(error)
    except GpuprofError as error:
        return console.tell_error(error)
    except SystemExit as left:  # as Typer leaves where it has printed what completes a shell's words
        return left.code if isinstance(left.code, int) else ExitCode.OK
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except MemoryError:
        console.tell("gpuprof: There is not enough memory for this.")
        return ExitCode.ENVIRONMENT
    except (OSError, RuntimeError) as error:  # those that have a better sentence were caught where they arose
        refusal = _refusal(error)
        if refusal is None:
            raise
        return console.tell_error(refusal)


def _help_width() -> int:
    """Columns of `--help`: those of the terminal, of which Click itself would fill 50 at least."""
    return max(40, min(80, shutil.get_terminal_size().columns)) - 2


def _refusal(error: OSError | RuntimeError) -> ToolError | None:
    """What the system refused; None where it has nothing to do with it."""
    refusal = refused_start(error)
    if refusal is not None or not isinstance(error, OSError):
        return refusal
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
    return ToolError(f"The system refused what gpuprof needs: {reason(error)}{where}.")


def _refuse_empty(arguments: list[str]) -> None:
    """Refuse an argument of nothing, what a shell makes of a variable that is not set."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        option, equals, value = argument.partition("=")
        if argument and not (option.startswith("--") and equals and not value):
            continue
        of = option if equals else before if before.startswith("-") else "An argument"
        raise InputError(
            f"{of} is empty.", fix="Give it a value, or leave it out: is a shell's variable unset?"
        )


def _refuse_spaces(arguments: list[str]) -> None:
    """Refuse a list with spaces, `--sizes 128 4096`, of which the rest would be taken for something else."""
    from gpuprof.problems.sizes import is_size

    for place, option in enumerate(arguments[:-2]):
        listed = [text.strip(",") for text in takewhile(lambda text: text[0] != "-", arguments[place + 1 :])]
        sizes = list(takewhile(lambda text: all(map(is_size, text.split(","))), listed))
        if option in ("--sizes", "--block") and len(sizes) > 1 and not os.path.exists(sizes[1]):
            fix = f"Write {option} {','.join(sizes)}."
            raise InputError(f"{option} takes one list, without spaces: {sizes[1]} follows it.", fix=fix)


def _refuse_second_values(arguments: list[str]) -> None:
    """Refuse `--sizes 128 --sizes 4096`, of which the last alone would count."""
    for option in ("--sizes", "--block", "--dtype"):
        given = [after for before, after in pairwise(arguments) if before == option]
        given += [text.partition("=")[2] for text in arguments if text.startswith(f"{option}=")]
        if len(given) > 1:
            one_list = f"Write one list: {option} {','.join(given)}."
            fix = "A run has one type: run it for each." if option == "--dtype" else one_list
            raise InputError(f"{option} is given {len(given)} times.", fix=fix)


#: Columns of what the list of commands says of one.
_SHORT = 62

#: A word where no command, and one where nothing else, is called so.
_STRAY = re.compile(r"No such command '(.+)'|unexpected extra argument\S* \((.+)\)")


def _command() -> Any:
    """The command line; its list of commands ends no line with a stop, and names no type of Python's."""
    group: Any = typer.main.get_command(app)
    for command in group.commands.values():
        short = (command.short_help or command.help).rstrip(".")
        if len(short) > _SHORT:
            short = short.partition(": ")[0] if ": " in short[:_SHORT] else short[:_SHORT].rpartition(", ")[0]
        command.short_help = short
        for found in command.params:
            if found.param_type_name == "argument":
                found.display_type_rich = lambda ctx: None
    return group


def _usage_error(error: Any) -> ExitCode:
    """Say what is wrong with the command line as any mistake is said; without arguments, show the help."""
    from gpuprof.commands.settings import plainly

    context, what = error.ctx, plainly(error.format_message())
    if context is not None and what == context.get_help():
        console.tell_lines(what)
        return ExitCode.BAD_INPUT
    fix = f"`{context.command_path} --help` shows what there is." if context is not None else ""
    if what.startswith("Missing argument") and (told := getattr(error.param, "help", "")):
        what = f"{what.removesuffix('.')}: {told[0].lower()}{told[1:]}"
    if what.endswith("requires an argument.") and (command := _command().commands.get(sys.argv[1])):
        told = next(one for one in command.params if error.option_name in one.opts)
        what, fix = f"{what.removesuffix('.')}: {told.metavar}", told.help
    if getattr(error, "possibilities", None):
        options = (name for one in context.command.get_params(context) for name in one.opts)
        what, fix = error.message, did_you_mean(error.option_name, options, fix)
    if stray := _STRAY.search(what):
        command, kernels = stray.groups()
        if command:
            fix = f"The commands: {', '.join(context.command.commands)}. {fix}"
        if command and (command.endswith(KERNEL_ENDINGS) or os.path.exists(command)):
            reading = "report" if command.endswith((".json", ".html")) else "run"
            fix = f"Did you mean `gpuprof {reading} {shlex.quote(command)}`?"
        if kernels and any(parameter.name == "kernel" for parameter in context.command.params):
            named = ("Sizes", "--sizes") if kernels[0].isdecimal() else ("Kernels and their files", "-k")
            fix = "{0} stand behind {1}: {1} {2}".format(*named, ",".join(kernels.split()))
    if what.endswith("?"):  # an answer already
        return console.tell_error(InputError(what))
    return console.tell_error(InputError(f"{what.removesuffix('.')}.", fix=fix))
