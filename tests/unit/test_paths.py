# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every path that a command takes, made unusable in every way: one sentence, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unit_support import gpuprof, load_kernel, write_transpose_kernel

from gpuprof import cli
from gpuprof.commands import listing
from gpuprof.errors import ExitCode, HeaderError, InputError, ResultsError
from gpuprof.files import check_distinct, check_writable, same_file
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

TINY = ("transpose", "-k", "naive_row", "--sizes", "64", "--device", "none", "-q")
LONG = "x" * 300
DEEP = "/".join(["x" * 200] * 30)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A small results file."""
    directory = tmp_path_factory.mktemp("results")
    process = gpuprof(*TINY, "--json", "good.json", cwd=directory)
    assert process.returncode == 0, process.stderr
    return directory / "good.json"


@pytest.fixture
def place(tmp_path, results):
    """A directory with one unusable thing of each kind, and usable ones."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.cu").symlink_to("loop.cu")
    (tmp_path / "nowhere").symlink_to("gone/gone")
    (tmp_path / "file").write_text("text")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory.cu").mkdir()
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "good.json").write_bytes(results.read_bytes())
    return tmp_path


BAD = ["loop", "loop/x", "nowhere", "nowhere/x", "file/x", "absent/x", LONG, DEEP, "binary", ""]


#: Runs Python with the given arguments in a directory that is deleted first.
IN_A_GONE_DIRECTORY = """
import os, sys
os.rmdir(os.getcwd())
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run_in_a_gone_directory(directory, *arguments):
    gone = directory / "gone"
    gone.mkdir()
    return subprocess.run(
        [sys.executable, "-c", IN_A_GONE_DIRECTORY, "-m", "gpuprof", *arguments],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def refused(place, monkeypatch, capsys):
    """Runs a command line that must be refused, and gives what it complains of."""
    monkeypatch.chdir(place)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpuprof", *map(os.fsdecode, arguments)])
        status = cli._run()
        said = capsys.readouterr()
        assert said.err.startswith("gpuprof: "), arguments
        assert said.out == ""
        assert status in (ExitCode.BAD_INPUT, ExitCode.ENVIRONMENT)
        return said.err

    return run


@pytest.mark.parametrize("path", [*BAD, "directory", "/proc/self/mem"])
def test_file_that_cannot_be_read(refused, path):
    refused("report", path)
    refused("import", path, "good.json")
    refused("import", "file", path)
    refused("transpose", "-k", os.fsencode(path) + b"/x.cu", "--device", "none")


@pytest.mark.parametrize("name", ["binary.cu", "directory.cu", "loop.cu", f"{LONG}.cu", "nowhere/x.cu"])
def test_kernel_file_that_cannot_be_read(refused, name):
    said = refused("transpose", "-k", name, "--device", "none")
    assert said.startswith(f"gpuprof: Cannot read the kernel file {name}: ")


def test_mistyped_paths_get_the_nearest(refused, place):
    (place / "saxpy.cu").touch()
    (place / "stencils").mkdir()
    assert "  Did you mean saxpy.cu?\n" in refused("transpose", "-k", "saxpi.cu", "--device", "none")
    assert "  Did you mean saxpy.cu?\n" in refused("run", "saxpi.cu", "--device", "none")
    assert "  Did you mean stencils?\n" in refused("run", "stencil", "--device", "none")
    assert "Did you mean `gpuprof gemm`" in refused("run", "gem", "--device", "none")
    assert "Name a folder with operation.toml" in refused("run", "elsewhere/else", "--device", "none")


@pytest.mark.parametrize("path", ["loop/x", "nowhere/x", "file/x", LONG, DEEP])
def test_file_that_cannot_be_written_is_refused_before_anything_runs(refused, place, path):
    before = sorted(place.rglob("*"))
    for command in (
        [*TINY, "-o", path],
        [*TINY, "--json", path],
        [*TINY, "--html", path],
        ["report", "good.json", "-q", "-o", path],
        ["import", "file", "good.json", "-o", path],
    ):
        assert "Cannot write " in refused(*command)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("path", [*BAD, "directory"])
def test_ncu_that_cannot_be_run(refused, path):
    refused("import", "file", "good.json", "--ncu-path", path)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (TINY, 2),
        ((*TINY, "-o", "out"), 2),
        ((*TINY, "--json", "a", "--html", "b"), 2),
        (("report", "good.json"), 2),
        (("import", "file", "good.json"), 2),
        (("transpose", "-k", "mine.cu"), 2),
        (("list",), 0),
        (("devices",), 0),
        (("--help",), 0),
    ],
)
def test_working_directory_that_is_gone(tmp_path, arguments, status):
    process = run_in_a_gone_directory(tmp_path, *arguments)
    assert "Traceback" not in process.stderr
    assert process.returncode == status
    if status:
        assert process.stderr.startswith("gpuprof: ")


def test_working_directory_that_is_gone_hinders_no_absolute_path(tmp_path):
    kernel = write_transpose_kernel(tmp_path, "mine")
    arguments = ["transpose", "-k", str(kernel), *TINY[3:], "-o", str(tmp_path / "o")]
    process = run_in_a_gone_directory(tmp_path, *arguments)
    assert process.returncode == 0, process.stderr
    assert read_run(tmp_path / "o" / "results.json").complete


NUL = Path("x\0y.cu")


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: read_run(NUL), ResultsError),
        (lambda: load_kernel(NUL), HeaderError),
        (lambda: check_writable(NUL, False), InputError),
        (lambda: check_writable(NUL / "x", True), InputError),
    ],
)
def test_name_with_a_null_character(act, error):
    with pytest.raises(error, match="its name holds a null character"):
        act()


def test_files_are_compared_even_where_they_lead_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    assert same_file(Path("file"), Path("link"))
    assert same_file(Path("loop"), Path("./loop"))
    assert not same_file(Path("file"), Path("loop"))
    monkeypatch.setattr(os, "getcwd", lambda: (_ for _ in ()).throw(FileNotFoundError(2, "gone")))
    assert same_file(Path("a"), Path("./a"))
    with pytest.raises(InputError, match="cannot both be"):
        check_distinct(Path("a"), Path("a"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/tmp/x"), "No space left on device (/tmp/x)."),
        (OSError(5, "Input/output error"), "Input/output error."),
        (OSError("something odd"), "something odd."),
    ],
)
def test_error_of_the_system_that_nobody_foresaw_is_a_sentence_too(monkeypatch, capsys, error, words):
    def fail(_):
        raise error

    monkeypatch.setattr(listing, "print_ladders", fail)
    monkeypatch.setattr(sys, "argv", ["gpuprof", "list"])
    assert cli._run() == ExitCode.ENVIRONMENT
    assert capsys.readouterr().err == f"gpuprof: The system refused what gpuprof needs: {words}\n"


def test_memory_that_is_short_is_a_sentence_too(monkeypatch, capsys):
    def fail(_):
        raise MemoryError

    monkeypatch.setattr(listing, "print_ladders", fail)
    monkeypatch.setattr(sys, "argv", ["gpuprof", "list"])
    assert cli._run() == ExitCode.ENVIRONMENT
    assert capsys.readouterr().err == "gpuprof: There is not enough memory for this.\n"
