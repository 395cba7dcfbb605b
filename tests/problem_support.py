# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Problems and kernels of the shipped ladders in few words."""

from functools import cache
from pathlib import Path
from typing import Any

from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.instructions import DecodedKernels, Links, NoLink
from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.executor.memory.remembered import Kept
from gpuprof.kernels.catalog import load_kernels, shipped_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.options import RunOptions
from gpuprof.problems.problem import Problem
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.results import Measurement
from gpuprof.toolchain.nvrtc import target_of


def Gemm(m, n, k, dtype="f32", layout="row", alpha=1.0, beta=0.0) -> Problem:
    """A matrix product."""
    scalars = {"alpha": alpha, "beta": beta}
    return Problem.of(shipped_operation("gemm"), (m, n, k), dtype, scalars, {"layout": layout})


def Transpose(nx, ny, dtype="f32", result="transpose") -> Problem:
    """A transpose, or the copy that bounds it."""
    return Problem.of(shipped_operation("transpose"), (nx, ny), dtype, None, {"result": result})


def problem_for(kernel: Kernel, *sizes: int, dtype: str = "f32", **scalars: float) -> Problem:
    """What a kernel of a shipped operation computes at a size: in its layout, or only a copy."""
    return Problem.of(shipped_operation(kernel.operation), sizes, dtype, scalars, kernel.options)


def problem_id(problem: Problem) -> str:
    """A short name of a problem, for a test's id."""
    scalars = (f"{name}={value:g}" for name, value in problem.scalars.items())
    return "-".join(
        (problem.operation.name, problem.label, problem.dtype, *problem.options.values(), *scalars)
    )


def ladder(name: str) -> tuple[Kernel, ...]:
    """The kernels of a shipped ladder."""
    return shipped_ladder(name).kernels


def shipped_kernels() -> tuple[Kernel, ...]:
    """The kernels of all shipped ladders."""
    return tuple(kernel for name in shipped_names() for kernel in ladder(name))


def find_kernel(name: str, kernel: str) -> Kernel:
    """A kernel of a shipped ladder."""
    return shipped_ladder(name).find(kernel)


class _Unread(Links):
    """Machine code that nobody disassembles, which would take longer than most kernels of tests."""

    def begin(self, functions: Any) -> None:
        pass

    def of(self, function: Any, program: Any) -> NoLink:
        return NoLink("this test counts none of its instructions.")


#: What is decoded of a kernel, which is the same on every device, for all files: characters of PTX.
_KEPT = DecodedKernels(load_card("h200"), Kept(16 << 20, lambda program: len(program.interface.module)))


def decoded_kernels(device: Device, linked: bool) -> DecodedKernels:
    """What a device executes of kernels; their machine code is disassembled if `linked`."""
    return replace(_KEPT, device=device, links=_KEPT.links if linked else _Unread())


def ptx_alone(case: ConfiguredCase, arch: str) -> Functions:
    """What is executed and no more: ptxas takes longer than all that comes before it."""
    if case.kernel.built is not None:
        return compile_kernel(case, arch)
    target = target_of(arch, (case.kernel.source, *case.kernel.headers.values()))
    made = compile_kernel(case, target.replace("sm_", "compute_"))
    return {entry: replace(one, arch=target) for entry, one in made.items()}


class _PtxAlone(Compiler):
    def _compile(self, case: ConfiguredCase) -> Functions:
        return ptx_alone(case, self._arch)


@cache
def executor(
    card: str = "h200",
    blocks: int | None = None,
    linked: bool = False,
    sms: int = 0,
    seed: int = 0,
    assembled: bool = False,
) -> tuple[SimBackend, Compiler]:
    """The executor as a card, or as one of fewer SMs, and what compiles for it; one for all files, which
    decodes a kernel once.

    Args:
        linked: With the counts of its machine code, and a modelled time.
        assembled: With what ptxas says of a kernel: registers, spills, occupancy.
    """
    known = load_card(card)
    device = replace(known, sm_count=sms or known.sm_count)
    kept = {"models": linked, "decoded": decoded_kernels(device, linked)}
    backend = SimBackend(device, RunOptions(seed=seed, sim_blocks=blocks), **kept)
    return backend, (Compiler if linked or assembled else _PtxAlone)(backend.device.arch)


def measured(
    kernel: Kernel,
    problem: Problem,
    *case: Any,
    card: str = "h200",
    blocks: int | None = None,
    linked: bool = False,
    assembled: bool = False,
    sms: int = 0,
) -> Measurement:
    """What the executor finds of a kernel; `case` is its block, its parameters and its ladder."""
    told = executor(card, blocks, linked, sms=sms, assembled=assembled)
    return measure_case(Case.of(kernel, problem, *case), *told)[0]


def measured_file(
    path: Path,
    sizes: str = "",
    dtype: str | None = None,
    blocks: int | None = None,
    assembled: bool = False,
    **scalars: float,
) -> Measurement:
    """What the executor finds, in this process, of the one kernel of a file that names its operation."""
    file = load_kernels(path)
    (kernel,) = file.kernels
    (extents,) = parse_sizes(sizes or file.operation.default_sizes, file.operation.dimensions)
    dtype = dtype or (kernel.dtypes or ("f32",))[0]
    problem = Problem.of(file.operation, extents, dtype, scalars, kernel.options)
    return measured(kernel, problem, blocks=blocks, assembled=assembled)
