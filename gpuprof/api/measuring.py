# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure from Python, and read results back."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from gpuprof.api.calling import BareLaunch, CallArguments, LaunchValue, bare_ladder, call_request, launched
from gpuprof.api.run import Run
from gpuprof.errors import InputError, in_sentences
from gpuprof.files import RESULTS_NAME
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names, shipped_operation
from gpuprof.kernels.paths import Source, ladder_of
from gpuprof.measure.options import CounterOptions, RunOptions, SelectOptions, run_options, takes_options
from gpuprof.measure.plan import plan_cases
from gpuprof.measure.request import Request, Selection, find_kernels, make_request, select
from gpuprof.measure.resume import check_same_request, continued
from gpuprof.measure.run import Progress, measure
from gpuprof.operation import Operation, ReferenceDeclaration
from gpuprof.problems.declaration import FILE_NAME, load_operation
from gpuprof.problems.sizes import parse_sizes
from gpuprof.reading import read_run
from gpuprof.results import Run as Record
from gpuprof.store import ResultsFile
from gpuprof.text import Extent

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Argument, Expectation, Tolerance

#: An operation's name, a folder, a kernel file or its text.
What = str | Path | Source
#: One extent for all dimensions, or one for each: a tuple is one thing, a list is several.
Extents = int | tuple[int, ...]
Values = Mapping[str, int | Sequence[int]]
Which = Literal["vendor", "cpu"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while cases were measured; `run` holds those that were done.

    Args:
        run: What was measured until then.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(f"stopped after {len(run)} cases")
        self.run = run


class _SilentProgress:
    """Watches a run and says nothing."""

    def opened(self, *_: object) -> None:
        """Say nothing."""

    started = finished = profiling = opened


@in_sentences
@takes_options("profile")
def profile(
    what: What | Sequence[What],
    *,
    operation: str | Path | None = None,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values] = (),
    params: Values | None = None,
    sizes: Extents | list[Extents] | None = None,
    block: LaunchValue | list[LaunchValue] | None = None,
    dtype: str = SelectOptions.dtype,
    scalars: Mapping[str, float] | None = None,
    references: Collection[Which] | None = None,
    args: "Mapping[str, Argument] | None" = None,
    expect: "Mapping[str, Expectation] | None" = None,
    relative: "Tolerance" = None,
    absolute: "Tolerance" = None,
    flops: int | str | None = None,
    bytes: int | str | None = None,
    grid: LaunchValue | None = None,
    entry: str = "",
    arguments: Sequence[str] = (),
    dynamic_shared_bytes: int | str | Callable[[Mapping[str, int]], int | str] = 0,
    cooperative: bool = False,
    compile_options: Sequence[str] = (),
    textures: Mapping[str, Mapping[str, Any]] | None = None,
    surfaces: Mapping[str, Mapping[str, Any]] | None = None,
    ncu: bool = CounterOptions.ncu,
    save: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Run:
    """Compile, run, verify and measure kernels, each in a worker process, as the command line does.

    What kernels compute is told in one of three ways: by their headers; by `operation`; or by one call,
    `args` and what to `expect` of it. With `grid` and `block` a kernel needs no header, and one that it has
    is not read.

    Args:
        what: An operation that comes with gpuprof, such as `"gemm"`; or a folder with an `operation.toml`,
            `.cu` files or `Source` texts, or several of these.
        operation: Of files that do not say it themselves: the name of an operation that comes with gpuprof,
            an `operation.toml`, or its folder.
        kernels: Which of them: ids, published names or further `.cu` files; or these with values for their
            parameters, `{"reg_8x8": {"BK": [8, 16]}}`. All when empty.
        params: Values for parameters of all of these, one or several each: `{"BM": [64, 128]}`. Every
            combination is a case. Of a kernel without a header they are its parameters, and the first value
            of each is its default.
        sizes: One problem size or a list: `4096`, `(512, 1024, 256)`, `[128, 4096]`. The operation's own when
            None.
        block: Threads of a block in place of each kernel's own: `256`, `(8, 32)`. With `grid` also a formula,
            or a function of sizes and parameters. A list, `[128, 256]`, is one case each.
        dtype: Element type of the run; of a call, its arrays tell.
        scalars: Numbers that the operation takes besides its sizes.
        references: What to measure beside the kernels on a GPU: `"vendor"`'s libraries, as when None, and
            NumPy on the `"cpu"`; `()` for nothing.
        args: Arguments of the kernels by name, in their order: numbers, NumPy arrays, or anything with
            `__array__` or `__dlpack__`; None for an output that starts poisoned. Arrays of which nothing is
            expected are inputs, and must stay as they are.
        expect: What outputs must hold, by name: an array, or a function of all arguments that returns one.
        relative: Error allowed, as a share of an element's expected value; one number, or one by output.
            Unless this or `absolute` is given, 32 unit roundoffs of the element's value and as many of the
            mean value; integers must be equal.
        absolute: Error allowed besides.
        flops: Floating-point operations that a call needs, for a rate: a number or a formula of the sizes.
        bytes: Fewest bytes that a call must move; every array once when None.
        grid: Blocks in x, y and z: numbers, formulas as in headers such as `"cdiv(n, block_x)"`, or a
            function of sizes, parameters and block (`block_x`, `threads` …) that returns them.
        entry: Name of the function; the file's own name, or its only kernel, when empty.
        arguments: With `operation` and `grid`: what the kernel takes, in order; all of the operation's when
            empty.
        dynamic_shared_bytes: Dynamic shared memory of one block: a number, a formula or a function.
        cooperative: Whether blocks wait for each other, and all must be on the device at once.
        compile_options: Options for the compiler besides gpuprof's own.
        textures: Arguments that the kernel takes as a `cudaTextureObject_t`, by name, each with the fields of
            a header's `[textures.NAME]`: `{"image": {"filter": "linear"}}`.
        surfaces: Those that it takes as a `cudaSurfaceObject_t`, likewise: `{"out": {}}`.
        ncu: On a GPU, then profile each kernel with Nsight Compute; where that cannot be, the counters say
            why. With `save` its report stands beside the results file.
        save: A results file that holds every case as soon as it is done.
        resume: Instead of `save`: the results file of a run that was stopped, which goes on there; what it
            holds is not measured again. What is asked for must be the same.
        progress: Told about every step.
        **options: Those of a run.

    Returns:
        The run, with a case for each kernel, size, block and set of parameters. A kernel that is wrong, fails
        or hangs is a case that says so, not an exception.

    Raises:
        InputError: An argument makes no sense, a kernel file is faulty, `save` exists, or `resume` is of
            another run.
        OutputError: There is no room for what was measured; its `run` holds it.
        BackendUnavailable: The device cannot be used.
        Interrupted: Ctrl-C; it holds what was measured.
    """
    how = run_options("profile", options)
    if resume is not None:
        _refuse("resume", save=save)
    file = _File(save, resume)
    if ncu and how.cluster is not None:
        raise InputError(
            "ncu does not go with cluster: Nsight Compute profiles on this machine.",
            fix="Leave one of them out.",
        )
    given = params or {}, entry, dynamic_shared_bytes, cooperative, compile_options
    launch = _launch(grid, block, *given, textures or {}, surfaces or {})
    files = _listed(what)
    if args is not None or expect is not None:
        _refuse("args and expect", operation=operation, kernels=kernels, sizes=sizes)
        _refuse("args and expect", scalars=scalars, references=references, arguments=arguments)
        call = CallArguments(args or {}, expect or {}, relative, absolute, flops, bytes)
        with TemporaryDirectory(prefix="gpuprof-", ignore_cleanup_errors=True) as folder:
            request = call_request(_files(files), launch, call, Path(folder))
            return _measured(request, replace(how, given_arrays=folder), file, progress, ncu=ncu)
    _refuse("a declared operation", relative=relative, absolute=absolute, flops=flops, bytes=bytes)
    selections: Sequence[Selection] = ()
    if launch is None:
        _refuse("a header", entry=entry, arguments=arguments, compile_options=compile_options)
        _refuse("a header", textures=textures, surfaces=surfaces)
        ladder = _ladder(files, operation)
        selections = _selections(ladder, kernels, params or {})
    else:
        _refuse("grid and block", kernels=kernels)
        ladder = bare_ladder(_files(files), launch, _operation(operation), dtype, arguments)
    request = make_request(
        ladder,
        selections,
        _sizes(ladder.operation, sizes),
        listed_blocks(block) if launch is None else (),
        dtype,
        scalars,
        _references(ladder.operation, references),
    )
    if launch is not None:
        request = replace(request, selections=launched(ladder, launch))
    return _measured(request, how, file, progress, ncu=ncu)


def _launch(grid: Any, block: Any, *rest: Any) -> BareLaunch | None:
    """How kernels without a header are launched; None where headers say it."""
    if grid is None:
        return None
    if block is None:
        raise InputError("There is a grid and no block.", fix="A kernel without a header needs both.")
    return BareLaunch(grid, block, *rest)


@dataclass(frozen=True, slots=True)
class _File:
    """Where a run is kept: a new file, or that of a run which goes on."""

    save: str | Path | None
    resume: str | Path | None

    @property
    def path(self) -> Path | None:
        named = self.save or self.resume
        return Path(named) if named else None

    def open(self, run: Record) -> ResultsFile:
        path = self.path
        assert path is not None
        if self.resume is None:
            return ResultsFile(path, run, replace=False)
        return ResultsFile.resumed(path, lambda: continued(read_run(path), run, path))


def _measured(
    request: Request, options: RunOptions, file: _File, progress: Progress | None, *, ncu: bool
) -> Run:
    watcher = progress or _SilentProgress()
    record = _finished(request, options, file, ncu=ncu) or measure(
        request, options, watcher, keep=file.open if file.path else None
    )
    if not record.complete:
        raise Interrupted(Run(record))
    if ncu and record.backend == "gpu":
        record = _counted(record, request, options, file.path, watcher)
    return Run(record)


def _finished(request: Request, options: RunOptions, file: _File, *, ncu: bool) -> Record | None:
    """A run to which nothing is left to add."""
    if file.resume is None:
        return None
    path = Path(file.resume)
    record = read_run(path)
    if record.complete:
        check_same_request(record, request, options, path)
    if not record.complete or (ncu and _lacks_counters(record)):
        return None
    return record


def _lacks_counters(record: Record) -> bool:
    from gpuprof.ncu.outcome import lacks_counters

    return lacks_counters(record)


def _counted(
    record: Record, request: Request, options: RunOptions, save: Path | None, progress: Progress
) -> Record:
    """The run with Nsight Compute's counters, in its results file too where there is one."""
    from gpuprof.ncu.invocation import NcuOptions, patience
    from gpuprof.ncu.profile import add_counters

    with TemporaryDirectory(prefix="gpuprof-", ignore_cleanup_errors=True) as folder:
        file = (
            ResultsFile.resumed(save, lambda: record)
            if save is not None
            else ResultsFile(Path(folder) / RESULTS_NAME, record, replace=False)
        )
        try:
            return add_counters(
                record,
                plan_cases(request, references=True),
                device=options.device,
                options=NcuOptions(timeout_s=patience(options.timeout_s)),
                file=file,
                progress=progress.profiling,
                given_arrays=options.given_arrays,
            )[0]
        except KeyboardInterrupt:
            raise Interrupted(Run(read_run(file.path))) from None
        finally:
            file.close()


def declared_request(
    what: What | Sequence[What],
    operation: str | Path | None,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values],
    sizes: Extents | list[Extents] | None,
    dtype: str,
    scalars: Mapping[str, float] | None,
    references: Collection[Which] | None,
) -> Request:
    """What is asked for of kernels with headers; arguments as of `profile`.

    Raises:
        InputError: Something of it makes no sense.
    """
    ladder = _ladder(_listed(what), operation)
    return make_request(
        ladder,
        _selections(ladder, kernels, {}),
        _sizes(ladder.operation, sizes),
        (),
        dtype,
        scalars,
        _references(ladder.operation, references),
    )


def load(path: str | Path) -> Run:
    """Read a results file.

    Raises:
        ResultsError: It is none, or of a newer version of gpuprof.
    """
    return Run(read_run(Path(path)))


def operations() -> tuple[str, ...]:
    """Names of the operations that come with gpuprof."""
    return shipped_names()


def _refuse(why: str, **given: Any) -> None:
    """Refuse arguments of `profile` that contradict others."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, (str, tuple, dict)) and not value):
            raise InputError(f"{name} does not go with {why}.", fix="Leave one of them out.")


def _listed(what: What | Sequence[What]) -> list[What]:
    return [what] if isinstance(what, (str, Path, Source)) else list(what)


def _files(what: Sequence[What]) -> list[Path | Source]:
    return [each if isinstance(each, Source) else Path(each) for each in what]


def _operation(what: str | Path | None) -> Operation:
    """The operation that is named."""
    if what is None:
        raise InputError(
            "Nothing says what the kernel computes.", fix="Give args and expect, or an operation."
        )
    if isinstance(what, str) and (what in shipped_names() or not Path(what).exists()):
        return shipped_operation(what)
    path = Path(what)
    return load_operation(path / FILE_NAME if path.is_dir() else path)


def _ladder(what: Sequence[What], operation: str | Path | None) -> Ladder:
    first = what[0] if what else None
    if isinstance(first, str) and len(what) == 1 and operation is None:
        named = not Path(first).exists() and Path(first).suffix != ".cu"
        if named or first in shipped_names():
            return shipped_ladder(first)
    return ladder_of(_files(what), None if operation is None else _operation(operation))


def _selections(
    ladder: Ladder, kernels: str | Path | Sequence[str | Path] | Mapping[str, Values], params: Values
) -> list[Selection]:
    if isinstance(kernels, (str, Path)):
        kernels = [kernels]
    if not isinstance(kernels, Mapping):
        kernels = {str(name): {} for name in kernels}
    if params and not kernels:
        kernels = {kernel.id: {} for kernel in ladder.rungs}
    return [
        select(kernel, {key: _values(each) for key, each in {**params, **values}.items()}, str(name))
        for name, values in kernels.items()
        for kernel in find_kernels(ladder, str(name))
    ]


def _values(values: int | Sequence[int]) -> Sequence[int]:
    return [values] if isinstance(values, int) else values


def _sizes(operation: Operation, sizes: Extents | list[Extents] | None) -> list[tuple[int, ...]]:
    if sizes is None:
        return list(parse_sizes(operation.default_sizes, operation.dimensions))
    listed = sizes if isinstance(sizes, list) else [sizes]
    if not listed:
        raise InputError("There is no size in the list.", fix="Leave sizes out for the operation's own.")
    count = len(operation.dimensions)
    return [(size,) * count if isinstance(size, int) else tuple(size) for size in listed]


def listed_blocks(block: Any) -> list[Extent]:
    """Blocks as a program gives them, in x, y and z.

    Raises:
        InputError: One is none.
    """
    found: list[Extent] = []
    for each in [] if block is None else block if isinstance(block, list) else [block]:
        extents = each if isinstance(each, tuple) else (each,)
        if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int) for extent in extents):
            raise InputError(
                f"{each!r} is not a block.", fix="Give threads in x, y and z: (8, 32). Formulas need a grid."
            )
        x, y, z = (*extents, 1, 1)[:3]
        found.append((x, y, z))
    return found


def _references(operation: Operation, given: Collection[Which] | None) -> list[ReferenceDeclaration]:
    which: Collection[str] = (SelectOptions.reference,) if given is None else given
    for name in which:
        if name not in ("vendor", "cpu"):
            raise InputError(f"{name!r} is not a reference.", fix='Choose "vendor", "cpu" or both.')
    return [
        reference for reference in operation.references if ("cpu" if reference.on_host else "vendor") in which
    ]
