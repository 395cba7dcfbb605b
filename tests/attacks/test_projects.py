# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A repository from anybody: what its settings and its git configuration can make a command do."""

import os
import shutil
from pathlib import Path

import pytest
import typer
from processes import git, make_repository, ran
from unit_support import gpuprof

from gpuprof.cli import app
from gpuprof.commands import compare_against as repository_module
from gpuprof.commands import settings
from gpuprof.commands.compare_against import Repository
from gpuprof.commands.settings import ConfiguredCommand, find_settings, siblings_of
from gpuprof.errors import InputError

OWN = Path(__file__).parents[2] / "samples" / "own" / "histogram"
COMMANDS = typer.main.get_command(app).commands
#: Every option that a project may set for some command. None runs, connects, replaces or names a file.
SETTABLE = {
    *(
        "all",
        "alpha",
        "arch",
        "beta",
        "block",
        "budget",
        "causal",
        "compile-timeout",
        "define",
        "device",
        "dtype",
    ),
    "check-compiler",
    *("explain", "fail-on", "fail-on-outlier", "include", "kernel", "label", "lines", "markdown", "ncu"),
    *("ncu-clocks", "ncu-set", "output", "poison-inout", "quiet", "reference", "rounds", "seconds", "seed"),
    *("flush", "set", "sim-blocks", "sizes", "strict", "table", "timeout", "values"),
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, place) for key in ("include", "output") for place in ("..", "/tmp", "link", "deep/../..")),
        *(("kernel", text) for text in ("/tmp/k.cu", "../k.cu:BM=4", "naive_row,../k.cu", "link.cu")),
        *(("kernel", text) for text in (["a.cu", "../k.cu"], "../k.ptx", "/tmp/k.cubin")),
    ],
)
def test_a_project_names_no_place_and_no_kernel_outside_of_it(tmp_path, monkeypatch, key, value):
    home = tmp_path / "home"
    project(home, f"[tool.gpuprof]\n{key} = {value!r}\n")
    (home / "link").symlink_to("..")
    (home / "link.cu").symlink_to("../k.cu")
    (tmp_path / "k.cu").write_text("")
    monkeypatch.chdir(home)
    with pytest.raises(InputError, match="outside of the file's folder"):
        found()


def test_a_projects_own_kernels_stand_beside_its_file(tmp_path, monkeypatch):
    project(tmp_path, '[tool.gpuprof]\nkernel = ["naive_row, deep/k.cu:BM=4|8,BN=2", "k.cu"]\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    (names, alone) = found()[1]["kernel"]
    assert names == f"naive_row,{tmp_path}/deep/k.cu:BM=4|8,BN=2"
    assert alone == f"{tmp_path}/k.cu"


def test_the_search_ends_at_the_repository(tmp_path, monkeypatch):
    project(tmp_path, "[tool.gpuprof]\nseed = 1\n")
    inner = tmp_path / "inner"
    (inner / ".git").mkdir(parents=True)
    (inner / "deep").mkdir()
    monkeypatch.chdir(inner / "deep")
    assert found() is None
    (inner / ".git").rmdir()
    assert found()[1] == {"seed": "1"}


def test_without_a_repository_only_the_folder_itself_is_looked_at(tmp_path, monkeypatch):
    project(tmp_path, "[tool.gpuprof]\nseed = 1\n", git=False)
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert found() is None
    monkeypatch.chdir(tmp_path)
    assert found()[1] == {"seed": "1"}


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


@pytest.fixture
def repository(tmp_path):
    """A repository with a ladder, and where a program that its configuration names would leave a mark."""
    root = tmp_path / "theirs"
    shutil.copytree(OWN, root / "ops")
    (root / "ops" / "lib.h").write_text("// at first\n")
    (root / "ops" / "out.h").symlink_to("../../secret.h")
    (root / "ops" / "in.h").symlink_to("lib.h")
    (root / ".gitattributes").write_text("*.cu filter=evil\n*.toml filter=evil\n")
    make_repository(root)
    (root / "ops" / "lib.h").write_text("// changed\n")
    evil = root / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> '{tmp_path}/mark'\ncat\n")
    evil.chmod(0o755)
    (root / ".git" / "hooks").mkdir(exist_ok=True)
    shutil.copy(evil, root / ".git" / "hooks" / "post-index-change")
    for key in (
        "core.fsmonitor",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.pager",
        "core.sshCommand",
    ):
        git(root, "config", key, str(evil))
    return root


def test_a_comparison_with_a_revision_runs_nothing_of_the_repositorys_configuration(repository):
    what = (
        *("compare", "--against", "HEAD", "ops", "-k", "global_atomics", "--sizes", "256", "-q", "-o", "out"),
    )
    gpuprof(*what, "--device", "sim:h200", "--rounds", "1", cwd=repository, status=0)
    assert not (repository.parent / "mark").exists(), (repository.parent / "mark").read_text()


def version_of(root, revision="HEAD"):
    """The files of a version, by their names."""
    here = Repository.around([root / "ops"])
    with here.version(here.commit(revision), ()) as folder:
        return {
            str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if not path.is_dir()
        }


def test_a_version_is_what_git_keeps_without_links_out_of_it(repository):
    (repository.parent / "secret.h").write_text("SECRET")
    files = version_of(repository)
    assert files["ops/lib.h"] == files["ops/in.h"] == "// at first\n"
    assert files["ops/operation.toml"] == (repository / "ops" / "operation.toml").read_text()
    assert "ops/out.h" not in files
    assert {name.partition("/")[0] for name in files} == {"ops"}
    assert not (repository.parent / "mark").exists()


def test_a_link_stands_as_a_file_of_its_version_or_not_at_all(repository):
    folder = repository / "ops"
    for name, target in {
        "inner": "deep/../lib.h",
        "deep/same": "../lib.h",
        "chain": "inner",
        "folder": "deep",
        "there": "there",
        "out": "../../secret.h",
        "absolute": str(repository.parent / "secret.h"),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(target)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "links")
    here = Repository.around([folder])
    with here.version(here.commit("HEAD"), ()) as version:
        assert not [path for path in version.rglob("*") if path.is_symlink()]
        found = {str(path.relative_to(version / "ops")) for path in version.rglob("*") if path.is_file()}
        own = {str(path.relative_to(OWN)) for path in OWN.rglob("*") if path.is_file()}
        assert found - own == {"lib.h", "in.h", "inner", "deep/same"}
        assert (version / "ops" / "deep" / "same").read_text() == (version / "ops" / "lib.h").read_text()


def test_a_replaced_object_is_not_taken_for_the_one_that_was_committed(repository):
    old = git(repository, "rev-parse", "HEAD:ops/lib.h").strip()
    new = git(repository, "hash-object", "-w", "--no-filters", "ops/lib.h").strip()
    git(repository, "replace", old, new)
    assert version_of(repository)["ops/lib.h"] == "// at first\n"


def test_what_a_partial_clone_lacks_is_not_fetched(repository):
    lacking = git(repository, "rev-parse", "HEAD:ops/lib.h").strip()
    (repository / ".git" / "objects" / lacking[:2] / lacking[2:]).unlink()
    for key, value in (
        *(("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin")),
        *(("remote.origin.promisor", "true"), ("protocol.ext.allow", "always")),
        ("remote.origin.url", f"ext::{repository}/evil.sh"),
    ):
        git(repository, "config", key, value)
    with pytest.raises(InputError, match="lacks a file of that version"):
        version_of(repository)
    assert not (repository.parent / "mark").exists()


def test_a_tree_with_names_that_lead_out_is_not_followed(repository):
    blob = git(repository, "rev-parse", "HEAD:ops/lib.h").strip()
    entry = b"100644 ../../../escaped.h\0" + bytes.fromhex(blob)
    command = ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"]
    done = ran(command, cwd=repository, input=entry, check=True, text=False)
    outer = f"040000 tree {done.stdout.decode().strip()}\tops\n".encode()
    done = ran(["git", "mktree"], cwd=repository, input=outer, check=True, text=False)
    commit = git(repository, "commit-tree", "-m", "x", done.stdout.decode().strip()).strip()
    assert version_of(repository, commit) == {}
    assert not list(repository.parent.glob("**/escaped.h"))


def test_too_much_is_refused(repository, monkeypatch):
    monkeypatch.setattr(repository_module, "_MOST_BYTES", 100)
    with pytest.raises(InputError, match="holds more than"):
        version_of(repository)


def test_a_working_tree_that_is_said_to_be_elsewhere_is_a_sentence(repository):
    git(repository, "config", "core.worktree", "/usr")
    with pytest.raises(InputError, match="is not in the working tree"):
        Repository.around([repository / "ops"])
