# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP, at any moment and however often: a status, no traceback, nobody left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fake_worker
import pytest
from processes import ran, running, wait_for
from unit_support import write_transpose_kernel

from gpuprof import signals
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

STATUS = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}
SIM = ("gemm", "--sizes", "64", "-k", "naive,smem_tiled,reg_2x1", "--device", "sim", "--sim-blocks", "4")


def take_signals():
    """In the child: what a shell had the tests ignore, as it does in the background, is taken again."""
    for number in signals.ENDING:
        signal.signal(number, signal.SIG_DFL)


def run_script(script, cwd):
    return ran([sys.executable, "-c", script], cwd=cwd, preexec_fn=take_signals, text=False)


class Command:
    """One gpuprof process in a group of its own."""

    def __init__(self, *command, cwd, environment=None):
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=take_signals,
        )

    def wait_for(self, condition):
        wait_for(lambda: condition() or self.process.poll() is not None, pause=0.002)

    def wait_for_handlers(self):
        """Python itself starts first, and what interrupts that is Python's."""
        self.wait_for(lambda: self._is_in("SigCgt", signal.SIGTERM))

    def wait_until_workers_are_gone(self):
        """It ends them once it has taken a signal."""
        self.wait_for(lambda: self.members() == [self.process.pid])

    def _is_in(self, mask, number):
        """Whether a signal is in one of the process's masks, as Linux calls them."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return False
        (signals,) = [line.split()[1] for line in status.splitlines() if line.startswith(f"{mask}:")]
        return int(signals, 16) >> (number - 1) & 1

    def send(self, number, whole_group=True):
        """As a terminal sends it, or as `kill` does."""
        try:
            os.killpg(self.process.pid, number) if whole_group else os.kill(self.process.pid, number)
        except ProcessLookupError:
            return

    def end(self):
        """Standard output, standard error, and the processes of the group that outlive it."""
        try:
            output, errors = self.process.communicate(timeout=60)
        finally:
            # Linux ends workers with their parent, which takes it a moment.
            deadline = time.monotonic() + 30
            while (left := self.members()) and time.monotonic() < deadline:
                time.sleep(0.02)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        return output, errors, left

    def members(self):
        """The processes of the group that run."""
        return [pid for pid, (_, group) in running().items() if group == self.process.pid]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_ctrl_c_at_any_moment(tmp_path, times):
    def stop(after):
        directory = tmp_path / f"{after}"
        directory.mkdir()
        command = Command("-m", "gpuprof", *SIM, "-o", "out", cwd=directory)
        command.wait_for_handlers()
        time.sleep(after)
        for _ in range(times):
            command.send(signal.SIGINT)
            time.sleep(0.02)
        _, errors, left = command.end()
        litter = [path.name for path in directory.rglob(".writing-*")]
        return after, command.process.returncode, errors, left, litter

    # Each moment with one number of requests, and the first with all.
    moments = [0.01, 0.1, 0.3, 0.6, 1.0, 1.4]
    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(stop, [0, *moments[times - 1 :: 3]]))
    for after, status, errors, left, litter in ends:
        assert status in (0, 130), (after, errors)
        assert "Traceback" not in errors, after
        assert "Aborted" not in errors, after
        assert (left, litter) == ([], []), after
    assert ends[0][1] == 130


@pytest.mark.parametrize(
    ("number", "whole_group"), [*((number, True) for number in STATUS), (signal.SIGTERM, False)]
)
def test_run_that_is_stopped_ends_its_workers_and_writes_its_files(tmp_path, number, whole_group):
    paths = [write_transpose_kernel(tmp_path, name, rung) for rung, name in enumerate(["k_good", "k_hangs"])]
    named = [argument for path in paths for argument in ("--kernel", str(path))]
    command = Command(
        *(fake_worker.__file__, "transpose", "--sizes", "64", "-o", "out", *named),
        cwd=tmp_path,
        environment={"FAKE_WORKER_LOG": str(tmp_path / "log")},
    )
    results = tmp_path / "out" / "results.json"
    # As gpuprof reads it: what is appended just then may be seen in part.
    command.wait_for(lambda: results.exists() and len(read_run(results).cases) == 1)
    command.send(number, whole_group)
    command.wait_until_workers_are_gone()
    # A second request while the files are being written changes nothing.
    command.send(signal.SIGINT, whole_group)
    output, errors, left = command.end()
    assert command.process.returncode == STATUS[number]
    assert "Stopped early: the files hold what was measured until then." in errors
    assert "  Continue with the same command and --resume out in place of -o\n" in errors
    assert "Traceback" not in errors
    assert output.splitlines()[-2:] == ["Wrote out/results.json", "Wrote out/report.html"]
    document = json.loads(results.read_text())
    assert [(case["kernel"], case["outcome"]) for case in document["cases"]] == [("k_good", "ok")]
    assert document["complete"] is False
    assert (tmp_path / "out" / "report.html").exists()
    assert left == []


def test_signal_that_the_parent_has_ignored_stays_ignored(tmp_path):
    script = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from gpuprof import signals; signals.install()\n"
        "signal.raise_signal(signal.SIGHUP); sys.exit(7)"
    )
    assert run_script(script, tmp_path).returncode == 7


def test_request_while_nothing_is_at_stake_ends_at_once_and_in_silence(tmp_path):
    script = (
        "import signal; from gpuprof import signals; signals.install()\n"
        "try: signal.raise_signal(signal.SIGTERM)\n"
        "finally: print('still here', flush=True)"
    )
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")


@pytest.mark.parametrize(("patience", "status"), [("60", 0), ("0", 129)])
def test_third_request_after_a_while_ends_what_hangs(tmp_path, patience, status):
    script = (
        f"import signal; from gpuprof import signals; signals._PATIENCE_S = {patience}\n"
        "signals.install(); signals.postpone()\n"
        "for number in (signal.SIGHUP, signal.SIGINT, signal.SIGINT): signal.raise_signal(number)"
    )
    assert run_script(script, tmp_path).returncode == status


def test_no_request_is_no_status():
    signals.check()
    assert signals.status() is None
