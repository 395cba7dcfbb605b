# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""In the place of a file: pipes that never begin, devices that never end, pages that unpack to gigabytes."""

import base64
import gzip
import os
import resource
import subprocess
import sys

import pytest

from gpuprof import page_data
from gpuprof.errors import ResultsError
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

#: Address space for reading; what is read whole all the same takes far more.
_ROOM = 3 << 30
KERNEL = "kernel.cu"
COMMANDS = {
    "kernel": (KERNEL, ["transpose", "-k", KERNEL, "--sizes", "32"]),
    "lone kernel": (KERNEL, ["run", KERNEL]),
    "operation": ("folder/operation.toml", ["run", "folder"]),
    "results": ("results.json", ["report", "results.json"]),
    "page": ("report.html", ["compare", "report.html", "report.html"]),
}


def as_pipe(path):
    os.mkfifo(path)


def as_endless_device(path):
    path.symlink_to("/dev/zero")


def as_gigabytes(path):
    with path.open("wb") as file:
        file.truncate(6 << 30)


@pytest.mark.parametrize("make", [as_pipe, as_endless_device, as_gigabytes])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_of_sensible_size_is_refused(tmp_path, command, make):
    name, arguments = COMMANDS[command]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "naive.cu").write_text("")
    make(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "gpuprof", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_ROOM, _ROOM)),
    )
    assert done.returncode == 2, done.stderr
    assert name.rsplit("/", 1)[-1] in done.stderr
    assert "Traceback" not in done.stderr


def test_page_that_unpacks_to_gigabytes_is_refused_before_it_is_parsed(tmp_path):
    unpacked = b"[" * 10 + b"[]," * (100 << 20)
    letters = base64.b85encode(gzip.compress(unpacked, 9)).decode().translate(str.maketrans("<", ","))
    page = tmp_path / "page.html"
    block = f'<script type="application/gzip" id="{page_data.RUN_BLOCK}">{letters}</script>'
    page.write_text(f"<!doctype html>{block}")
    with pytest.raises(ResultsError, match="too long"):
        read_run(page)
