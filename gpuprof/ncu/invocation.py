# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One ncu process over one job: start it, watch its journal, end it when nothing happens any more."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from gpuprof import signals
from gpuprof.errors import reason
from gpuprof.measure.starting import child_environment
from gpuprof.ncu.journal import Job, JournalEvent, read_journal, write_job
from gpuprof.ncu.metrics import requested
from gpuprof.ncu.tool import Ncu, NcuError

#: Name of a job's journal, beside its report.
JOURNAL_SUFFIX = ".ncu-journal"
_POLL_S = 0.1
#: Time for ncu to write its report once the profiled process is gone.
_FINISH_S = 60.0
#: The same where the command was asked to end.
_LEAVE_S = 15.0
_OUTPUT_BYTES = 1 << 20


class NcuOptions(Struct, frozen=True):
    """How to profile.

    `metric_set` is a set of ncu's collected besides gpuprof's metrics, `timeout_s` the longest that one case
    may take under replay. Counting instructions by opcode may falsify other counts.
    """

    path: str | None = None
    metric_set: str | None = None
    clock_control: str = "none"
    timeout_s: float = 300.0
    opcodes: bool = True


def patience(timeout_s: float) -> float:
    """Longest that a case may take under replay: a launch is replayed several times, with caches flushed."""
    return max(300.0, 5 * timeout_s)


class Ended(Struct, frozen=True):
    """How an ncu process ended.

    `cut` says that it was ended from outside, which is no fault of the case whose turn it was.
    """

    events: list[JournalEvent]
    output: str
    status: int
    timed_out: bool
    cut: bool = False


def ncu_command(ncu: Ncu, options: NcuOptions, report: Path, job_path: Path) -> list[str]:
    """The command line that profiles a job."""
    return [
        ncu.path,
        *("--profile-from-start", "off"),
        *("--target-processes", "all"),
        *("--replay-mode", "kernel"),
        *("--cache-control", "all"),
        *("--clock-control", options.clock_control),
        *(("--set", options.metric_set) if options.metric_set else ()),
        *("--metrics", requested(opcodes=options.opcodes)),
        *("--export", str(report), "--force-overwrite"),
        *(sys.executable, "-m", "gpuprof.ncu.target", str(job_path)),
    ]


def run_ncu(
    ncu: Ncu,
    options: NcuOptions,
    report: Path,
    job: Callable[[str], Job],
    on_start: Callable[[int], None],
) -> Ended:
    """Profile a job to its end, whatever that is.

    The journal stands beside the report and stays there: should this process be asked to end, or be killed,
    the two of them tell what was profiled until then.

    Raises:
        NcuError: ncu cannot be started, or the report's directory or the one for temporary files cannot be
            written.
        KeyboardInterrupt: The command was asked to end; ncu has written what it had.
    """
    journal = report.with_suffix(JOURNAL_SUFFIX)
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise NcuError(f"Cannot write {report}: {reason(error)}.", fix="Name another directory.") from error
    with ExitStack() as opened:
        try:
            scratch = TemporaryDirectory(prefix="gpuprof-ncu-", ignore_cleanup_errors=True)
            job_path = Path(opened.enter_context(scratch), "job.json")
            write_job(job(str(journal)), job_path)
            output = opened.enter_context(open(job_path.with_name("output"), "w+b"))
        except OSError as error:
            what = f"Cannot write a temporary file: {reason(error)}."
            raise NcuError(what, fix="Make room, or set TMPDIR.") from error
        try:
            process = subprocess.Popen(
                ncu_command(ncu, options, report, job_path),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**child_environment(), "LC_ALL": "C"},
            )
        except OSError as error:
            raise NcuError(f"{ncu.path} cannot be started: {reason(error)}.") from error
        try:
            timed_out = _watch(process, journal, options.timeout_s, on_start)
        finally:
            _end_group(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - _OUTPUT_BYTES))
        text = output.read().decode(errors="replace")
    return Ended(read_journal(journal), text, process.returncode, timed_out)


def _watch(
    process: subprocess.Popen[bytes], journal: Path, timeout_s: float, on_start: Callable[[int], None]
) -> bool:
    """Wait for the end; a process that writes nothing for too long is killed, so that ncu keeps the rest."""
    seen = 0
    last = time.monotonic()
    while True:
        ended = process.poll() is not None
        events = read_journal(journal)
        for event in events[seen:]:
            last = time.monotonic()
            if event.kind == "started" and event.index is not None:
                on_start(event.index)
        seen = len(events)
        if ended:
            return False
        try:
            signals.check()
        except KeyboardInterrupt:
            _end_target(process, events, _LEAVE_S)
            raise
        if time.monotonic() - last > timeout_s:
            _end_target(process, events, _FINISH_S)
            return True
        time.sleep(_POLL_S)


def _end_target(process: subprocess.Popen[bytes], events: list[JournalEvent], patience_s: float) -> None:
    """End the profiled process, and give ncu time to write what it has."""
    opened = [event.pid for event in events if event.kind == "opened" and event.pid]
    for pid in opened:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    if opened:
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind: ncu, its helpers and the profiled process are one group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
