# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The table of options as Typer's parameters, and the commands that take them."""

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuprof.commands.gating import read_gates
from gpuprof.commands.settings import settings_as_arguments
from gpuprof.errors import InputError
from gpuprof.options import (
    SELECT,
    CounterOptions,
    GateOptions,
    Given,
    Option,
    OutputOptions,
    RunOptions,
    SelectOptions,
    TuneOptions,
    options_of,
    run_options,
)
from gpuprof.records import replace

if TYPE_CHECKING:
    from gpuprof.kernels.kernel import Ladder
    from gpuprof.measure.request import Request
    from gpuprof.operation import Operation

#: A parameter of a command: its annotation, and its default.
Parameter = tuple[Any, Any]


def parameter(name: str, command: str = "profile", **changes: Any) -> Any:
    """An option of the table, for Typer."""
    return _info(replace(options_of(command)[name], **changes))


def _info(row: Option) -> Any:
    names = [f"{row.long}/--no-{row.long.removeprefix('--')}" if row.either else row.long, row.short]

    def check(value: Any) -> Any:
        least, most = row.within or (value, value)
        if not least <= value <= most:
            raise typer.BadParameter(f"{value:,} is not from {least} to {most:,}.".replace(".0 ", " "))
        return value

    return typer.Option(
        *filter(None, names),
        metavar=row.metavar,
        # Of a range that Typer knows the help would say `0<=x<=4294967295`.
        callback=check if row.within else None,
        help=row.help,
        rich_help_panel=row.group,
    )


def _shown(row: Option) -> Any:
    """A default as the help shows it: `60` seconds, not `60.0`."""
    whole = isinstance(row.default, float) and row.default.is_integer()
    return int(row.default) if whole else row.default


def command_of(
    command: str,
    handler: Callable[..., int],
    help_text: str,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    first: Mapping[str, Parameter] | None = None,
    last: Mapping[str, Parameter] | None = None,
) -> Callable[..., None]:
    """A function that Typer makes a command of.

    The handler is called with the `Given` and the values of its own parameters, `first` and `last`; its
    result is the status. `changes` says what of the table's options is otherwise here.
    """
    rows = {name: replace(row, **(changes or {}).get(name, {})) for name, row in options_of(command).items()}
    shared = {name: (Annotated[row.typed or row.kind, _info(row)], _shown(row)) for name, row in rows.items()}
    parameters = {
        "context": (typer.Context, inspect.Parameter.empty),
        **(first or {}),
        **shared,
        **(last or {}),
    }

    def run(context: typer.Context, **values: Any) -> None:
        def held(owner: type) -> dict[str, Any]:
            return {name: values[name] for name, row in rows.items() if row.owner is owner}

        given = Given(
            SelectOptions(**held(SelectOptions)),
            run_options(command, held(RunOptions)),
            GateOptions(**held(GateOptions)),
            OutputOptions(**held(OutputOptions)),
            CounterOptions(**held(CounterOptions)),
            TuneOptions(**held(TuneOptions)),
            (*sys.argv[1:], *settings_as_arguments(context)),
        )
        own = {name: value for name, value in values.items() if name not in rows}
        raise typer.Exit(handler(given, **own))

    run.__doc__ = help_text
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in parameters.items()
        ]
    )
    run.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    return run


def measuring_command(
    find_ladder: "Callable[..., Ladder]",
    help_text: str,
    operation: "Operation | None" = None,
    **more: Parameter,
) -> Callable[..., None]:
    """A command that measures a ladder."""
    changes: dict[str, dict[str, Any]] = {}
    scalars: dict[str, Parameter] = {}
    if operation is not None:
        sizes = f"N|{operation.shape}" if len(operation.dimensions) > 1 else "N"
        default = f"Problem sizes.  [default: {operation.default_sizes}]"
        changes["sizes"] = {"metavar": f"{sizes}[,…]", "help": default}
        for name, scalar in operation.scalars.items():
            text = f"{scalar.help or 'A number that kernels take.'}  [default: {scalar.default:g}]"
            info = typer.Option(f"--{name}", metavar="NUMBER", help=text, rich_help_panel=SELECT)
            scalars[f"scalar_{name}"] = (Annotated[float | None, info], None)
    handler = partial(_measure, find_ladder, operation is not None)

    def measured(given: Given, **own: Any) -> int:
        from gpuprof.measure.starting import started_ahead, wake_ahead

        with started_ahead() if given.run.cluster is None else nullcontext():
            wake_ahead(given.run.device)
            return handler(given, **own)

    return command_of("profile", measured, help_text, changes, more, scalars)


def _measure(find_ladder: "Callable[..., Ladder]", shipped: bool, given: Given, **own: Any) -> int:
    """Measure as the options say; the exit status."""
    from gpuprof.commands.profile import profile
    from gpuprof.commands.texts import preprocessing_of, selected
    from gpuprof.measure.request import named_kernels

    select = given.select
    # What has no effect: shipped kernels include nothing, and know no macros of a user's.
    own_options = select.include or select.define
    if shipped and own_options and not any(".cu" in text for text in select.kernel or []):
        raise InputError("-I and -D are for kernels of your own.", fix="Name one with -k FILE.cu.")
    scalars = {
        name.removeprefix("scalar_"): own.pop(name) for name in list(own) if name.startswith("scalar_")
    }
    gates = read_gates(given.gate.fail_on, with_base=False)
    command = preprocessing_of(select)
    wanted = tuple(name for text in select.kernel or () for name, _ in named_kernels(text, "--kernel"))
    request = selected(
        find_ladder(**own, command=command, wanted=wanted),
        select,
        command,
        {name: value for name, value in scalars.items() if value is not None},
        select.reference,
    )
    if given.run.cluster is None:
        _start_executors(request, given.run)
    return profile(request, given, gates)


def _start_executors(request: "Request", options: RunOptions) -> None:
    """Start what will count, or execute, beside the first worker while that one opens its device."""
    from gpuprof.machine import usable_cores
    from gpuprof.measure.counting import processes
    from gpuprof.measure.request import plan_cases, worth_starting
    from gpuprof.measure.starting import start_ahead

    kind = options.device.partition(":")[0]
    if kind == "auto" and not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))):
        kind = "sim"  # no driver of Linux or WSL shows a GPU; where that is wrong, it costs time only
    cases = plan_cases(request, references=False)
    if kind == "sim":
        start_ahead(min(usable_cores(), worth_starting(len(cases))))
    elif options.lines and kind not in ("all", "none") and "," not in kind:
        # `auto` may find no GPU, and then these measure.
        start_ahead(1 + processes(cases, cards=1), beside=kind.isdecimal())
