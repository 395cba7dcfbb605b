# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Standard output and error that are full, closed or read by nobody: the work is done all the same."""

import os
import subprocess
import sys

import pytest
from processes import ran

from gpuprof.errors import ExitCode
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

FULL = "gpuprof: Cannot write to standard output: No space left on device.\n"
CLOSED = FULL.replace("No space left on device", "Bad file descriptor")
TINY = "transpose -k naive_row --sizes 64 --device none -o out"
NAME = os.fsdecode(b"caf\xe9")


def shell(command, cwd):
    """A command line of gpuprof's, with its redirections."""
    return ran(f'"{sys.executable}" -m gpuprof {command}', shell=True, cwd=cwd)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A small results file."""
    directory = tmp_path_factory.mktemp("results")
    assert shell(TINY, directory).returncode == 0
    return directory / "out" / "results.json"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        *((f"{command} >/dev/full", FULL) for command in ("list", "gemm --help", "--version")),
        *((f"{command} --json >&-", CLOSED) for command in ("list", "devices")),
        ("list >/dev/full 2>/dev/full", ""),
    ],
)
def test_standard_output_that_takes_nothing_is_said_once(tmp_path, command, said):
    process = shell(command, tmp_path)
    assert (process.stderr, process.returncode) == (said, ExitCode.ENVIRONMENT)


def test_run_writes_its_files_though_standard_output_is_full(tmp_path):
    process = shell(f"{TINY} >/dev/full", tmp_path)
    assert process.stderr.endswith(FULL)
    assert "Traceback" not in process.stderr
    assert process.returncode == ExitCode.ENVIRONMENT
    assert read_run(tmp_path / "out" / "results.json").complete
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("options", ["", "--markdown"])
def test_report_on_a_full_standard_output(tmp_path, results, options):
    process = shell(f"report {results} -o page.html {options} >/dev/full", tmp_path)
    assert (process.stderr, process.returncode) == (FULL, ExitCode.ENVIRONMENT)
    assert (tmp_path / "page.html").exists()


def test_graver_status_stands_though_standard_output_is_full(tmp_path):
    process = shell("report nothing.json >/dev/full", tmp_path)
    assert process.returncode == ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("command", "status", "redirection"),
    [
        ("list", 0, "2>&-"),
        (TINY, 0, "2>/dev/full"),
        ("list fft", 2, "2>/dev/full"),
        ("--bogus", 2, "2</dev/null"),
        ("report nothing", 2, "2>&-"),
    ],
)
def test_standard_error_that_takes_nothing_is_ignored(tmp_path, command, status, redirection):
    process = shell(f"{command} {redirection}", tmp_path)
    assert process.returncode == status
    assert process.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_and_no_file_takes_their_place(tmp_path, closed):
    process = shell(f"transpose -k naive_row --sizes 64 --device none -o {NAME} {closed}", tmp_path)
    assert process.returncode == 0
    assert "Traceback" not in process.stderr
    assert read_run(tmp_path / NAME / "results.json").complete
    assert shell(f"report {NAME}/results.json {closed}", tmp_path).returncode == 0


def test_pipe_that_is_full_and_does_not_block_is_waited_for(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(
        [sys.executable, "-c", "import gpuprof.console as c; c.open_streams(); c.say('x' * 500_000)"],
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == 500_001
    assert process.communicate(timeout=60)[1] == b""
