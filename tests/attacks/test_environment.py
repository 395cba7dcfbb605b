# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Surroundings that lack something, and what stands in the place of a file: each is told in a sentence."""

import base64
import errno
import gzip
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from processes import ran, wait_for

from gpuprof import page_data, requirements
from gpuprof.commands.doctor import checks
from gpuprof.errors import BackendUnavailable, ExitCode, ResultsError
from gpuprof.reading import read_run
from gpuprof.requirements import Unmet
from gpuprof.toolchain import cache, nvrtc

pytestmark = pytest.mark.deep

#: What pip would leave of an environment without one package.
WITHOUT = """
import sys, importlib.metadata as metadata
gone = sys.argv.pop(1)
modules = [file for file in metadata.files(gone) if file.suffix in (".py", ".so")]
tops = {file.parts[0].removesuffix(".py") for file in modules}
real = metadata.Distribution.from_name.__func__
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in tops:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
def from_name(cls, name):
    if name == gone:
        raise metadata.PackageNotFoundError(name)
    return real(cls, name)
metadata.Distribution.from_name = classmethod(from_name)
sys.meta_path.insert(0, Finder())
"""
COMMAND_LINE = "from gpuprof.__main__ import main; main()"
TINY = ("transpose", "-k", "naive_row", "--sizes", "32", "-o", "out")
REQUIRED = [name for name, _ in requirements.required() if not name.startswith("nvidia-cuda-")]


def python(code, cwd, *arguments, **environment):
    return ran([sys.executable, "-c", code, *arguments], cwd=cwd, env={**os.environ, **environment})


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_package_is_a_sentence_before_anything_is_measured(tmp_path, name):
    process = python(WITHOUT + COMMAND_LINE, tmp_path, name, *TINY)
    assert process.returncode == ExitCode.ENVIRONMENT
    assert "Traceback" not in process.stderr
    assert name in process.stderr
    assert "pip install" in process.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["numpy", "jinja2"])
def test_the_api_says_the_same(tmp_path, name):
    code = """
import gpuprof
try:
    gpuprof.profile("transpose", kernels="naive_row", sizes=32)
except gpuprof.GpuprofError as error:
    print("said", error)
"""
    assert f"{name} is not installed" in python(WITHOUT + code, tmp_path, name).stdout


def test_doctor_names_what_is_missing_and_what_is_too_old(monkeypatch):
    least = (("no-such-package", "1.2"), ("numpy", "999.1"), ("typer", "0.1"))
    monkeypatch.setattr(requirements, "required", lambda: least)
    requirements.unmet.cache_clear()
    try:
        found = {check.title: check for check in checks(0) if check.title.startswith("Package")}
    finally:
        requirements.unmet.cache_clear()
    assert [*found] == ["Package no-such-package", "Package numpy"]
    assert all(check.state == "broken" for check in found.values())
    assert "'numpy>=999.1'" in found["Package numpy"].fix
    assert "'no-such-package>=1.2'" in found["Package no-such-package"].fix


def test_a_compiler_that_a_toolkit_may_bring_is_not_refused_for_its_package(monkeypatch):
    monkeypatch.setattr(requirements, "unmet", lambda: (Unmet("nvidia-cuda-nvrtc", "13.0", None),))
    requirements.check()


def test_without_cuda_bindings_that_is_what_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(BackendUnavailable) as raised:
        nvrtc._nvrtc.__wrapped__()
    assert raised.value.fix.endswith("cuda-bindings")


def test_a_message_of_somebody_elses_stays_on_its_line(monkeypatch):
    def refuse():
        raise RuntimeError("Failed to find\n\tthe library.\n")

    monkeypatch.setattr(nvrtc, "_load_matching_library", refuse)
    with pytest.raises(BackendUnavailable, match=r"Failed to find the library\. "):
        nvrtc._nvrtc.__wrapped__()


@pytest.mark.parametrize(
    "refusal",
    [
        'import threading\ndef no(self): raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = no\n",
        "import subprocess\ndef no(*_, **__): raise BlockingIOError"
        f"({errno.EAGAIN}, 'Resource temporarily unavailable')\nsubprocess.Popen.__init__ = no\n"
        "subprocess.Popen.__del__ = lambda self: None\n",
    ],
    ids=["thread", "process"],
)
def test_a_limit_of_processes_is_a_sentence(tmp_path, refusal):
    process = python(refusal + COMMAND_LINE, tmp_path, *TINY)
    assert process.returncode == ExitCode.ENVIRONMENT
    assert "Traceback" not in process.stderr
    assert "ulimit -u" in process.stderr


def test_a_process_that_is_killed_leaves_no_machine_code_behind(tmp_path):
    scratch, marker = tmp_path / "scratch", tmp_path / "marker"
    scratch.mkdir()
    slow = tmp_path / "nvdisasm"
    slow.write_text(f"#!/bin/sh\necho $$ > {marker}.part\nmv {marker}.part {marker}\nexec sleep 60\n")
    slow.chmod(0o755)
    code = (
        "import sys\nfrom gpuprof.machine_code import disassembler\n"
        "disassembler.find_nvdisasm = lambda: sys.argv[1]\ndisassembler.disassemble(b'code')\n"
    )
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen([sys.executable, "-c", code, str(slow)], env=environment)
    try:
        wait_for(marker.exists)
    finally:
        process.kill()
        process.wait()
        if marker.exists():
            os.kill(int(marker.read_text()), signal.SIGKILL)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("relative", ["cache", ".", ""])
def test_a_relative_cache_home_is_ignored(monkeypatch, tmp_path, relative):
    monkeypatch.delenv("GPUPROF_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", relative)
    assert cache.cache_directory() == tmp_path / ".cache" / "gpuprof"


@pytest.mark.parametrize("limit", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_without_the_memory_to_load_anything_there_is_a_sentence(tmp_path, limit):
    # With 20 MB one start in ten spins in Python's own import of a module, for ever.
    for room in (28, 40, 80):
        done = ran(
            [sys.executable, "-m", "gpuprof", *TINY, "--device", "none"],
            cwd=tmp_path,
            preexec_fn=lambda room=room: resource.setrlimit(limit, (room << 20, room << 20)),
        )
        own = "gpuprof/" in done.stderr or "gpuprof:" in done.stderr  # else Python itself did not start
        own = own and "SystemError" not in done.stderr
        assert "Traceback" not in done.stderr or not own, done.stderr
        assert done.returncode == ExitCode.ENVIRONMENT or not own or "OpenBLAS" in done.stderr, done.stderr


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


def as_gigabytes(path):
    with path.open("wb") as file:
        file.truncate(6 << 30)


@pytest.fixture
def little_room():
    """Ends what waits for a file, too."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + _ROOM, usual[1]))
    previous = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    resource.setrlimit(resource.RLIMIT_AS, usual)


@pytest.mark.parametrize("make", [os.mkfifo, partial(os.symlink, "/dev/zero"), as_gigabytes])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_of_sensible_size_is_refused(tmp_path, refused, little_room, command, make):
    name, arguments = COMMANDS[command]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "naive.cu").write_text("")
    make(tmp_path / name)
    assert name.rsplit("/", 1)[-1] in refused(*arguments)


def test_page_that_unpacks_to_gigabytes_is_refused_before_it_is_parsed(tmp_path):
    unpacked = b"[" * 10 + b"[]," * (100 << 20)
    letters = base64.b85encode(gzip.compress(unpacked, 9)).decode().translate(str.maketrans("<", ","))
    page = tmp_path / "page.html"
    block = f'<script type="application/gzip" id="{page_data.RUN_BLOCK}">{letters}</script>'
    page.write_text(f"<!doctype html>{block}")
    with pytest.raises(ResultsError, match="too long"):
        read_run(page)
