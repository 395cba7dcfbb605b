# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A problem's arrays on the device, their references, and the comparison of a kernel's output."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuprof.backends.arguments import Argument, ArrayArgument, ValueArgument
from gpuprof.backends.gpu.context import POISON, Arguments, Buffer, GpuContext
from gpuprof.backends.gpu.device_code import DeviceCode
from gpuprof.backends.gpu.tensor_maps import encode_tensor_map
from gpuprof.backends.gpu.texture_memory import CaseTextures
from gpuprof.backends.verification import finite, worst
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.problems.behaviour import Array, DeviceReference, Expected, Initial, Pointer
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.dtypes import is_float, numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_sentence import describe_wrong
from gpuprof.problems.wrong_values import WrongResult
from gpuprof.results import Verification

_LONG = ctypes.c_longlong
_DOUBLE = ctypes.c_double
_POINTER = ctypes.c_void_p
_HANDLE = ctypes.c_uint64
#: Bytes of a reference's element, and of its magnitude.
_REFERENCE_BYTES = 8
#: Elements of an output that the host looks at, to say what is wrong with it.
_MOST_DESCRIBED = 1 << 25

#: Device functions for an element type, of a source or of the measuring side's own.
CodeFor = Callable[[str, str | None], DeviceCode]


class ProblemArrays:
    """Device arrays of one problem, kept while its kernels are measured one after the other.

    Args:
        code_for: Gives device functions.
        problem: The problem.
        seed: Of its random inputs.
    """

    def __init__(self, code_for: CodeFor, problem: Problem, seed: int) -> None:
        self.problem = problem
        self._code_for = code_for
        self._seed = seed
        self._result = Buffer(32)
        host = problem.inputs(seed)
        self._buffers = {spec.name: Buffer(spec.nbytes) for spec in problem.arrays}
        #: What arrays that are read and written held before any kernel ran.
        self._initial = {spec.name: Buffer(spec.nbytes) for spec in problem.outputs if spec.is_read}
        for name, array in host.items():
            self._initial.get(name, self._buffers[name]).upload(array)
        self._workspace: dict[str, Buffer] = {}
        self._textures = CaseTextures((), self.address)
        self._inputs = [spec.name for spec in problem.arrays if not spec.is_output]
        self._expected: dict[str, Buffer] = {}
        self._magnitude: dict[str, Buffer | None] = {}
        self._make_references(host)
        self._checksums = {name: self._checksum(name) for name in self._inputs}

    @staticmethod
    def device_bytes(problem: Problem) -> int:
        """Device memory that the arrays of a problem take, reference included."""
        reference = problem.device_reference()
        columns = 2 if reference is None or reference.has_magnitude else 1
        total = problem.array_bytes
        for spec in problem.outputs:
            total += columns * _REFERENCE_BYTES * spec.elements
            total += spec.nbytes if spec.is_read else 0
        return total

    @property
    def reads_output(self) -> bool:
        """Whether an output holds something before a kernel runs."""
        return bool(self._initial)

    def make_workspace(self, specs: Sequence[ArraySpec]) -> None:
        """Give the arrays of another kernel back, and make those of this one.

        Raises:
            CaseFailure: They do not fit.
        """
        while self._workspace:
            self._workspace.popitem()[1].free()
        for spec in specs:
            self._workspace[spec.name] = Buffer(spec.nbytes)

    def make_textures(self, textures: Sequence[Texture]) -> None:
        """Give those of another kernel back, and make those of this one.

        Raises:
            CaseFailure: They do not fit, or the device does not take them.
        """
        self._textures.free()
        self._textures = CaseTextures((), self.address)
        self._textures = CaseTextures(textures, self.address)

    def address(self, name: str) -> int:
        """Where an array starts on the device, be it the problem's or the kernel's own."""
        return (self._workspace.get(name) or self._buffers[name]).address

    def buffer(self, name: str) -> Buffer:
        """The device memory of an array."""
        return self._buffers[name]

    def arguments(self, bound: Sequence[Argument]) -> Arguments:
        """Kernel arguments as the driver takes them.

        Args:
            bound: What `bind_arguments` made of the kernel's.
        """
        packed: list[Any] = []
        for argument in bound:
            match argument:
                case ArrayArgument(name):
                    packed.append(_POINTER(self.address(name)))
                case ValueArgument(content=content):
                    packed.append((ctypes.c_ubyte * len(content)).from_buffer_copy(content))
                case TensorMap(array=array):
                    packed.append(encode_tensor_map(argument, self.address(array)))
                case Texture(argument=name):
                    packed.append(_HANDLE(self._textures.handle(name)))
        return Arguments(packed)

    def prepare(self, unread: float | None = None) -> None:
        """Make all as if no kernel had run: inputs, guards, and the rest poisoned or as it was.

        Args:
            unread: What outputs shall hold that kernels must not read, though they may for other scalars;
                None for poison.
        """
        if not self.inputs_intact():
            for name, array in self.problem.inputs(self._seed).items():
                if name in self._inputs:
                    self._buffers[name].upload(array)
        for buffer in (*self._buffers.values(), *self._workspace.values()):
            buffer.poison_guards()
        for buffer in self._workspace.values():
            buffer.fill(POISON)
        for spec in self.problem.outputs:
            if spec.is_read:
                self._buffers[spec.name].copy_from(self._initial[spec.name])
            elif spec.unread and unread is not None:
                self._buffers[spec.name].upload(np.full(spec.elements, unread, numpy_dtype(spec.dtype)))
            else:
                self._buffers[spec.name].fill(POISON)
        self._textures.fill()

    def verify(self) -> Verification:
        """Compare the outputs, element by element, with their references."""
        self._textures.drain()
        verification = worst([self._compare(spec) for spec in self.problem.outputs])
        if verification.passed and (detail := self._check_surroundings()):
            return Verification(
                max_abs_error=verification.max_abs_error,
                max_rel_error=verification.max_rel_error,
                bound=verification.bound,
                absolute_bound=verification.absolute_bound,
                checked_elements=verification.checked_elements,
                detail=detail,
            )
        return verification

    def inputs_intact(self) -> bool:
        """Whether no kernel wrote to the inputs since they were uploaded."""
        return all(self._checksum(name) == self._checksums[name] for name in self._inputs)

    def free(self) -> None:
        """Give all device memory back."""
        self._textures.free()
        kept = (self._buffers, self._workspace, self._initial, self._expected, self._magnitude)
        for buffer in (self._result, *(buffer for held in kept for buffer in held.values())):
            if buffer is not None:
                buffer.free()

    def _compare(self, spec: ArraySpec) -> Verification:
        bound = self.problem.bound(spec.name)
        exact = _is_compared_as_integers(self.problem, spec)
        self._result.upload(np.array([0, 0, 0, 2**64 - 1], dtype=np.uint64))
        arguments: list[Any] = [
            _LONG(spec.elements),
            _POINTER(self.address(spec.name)),
            _POINTER(self._expected[spec.name].address),
        ]
        if not exact:
            magnitude = self._magnitude[spec.name]
            arguments += [
                _POINTER(magnitude.address if magnitude else 0),
                *map(_DOUBLE, (bound.relative, bound.absolute, bound.largest, bound.rounding)),
            ]
        arguments.append(_POINTER(self._result.address))
        self._code_for(spec.dtype, None).launch("compare_integers" if exact else "compare", arguments)
        raw = self._result.download(np.uint64, count=4)
        max_abs, max_rel = (float(value) for value in raw[:2].view(np.float64))
        wrong = int(raw[2])
        return Verification(
            max_abs_error=finite(max_abs),
            max_rel_error=finite(max_rel),
            bound=bound.relative,
            absolute_bound=bound.absolute,
            checked_elements=spec.elements,
            wrong_elements=wrong,
            detail=self._describe(spec, int(raw[3]), exact, bound) if wrong else "",
            array=spec.name,
            first_wrong=int(raw[3]) if wrong else None,
        )

    def _describe(self, spec: ArraySpec, first: int, exact: bool, bound: ErrorBound) -> str:
        """What is wrong with an output, from the whole of it; of a very large one, from where that begins."""
        begin = first if spec.elements > _MOST_DESCRIBED else 0
        count = min(spec.elements - begin, _MOST_DESCRIBED)

        def download(buffer: Buffer, dtype: Any) -> Array:
            content: Array = buffer.download(dtype, count=count, offset=begin)
            return content

        got = download(self._buffers[spec.name], numpy_dtype(spec.dtype))
        values = download(self._expected[spec.name], np.int64 if exact else np.float64)
        sizes = self._magnitude[spec.name]
        magnitude = np.ones(1) if sizes is None else download(sizes, np.float64)
        before = np.full(got.nbytes, POISON, np.uint8).view(got.dtype)
        if spec.is_read:
            before = download(self._initial[spec.name], got.dtype)
        whole = count == spec.elements
        result = WrongResult(
            shape=spec.shape if whole else (),
            axes=self.problem.axes(spec.name) if whole else (),
            got=got,
            expected=Expected(values, magnitude),
            wrong=compare(got, values, magnitude, bound).wrong,
            unwritten=_bits(got) == _bits(before),
            bound=bound,
            scalars=self.problem.scalars,
        )
        return describe_wrong(
            self.problem, spec.name, result, None if whole else np.arange(begin, begin + count)
        )

    def _check_surroundings(self) -> str:
        for name, buffer in {**self._buffers, **self._workspace}.items():
            if place := buffer.overrun():
                return f"the kernel wrote {place} of {name}"
        if not self.inputs_intact():
            return "the kernel wrote to one of its inputs"
        return ""

    def _checksum(self, name: str) -> int:
        buffer = self._buffers[name]
        self._result.upload(np.zeros(4, dtype=np.uint64))
        arguments = [_LONG(buffer.nbytes), _POINTER(buffer.address), _POINTER(self._result.address)]
        self._code_for("f32", None).launch("checksum", arguments)
        return int(self._result.download(np.uint64, count=1)[0])

    def _make_references(self, host: dict[str, Array]) -> None:
        reference = self.problem.device_reference()
        if reference is None:
            self._upload_references(host)
            return
        for spec in self.problem.outputs:
            self._expected[spec.name] = Buffer(_REFERENCE_BYTES * spec.elements)
            sized = Buffer(_REFERENCE_BYTES * spec.elements) if reference.has_magnitude else None
            self._magnitude[spec.name] = sized
        code = self._code_for(self.problem.dtype, reference.source)
        code.launch(reference.entry, self._packed(reference), reference.grid, reference.block)

    def _upload_references(self, host: dict[str, Array]) -> None:
        """References by NumPy.

        Raises:
            ExpressionError: A formula of the operation has no value.
        """
        for name, expected in self.problem.reference(host).items():
            exact = _is_compared_as_integers(self.problem, self.problem.array(name))
            values = expected.values.astype(np.int64 if exact else np.float64, copy=False)
            self._expected[name] = Buffer(values.nbytes)
            self._expected[name].upload(values)
            magnitude = np.broadcast_to(expected.magnitude, values.shape).astype(np.float64)
            self._magnitude[name] = Buffer(magnitude.nbytes)
            self._magnitude[name].upload(magnitude)  # type: ignore[union-attr]

    def _packed(self, reference: DeviceReference) -> list[Any]:
        packed: list[Any] = []
        for argument in reference.arguments:
            match argument:
                case Pointer(array):
                    packed.append(_POINTER(self._reference_address(array)))
                case Initial(array):
                    packed.append(_POINTER(self._initial[array].address if array in self._initial else 0))
                case int():
                    packed.append(_LONG(argument))
                case float():
                    packed.append(_DOUBLE(argument))
        return packed

    def _reference_address(self, name: str) -> int:
        """Address of an array, or with a word in front of an output's reference or magnitude."""
        word, _, output = name.rpartition(" ")
        if word == "expected":
            return self._expected[output].address
        if word == "magnitude":
            magnitude = self._magnitude[output]
            return magnitude.address if magnitude else 0
        return self.address(name)


def _bits(values: Array) -> Array:
    """Elements as integers of their size, so that NaN equals itself."""
    return values.view(f"u{values.itemsize}")


def _is_compared_as_integers(problem: Problem, spec: ArraySpec) -> bool:
    """Integers of which none may be off are compared as such: a double does not hold all of them."""
    bound = problem.bound(spec.name)
    return not is_float(spec.dtype) and not bound.relative and not bound.absolute


class ArrayKeeper:
    """The arrays of one problem at a time, and the device functions that they need.

    Args:
        context: The open device.
        arch: Its architecture.
        seed: Of the problems' random inputs.
    """

    def __init__(self, context: GpuContext, arch: str, seed: int) -> None:
        self._context = context
        self._arch = arch
        self._seed = seed
        self._code: dict[tuple[str, str | None], DeviceCode] = {}
        self._arrays: ProblemArrays | None = None

    def code(self, dtype: str, source: str | None = None) -> DeviceCode:
        """Device functions for an element type, of a source or the measuring side's own."""
        key = (dtype, source)
        if key not in self._code:
            self._code[key] = DeviceCode(self._context, self._arch, dtype, source)
        return self._code[key]

    def of(self, problem: Problem) -> ProblemArrays:
        """The arrays of a problem; those of another are given back first."""
        if self._arrays is None or self._arrays.problem != problem:
            self.forget()
            self._arrays = ProblemArrays(self.code, problem, self._seed)
        return self._arrays

    def forget(self) -> None:
        """Give the device memory back."""
        if self._arrays is not None:
            self._arrays.free()
            self._arrays = None
