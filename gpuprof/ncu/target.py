# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The process that Nsight Compute profiles: runs each case of a job exactly once between profiler marks.

Run by ncu as `python -m gpuprof.ncu.target JOB.json` with `--profile-from-start off`. Nothing is timed and no
launch waits behind another, because Nsight Compute serialises launches.
"""

import os
import select
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

from gpuprof.backends.gpu.arrays import ArrayKeeper
from gpuprof.backends.gpu.context import GpuContext, link_ptx
from gpuprof.backends.gpu.driver import call, driver, query_device
from gpuprof.backends.gpu.loaded_case import LoadedCase
from gpuprof.errors import CaseFailure, GpuprofError
from gpuprof.kernels.entries import function_name
from gpuprof.measure.case import Case, configured
from gpuprof.measure.execute import Compiler
from gpuprof.ncu.journal import JournalEvent, JournalWriter, Launched, read_job
from gpuprof.ncu.metrics import copies_in
from gpuprof.problems.given import look_in


class ProfiledGpu:
    """One GPU, opened for launches only."""

    def __init__(self, device_ordinal: int, seed: int, journal: JournalWriter) -> None:
        self._journal = journal
        self._context = GpuContext(device_ordinal)
        self._device = query_device(device_ordinal)
        self._compile = Compiler(self._device.arch, assemble=partial(link_ptx, self._context.context))
        self._arrays = ArrayKeeper(self._context, self._device.arch, seed)

    def run(self, index: int, case: Case) -> bool:
        self._journal.write(JournalEvent("started", index))
        try:
            self._launch(index, case)
        except GpuprofError as error:
            fatal = isinstance(error, CaseFailure) and error.fatal
            self._journal.write(JournalEvent("failed" if fatal else "refused", index, reason=str(error)))
            return not fatal
        return True

    def _launch(self, index: int, case: Case) -> None:
        found = configured(case, self._device)
        compiled = self._compile(found)
        arrays = self._arrays.of(case.problem)
        stream = self._context.stream
        with closing(LoadedCase(found, compiled, arrays, self._device, stream)) as loaded:
            arrays.prepare()
            self._context.synchronize()
            api = driver()
            call("starting the profiler", api.cuProfilerStart())
            try:
                for number, one in enumerate(found.launches):
                    copies = copies_in(compiled[one.entry].ptx)
                    launched = Launched(function_name(one.entry), one.block, one.grid, copies, len(loaded))
                    self._journal.write(JournalEvent("launching", index, launched=launched))
                    loaded.queue_one(number)
                    self._context.synchronize()
                    self._journal.write(JournalEvent("done", index))
            finally:
                api.cuProfilerStop()


def end_with(owner: int) -> None:
    """End this process when another one ends, however that comes about: nobody waits for its work then.

    Nsight Compute stands between the two, so that neither is the other's parent.
    """
    try:
        descriptor = os.pidfd_open(owner)
    except ProcessLookupError:  # it is gone already
        os._exit(1)
    except (OSError, AttributeError):  # a system that cannot tell
        return

    def wait() -> None:
        select.select([descriptor], [], [])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Run the job named on the command line."""
    job = read_job(Path(sys.argv[1]))
    if job.owner:
        end_with(job.owner)
    journal = JournalWriter(Path(job.journal))
    journal.write(JournalEvent("opened", pid=os.getpid(), run=job.run))
    if job.given_arrays:
        look_in(job.given_arrays)
    try:
        target = ProfiledGpu(job.device_ordinal, job.seed, journal)
    except GpuprofError as error:
        journal.write(JournalEvent("failed", reason=str(error)))
        sys.exit(1)
    for index, case in job.cases:
        if not target.run(index, case):
            # The context is lost: leave without touching it again.
            os._exit(1)


if __name__ == "__main__":
    main()
