# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One invocation from request to results: open a worker, plan, measure, keep the file current."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from gpuprof import __version__
from gpuprof.errors import BackendUnavailable
from gpuprof.machine import usable_cores
from gpuprof.measure.case import Case
from gpuprof.measure.plan import check_memory, plan_cases
from gpuprof.measure.process import WorkerDied, WorkerProcess, WorkerTimeout
from gpuprof.measure.protocol import Open, Opened, Size
from gpuprof.measure.request import Request, without_poison
from gpuprof.measure.session import SessionOptions, run_cases
from gpuprof.operation import ReferenceDeclaration
from gpuprof.results import SCHEMA_VERSION, KernelRecord, Measurement, Run, Tool
from gpuprof.statistics import with_round
from gpuprof.store import ResultsFile
from gpuprof.toolchain.nvrtc import nvrtc_version

#: Opens the file in which a run is kept.
Keep = Callable[[Run], ResultsFile]
#: Most rounds of one run.
MOST_ROUNDS = 200
#: Kernel time of a case in each of many rounds: a median of some samples is what a round contributes.
_LEAST_SECONDS = 0.01


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
        lines: Whether the executor counts what a GPU runs, for bounds and for counts by source line.
        poison_inout: Whether kernels' own `poison_inout` holds; if not, it is off for all of them.
        given_arrays: Folder of the arrays that a program gave, for operations made of them.
        explain: Whether cases that fail, hang or are wrong are run again on the executor, to see where.
        rounds: How often a GPU measures every case, each time in a fresh process; they share
            `seconds_per_case`.
    """

    device: str = "auto"
    arch: str | None = None
    seed: int = 0
    timeout_s: float = 60.0
    seconds_per_case: float = 0.25
    sim_blocks: int | None = None
    lines: bool = False
    poison_inout: bool = True
    given_arrays: str = ""
    explain: bool = True
    rounds: int = 1


def measure(
    request: Request,
    options: RunOptions,
    progress: Progress,
    *,
    argv: tuple[str, ...] = (),
    keep: Keep | None = None,
) -> Run:
    """Measure everything a request asks for.

    Every case is on disk as soon as it is measured: whatever ends the run early costs at most one case.

    Args:
        request: What to measure.
        options: How.
        progress: Told about every step.
        argv: The command line, for the record.
        keep: Opens the results file, given the run before its first case; without, there is none.

    Returns:
        The run; its `complete` is False after Ctrl-C.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used, or cannot be opened again after a kernel's fault.
    """
    with Measuring(request, options, progress, argv=argv, keep=keep) as measuring:
        try:
            for number in range(measuring.rounds):
                measuring.round(number)
        except KeyboardInterrupt:
            return measuring.finish(complete=False)
        return measuring.finish(complete=True)


class Measuring:
    """A request on its way to a run, a round at a time: whoever measures two can take turns.

    A round is every case once, in a process of its own: arrays and code lie elsewhere each time. Cases take
    turns within a round, so that what drifts hits all of them, and every other round runs backwards.

    Args:
        request: What to measure.
        options: How.
        progress: Told about every step.
        argv: The command line, for the record.
        keep: Opens the results file, given the run before its first case; without, there is none.

    Raises:
        InputError: A size does not fit in memory, or the results cannot be written.
        BackendUnavailable: The device cannot be used.
    """

    def __init__(
        self,
        request: Request,
        options: RunOptions,
        progress: Progress,
        *,
        argv: tuple[str, ...] = (),
        keep: Keep | None = None,
    ) -> None:
        if not options.poison_inout:
            request = without_poison(request)
        self._progress = progress
        self._open_request = Open(
            device=options.device,
            arch=options.arch,
            seed=options.seed,
            seconds_per_case=max(options.seconds_per_case / options.rounds, _LEAST_SECONDS),
            sim_blocks=options.sim_blocks,
            libraries=tuple(dict.fromkeys(reference.library for reference in request.references)),
            given_arrays=options.given_arrays,
        )
        self._worker: WorkerProcess | None = WorkerProcess(self._open_request)
        try:
            self.opened = opened = self._worker.opened
            self._cases = plan_cases(request, references=opened.backend == "gpu")
            problems = list(dict.fromkeys(case.problem for case in self._cases))
            sized = self._worker.ask(Size(tuple(problems)), options.timeout_s)
            check_memory(problems, sized.bytes_needed, opened.memory_budget_bytes)
            run = empty_run(request, options, opened, argv)
            self._keeper = _Keeper(run, tuple(_choosable(request)), len(self._cases), keep)
        except (WorkerDied, WorkerTimeout) as error:
            self._worker.close()
            raise BackendUnavailable(
                f"The worker process was lost before the first case: {error}."
            ) from error
        except BaseException:
            self._worker.close()
            raise
        # The executor counts the same every time.
        self.rounds = options.rounds if opened.backend == "gpu" else 1
        progress.opened(opened, len(self._cases) * self.rounds)
        workers = _workers(opened, max(sized.bytes_needed, default=0))
        on_counted = self._keeper.replace if options.lines else None
        self._session = SessionOptions(
            self._open_request, options.timeout_s, workers, options.explain, on_counted
        )

    def __enter__(self) -> "Measuring":
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker that no round took, and close the file."""
        if self._worker is not None:
            self._worker.close()
        self._keeper.close()

    def round(self, number: int) -> None:
        """Measure every case once, or, after the first time, every case that was right so far.

        Args:
            number: Which round it is, from 0.

        Raises:
            GpuprofError: A worker cannot be replaced.
            KeyboardInterrupt: The run was asked to end; what was measured is kept.
        """
        worker, self._worker = self._worker or WorkerProcess(self._open_request), None
        if number == 0:
            session, indices, done = self._session, list(range(len(self._cases))), self._keeper.add
        else:
            # What a case counts and why it fails is known from the first round.
            session = replace(self._session, explain=False, on_counted=None)
            indices, done = self._keeper.right(), self._again
            indices = indices[::-1] if number % 2 else indices
        cases = [self._cases[index] for index in indices]

        def finished(position: int, measurement: Measurement) -> None:
            done(indices[position], measurement)
            self._progress.finished(measurement)

        run_cases(cases, worker, session, lambda position: self._progress.started(cases[position]), finished)

    def _again(self, index: int, measurement: Measurement) -> None:
        before = self._keeper.case(index)
        self._keeper.replace(index, with_round(before, measurement, self.opened.device))

    def finish(self, *, complete: bool) -> Run:
        """The run, in its file too."""
        return self._keeper.finish(complete=complete)


def _workers(opened: Opened, largest_case_bytes: int) -> int:
    """Worker processes side by side: as many as there are cores, and as fit into memory together.

    Executed cases do not disturb each other; measured ones would.
    """
    if opened.backend != "sim":
        return 1
    fitting = opened.memory_budget_bytes // max(1, largest_case_bytes)
    return max(1, min(usable_cores(), fitting))


class _Keeper:
    """The run so far, in memory in plan order and on disk in the order in which cases end.

    Args:
        run: The run before its first case.
        choosable: Records of kernels that another one may choose; on disk from the start, since a case that
            is appended cannot bring one along.
        cases: How many follow.
        keep: Opens the file, where there is to be one.
    """

    def __init__(self, run: Run, choosable: tuple[KernelRecord, ...], cases: int, keep: Keep | None) -> None:
        self._empty = run
        self._choosable = choosable
        self._done: list[Measurement | None] = [None] * cases
        self._file = keep(replace(run, kernels=(*run.kernels, *choosable))) if keep else None

    def add(self, index: int, measurement: Measurement) -> None:
        self._done[index] = measurement
        if self._file:
            self._file.append(measurement)

    def replace(self, index: int, measurement: Measurement) -> None:
        """Put a case that is known better in the place of what was added; the file gets it at the end."""
        self._done[index] = measurement

    def case(self, index: int) -> Measurement:
        """What is known of a case that was added."""
        found = self._done[index]
        assert found is not None
        return found

    def right(self) -> list[int]:
        """Which cases have ended well so far."""
        return [index for index, case in enumerate(self._done) if case is not None and case.outcome == "ok"]

    def finish(self, *, complete: bool) -> Run:
        """The run, in the file too: in plan order, with those of the choosable kernels that were chosen."""
        cases = tuple(case for case in self._done if case is not None)
        chosen = {case.chosen for case in cases}
        kernels = (*self._empty.kernels, *(record for record in self._choosable if record.id in chosen))
        run = replace(self._empty, kernels=kernels, cases=cases, complete=complete)
        if self._file:
            self._file.finish(run)
        return run

    def close(self) -> None:
        if self._file:
            self._file.close()


def _choosable(request: Request) -> Iterator[KernelRecord]:
    """Kernels that one of the request may choose and that are not in the request themselves."""
    named = {kernel.id for kernel in request.kernels}
    chosen = {choice.kernel for kernel in request.kernels for choice in kernel.choices}
    for kernel in request.ladder.kernels:
        if kernel.id in chosen - named:
            yield kernel.record()


def empty_run(request: Request, options: RunOptions, opened: Opened, argv: tuple[str, ...]) -> Run:
    """A run before its first case."""
    return Run(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuprof", __version__),
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        argv=argv,
        environment={**_environment(), **opened.environment},
        devices=(opened.device,),
        backend=opened.backend,
        backend_reason=opened.backend_reason,
        complete=False,
        seed=options.seed,
        operations={request.operation.name: request.operation},
        kernels=(
            *{kernel.id: kernel.record() for kernel in request.kernels}.values(),
            *(
                _reference_record(request.operation.name, reference)
                for reference in request.references
                if opened.backend == "gpu"
            ),
        ),
        cases=(),
    )


def _reference_record(operation: str, reference: ReferenceDeclaration) -> KernelRecord:
    """A reference as a results file keeps it: a kernel without source, behind all others."""
    return KernelRecord(
        id=reference.id,
        operation=operation,
        title=reference.title,
        rung=10_000.0,
        idea=reference.idea,
        change="",
        bottleneck="",
        study="",
        aliases=(),
        reference="",
        source="",
        source_hash="",
        file_name="",
        is_reference=True,
        on_host=reference.on_host,
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
