# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`[tool.gpuprof]` of a pyproject.toml: defaults of a project for the options of commands.

The nearest such table holds, of the working directory or of a folder above it up to the root of its
repository. A key is an option's long name without its dashes; `[tool.gpuprof.COMMAND]` is for one command.
What the command line says wins.

Whoever wrote the repository wrote the file: it says how to measure, and neither runs a program, connects to a
machine, nor names a place outside of the project.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from gpuprof.console import tell
from gpuprof.errors import PATH_ERRORS, InputError, did_you_mean
from gpuprof.files import NotOwn, read_input
from gpuprof.options import GROUPS, only_measuring
from gpuprof.tables import read_toml
from gpuprof.text import KERNEL_ENDINGS

FILE_NAME = "pyproject.toml"
_TABLE = "tool.gpuprof"
#: What a person decides for one run, and why; so are options that name a file.
_NEVER = {
    "against": "--against names one comparison",
    "cluster": "whoever answers at a --cluster runs programs here",
    "force": "--force replaces files",
    "help": "--help is not a setting",
    "open": "--open starts a program",
    "resume": "--resume names one run",
    "write": "--write changes files",
}

#: Of the library that Typer reads values with, by its version.
_UNPARSED = re.compile(r"(?:Input should be|(is) not) an? valid (\w+)(?:, unable to parse [^.]*| range)?")
_NUMBERS = {"int": "whole number", "float": "number"}

#: Folders, which stand beside the file that names them wherever the command runs, or below.
_FOLDERS = ("include", "output")

#: A project's file, and what it says for one command.
Settings = tuple[Path, Mapping[str, Any]]


class ConfiguredCommand(TyperCommand):
    """A command whose options have defaults in a project's file, and that needs all that gpuprof requires."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if not extra.get("resilient_parsing") and not {"-h", "--help"} & set(args):
            settings = find_settings(self, siblings_of(self, parent))
            if settings is not None:
                extra["default_map"] = dict(settings[1])
                typed = tuple(args)  # parsing consumes them
                context: Any
                try:
                    context = super().make_context(info_name, args, parent, **extra)
                except typer.BadParameter as error:
                    raise _refused(error, settings, typed) from error
                held = {parameter.name: parameter for parameter in _held(context)}
                for name, gives_way in _GIVES_WAY:
                    if name in held and gives_way(context):
                        context.default_map.pop(name)
                        context.params[name] = held[name].get_default(context)
                if arguments := settings_as_arguments(context):
                    tell(f"From {_shown(settings[0])}: {shlex.join(arguments)}")
                return context
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by their groups."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{name: [] for name in GROUPS}}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            group = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if record := parameter.get_help_record(ctx):
                groups.setdefault(group, []).append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records, col_max=min(30, formatter.width // 2))

    def invoke(self, ctx: Any) -> Any:
        from gpuprof import requirements

        requirements.check()
        return super().invoke(ctx)


def _refused(error: typer.BadParameter, settings: Settings, typed: tuple[str, ...]) -> Exception:
    """A value that an option does not take: the file is told of where nobody typed it."""
    parameter: Any = error.param
    if parameter is None or parameter.name not in settings[1]:
        return error
    if any(text == option or text.startswith(f"{option}=") for text in typed for option in parameter.opts):
        return error
    key = parameter.opts[0].removeprefix("--")
    return InputError(
        f"{_shown(settings[0])}: {key} of [{_TABLE}]: {plainly(error.message)}",
        fix=f"Write what --{key} takes.",
    )


def plainly(message: str) -> str:
    """What is wrong with a value, where the words are those of a library that Typer stands on."""
    return _UNPARSED.sub(
        lambda found: f"{found[1] or 'this is'} no {_NUMBERS.get(found[2], found[2])}", message
    )


def siblings_of(command: ConfiguredCommand, parent: Any) -> dict[str, ConfiguredCommand]:
    """Every command that takes settings, by name, a command that stands alone included."""
    held = getattr(getattr(parent, "command", None), "commands", {})
    found = {name: one for name, one in held.items() if isinstance(one, ConfiguredCommand)}
    return found or {str(command.name): command}


def find_settings(command: ConfiguredCommand, commands: Mapping[str, ConfiguredCommand]) -> Settings | None:
    """The settings of the nearest file that has any, checked."""
    found = _nearest_table()
    if found is None:
        return None
    path, table = found
    name = next(key for key, one in commands.items() if one is command)
    for key, value in table.items():
        if isinstance(value, Mapping):
            _check_command(path, key, value, commands)
        elif not any(key in _options(one) for one in commands.values()):
            raise _unknown(path, _TABLE, key, *commands.values())
    own = _options(command)
    values = {
        **{key: value for key, value in table.items() if not isinstance(value, Mapping)},
        **table.get(name, {}),
    }
    return path, {
        parameter.name: _checked(path, key, value, parameter)
        for key, value in values.items()
        if (parameter := own.get(key)) is not None
    }


def settings_as_arguments(context: Any) -> tuple[str, ...]:
    """What a project's file added to a command line, as one would have typed it, for the record."""
    return tuple(_typed(context, _held(context)))


def _nearest_table() -> tuple[Path, Mapping[str, Any]] | None:
    for folder in _folders():
        path = folder / FILE_NAME
        text = _text_of(path)
        if "gpuprof" not in text:  # somebody else's file, whatever ails it
            continue
        tools = read_toml(text, _shown(path)).get("tool")
        table = tools.get("gpuprof") if isinstance(tools, Mapping) else None
        if isinstance(table, Mapping):
            return path, table
        if table is not None:
            raise InputError(f"{_shown(path)}: {_TABLE} is not a table.", fix="Write [tool.gpuprof].")
    return None


def _text_of(path: Path) -> str:
    """A project's file; empty where there is none that is this user's or the administrator's."""
    try:
        return read_input(path, own=True)
    except NotOwn:
        with suppress(*PATH_ERRORS):
            if "gpuprof" in read_input(path):
                tell(f"{_shown(path)} belongs to another user: its settings of gpuprof are ignored.")
    except PATH_ERRORS:
        pass
    return ""


def _folders() -> Iterator[Path]:
    """The working directory, and those above it that belong to the same repository."""
    try:
        here = Path.cwd()
        above = (here, *here.parents)
        root = next((folder for folder in above if (folder / ".git").exists()), here)
    except PATH_ERRORS:  # the working directory is gone
        return
    yield from above[: above.index(root) + 1]


def _check_command(
    path: Path, name: str, table: Mapping[str, Any], commands: Mapping[str, ConfiguredCommand]
) -> None:
    if name not in commands:
        raise InputError(
            f"{_shown(path)}: [{_TABLE}.{name}] names no command that takes settings.",
            fix=did_you_mean(name, commands, f"These do: {', '.join(commands)}."),
        )
    known = _options(commands[name])
    for key in table:
        if key not in known:
            raise _unknown(path, f"{_TABLE}.{name}", key, commands[name])


def _unknown(path: Path, table: str, key: str, *commands: Any) -> InputError:
    if key in _NEVER or any(f"--{key}" in each.opts for one in commands for each in one.params):
        why = _NEVER.get(key, f"--{key} names a file")
        what = f"{_shown(path)}: [{table}] holds {key}. It is for the command line only: {why}."
        return InputError(what, fix="Take it out.")
    fix = did_you_mean(key, chain(*map(_options, commands)), "A key is an option's long name, e.g. device.")
    return InputError(f"{_shown(path)}: [{table}] has an unknown key {key!r}.", fix=fix)


def _options(command: Any) -> dict[str, Any]:
    """A command's parameters by the long names of its options."""
    return {
        option.removeprefix("--"): parameter
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option.removeprefix("--") not in _NEVER
        if parameter.name in _FOLDERS or "FILE" not in (parameter.metavar or "")
    }


def _checked(path: Path, key: str, value: Any, parameter: Any) -> Any:
    """A value as an option's text; what the text must be is the option's own affair."""
    where = f"{_shown(path)}: {key} of [{_TABLE}]"
    if parameter.is_flag:
        if isinstance(value, bool):
            return value
        raise InputError(f"{where} is {value!r}.", fix=f"Write {key} = true or false.")
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in listed):
        raise InputError(f"{where} is neither text nor a number.", fix=f"Write what --{key} takes.")
    if parameter.name in _FOLDERS:
        listed = [_below(path, key, str(item)) for item in listed]
    elif parameter.name == "kernel":
        listed = [_kernels_below(path, key, str(item)) for item in listed]
    return [str(item) for item in listed] if parameter.multiple else ",".join(map(str, listed))


def _kernels_below(path: Path, key: str, text: str) -> str:
    """Names of kernels, those that name a file as a file of the project's."""
    items = []
    for item in text.split(","):
        name, colon, parameters = item.partition(":")
        is_file = name.strip().endswith(KERNEL_ENDINGS)
        items.append(_below(path, key, name.strip()) + colon + parameters if is_file else item)
    return ",".join(items)


def _below(path: Path, key: str, item: str) -> str:
    """A folder or a file of the project's."""
    place = os.path.join(path.parent, item)
    try:
        within = Path(place).resolve().is_relative_to(path.parent.resolve())
    except PATH_ERRORS:
        within = False
    if not within:
        raise InputError(
            f"{_shown(path)}: {key} of [{_TABLE}] is {item!r}, which is outside of the file's folder.",
            fix=f"Type it on the command line: --{key}.",
        )
    return place


#: What says how to measure; a comparison of results files measures nothing.
_MEASURING = tuple(row.name for row in only_measuring("compare"))
#: Settings that give way to what is asked for: the setting, and whether a command line rules it out.
_GIVES_WAY: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("kernel", lambda context: _typed_by_hand(context, "everything")),
    ("everything", lambda context: _typed_by_hand(context, "kernel")),
    ("device", lambda context: _typed_by_hand(context, "arch")),
    ("arch", lambda context: _typed_by_hand(context, "device")),
    # Without effect, which a command line that asked for them would be told.
    *((name, lambda context: not context.params["ncu"]) for name in ("ncu_set", "ncu_clocks")),
    *((name, lambda context: not _has_own_kernels(context.params)) for name in ("include", "define")),
    *((name, lambda context: context.params.get("against", "") is None) for name in _MEASURING),
)


def _has_own_kernels(params: Mapping[str, Any]) -> bool:
    return "paths" in params or "named" in params or any(".cu" in text for text in params["kernel"] or ())


def _typed_by_hand(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _held(context: Any) -> list[Any]:
    """Parameters whose value came from the file."""
    return [
        parameter
        for parameter in context.command.params
        if parameter.name in (context.default_map or {})
        and context.get_parameter_source(parameter.name).name == "DEFAULT_MAP"
    ]


def _typed(context: Any, parameters: list[Any]) -> Iterator[str]:
    for parameter in parameters:
        value = context.default_map[parameter.name]
        option = next(name for name in parameter.opts if name.startswith("--"))
        if isinstance(value, bool):
            opposite = [name for name in parameter.secondary_opts if name.startswith("--")]
            yield from [option] if value else opposite[:1]
        else:
            for item in value if isinstance(value, list) else [value]:
                yield from (option, item)


def _shown(path: Path) -> str:
    try:
        return os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
