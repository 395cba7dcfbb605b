# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure from Python, and read results back."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Unpack

from gpuprof.api.calling import (
    BareLaunch,
    GivenCall,
    LaunchValue,
    bare_ladder,
    call_request,
    launched,
    values_of,
)
from gpuprof.api.function_kernels import function_request, is_function
from gpuprof.api.keywords import HeaderKeywords, ProfileKeywords, takes_options
from gpuprof.api.measured_run import MeasuredRun
from gpuprof.api.triton_kernels import TRITON_WORDS, is_triton, triton_request
from gpuprof.commands.resuming import finished_run, go_on
from gpuprof.commands.texts import choose_references, parse_blocks
from gpuprof.errors import InputError
from gpuprof.files import RESULTS_NAME
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Ladder
from gpuprof.kernels.paths import Source, ladder_of
from gpuprof.kernels.preprocessing import included
from gpuprof.kernels.shipped import shipped_names, shipped_operation, unknown
from gpuprof.measure.request import Request, Selection, find_kernels, make_request, named_kernels, select
from gpuprof.measure.run import Progress, measure
from gpuprof.operation import Operation
from gpuprof.options import CounterOptions, RunOptions, SelectOptions, run_options
from gpuprof.problems.declaration import FILE_NAME, load_operation
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.results import Run as Record
from gpuprof.store import ResultsFile
from gpuprof.text import KERNEL_ENDINGS, Extent

#: An operation's name, a folder, a kernel file or its text, or a function of Triton's or Numba's.
What = str | Path | Source | Any
#: One extent for all dimensions, or one for each: a tuple is one thing, a list is several.
Extents = int | tuple[int, ...]
Sizes = Extents | list[Extents] | str
Values = Mapping[str, int | Sequence[int]]
Which = Literal["vendor", "cpu"]
#: Keywords that stand for a header, which says them itself.
_IN_HEADERS = ("entry", "arguments", "compile_options", "textures", "surfaces")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while cases were measured; `run` holds those that were done.

    Args:
        run: What was measured until then.
    """

    def __init__(self, run: MeasuredRun) -> None:
        super().__init__(f"stopped after {len(run)} cases")
        self.run = run


@takes_options("profile")
def profile(
    what: What | Sequence[What],
    *,
    operation: str | Path | None = None,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values] = (),
    params: Values | None = None,
    sizes: Sizes | None = None,
    block: LaunchValue | list[LaunchValue] | None = None,
    dtype: str = SelectOptions.dtype,
    scalars: Mapping[str, float] | None = None,
    references: Which | Collection[Which] | None = None,
    args: Mapping[str, Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    grid: LaunchValue | None = None,
    ncu: bool = CounterOptions.ncu,
    save: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    **options: Unpack[ProfileKeywords],
) -> MeasuredRun:
    """Compile, run, verify and measure kernels, each in a worker process, as the command line does.

    What kernels compute is told in one of three ways: by their headers; by `operation`; or by one call,
    `args` and what to `expect` of it. With `grid` and `block` a kernel needs no header, and one that it has
    is not read.

    Args:
        what: An operation that comes with gpuprof, such as `"gemm"`; or a folder with an `operation.toml`,
            `.cu`, `.ptx` or `.cubin` files or `Source` texts, or several of these; or functions that
            `@triton.jit` or `@triton.autotune`, of which each configuration is a case,
            `@numba.cuda.jit`, `@cute.jit`, `@cute.kernel` or `cupy.RawKernel` made.
        operation: Of files that do not say it themselves: the name of an operation that comes with gpuprof,
            an `operation.toml`, or its folder.
        kernels: Which of them: ids, published names or further files, as behind `--kernel`, with values of
            parameters or without: `"reg_8x8:BK=8|16"` or `{"reg_8x8": {"BK": [8, 16]}}`. All when empty.
        params: Values for parameters of all of these, one or several each: `{"BM": [64, 128]}`. Every
            combination is a case. Of a kernel without a header they are its parameters, and the first value
            of each is its default.
        sizes: One problem size or a list: `4096`, `(512, 1024, 256)`, `[128, 4096]`, or text as on the
            command line, `"128,512x1024x256"`. The operation's own when None.
        block: Threads of a block in place of each kernel's own: `256`, `(8, 32)`. With `grid` also a formula,
            or a function of sizes and parameters. A list, `[128, 256]`, is one case each.
        dtype: Element type of the run; of a call, its arrays tell.
        scalars: Numbers that the operation takes besides its sizes.
        references: What to measure beside the kernels on a GPU: `"vendor"`'s libraries, as when None, and
            NumPy on the `"cpu"`; `()` for nothing.
        args: Arguments of the kernels by name, in their order: numbers, NumPy arrays, or anything with
            `__array__` or `__dlpack__`; None for an output that starts poisoned. Arrays of which nothing is
            expected are inputs, and must stay as they are.
        expect: What outputs must hold, by name: an array, a function of all arguments that returns one, or
            None: one given in `args` that may end as anything, such as a counter.
        grid: Blocks in x, y and z: numbers, formulas as in headers such as `"cdiv(n, block_x)"`, or a
            function of sizes, parameters and block (`block_x`, `threads` …) that returns them.
        ncu: On a GPU, then profile each kernel with Nsight Compute; where that cannot be, the counters say
            why. With `save` its report stands beside the results file.
        save: A results file that holds every case as soon as it is done.
        resume: Instead of `save`: the results file of a run that was stopped, which goes on there; what it
            holds is not measured again. What is asked for must be the same.
        progress: Told about every step: a subclass of `gpuprof.Progress`.
        **options: As below.

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
    if ncu and how.cluster is not None:
        raise InputError(
            "ncu does not go with cluster: Nsight Compute profiles on this machine.",
            fix="Leave one of them out.",
        )
    files, options = _texts_of_cupy(_listed(what), options)
    functions = [each for each in files if is_triton(each) or is_function(each)]
    of_triton = bool(functions) and all(map(is_triton, functions))
    if functions:
        _refuse(
            "functions that are compiled already", params=params, **_said(options, "include", *_IN_HEADERS)
        )
        if len({is_triton(each) for each in files}) > 1 or len(functions) < len(files):
            raise InputError("These are kernels of several kinds.", fix="Make a run of each kind.")
        if args is None or expect is None:
            raise InputError("Such a function is called.", fix="Give args, expect and grid.")
    if of_triton:
        _refuse("functions of Triton", block=block, **_said(options, "dynamic_shared_bytes"))
    else:
        _refuse("kernels that are no functions of Triton", **_said(options, *TRITON_WORDS))
    launch = None
    if grid is not None:
        if block is None and not of_triton:
            what = "There is a grid and no block."
            raise InputError(what, fix="A kernel without a header needs both.")
        blocks = block if isinstance(block, list) else [] if block is None else [block]
        if not (blocks or of_triton):
            raise InputError("There is no block in the list.", fix="Name at least one.")
        launch = BareLaunch(grid, blocks, params or {}, options)
    if args is not None or expect is not None:
        _refuse("args and expect", operation=operation, kernels=kernels, sizes=sizes)
        _refuse("args and expect", scalars=scalars, references=references)
        if launch is None:
            raise InputError("A call has no launch.", fix="Give grid, and block but for functions of Triton.")
        with TemporaryDirectory(prefix="gpuprof-", ignore_cleanup_errors=True) as folder:
            given = GivenCall(args or {}, expect or {}, options, Path(folder))
            if of_triton:
                request = triton_request(functions, launch.grid, given, how)
            elif functions:
                request = function_request(functions, launch, given, how)
            else:
                request = call_request(_files(files), launch, given)
            return _measured(request, replace(how, given_arrays=folder), save, resume, progress, ncu=ncu)
    _refuse("a declared operation", **_said(options, "relative", "absolute", "flops", "bytes"))
    if launch is None:
        _refuse("a header", **_said(options, *_IN_HEADERS))
        ladder = _ladder(files, operation, options.get("include", ()))
        asked = _selections(ladder, kernels, params or {}), listed_blocks(block)
        request = _declared(ladder, *asked, sizes, dtype, scalars, references)
    else:
        _refuse("grid and block", kernels=kernels)
        ladder = bare_ladder(_files(files), launch, _operation(operation), dtype)
        request = _declared(ladder, (), (), sizes, dtype, scalars, references)
        request = replace(request, selections=tuple(launched(ladder.kernels, launch, ladder.operation)))
    return _measured(request, how, save, resume, progress, ncu=ncu)


def _texts_of_cupy(what: list[What], options: ProfileKeywords) -> tuple[list[What], ProfileKeywords]:
    """Kernels of CuPy's as their texts, and how it compiles them."""
    kernels: list[Any] = [each for each in what if _is_of_cupy(each)]
    if not kernels:
        return what, options
    if len({each.options for each in kernels}) > 1 or len(kernels) < len(what):
        raise InputError("These are kernels of several kinds.", fix="Make a run of each kind.")
    headers = Path(sys.modules["cupy"].__file__ or "").parent / "_core" / "include"
    own = (
        "--ftz=true",
        "-default-device",
        f"-I{headers}",
        *kernels[0].options,
        *options.get("compile_options", ()),
    )
    return [Source(each.code, each.name) for each in kernels], {**options, "compile_options": own}


def _is_of_cupy(what: Any) -> bool:
    """Whether it is a `cupy.RawKernel` that has its text; CuPy is not imported to find out."""
    kind = type(what)
    return (kind.__module__, kind.__name__) == ("cupy._core.raw", "RawKernel") and bool(what.code)


def _said(options: HeaderKeywords, *names: str) -> dict[str, Any]:
    return {name: options.get(name) for name in names}


def _measured(
    request: Request,
    options: RunOptions,
    save: str | Path | None,
    resume: str | Path | None,
    progress: Progress | None,
    *,
    ncu: bool,
) -> MeasuredRun:
    watcher = progress or Progress()
    named = save or resume
    path = Path(named) if named else None

    def keep(run: Record) -> ResultsFile:
        assert path is not None
        return go_on(path, run, _unsaid) if resume else ResultsFile(path, run, replace=False)

    record = None
    if path is not None and resume:
        record = finished_run(path, request, options, counters=ncu, told=_unsaid)
    record = record or measure(
        request, options, watcher, keep=keep if path else None, resumes=resume is not None
    )
    if not record.complete:
        raise Interrupted(MeasuredRun(record))
    if ncu and record.backend == "gpu":
        from gpuprof.ncu.collecting import add_counters
        from gpuprof.ncu.invocation import NcuOptions

        with TemporaryDirectory(prefix="gpuprof-", ignore_cleanup_errors=True) as folder:
            path = path or Path(folder) / RESULTS_NAME
            record, outcome = add_counters(record, request, path, options, NcuOptions(), watcher.profiling)
        if outcome.stopped:
            raise Interrupted(MeasuredRun(record))
    return MeasuredRun(record)


def _unsaid(_: str) -> None:
    """What a command says, a program finds in the run."""


def declared_request(
    what: What | Sequence[What],
    operation: str | Path | None,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values],
    sizes: Sizes | None,
    dtype: str,
    scalars: Mapping[str, float] | None,
    references: Which | Collection[Which] | None,
    include: str | Path | Sequence[str | Path],
) -> Request:
    """What is asked for of kernels with headers; arguments as of `profile`."""
    listed = _listed(what)
    if any(is_triton(each) or is_function(each) for each in listed):
        raise InputError(
            "A function that another compiler compiles is not searched.",
            fix="Measure its configurations with profile: a case for each.",
        )
    ladder = _ladder(listed, operation, include)
    return _declared(ladder, _selections(ladder, kernels, {}), (), sizes, dtype, scalars, references)


def _declared(
    ladder: Ladder,
    selections: Sequence[Selection],
    blocks: Sequence[Extent],
    sizes: Sizes | None,
    dtype: str,
    scalars: Mapping[str, float] | None,
    references: Which | Collection[Which] | None,
) -> Request:
    operation = ladder.operation
    text = operation.default_sizes if sizes is None else sizes if isinstance(sizes, str) else _typed(sizes)
    which = (SelectOptions.reference,) if references is None else references
    which = (which,) if isinstance(which, str) else which
    return make_request(
        ladder,
        selections,
        parse_sizes(text, operation.dimensions, "sizes"),
        blocks,
        dtype,
        scalars,
        choose_references(operation, ",".join(which) or "none"),
    )


def operations() -> tuple[str, ...]:
    """Names of the operations that come with gpuprof."""
    return shipped_names()


def _refuse(why: str, **given: Any) -> None:
    """Refuse arguments of `profile` that contradict others."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, (str, tuple, dict)) and not value):
            raise InputError(f"{name} does not go with {why}.", fix="Leave one of them out.")


def _listed(what: What | Sequence[What]) -> list[What]:
    listed = list(what) if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    for each in listed:
        if isinstance(each, str) and ("__global__" in each or "\n" in each):
            raise InputError(
                "A kernel's text stands for a path.", fix='Give gpuprof.Source(text, "its name").'
            )
        is_told = isinstance(each, (str, os.PathLike, Source)) or _is_of_cupy(each)
        if not (is_told or is_triton(each) or is_function(each)):
            raise InputError(
                f"{getattr(each, '__name__', repr(each))} is no kernel.",
                fix="Name a file, or give a gpuprof.Source, or what triton.jit, cuda.jit, cute.jit or"
                " cupy.RawKernel made.",
            )
    return listed


def _files(what: Sequence[What]) -> list[Path | Source]:
    return [each if isinstance(each, Source) else Path(each) for each in what]


def _operation(what: str | Path | None) -> Operation:
    """The operation that is named."""
    if what is None:
        raise InputError(
            "Nothing says what the kernel computes.", fix="Give args and expect, or an operation."
        )
    if isinstance(what, str) and what in shipped_names():
        return shipped_operation(what)
    path = Path(what)
    if not path.exists():
        raise unknown(str(what))
    return load_operation(path / FILE_NAME if path.is_dir() else path)


def _ladder(
    what: Sequence[What], operation: str | Path | None, include: str | Path | Sequence[str | Path]
) -> Ladder:
    first = what[0] if what else None
    if isinstance(first, str) and len(what) == 1 and operation is None:
        if first in shipped_names():
            return shipped_ladder(first)
        if not first.endswith(KERNEL_ENDINGS) and not Path(first).exists():
            raise unknown(first)
    command = included(include)
    return ladder_of(_files(what), None if operation is None else _operation(operation), command)


def _selections(
    ladder: Ladder, kernels: str | Path | Sequence[str | Path] | Mapping[str, Values], params: Values
) -> list[Selection]:
    if isinstance(kernels, (str, Path)):
        kernels = [kernels]
    named: list[tuple[str, Values]] = []
    if isinstance(kernels, Mapping):
        named += kernels.items()
    else:
        for each in kernels:
            named += named_kernels(each, "kernels") if isinstance(each, str) else [(str(each), {})]
    if params and not named:
        named += ((kernel.id, {}) for kernel in ladder.rungs)
    found = []
    for name, values in named:
        given = {**params, **values}.items()
        lists = {key: values_of(key, each) for key, each in given}
        found += [select(kernel, lists, name) for kernel in find_kernels(ladder, name)]
    return found


def _typed(given: Any) -> str:
    """Extents, or a list of some, as a command line has them."""
    listed = given if isinstance(given, list) else [given]
    return ",".join("x".join(map(str, each if isinstance(each, tuple) else (each,))) for each in listed)


def listed_blocks(block: Any) -> tuple[Extent, ...]:
    """Blocks as a program gives them, in x, y and z."""
    return () if block is None else parse_blocks(_typed(block), "block")
