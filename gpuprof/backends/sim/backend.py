# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs cases on the SIMT executor: the whole grid when small, a sample of its blocks otherwise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.arguments import Argument as BoundArgument
from gpuprof.backends.arguments import ArrayArgument, ValueArgument, bind_arguments
from gpuprof.backends.base import Findings
from gpuprof.devices.device import Device, parse_arch
from gpuprof.errors import CaseFailure, CaseSkipped
from gpuprof.executor import (
    WARP,
    Argument,
    Buffer,
    GlobalMemory,
    LaunchResult,
    LineCounters,
    Sample,
    choose_blocks,
    encode_tensor_map,
    launch,
    load_program,
)
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import LaunchShape
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.machine import available_memory_bytes
from gpuprof.problems.base import Array, numpy_dtype
from gpuprof.problems.check import compare
from gpuprof.results import BackendName, Counter, Problem, SourceLine, Verification
from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc import CompiledKernel, compiler_options

#: Newest architecture whose PTX is executed: above it the compiler uses register classes and opcodes that add
#: nothing to what is counted.
_NEWEST_PTX = "sm_90"
#: Largest problem whose whole grid is run: multiply-adds, and elements written.
_FULL_GRID_FMAS = 1 << 25
_FULL_GRID_ELEMENTS = 1 << 23
#: Largest launch that is run whole, in lanes of all warps. A header may ask for 2^31-1 blocks however small
#: the problem is, and running them would take hours. This many, which the narrowest of those problems need
#: where a tile has 32 x 32 threads, take seconds when most threads have nothing to do.
_FULL_GRID_LANES = 1 << 28
#: Blocks run of a larger grid: its kinds (interior, right and bottom edge, corner), the larger ones twice.
_SAMPLED_BLOCKS = 6
_NO_TIME = "the executor counts; it measures no time"
#: The part of the machine's available memory that problems may take.
_MEMORY_SHARE = 0.7


class SimBackend:
    """The executor, standing for one card.

    Args:
        device: The card whose limits and peaks apply.
        seed: Of the problems' random inputs.
        blocks: Blocks to run of each grid; 0 for all, None to choose by the size of problem and launch.
    """

    def __init__(self, device: Device, seed: int, blocks: int | None = None) -> None:
        self.device = device
        self._seed = seed
        self._blocks = blocks
        self._inputs: tuple[Problem, dict[str, Array]] | None = None

    @property
    def name(self) -> BackendName:
        """Always `sim`."""
        return "sim"

    @property
    def compile_arch(self) -> str:
        """The card's architecture, so that registers and occupancy are the card's."""
        return self.device.arch

    @property
    def environment(self) -> Mapping[str, str]:
        """Which PTX is executed."""
        return {"executed_ptx": self._ptx_arch}

    @property
    def memory_budget_bytes(self) -> int:
        """A part of the memory that this process may still take, for all problems that are run at once."""
        return int(available_memory_bytes() * _MEMORY_SHARE)

    def problem_bytes(self, problem: Problem) -> int:
        """The arrays once as inputs and once as device memory, the write marks, and room to execute."""
        marks = problem.arrays[-1].elements
        return 2 * problem.array_bytes + marks + (256 << 20)

    def run_reference(self, name: str, problem: Problem) -> Findings:
        """There are no references without a GPU.

        Raises:
            CaseSkipped: Always.
        """
        raise CaseSkipped(f"The executor counts kernels; a library has none to count: {name} needs a GPU.")

    def run(self, kernel: Kernel, problem: Problem, shape: LaunchShape, compiled: CompiledKernel) -> Findings:
        """Execute one case, verify what it wrote, and report its counts.

        Raises:
            CaseFailure: The kernel broke a rule of CUDA; the message names line, block and thread.
            CaseSkipped: It uses an instruction that the executor does not know.
        """
        _check_shared(self.device, kernel, compiled.static_shared_bytes + shape.dynamic_shared_bytes)
        bound = bind_arguments(kernel, problem, shape, compiled)
        program = load_program(self._ptx(kernel, shape, compiled), kernel.entry)
        inputs = self._problem_inputs(problem)
        memory, arguments, output = _device_memory(bound, problem, inputs)
        sample = self._sample(problem, shape)
        result = launch(
            program,
            shape.grid,
            shape.block,
            arguments,
            memory,
            shape.dynamic_shared_bytes,
            sample or "all",
        )
        verification = _verify(problem, inputs, output, whole=sample is None)
        return Findings(
            "ok" if verification.passed else "incorrect",
            reason=None
            if verification.passed
            else f"{verification.detail[:1].upper()}{verification.detail[1:]}.",
            verification=verification,
            timing_reason=_NO_TIME,
            clocks_reason=_NO_TIME,
            counters=counters_of(result),
            counters_reason=_sampling_caveat(result),
            lines=lines_of(result),
        )

    @property
    def _ptx_arch(self) -> str:
        return self.device.arch if self.device.capability <= parse_arch(_NEWEST_PTX) else _NEWEST_PTX

    def _ptx(self, kernel: Kernel, shape: LaunchShape, compiled: CompiledKernel) -> str:
        if compiled.arch == self._ptx_arch:
            return compiled.ptx
        options = compiler_options(self._ptx_arch, shape.defines, kernel.options)
        return compile_cached(kernel.source, kernel.path.name, kernel.entry, options).ptx

    def _problem_inputs(self, problem: Problem) -> dict[str, Array]:
        """Inputs of the present problem, kept for the next kernel."""
        if self._inputs is None or self._inputs[0] != problem:
            self._inputs = None
            self._inputs = (problem, problem.inputs(self._seed))
        return self._inputs[1]

    def _sample(self, problem: Problem, shape: LaunchShape) -> Sample | None:
        """The blocks to run, or None for all."""
        if self._blocks == 0:
            return None
        total, threads = math.prod(shape.grid), math.prod(shape.block)
        small = (
            problem.flops <= 2 * _FULL_GRID_FMAS
            and problem.arrays[-1].elements <= _FULL_GRID_ELEMENTS
            and total * -(-threads // WARP) * WARP <= _FULL_GRID_LANES
        )
        if self._blocks is None and small:
            return None
        if shape.cooperative:
            raise CaseSkipped(
                "Its blocks wait for each other, so that the executor would have to run the whole grid.",
                fix="Choose a smaller --sizes, or --sim-blocks all and patience.",
            )
        wanted = self._blocks or _SAMPLED_BLOCKS
        return choose_blocks(shape.grid, wanted) if wanted < total else None


def _check_shared(device: Device, kernel: Kernel, needed: int) -> None:
    """Refuse a launch that the card's driver would refuse."""
    limit = device.shared_bytes_per_block_optin
    if needed > limit:
        raise CaseFailure(
            f"{kernel.id} needs {needed} bytes of shared memory per block ({needed / 1024:g} KiB);"
            f" {device.name} allows {limit} ({limit / 1024:g} KiB), and its driver would refuse the launch"
            " with CUDA_ERROR_INVALID_VALUE.",
            over_limit=True,
        )


def _device_memory(
    bound: Sequence[BoundArgument], problem: Problem, inputs: dict[str, Array]
) -> tuple[GlobalMemory, list[Argument], Buffer]:
    """Fresh device memory with a poisoned output, and the kernel's arguments."""
    memory = GlobalMemory()
    dtype = numpy_dtype(problem.dtype)
    buffers: dict[str, Buffer] = {}
    for spec in problem.arrays:
        if spec.is_output:
            initial = inputs.get(spec.name)
            content = np.full(spec.elements, np.nan, dtype) if initial is None else initial
            buffers[spec.name] = memory.allocate(content, spec.name)
        else:
            buffers[spec.name] = memory.allocate(inputs[spec.name], spec.name, read_only=True)
    arguments: list[Argument] = []
    for argument in bound:
        match argument:
            case ArrayArgument(name):
                arguments.append(buffers[name])
            case ValueArgument(content=number):
                arguments.append(number)
            case TensorMap() as made:
                address = buffers[made.array].address
                shape = (made.row_bytes,), made.box, made.swizzle_bytes
                arguments.append(encode_tensor_map(address, made.item_bytes, made.extents, *shape))
    return memory, arguments, buffers[problem.arrays[-1].name]


def _verify(problem: Problem, inputs: dict[str, Array], output: Buffer, *, whole: bool) -> Verification:
    """Compare the written elements with the float64 reference; with `whole` every element must be written."""
    got: NDArray[np.float64]
    if whole:
        indices = np.arange(problem.arrays[-1].elements)
        expected, magnitude = problem.reference(inputs)
    else:
        indices = np.flatnonzero(output.written_mask())
        expected, magnitude = problem.reference_at(inputs, indices)
    got = output.array()[indices].astype(np.float64)
    compared = compare(
        got, np.asarray(expected, np.float64), np.asarray(magnitude, np.float64), problem.bound
    )
    wrong = int(compared.wrong.sum())
    detail = ""
    if not len(indices):
        detail = f"the sampled blocks wrote nothing to {output.name}"
    elif wrong:
        first = int(np.flatnonzero(compared.wrong)[0])
        detail = (
            f"{wrong} of {len(indices)} checked elements are wrong; first:"
            f" {problem.describe_element(int(indices[first]))} is {got[first]:g},"
            f" expected {expected[first]:g}"
        )
    return Verification(
        max_abs_error=_finite(compared.max_abs_error),
        max_rel_error=_finite(compared.max_rel_error),
        bound=problem.bound.relative,
        absolute_bound=problem.bound.absolute,
        checked_elements=len(indices),
        wrong_elements=wrong,
        detail=detail,
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _unit(name: str) -> str:
    """A counter's unit, from the last words of its name."""
    for suffix, unit in {
        "_pct": "%",
        "_bytes": "bytes",
        "_requests": "requests",
        "_sectors": "sectors",
        "_wavefronts": "wavefronts",
        "_conflicts": "conflicts",
        "_instructions": "thread instructions",
        "barriers": "warp barriers",
        "_warps": "warp branches",
    }.items():
        if name.endswith(suffix):
            return unit
    return "events"


def counters_of(result: LaunchResult) -> dict[str, Counter]:
    """A launch's counts as the contract keeps them."""
    return {
        name: Counter(
            value=None if name in result.hidden else value,
            unit=_unit(name),
            source="sim",
            reason=result.hidden.get(name) or ("there was no such access" if value is None else None),
            sampled_blocks=result.sampled_blocks,
            total_blocks=result.total_blocks,
        )
        for name, value in result.counters.items()
    }


def lines_of(result: LaunchResult) -> tuple[SourceLine, ...]:
    """Counts by source line; a line keeps only the events it has."""
    return tuple(
        SourceLine(line, _line_counters(counters)) for line, counters in sorted(result.lines.items()) if line
    )


def _line_counters(counters: LineCounters) -> dict[str, float | int]:
    values = {name: value for name, value in asdict(counters).items() if value}
    for name in ("global_load_efficiency_pct", "global_store_efficiency_pct"):
        share = getattr(counters, name)
        if share is not None:
            values[name] = share
    return values


def _sampling_caveat(result: LaunchResult) -> str | None:
    if result.exact_sample:
        return None
    return (
        f"estimates: the {result.sampled_blocks} blocks that ran of {result.total_blocks} differ among"
        " themselves; --sim-blocks all counts every one"
    )
