# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure from Python, and read results back."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from gpuprof.api.run import Run
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names
from gpuprof.kernels.paths import ladder_of
from gpuprof.measure.request import Selection, find_kernels, make_request, select
from gpuprof.measure.run import Progress, RunOptions, measure
from gpuprof.operation import Operation, ReferenceDeclaration
from gpuprof.problems.sizes import parse_sizes
from gpuprof.reading import read_run
from gpuprof.results import Run as Record
from gpuprof.store import ResultsFile
from gpuprof.text import Extent

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


class _Silent:
    """Watches a run and says nothing."""

    def opened(self, *_: object) -> None:
        """Say nothing."""

    started = finished = profiling = opened


def profile(
    what: str | Path | Sequence[str | Path],
    *,
    kernels: str | Path | Sequence[str | Path] | Mapping[str, Values] = (),
    sizes: Extents | list[Extents] | None = None,
    blocks: Extents | list[Extents] | None = None,
    dtype: str = "f32",
    scalars: Mapping[str, float] | None = None,
    references: Collection[Which] = (),
    device: str | int = "auto",
    arch: str | None = None,
    seed: int = 0,
    timeout_s: float = 60.0,
    seconds_per_case: float = 0.25,
    sim_blocks: int | Literal["all"] | None = None,
    lines: bool = False,
    save: str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Compile, run, verify and measure kernels, each in a worker process, as the command line does.

    Args:
        what: An operation that comes with gpuprof, such as `"gemm"`; or a folder with an `operation.toml`,
            `.cu` files, or several of these.
        kernels: Which of them: ids, published names or further `.cu` files; or these with values for their
            parameters, `{"reg_8x8": {"BK": [8, 16]}}`. All when empty.
        sizes: One problem size or a list: `4096`, `(512, 1024, 256)`, `[128, 4096]`. The operation's own when
            None.
        blocks: A block to run instead of each kernel's own, or a list: `256`, `(8, 32)`, `[128, 256]`.
        dtype: Element type of the run.
        scalars: Numbers that the operation takes besides its sizes.
        references: What to measure beside the kernels on a GPU: `"vendor"`'s libraries, NumPy on the `"cpu"`.
        device: `"auto"`, a GPU's number, `"sim"` or `"sim:CARD"` for the executor, `"none"` to compile only.
        arch: Without a GPU, the architecture to stand in for, such as `"sm_90"`.
        seed: Of the random inputs.
        timeout_s: Longest that one case may take.
        seconds_per_case: Kernel time to spend sampling one case.
        sim_blocks: Blocks that the executor runs of each grid; chosen by size when None.
        lines: On a GPU, count per source line too, with the executor.
        save: A results file that holds every case as soon as it is done.
        progress: Told about every step.

    Returns:
        The run, with a case for each kernel, size, block and set of parameters. A kernel that is wrong, fails
        or hangs is a case that says so, not an exception.

    Raises:
        InputError: An argument makes no sense, a kernel file is faulty, or `save` exists.
        BackendUnavailable: The device cannot be used.
        Interrupted: Ctrl-C; it holds what was measured.
    """
    ladder = _ladder(what)
    request = make_request(
        ladder,
        _selections(ladder, kernels),
        _sizes(ladder.operation, sizes),
        _blocks(blocks),
        dtype,
        scalars,
        _references(ladder.operation, references),
    )
    options = RunOptions(
        device=str(device),
        arch=arch,
        seed=seed,
        timeout_s=timeout_s,
        seconds_per_case=seconds_per_case,
        sim_blocks=0 if sim_blocks == "all" else sim_blocks,
        lines=lines,
    )

    def keep(run: Record) -> ResultsFile:
        assert save is not None
        return ResultsFile(Path(save), run, replace=False)

    run = Run(measure(request, options, progress or _Silent(), keep=keep if save else None))
    if not run.record.complete:
        raise Interrupted(run)
    return run


def load(path: str | Path) -> Run:
    """Read a results file.

    Raises:
        ResultsError: It is none, or of a newer version of gpuprof.
    """
    return Run(read_run(Path(path)))


def operations() -> tuple[str, ...]:
    """Names of the operations that come with gpuprof."""
    return shipped_names()


def _ladder(what: str | Path | Sequence[str | Path]) -> Ladder:
    if isinstance(what, str) and what in shipped_names():
        return shipped_ladder(what)
    paths = [Path(what)] if isinstance(what, (str, Path)) else list(map(Path, what))
    if isinstance(what, str) and not paths[0].exists() and paths[0].suffix != ".cu":
        return shipped_ladder(what)  # which says what there is
    return ladder_of(paths)


def _selections(
    ladder: Ladder, kernels: str | Path | Sequence[str | Path] | Mapping[str, Values]
) -> list[Selection]:
    if isinstance(kernels, (str, Path)):
        kernels = [kernels]
    if not isinstance(kernels, Mapping):
        kernels = {str(name): {} for name in kernels}
    return [
        select(kernel, {key: _values(each) for key, each in values.items()}, str(name))
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


def _blocks(blocks: Extents | list[Extents] | None) -> list[Extent]:
    listed = [] if blocks is None else blocks if isinstance(blocks, list) else [blocks]
    found: list[Extent] = []
    for block in listed:
        extents = (block,) if isinstance(block, int) else block
        if not 1 <= len(extents) <= 3:
            raise InputError(f"{block!r} is not a block.", fix="Give threads in x, y and z: (8, 32).")
        x, y, z = (*extents, 1, 1)[:3]
        found.append((x, y, z))
    return found


def _references(operation: Operation, which: Collection[Which]) -> list[ReferenceDeclaration]:
    for name in which:
        if name not in ("vendor", "cpu"):
            raise InputError(f"{name!r} is no reference.", fix='Choose "vendor", "cpu" or both.')
    return [
        reference for reference in operation.references if ("cpu" if reference.on_host else "vendor") in which
    ]
