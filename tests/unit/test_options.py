# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One table of options: a field of it is offered everywhere, with one default and one range."""

import inspect
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

import gpuprof
from gpuprof.cli import app
from gpuprof.commands import settings
from gpuprof.errors import InputError
from gpuprof.measure.options import COMMANDS, GROUPS, RunOptions, options_of, run_options
from gpuprof.measure.protocol import Open, decode, encode

TYPED = typer.main.get_command(app).commands
#: A command line for each command of the table.
LINES = {"profile": "transpose", "compare": "compare", "tune": "tune"}
FUNCTIONS = {"profile": gpuprof.profile, "tune": gpuprof.tune}


def rows_of(command):
    return [row for row in options_of(command).values() if row.owner is RunOptions]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_is_typed_with_its_default(command):
    parameters = {name: found for found in TYPED[LINES[command]].params for name in found.opts}
    for row in options_of(command).values():
        assert parameters[row.long].default == row.default, row.name


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_program_gives_the_same_options_with_the_same_defaults(command):
    function = FUNCTIONS[command]
    parameters = inspect.signature(function).parameters
    for row in rows_of(command):
        assert parameters[row.name].default == row.default
        assert f"        {row.name}: " in function.__doc__
    assert run_options(command, {}) == run_options(
        command, {row.name: row.default for row in rows_of(command)}
    )


@pytest.mark.parametrize("command", FUNCTIONS)
def test_what_is_out_of_range_is_refused_from_a_program_too(command):
    for row in rows_of(command):
        if row.within is not None:
            for value in (row.within[0] - 1, row.within[1] + 1, float("nan"), "1", True):
                with pytest.raises(InputError, match=f"{row.name} is "):
                    run_options(command, {row.name: value})


def test_a_keyword_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match=r"'blocks'. Did you mean block\?"):
        gpuprof.profile("transpose", blocks=8)
    with pytest.raises(TypeError, match=r"'timeout'. Did you mean timeout_s\?"):
        gpuprof.tune("transpose", timeout=8)


def test_a_worker_gets_every_option_of_a_run():
    given = {"device": "sim", "seed": 7, "sim_blocks": 3, "explain": False, "labels": {"rack": "r1"}}
    options = run_options("profile", given)
    opened = decode(encode(Open.of(options, ())))
    assert {name.name: getattr(opened, name.name) for name in fields(RunOptions)} == vars(options)


def test_a_project_may_set_every_option_but_those_that_name_a_file_or_act():
    for command, line in LINES.items():
        taken = settings._options(TYPED[line])
        for row in options_of(command).values():
            name = row.long.removeprefix("--")
            assert (name in taken) != (name in settings._NEVER or "FILE" in (row.metavar or "")), name


@pytest.mark.parametrize("line", LINES.values())
def test_help_shows_options_by_group(line):
    shown = CliRunner().invoke(app, [line, "--help"]).output
    titles = [text[:-1] for text in shown.splitlines() if text.endswith(":") and not text.startswith(" ")]
    groups = [title for title in titles if title in GROUPS]
    assert groups == [group for group in GROUPS if group in groups]
    assert {"Select", "Device", "Measure", "Output"} <= set(groups)
