# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A repository from anybody: what its settings and its git configuration can make a command do."""

import os

import pytest
import typer
from unit_support import gpuprof

from gpuprof.cli import app
from gpuprof.commands import settings
from gpuprof.commands.settings import ConfiguredCommand, find_settings, siblings_of
from gpuprof.errors import ExitCode, InputError

COMMANDS = typer.main.get_command(app).commands
#: Every option that a project may set for some command. None runs, connects, replaces or names a file.
SETTABLE = {
    *("all", "alpha", "arch", "beta", "block", "budget", "compile-timeout", "define", "device", "dtype"),
    *("explain", "fail-on", "fail-on-outlier", "include", "kernel", "label", "lines", "markdown", "ncu"),
    *("ncu-clocks", "ncu-set", "output", "poison-inout", "quiet", "reference", "rounds", "seconds", "seed"),
    *("set", "sim-blocks", "sizes", "strict", "timeout", "values"),
}


def found(name="transpose"):
    command = COMMANDS[name]
    return find_settings(command, siblings_of(command, None) | {name: command})


def project(folder, text, *, git=True):
    folder.mkdir(parents=True, exist_ok=True)
    if git:
        (folder / ".git").mkdir(exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def test_what_a_project_may_set_is_known_by_name():
    taken = {
        key
        for command in COMMANDS.values()
        if isinstance(command, ConfiguredCommand)
        for key in settings._options(command)
    }
    assert taken == SETTABLE
    assert "markdown" not in settings._options(COMMANDS["compare"])


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("transpose", 'cluster = "tcp://127.0.0.1:9"'),
        ("transpose", 'ncu-path = "./ncu"'),
        ("transpose", "open = true"),
        ("tune", "write = true"),
        ("compare", 'junit = "/tmp/x"'),
        ("compare", 'markdown = "/tmp/x"'),
        ("compare", 'against = "HEAD"'),
    ],
)
def test_what_runs_connects_or_names_a_file_is_no_setting(tmp_path, monkeypatch, command, line):
    project(tmp_path, f"[tool.gpuprof.{command}]\n{line}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="It is for the command line only: ") as caught:
        found(command)
    assert caught.value.fix == "Take it out."


def test_a_run_says_so_before_it_connects(tmp_path):
    project(tmp_path, '[tool.gpuprof]\ncluster = "tcp://127.0.0.1:9"\n')
    process = gpuprof("transpose", "-k", "naive_row", "--sizes", "32", "--device", "sim", cwd=tmp_path)
    assert process.returncode == ExitCode.BAD_INPUT
    assert "whoever answers at a --cluster runs programs here" in process.stderr


@pytest.mark.parametrize("key", ["include", "output"])
@pytest.mark.parametrize("place", ["..", "/tmp", "link", "deep/../.."])
def test_a_project_names_no_place_outside_of_it(tmp_path, monkeypatch, key, place):
    home = tmp_path / "home"
    project(home, f'[tool.gpuprof]\n{key} = "{place}"\n')
    (home / "link").symlink_to("..")
    monkeypatch.chdir(home)
    with pytest.raises(InputError, match="outside of the file's folder"):
        found()


def test_the_search_ends_at_the_repository(tmp_path, monkeypatch):
    project(tmp_path, "[tool.gpuprof]\nseed = 1\n")
    inner = tmp_path / "inner"
    (inner / ".git").mkdir(parents=True)
    (inner / "deep").mkdir()
    monkeypatch.chdir(inner / "deep")
    assert found() is None
    (inner / ".git").rmdir()
    assert found().values == {"seed": "1"}


def test_without_a_repository_only_the_folder_itself_is_looked_at(tmp_path, monkeypatch):
    project(tmp_path, "[tool.gpuprof]\nseed = 1\n", git=False)
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert found() is None
    monkeypatch.chdir(tmp_path)
    assert found().values == {"seed": "1"}


@pytest.mark.parametrize("table", ["[tool.gpuprof]\nseed = 1\n", '[tool]\n"gpuprof".seed = 1\n'])
def test_another_users_file_is_ignored_with_a_remark(tmp_path, monkeypatch, capsys, table):
    path = project(tmp_path, table)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.chdir(tmp_path)
    assert found() is None
    assert "pyproject.toml belongs to another user" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "zeros", "large"])
def test_what_is_no_file_of_settings_is_neither_waited_for_nor_read_to_its_end(tmp_path, monkeypatch, kind):
    path = project(tmp_path, "[tool.gpuprof]\nseed = 1\n" + "#" * (5 << 20) * (kind == "large"))
    if kind != "large":
        path.unlink()
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    monkeypatch.chdir(tmp_path)
    assert found() is None
