# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Times of kernels by NVBench, through its own Python package: `pip install cuda-bench`.

NVBench queues and times; the kernels, their arrays and their launches are gpuprof's. It flushes the L2 before
every launch and takes the interval between two events as it is.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuprof.backends.gpu.arrays import ArrayKeeper
from gpuprof.backends.gpu.context import GpuContext
from gpuprof.backends.gpu.driver import query_device
from gpuprof.backends.gpu.loaded_case import LoadedCase
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case, resolve
from gpuprof.measure.execute import Compiler

_AXIS = "case"
#: NVBench tells a median beside the mean since its quartiles; the first that is there is taken.
_TAGS = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean")
_SEED = 0


def nvbench_times(cases: Mapping[str, Case], into: Path) -> None:
    """Time cases on GPU 0 by NVBench, and write its JSON.

    Args:
        cases: The cases, by a name without commas.
        into: The file.

    Raises:
        ImportError: `cuda-bench` is not installed.
    """
    from cuda import bench  # type: ignore[import-not-found]

    context = GpuContext(0)
    device = query_device(0)
    compiler = Compiler(device.arch)
    keeper = ArrayKeeper(context, device.arch, _SEED)

    def time_one(state: Any) -> None:
        case, kernel = resolve(cases[state.get_string(_AXIS)], device)
        shape = configure(kernel, case.problem, case.block, case.params, device)
        arrays = keeper.of(case.problem)
        # The handle of NVBench's stream, which is the driver's too.
        stream = state.get_stream().__cuda_stream__()[1]
        with LoadedCase(shape, compiler(shape), arrays, device, stream) as loaded:
            arrays.prepare()
            context.synchronize()
            state.exec(lambda launch: loaded.queue(), batched=False)
            context.synchronize()
            if not arrays.verify().passed:
                raise RuntimeError(f"{case.name} is wrong after NVBench timed it")

    bench.register(time_one).add_string_axis(_AXIS, list(cases))
    bench.run_all_benchmarks(["nvbench_times", "--devices", "0", "--json", str(into), "--timeout", "2"])


def read_nvbench(path: Path) -> dict[str, float]:
    """Microseconds of each case in a file of `nvbench_times`."""
    times = {}
    for benchmark in json.loads(path.read_text("utf-8"))["benchmarks"]:
        for state in benchmark["states"]:
            values = {one["tag"]: _value(one["data"]) for one in state.get("summaries") or ()}
            seconds = next((values[tag] for tag in _TAGS if tag in values), None)
            if seconds is not None:
                (name,) = (axis["value"] for axis in state["axis_values"] if axis["name"] == _AXIS)
                times[name] = 1e6 * seconds
    return times


def _value(data: Iterable[Mapping[str, str]]) -> float:
    return next((float(one["value"]) for one in data if one["name"] == "value"), float("nan"))
