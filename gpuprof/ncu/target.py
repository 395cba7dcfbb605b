# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The process that Nsight Compute profiles: launches each case of a job exactly once between profiler marks.

Run by ncu as `python -m gpuprof.ncu.target JOB.json` with `--profile-from-start off`. Nothing is timed and no
launch waits behind another, because Nsight Compute serialises launches.
"""

import os
import sys
from pathlib import Path

from gpuprof.backends.arguments import bind_arguments
from gpuprof.backends.gpu.arrays import ArrayKeeper
from gpuprof.backends.gpu.context import Function, GpuContext
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.query import query_device
from gpuprof.errors import CaseFailure, GpuprofError
from gpuprof.kernels.entries import bare_name
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case, resolve
from gpuprof.measure.execute import Compiler
from gpuprof.ncu.journal import Event, JournalWriter, Launched, Task, read_job
from gpuprof.ncu.metrics import copies_in


class Target:
    """One GPU, opened for launches only.

    Args:
        device_ordinal: The driver's number of the device.
        seed: Of the problems' random inputs.
        journal: Told of every step.

    Raises:
        GpuprofError: The GPU cannot be opened.
    """

    def __init__(self, device_ordinal: int, seed: int, journal: JournalWriter) -> None:
        self._journal = journal
        self._context = GpuContext(device_ordinal)
        self._device = query_device(device_ordinal)
        self._compile = Compiler(self._device.arch)
        self._arrays = ArrayKeeper(self._context, self._device.arch, seed)

    def run(self, task: Task) -> bool:
        """Launch one case under the profiler.

        Returns:
            Whether the GPU can still be used.
        """
        self._journal.write(Event("started", task.index))
        try:
            self._launch(task.index, task.case)
        except GpuprofError as error:
            fatal = isinstance(error, CaseFailure) and error.fatal
            self._journal.write(Event("failed" if fatal else "refused", task.index, reason=str(error)))
            return not fatal
        return True

    def _launch(self, index: int, case: Case) -> None:
        case, kernel = resolve(case, self._device)
        shape = configure(kernel, case.problem, case.block, case.params, self._device)
        compiled = self._compile(kernel, shape)
        arrays = self._arrays.of(case.problem)
        function = Function(compiled.cubin, compiled.entry)
        function.reserve_shared(
            shape.dynamic_shared_bytes,
            compiled.static_shared_bytes,
            self._device.shared_bytes_per_block_optin,
        )
        arguments = arrays.arguments(bind_arguments(kernel, case.problem, shape, compiled))
        arrays.prepare()
        self._context.synchronize()
        launched = Launched(bare_name(shape.entry), shape.block, shape.grid, copies_in(compiled.ptx))
        self._journal.write(Event("launching", index, launched=launched))
        api = driver()
        call("starting the profiler", api.cuProfilerStart())
        try:
            function.launch(
                shape.grid,
                shape.block,
                shape.dynamic_shared_bytes,
                self._context.stream,
                arguments,
                cooperative=shape.cooperative,
            )
            self._context.synchronize()
        finally:
            api.cuProfilerStop()
        self._journal.write(Event("done", index))
        function.unload()


def main() -> None:
    """Run the job named on the command line."""
    job = read_job(Path(sys.argv[1]))
    journal = JournalWriter(Path(job.journal))
    journal.write(Event("opened", pid=os.getpid()))
    try:
        target = Target(job.device_ordinal, job.seed, journal)
    except GpuprofError as error:
        journal.write(Event("failed", reason=str(error)))
        sys.exit(1)
    for task in job.tasks:
        if not target.run(task):
            # The context is lost: leave without touching it again.
            os._exit(1)


if __name__ == "__main__":
    main()
