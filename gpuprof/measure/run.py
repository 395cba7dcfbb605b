# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One invocation from request to results: open a worker, plan, measure, keep the file current."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from gpuprof import __version__
from gpuprof.errors import BackendUnavailable
from gpuprof.kernels.catalog import find_kernel
from gpuprof.measure.case import Case
from gpuprof.measure.plan import check_memory, plan_cases
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout
from gpuprof.measure.protocol import Open, Opened, Size
from gpuprof.measure.request import Request
from gpuprof.measure.session import SessionOptions, run_cases
from gpuprof.results import SCHEMA_VERSION, KernelRecord, Measurement, Run, Tool, write_run
from gpuprof.toolchain.nvrtc import nvrtc_version


class Progress(Protocol):
    """What a run tells its watcher."""

    def opened(self, opened: Opened, cases: int) -> None:
        """The backend is open and that many cases follow."""
        ...

    def started(self, case: Case) -> None:
        """A case begins."""
        ...

    def finished(self, measurement: Measurement) -> None:
        """A case is done."""
        ...

    def profiling(self, case: Case) -> None:
        """Nsight Compute turns to a case."""
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, apart from what.

    Args:
        device: As `--device`.
        arch: As `--arch`.
        seed: Of random inputs.
        timeout_s: Longest one case may take.
        seconds_per_case: Kernel time spent on sampling one case.
        sim_blocks: Blocks that the executor runs of each grid; 0 for all, None to choose by size.
        lines: Whether the executor annotates a GPU run line by line.
    """

    device: str = "auto"
    arch: str | None = None
    seed: int = 0
    timeout_s: float = 60.0
    seconds_per_case: float = 0.25
    sim_blocks: int | None = None
    lines: bool = False


def measure(
    request: Request, options: RunOptions, progress: Progress, *, argv: tuple[str, ...], json_path: Path
) -> Run:
    """Measure everything a request asks for.

    The results file is rewritten after every case: whatever ends the run early costs at most one case.

    Args:
        request: What to measure.
        options: How.
        progress: Told about every step.
        argv: The command line, for the record.
        json_path: Where the results are kept.

    Returns:
        The run; its `complete` is False after Ctrl-C.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used, or cannot be opened again after a kernel's fault.
    """
    open_request = Open(
        device=options.device,
        arch=options.arch,
        seed=options.seed,
        seconds_per_case=options.seconds_per_case,
        sim_blocks=options.sim_blocks,
        lines=options.lines,
    )
    worker = WorkerProcess(open_request)
    try:
        opened = worker.opened
        cases = plan_cases(request, references=opened.backend == "gpu")
        problems = list(dict.fromkeys(case.problem for case in cases))
        sized = worker.ask(Size(tuple(problems)), options.timeout_s)
        check_memory(problems, sized.bytes_needed, opened.memory_budget_bytes)
        run = _empty_run(request, options, opened, argv)
        keeper = _Keeper(run, len(cases), json_path)
        keeper.save()
    except (WorkerDied, WorkerTimeout) as error:
        worker.close()
        raise BackendUnavailable(f"The worker process was lost before the first case: {error}.") from error
    except BaseException:
        worker.close()
        raise
    progress.opened(opened, len(cases))

    def done(index: int, measurement: Measurement) -> None:
        keeper.add(index, measurement)
        progress.finished(measurement)

    # Executed cases do not disturb each other; measured ones would.
    workers = (os.cpu_count() or 1) if opened.backend == "sim" else 1
    session = SessionOptions(open_request, options.timeout_s, workers)
    try:
        run_cases(cases, worker, session, lambda index: progress.started(cases[index]), done)
    except KeyboardInterrupt:
        return keeper.run
    return keeper.finish()


class _Keeper:
    """The run so far, in plan order, in memory and on disk."""

    def __init__(self, run: Run, cases: int, path: Path) -> None:
        self._empty = run
        self._done: list[Measurement | None] = [None] * cases
        self._path = path

    @property
    def run(self) -> Run:
        cases = tuple(case for case in self._done if case is not None)
        return replace(self._empty, kernels=(*self._empty.kernels, *self._chosen(cases)), cases=cases)

    def add(self, index: int, measurement: Measurement) -> None:
        self._done[index] = measurement
        self.save()

    def finish(self) -> Run:
        self._empty = replace(self._empty, complete=True)
        self.save()
        return self.run

    def save(self) -> None:
        write_run(self.run, self._path)

    def _chosen(self, cases: tuple[Measurement, ...]) -> Iterator[KernelRecord]:
        """Kernels that ran because another one chose them, where they are not in the run themselves."""
        known = {record.id for record in self._empty.kernels}
        chosen = {case.chosen: case.problem.op for case in cases if case.chosen and case.chosen not in known}
        for name, op in chosen.items():
            yield KernelRecord.of(find_kernel(op, name))


def _empty_run(request: Request, options: RunOptions, opened: Opened, argv: tuple[str, ...]) -> Run:
    return Run(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuprof", __version__),
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        argv=argv,
        environment={**_environment(), **opened.environment},
        device=opened.device,
        backend=opened.backend,
        backend_reason=opened.backend_reason,
        complete=False,
        seed=options.seed,
        kernels=(
            *(KernelRecord.of(kernel) for kernel in request.kernels),
            *(reference.record for reference in request.references if opened.backend == "gpu"),
        ),
        cases=(),
    )


def _environment() -> dict[str, str]:
    """Software that decides the measured code; nothing that names the user or the machine."""
    environment = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "nvrtc": ".".join(map(str, nvrtc_version())),
    }
    for package in ("numpy", "cuda-bindings"):
        try:
            environment[package] = version(package)
        except PackageNotFoundError:
            continue
    return environment


def default_json_path(op: str, now: datetime | None = None) -> Path:
    """A fresh directory for a run that names none, so that no earlier result is lost."""
    stamp = (now or datetime.now()).strftime("%Y%m%d-%H%M%S")
    return Path("gpuprof-results") / f"{op}-{stamp}" / "results.json"
