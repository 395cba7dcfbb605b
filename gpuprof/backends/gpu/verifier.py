# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A problem's arrays on the device, their float64 reference, and the comparison of a kernel's output."""

import ctypes
from collections.abc import Sequence
from functools import partial
from importlib import resources
from typing import Any

import numpy as np

from gpuprof.backends.arguments import Argument, ArrayArgument, ValueArgument
from gpuprof.backends.gpu.context import POISON, Arguments, Buffer, Function, GpuContext
from gpuprof.backends.gpu.tensor_maps import encode_tensor_map
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.problems.base import C_TYPE, ITEM_BYTES, numpy_dtype
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose
from gpuprof.results import Problem, Verification
from gpuprof.toolchain.cache import compile_cached
from gpuprof.toolchain.nvrtc import compiler_options

_INT = ctypes.c_int
_LONG = ctypes.c_longlong
_DOUBLE = ctypes.c_double
_POINTER = ctypes.c_void_p
#: Grid and block of the elementwise device functions; they stride over any length.
_GRID = (1024, 1, 1)
_BLOCK = (256, 1, 1)


class DeviceCode:
    """The measuring side's own device functions for one element type."""

    def __init__(self, context: GpuContext, arch: str, dtype: str) -> None:
        source = resources.files(__package__).joinpath("device_code.cu").read_text(encoding="utf-8")
        options = compiler_options(arch, [("real", C_TYPE[dtype])])
        compiled = compile_cached(source, "device_code.cu", "compare", options)
        self._context = context
        self._load = partial(Function, compiled.cubin)
        self._functions: dict[str, Function] = {}

    def launch(
        self,
        name: str,
        arguments: Sequence[Any],
        grid: tuple[int, int, int] = _GRID,
        block: tuple[int, int, int] = _BLOCK,
    ) -> None:
        """Run one of the functions to its end."""
        self._function(name).launch(grid, block, 0, self._context.stream, Arguments(arguments))
        self._context.synchronize()

    def queue(self, name: str, arguments: Arguments) -> None:
        """Queue one of the elementwise functions."""
        self._function(name).launch(_GRID, _BLOCK, 0, self._context.stream, arguments)

    def _function(self, name: str) -> Function:
        if name not in self._functions:
            self._functions[name] = self._load(name)
        return self._functions[name]


class ProblemArrays:
    """Device arrays of one problem, kept while its kernels are measured one after the other.

    Args:
        context: The open device.
        code: Device functions for the problem's element type.
        problem: The problem.
        seed: Of its random inputs.
    """

    def __init__(self, context: GpuContext, code: DeviceCode, problem: Problem, seed: int) -> None:
        self._code = code
        self.problem = problem
        self.item_bytes = ITEM_BYTES[problem.dtype]
        self._context = context
        output = problem.arrays[-1]
        self.elements = output.elements
        self._seed = seed
        host = problem.inputs(seed)
        self.initial_output: Buffer | None = None
        self.inputs: dict[str, Buffer] = {}
        for name, array in host.items():
            buffer = Buffer(array.nbytes)
            buffer.upload(array)
            if name == output.name:
                self.initial_output = buffer
            else:
                self.inputs[name] = buffer
        self.output_name = output.name
        self.output = Buffer(self.elements * self.item_bytes)
        self._result = Buffer(32)
        self._expected, self._magnitude = self._reference()
        self._checksums = {name: self._checksum(buffer) for name, buffer in self.inputs.items()}

    @staticmethod
    def device_bytes(problem: Problem) -> int:
        """Device memory that the arrays of a problem take, reference included."""
        item = ITEM_BYTES[problem.dtype]
        total = sum(spec.elements for spec in problem.arrays) * item
        output = problem.arrays[-1].elements
        if isinstance(problem, Gemm):
            total += 16 * output + (output * item if problem.beta else 0)
        else:
            total += 8 * output
        return total

    def arguments(self, bound: Sequence[Argument]) -> Arguments:
        """Kernel arguments as the driver takes them.

        Args:
            bound: What `bind_arguments` made of the kernel's.
        """
        packed: list[Any] = []
        for argument in bound:
            match argument:
                case ArrayArgument(name):
                    packed.append(_POINTER(self._buffer(name).address))
                case ValueArgument(content=content):
                    packed.append((ctypes.c_ubyte * len(content)).from_buffer_copy(content))
                case TensorMap(array=array):
                    packed.append(encode_tensor_map(argument, self._buffer(array).address))
        return Arguments(packed)

    def _buffer(self, name: str) -> Buffer:
        return self.output if name == self.output_name else self.inputs[name]

    @property
    def reads_output(self) -> bool:
        """Whether the output holds something before a kernel runs."""
        return self.initial_output is not None

    def prepare(self) -> None:
        """Make all as if no kernel had run: inputs, guards, and the output poisoned or as beta scales it."""
        if not self.inputs_intact():
            for name, array in self.problem.inputs(self._seed).items():
                if name in self.inputs:
                    self.inputs[name].upload(array)
        for buffer in (*self.inputs.values(), self.output):
            buffer.poison_guards()
        if self.initial_output is None:
            self.output.fill(POISON)
        else:
            self.output.copy_from(self.initial_output)

    def verify(self) -> Verification:
        """Compare the output, element by element, with the float64 reference."""
        bound = self.problem.bound
        start = np.array([0, 0, 0, 2**64 - 1], dtype=np.uint64)
        self._result.upload(start)
        self._code.launch(
            "compare",
            [
                _LONG(self.elements),
                _POINTER(self.output.address),
                _POINTER(self._expected.address),
                _POINTER(self._magnitude.address if self._magnitude else 0),
                *map(_DOUBLE, (bound.relative, bound.absolute, bound.largest)),
                _POINTER(self._result.address),
            ],
        )
        raw = self._result.download(np.uint64, count=4)
        max_abs, max_rel = (float(value) for value in raw[:2].view(np.float64))
        wrong = int(raw[2])
        detail = self._describe(int(raw[3])) if wrong else self._check_surroundings()
        return Verification(
            max_abs_error=max_abs if np.isfinite(max_abs) else None,
            max_rel_error=max_rel if np.isfinite(max_rel) else None,
            bound=bound.relative,
            absolute_bound=bound.absolute,
            checked_elements=self.elements,
            wrong_elements=wrong,
            detail=detail,
        )

    def inputs_intact(self) -> bool:
        """Whether no kernel wrote to the inputs since they were uploaded."""
        return all(self._checksum(buffer) == self._checksums[name] for name, buffer in self.inputs.items())

    def free(self) -> None:
        """Give all device memory back."""
        for buffer in (
            *self.inputs.values(),
            self.initial_output,
            self.output,
            self._result,
            self._expected,
            self._magnitude,
        ):
            if buffer is not None:
                buffer.free()

    def _check_surroundings(self) -> str:
        for name, buffer in ((self.output_name, self.output), *self.inputs.items()):
            if place := buffer.overrun():
                return f"the kernel wrote {place} of {name}"
        if not self.inputs_intact():
            return "the kernel wrote to one of its inputs"
        return ""

    def _describe(self, index: int) -> str:
        got = self.output.download(numpy_dtype(self.problem.dtype), count=1, offset=index)[0]
        expected = self._expected.download(np.float64, count=1, offset=index)[0]
        return (
            f"first wrong element: {self.problem.describe_element(index)} is {got:g}, expected {expected:g}"
        )

    def _checksum(self, buffer: Buffer) -> int:
        self._result.upload(np.zeros(4, dtype=np.uint64))
        words = buffer.nbytes // 4
        arguments = [_LONG(words), _POINTER(buffer.address), _POINTER(self._result.address)]
        self._code.launch("checksum", arguments)
        return int(self._result.download(np.uint64, count=1)[0])

    def _reference(self) -> tuple[Buffer, Buffer | None]:
        expected = Buffer(8 * self.elements)
        problem = self.problem
        if isinstance(problem, Transpose):
            source = _POINTER(self.inputs["in"].address)
            copy = _INT(problem.result == "copy")
            arguments = [_LONG(problem.nx), _LONG(problem.ny), copy, source, _POINTER(expected.address)]
            self._code.launch("reference_transpose", arguments)
            return expected, None
        magnitude = Buffer(8 * self.elements)

        def strides(rows: int, columns: int) -> list[Any]:
            """Distances between elements of neighbouring rows and columns."""
            return [_LONG(columns), _LONG(1)] if problem.layout == "row" else [_LONG(1), _LONG(rows)]

        m, n, k = problem.m, problem.n, problem.k
        alpha, beta = (
            float(numpy_dtype(problem.dtype).type(value)) for value in (problem.alpha, problem.beta)
        )
        old = self.initial_output.address if self.initial_output else 0
        arguments = [
            *(_INT(m), _INT(n), _INT(k), _DOUBLE(alpha)),
            *(_POINTER(self.inputs["A"].address), *strides(m, k)),
            *(_POINTER(self.inputs["B"].address), *strides(k, n)),
            *(_DOUBLE(beta), _POINTER(old), *strides(m, n)),
            *(_POINTER(expected.address), _POINTER(magnitude.address)),
        ]
        self._code.launch("reference_gemm", arguments, (-(-n // 64), -(-m // 64), 1), (16, 16, 1))
        return expected, magnitude
