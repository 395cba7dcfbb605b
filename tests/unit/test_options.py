# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One table of options, offered everywhere with one default and one range; labels, and what cannot be one."""

import inspect
from dataclasses import fields, make_dataclass

import pytest
import typer
from typer.testing import CliRunner

import gpuprof
from gpuprof import options
from gpuprof.api import keywords
from gpuprof.cli import app
from gpuprof.commands import command_line, settings
from gpuprof.errors import InputError
from gpuprof.measure.protocol import Open, decode, encode
from gpuprof.options import (
    COMMANDS,
    GROUPS,
    RunOptions,
    keywords_of,
    option,
    options_of,
    read_labels,
    run_options,
)

TYPED = typer.main.get_command(app).commands
#: A command line for each command of the table.
LINES = {"profile": "transpose", **{name: name for name in COMMANDS[1:]}}
FUNCTIONS = {"profile": gpuprof.profile, "tune": gpuprof.tune}


def rows_of(command):
    return keywords_of(command).values()


def test_a_new_option_is_one_field_of_the_table(monkeypatch):
    """Every door offers it without a word anywhere else: a command line, a project, and a program."""
    row = option(2.0, "How long to wait.", "SECONDS", within=(1, 9))
    longer = make_dataclass("Longer", [("patience_s", float, row)], bases=(RunOptions,), frozen=True)
    owners = {longer if owner is RunOptions else owner: group for owner, group in options._OWNERS.items()}
    monkeypatch.setattr(options, "_OWNERS", owners)
    for module in (options, command_line):
        monkeypatch.setattr(module, "RunOptions", longer)
    monkeypatch.setattr(options, "options_of", options_of.__wrapped__)
    monkeypatch.setattr(command_line, "options_of", options_of.__wrapped__)
    seen = []
    made = typer.Typer()
    made.command(cls=settings.ConfiguredCommand)(
        command_line.command_of("profile", lambda given: seen.append(given.run.patience_s) or 0, "Measure.")
    )
    for typed in ([], ["--patience-s", "5"]):
        assert CliRunner().invoke(made, typed).exit_code == 0
    assert seen == [2.0, 5.0]
    assert "10 is not from 1 to 9." in CliRunner().invoke(made, ["--patience-s", "10"]).output
    assert "How long to wait." in CliRunner().invoke(made, ["--help"]).output
    assert "patience-s" in settings._options(typer.main.get_command(made))
    program = keywords.takes_options("profile")(lambda what, **options: run_options("profile", options))
    assert inspect.signature(program).parameters["patience_s"].default == 2.0
    assert (program("gemm").patience_s, program("gemm", patience_s=5).patience_s) == (2.0, 5)
    with pytest.raises(InputError, match="--patience-s is 10"):
        program("gemm", patience_s=10)


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
                with pytest.raises(InputError, match=f"{row.long} is "):
                    run_options(command, {row.name: value})


def test_blocks_of_an_error_are_told_as_a_program_gives_them():
    error = InputError("It has none.", fix="Add --block 32x8,16x16 here, or --no-explain.")
    told = r"Add block=\[\(32, 8\), \(16, 16\)\] here, or explain=False\."
    with pytest.raises(InputError, match=told), keywords._in_keywords():
        raise error


def test_a_keyword_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match=r"'blocks'. Did you mean block\?"):
        gpuprof.profile("transpose", blocks=8)
    with pytest.raises(TypeError, match=r"'timeout'. Did you mean timeout_s\?"):
        gpuprof.tune("transpose", timeout=8)
    for name, meant in (("json", "save"), ("set", "scalars"), ("define", r'compile_options=\["-D…"\]')):
        with pytest.raises(TypeError, match=rf"'{name}'. Did you mean {meant}\?"):
            gpuprof.profile("transpose", **{name: 8})


def test_a_worker_gets_every_option_of_a_run():
    given = {"device": "sim", "seed": 7, "sim_blocks": 3, "explain": False, "labels": {"rack": "r1"}}
    how = run_options("profile", given)
    opened = decode(encode(Open.of(how, ())))
    assert {name.name: getattr(opened, name.name) for name in fields(RunOptions)} == vars(how)


def test_a_project_may_set_every_option_but_those_that_name_a_file_or_act():
    for command, line in LINES.items():
        taken = settings._options(TYPED[line])
        for row in options_of(command).values():
            name = row.long.removeprefix("--")
            names_a_file = "FILE" in (row.metavar or "") and name not in settings._FOLDERS
            assert (name in taken) != (name in settings._NEVER or names_a_file), name


@pytest.mark.parametrize("line", LINES.values())
def test_help_shows_options_by_group(line):
    shown = CliRunner().invoke(app, [line, "--help"]).output
    titles = [text[:-1] for text in shown.splitlines() if text.endswith(":") and not text.startswith(" ")]
    groups = [title for title in titles if title in GROUPS]
    assert groups == [group for group in GROUPS if group in groups]
    assert "Output" in groups


def test_command_line_wins_over_the_environment():
    environment = {
        "GPUPROF_LABEL_RACK": "r1",
        "GPUPROF_LABEL_HOST": "node7",
        "GPUPROF_LABEL_EMPTY": "",
        "RACK": "x",
    }
    assert read_labels(["rack=r2", "card=a=b"], environment) == {"rack": "r2", "host": "node7", "card": "a=b"}


def test_nothing_names_the_machine_by_itself():
    assert read_labels([], {"HOSTNAME": "node7"}) == {}


@pytest.mark.parametrize(
    "text", ["rack", "rack=", "=r1", "Rack=r1", "a b=c", "x=" + "y" * 201, "x=a\nb", "1x=y"]
)
def test_what_is_no_label_is_refused(text):
    with pytest.raises(InputError):
        read_labels([text], {})


@pytest.mark.parametrize("labels", [{"rack": 3}, {3: "rack"}, {"": "x"}])
def test_labels_of_a_program_are_text(labels):
    with pytest.raises(InputError):
        read_labels(labels)
