# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measures kernels that know where memory lies which nobody gave them, and prints what is said of them."""

from cheat_corpus import cheats, ladder

from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.backends.gpu.context import DeviceBuffer
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.statistics import SamplingBudget

SIZE = (20, 40)
#: In the place of where the page of an array goes on.
STARTS = "((unsigned long long)(y + elements) + 4096 + 15) / 16 * 16"
ROOM = "(start + page - 1) / page * page - start"


def main() -> None:
    backend = GpuBackend(0, seed=7, budget=SamplingBudget(seconds=0.01, min_samples=6, max_samples=8))
    operation = ladder().operation
    (kernel,) = [cheat.kernel for cheat in cheats() if cheat.kernel.id == "kept_beside"]
    spare = DeviceBuffer(1 << 14)
    flush = backend._flush._buffer
    for name, buffer, keeps in (("spare", spare, True), ("spare", spare, False), ("flush", flush, False)):
        source = kernel.source.replace(STARTS, f"{buffer.address:#x}ull").replace(ROOM, f"{buffer.nbytes}")
        source = source.replace("fits && *known == key", "fits && *known == key" if keeps else "false")
        source = source.replace("2000", "300")
        case = Case.of(replace(kernel, source=source), Problem.of(operation, SIZE), kernel.block)
        measurement, _ = measure_case(case, backend, Compiler(backend.device.arch))
        print(name, keeps, measurement.outcome, measurement.reason)


main()
