# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What several unit tests share: a device, kernel files, and hypothesis strategies for the results types."""

import dataclasses
import os
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from gpuprof.devices.device import Device
from gpuprof.results import SCHEMA_VERSION, Run

DEVICE = Device(
    name="Test card",
    compute_capability="8.6",
    sm_count=84,
    sm_clock_mhz=1695.0,
    memory_clock_mhz=9751.0,
    memory_bus_width_bits=384,
    memory_bytes=24 * 2**30,
    l2_bytes=6 * 2**20,
    max_threads_per_block=1024,
    max_threads_per_sm=1536,
    max_blocks_per_sm=16,
    registers_per_sm=65536,
    registers_per_block=65536,
    shared_bytes_per_sm=102400,
    shared_bytes_per_block=49152,
    shared_bytes_per_block_optin=101376,
    reserved_shared_bytes_per_block=1024,
    max_grid=(2**31 - 1, 65535, 65535),
    peak_bandwidth_gbps=936.0,
    peak_fp32_gflops=36450.0,
    peak_fp64_gflops=570.0,
    source="table",
)

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


def gpuprof(
    *arguments: str | bytes | Path, cwd: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "gpuprof", *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a results type: whatever its annotations allow and a measurement may hold."""
    origin = get_origin(kind)
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, get_args(kind)))
    if origin is tuple:
        items = get_args(kind)
        if items[1:] == (Ellipsis,):
            return st.lists(values_of(items[0]), max_size=3).map(tuple)
        return st.tuples(*map(values_of, items))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=5), values_of(get_args(kind)[1]), max_size=2)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(
            kind, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)}
        )
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=12),
        bool: st.booleans(),
        int: st.integers(-(2**40), 2**63),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
    }
    return scalars[kind]


def runs() -> st.SearchStrategy[Run]:
    """Runs of the present schema, otherwise arbitrary."""
    return values_of(Run).map(lambda run: dataclasses.replace(run, schema_version=SCHEMA_VERSION))
