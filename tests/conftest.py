# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by all tests: an isolated compile cache, and a GPU where one is wanted."""

import gc
import os
import re
import signal
import sys
from pathlib import Path

# Before NumPy starts: its threads fight with those of the tests beside it, and win nothing on small arrays.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from command_server import MAY_FORK, UNREAD, fork_workers, read_no_machine_code

from gpuprof.errors import ExitCode
from gpuprof.machine import configure_interpreter

configure_interpreter()  # as every command does, and every worker
if MAY_FORK:
    fork_workers()

# As images of containers often have it: every process that a test starts would compile gpuprof anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell has what it starts in the background ignore Ctrl-C, and so would every command that is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_width():
    """Not the width of the terminal that the tests were started in."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session", autouse=True)
def compile_cache(tmp_path_factory):
    """Keep the user's compile cache out of the tests, and theirs out of it; tests in parallel share one."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = tmp_path_factory.getbasetemp().parent / "compile-cache"
    else:
        directory = tmp_path_factory.mktemp("compile-cache")
    previous = os.environ.get("GPUPROF_CACHE_DIR")
    os.environ["GPUPROF_CACHE_DIR"] = str(directory)
    yield directory
    if previous is None:
        del os.environ["GPUPROF_CACHE_DIR"]
    else:
        os.environ["GPUPROF_CACHE_DIR"] = previous


@pytest.fixture(scope="module")
def unread():
    """For files without a test of machine code or modelled times, which there are none of then."""
    with pytest.MonkeyPatch.context() as patch:
        read_no_machine_code(patch.setattr)
        patch.setenv(UNREAD, "1")
        yield


#: What pyproject.toml has `-m` be.
QUICK = "not deep"


def pytest_configure(config):
    """A file that is named runs whole, whatever its tier."""
    named = config.args_source is config.ArgsSource.ARGS and all(
        ".py" in argument for argument in config.args
    )
    if named and config.option.markexpr == QUICK:
        config.option.markexpr = ""


def pytest_ignore_collect(collection_path, config):
    """A file of which no test will run is not imported either."""
    if not collection_path.match("test_*.py") or config.option.markexpr not in (QUICK, "deep"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if config.option.markexpr == QUICK:
        return bool(re.search(r"^pytestmark = \[?\s*pytest\.mark\.deep\b", text, re.MULTILINE)) or None
    return "mark.deep" not in text or None


def pytest_collection_modifyitems(items):
    for item in items:
        if "gpu" in item.path.parent.name:
            item.add_marker(pytest.mark.gpu)


def pytest_collection_finish():
    gc.freeze()  # what was loaded to be run stays


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where tests are spread by groups, a file is one: its tests share what takes long to make.

    The marks that xdist reads for groups have no effect under pytest 9.2, which makes a test's id anew.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = Path(nodeid.partition("::")[0])
            # They share one device, whose times another test beside them would change; or one browser.
            return path.parent.name if path.parent.name in ("gpu", "browser") else str(path)

    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Has this process run a command line that must be refused; gives what it complains of."""
    from gpuprof import cli

    monkeypatch.chdir(tmp_path)

    def run(*arguments, also=()):
        monkeypatch.setattr(sys, "argv", ["gpuprof", *map(os.fsdecode, arguments)])
        capsys.readouterr()
        status = cli._run()
        said = capsys.readouterr()
        assert "\ngpuprof: " in f"\n{said.err}", arguments
        assert said.out == ""
        assert status in (ExitCode.BAD_INPUT, *also)
        return said.err

    return run


@pytest.fixture(scope="session")
def gpu_count():
    """Number of GPUs; without one the test is skipped, or fails under GPUPROF_REQUIRE_GPU=1."""
    from gpuprof.backends.gpu.driver import device_count
    from gpuprof.errors import BackendUnavailable

    try:
        count = device_count()
    except BackendUnavailable as error:
        if os.environ.get("GPUPROF_REQUIRE_GPU"):
            pytest.fail(f"a GPU is required: {error}")
        pytest.skip(str(error))
    if not count:
        pytest.skip("the driver shows no GPU")
    return count
