# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What several unit tests share: a device, kernel files, and hypothesis strategies for the results types."""

import dataclasses
import math
import os
import subprocess
import sys
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from command_server import command_server
from hypothesis import strategies as st
from msgspec import Meta, Struct, structs
from processes import ran

from gpuprof.commands.texts import choose_kernels, selected
from gpuprof.counters import COUNTERS
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels, shipped_ladder
from gpuprof.kernels.header import MOVABLE, read_kernels
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.preprocessing import NOTHING
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.measure.request import Request
from gpuprof.operation import Operation
from gpuprof.options import SelectOptions
from gpuprof.records import replace
from gpuprof.results import (
    SCHEMA_VERSION,
    Counter,
    Direction,
    KernelRecord,
    Measurement,
    Occupancy,
    ProblemRecord,
    Resources,
    Run,
    Timing,
    TimingPair,
)

DEVICE = replace(load_card("rtx3090"), sm_count=84)

#: The smallest header that the format allows for each problem.
MINIMAL = {
    "gemm": """/*gpuprof
title = "Mine"
problem = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
[launch]
block = [32, 32]
grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]
*/
""",
    "transpose": """/*gpuprof
title = "Mine"
problem = "transpose"
arguments = ["nx", "ny", "in", "out"]
[launch]
block = [16, 16]
any_block = true
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
""",
}

TRANSPOSE_BODY = """
extern "C" __global__ void {name}(int nx, int ny, const real *in, real *out)
{{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny)
        out[(size_t)x * ny + y] = in[(size_t)y * nx + x];
}}
"""


def write_transpose_kernel(directory: Path, name: str, rung: int = 1000) -> Path:
    """A correct transpose kernel of a user's own."""
    path = directory / f"{name}.cu"
    header = MINIMAL["transpose"].replace('title = "Mine"', f'title = "{name}"\nrung = {rung}')
    path.write_text(header + TRANSPOSE_BODY.format(name=name))
    return path


def parse_kernel(source: str, path: Path, asked: str | None = None) -> Kernel:
    """The one kernel of a source of a shipped operation."""
    (kernel,) = read_kernels(source, path, shipped_operation(asked) if asked else None).kernels
    return kernel


def named_kernel(operation: str, name: str | Path) -> Kernel:
    """The one kernel that `--kernel NAME` means for a shipped operation."""
    (selection,) = choose_kernels(shipped_ladder(operation), [str(name)], False)
    return selection.kernel


def load_kernel(path: Path) -> Kernel:
    """The one kernel of a file of a shipped operation."""
    (kernel,) = load_kernels(path).kernels
    return kernel


def build_request(
    ladder, kernels, everything, sizes, block, dtype, *, scalars=None, references="none"
) -> Request:
    """What a command line of these words asks for."""
    select = SelectOptions(kernel=kernels, everything=everything, sizes=sizes, block=block, dtype=dtype)
    return selected(ladder, select, NOTHING, scalars, references)


def gpuprof(
    *arguments: str | bytes | Path,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    site: str = "",
    status: int | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own, which starts from nothing where its start is told how to.

    Args:
        site: A folder whose `sitecustomize` that process and its children begin with.
        status: What it must end with; anything if None.
    """
    told = {**os.environ, **(environment or {})}
    if site:
        told["PYTHONPATH"] = os.pathsep.join((site, *sys.path))
    elif any(name.startswith(("PYTHON", "GPUPROF_TIMELINE")) for name in environment or ()):
        return ran([sys.executable, "-m", "gpuprof", *arguments], status=status, cwd=cwd, env=told)
    server = command_server(told["PYTHONPATH"] if site else "")
    done = server.run(list(map(os.fsdecode, arguments)), cwd, told, 600)
    assert status in (None, done.returncode), done.stderr or done.stdout
    return done


@cache
def values_of(kind: Any, fewest: int = 0) -> st.SearchStrategy[Any]:
    """Any value of a results type: whatever its annotations allow and a measurement may hold.

    Args:
        kind: The type.
        fewest: Entries of a list or an object.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        return _constrained(*get_args(kind))
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, get_args(kind)))
    if origin is tuple:
        items = get_args(kind)
        if items[1:] == (Ellipsis,):
            return st.lists(values_of(items[0]), min_size=fewest, max_size=3).map(tuple)
        return st.tuples(*map(values_of, items))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=5), values_of(get_args(kind)[1]), min_size=fewest, max_size=2)
    if dataclasses.is_dataclass(kind) or issubclass(kind, Struct):
        hints = get_type_hints(kind, include_extras=True)
        fields = (structs if issubclass(kind, Struct) else dataclasses).fields(kind)
        return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in fields})
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=12),
        bytes: st.binary(max_size=5),
        bool: st.booleans(),
        int: st.integers(-(2**40), 2**63),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
    }
    return scalars[kind]


def _constrained(kind: Any, limit: Meta) -> st.SearchStrategy[Any]:
    """Values of a type that its constraint allows, which includes the ends of every range."""
    if limit.min_length:
        return values_of(kind, fewest=limit.min_length)
    if kind is int:
        return st.integers(limit.ge, limit.le or 10**60)
    if kind is float:
        floats = st.floats(limit.ge, limit.le, allow_nan=False, allow_infinity=False)
        step = limit.multiple_of
        return floats.map(lambda value: value - math.fmod(value, step)) if step else floats
    return st.from_regex(limit.pattern or "")


def runs() -> st.SearchStrategy[Run]:
    """Runs of the present schema, otherwise arbitrary."""
    return values_of(Run).map(_belonging_together)


def _belonging_together(run: Run) -> Run:
    """The run with cases that name what it holds: an operation, and one of its devices."""
    operations = dict(run.operations)
    some = next(iter(operations.values()), shipped_operation("transpose"))
    for case in run.cases:
        operations.setdefault(case.problem.operation, some)
    devices = len(run.devices)
    tuning = run.tuning and replace(
        run.tuning,
        sizes=tuple(replace(one, device=one.device % devices) for one in run.tuning.sizes),
    )
    return replace(
        run,
        schema_version=SCHEMA_VERSION,
        operations=operations,
        tuning=tuning,
        # Of two rows of one place in its plan the later stands for both.
        cases=tuple(
            replace(case, device=case.device % devices, planned=None if case.planned is None else number)
            for number, case in enumerate(run.cases)
        ),
    )


@st.composite
def busy_runs(draw: st.DrawFn) -> Run:
    """Runs whose cases belong together: few kernels and problems, most of them timed and counted."""
    run = draw(runs())
    problems = draw(st.lists(_problems(), min_size=1, max_size=2))
    names = st.sampled_from([*COUNTERS, "foreign"])
    timed = st.builds(TimingPair, values_of(Timing), values_of(Timing | None))

    def busy(case: Measurement) -> Measurement:
        counted = draw(st.dictionaries(names, values_of(Counter), max_size=6))
        return replace(
            case,
            kernel=draw(_IDS),
            chosen=draw(st.sampled_from(["", "", "naive"])),
            source_hash="x",
            problem=draw(st.sampled_from(problems)),
            outcome=draw(st.sampled_from(["ok", "ok", "ok", "failed", "incorrect"])),
            timing=draw(st.one_of(st.none(), timed, timed)),
            occupancy=draw(values_of(Occupancy | None)),
            resources=draw(values_of(Resources | None)),
            counters=counted,
            executor_counters={name: draw(values_of(Counter)) for name in list(counted)[::2]},
            is_reference=case.is_reference and draw(st.booleans()),
        )

    def belonging(record: KernelRecord) -> KernelRecord:
        moves = draw(st.dictionaries(st.sampled_from(MOVABLE), values_of(Direction), max_size=3))
        source = draw(st.sampled_from(["int x;\n\n// y\n", record.source]))
        return replace(record, id=draw(_IDS), after=draw(_IDS), source=source, moves=moves)

    cases = (*run.cases, *draw(st.lists(values_of(Measurement), min_size=1, max_size=3)))
    busy_run = replace(
        run,
        backend=draw(st.sampled_from(["gpu", "gpu", "sim", "none"])),
        cases=tuple(map(busy, cases)),
        kernels=tuple(map(belonging, run.kernels)),
        operations={name: shipped_operation(name) for name in shipped_names()},
    )
    return _belonging_together(busy_run)


def _problems() -> st.SearchStrategy[ProblemRecord]:
    """Problems of the shipped operations, of any size and with any work."""

    def of(
        record: ProblemRecord, operation: Operation, extents: list[int], options: list[str]
    ) -> ProblemRecord:
        return replace(
            record,
            operation=operation.name,
            sizes=dict(zip(operation.dimensions, extents, strict=False)),
            scalars={name: scalar.default for name, scalar in operation.scalars.items()},
            options=dict(zip(operation.options, options, strict=False)),
        )

    def problems_of(name: str) -> st.SearchStrategy[ProblemRecord]:
        operation = shipped_operation(name)
        options = [st.sampled_from(list(option.values)) for option in operation.options.values()]
        extents = st.lists(st.integers(1, 2**31 - 1), min_size=3, max_size=3)
        return st.builds(
            of, values_of(ProblemRecord), st.just(operation), extents, st.tuples(*options).map(list)
        )

    return st.one_of(*map(problems_of, shipped_names()))


#: A shipped kernel, a reference that ran on the host, and what HTML would read.
_IDS = st.sampled_from(["naive", "numpy", "b", "<i>"])
