# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a problem's outputs must be, on the device and hidden there, so that no kernel can read it."""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuprof.backends.gpu.context import POISON, Arguments, DeviceBuffer
from gpuprof.backends.gpu.fresh_inputs import CodeFor
from gpuprof.backends.verification import compare_without_order, finite
from gpuprof.machine import compute_in_all_threads, memory_limited
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.dtypes import is_float, numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array, Expected, Pointer
from gpuprof.problems.wrong_values import describe_wrong
from gpuprof.results import Verification

_LONG = ctypes.c_longlong
_DOUBLE = ctypes.c_double
_POINTER = ctypes.c_void_p
_WORD = ctypes.c_ulonglong
#: Bytes of a reference's element, and of its magnitude.
REFERENCE_BYTES = 8
#: Operations from which on a reference takes all cores: they are products of matrices.
_MANY_FLOPS = 1_000_000_000
#: Elements of an output that the host looks at, to say what is wrong with it.
_MOST_DESCRIBED = 1 << 25


class _Reference(ctypes.Structure):
    """`Expected` of device_code.cu: what an output's elements are held against."""

    _fields_ = (
        *((name, _POINTER) for name in ("hidden", "magnitude")),
        *((name, _DOUBLE) for name in ("relative", "absolute", "largest", "rounding")),
        *(("key", _WORD), ("exact", ctypes.c_int)),
    )


class ExpectedOutputs:
    """References and magnitudes of a problem's outputs."""

    def __init__(
        self,
        code_for: CodeFor,
        problem: Problem,
        key: int,
        buffers: Mapping[str, DeviceBuffer],
        initial: Mapping[str, DeviceBuffer],
    ) -> None:
        self._code_for = code_for
        self._problem = problem
        self._key = key
        self._buffers = buffers
        self._initial = initial
        self._expected: dict[str, DeviceBuffer] = {}
        self._magnitude: dict[str, DeviceBuffer | None] = {}
        #: Of outputs whose elements have no order; no device function compares these.
        self._unordered: dict[str, Expected] = {}
        self._result = DeviceBuffer(32)

    @property
    def buffers(self) -> tuple[DeviceBuffer, ...]:
        """The device memory that holds them."""
        kept = (*self._expected.values(), *self._magnitude.values())
        return tuple(buffer for buffer in kept if buffer is not None)

    def make(self, host: Mapping[str, Array]) -> None:
        """Compute them, and hide them."""
        self._free_buffers()
        self._compute(host)
        for name in self._expected:
            self._hide(name)

    def download(self, spec: ArraySpec, *, begin: int, count: int) -> Expected:
        """What elements of an output must be; where every magnitude is 1, there is one."""
        kind = np.int64 if _is_compared_as_integers(self._problem, spec) else np.float64
        sizes = self._magnitude.get(spec.name)
        with self._shown(spec.name):
            values = self._expected[spec.name].download(kind, count=count, offset=begin)
            if sizes is None:
                return Expected(values, np.ones(1))
            return Expected(values, sizes.download(np.float64, count=count, offset=begin))

    def free(self) -> None:
        self._free_buffers()
        self._result.free()

    def _free_buffers(self) -> None:
        for buffer in self.buffers:
            buffer.free()
        self._expected, self._magnitude = {}, {}

    def picked(
        self, spec: ArraySpec, picks: ctypes.c_longlong, secret: ctypes.c_ulonglong, wrong: DeviceBuffer
    ) -> tuple[Arguments, Arguments | None]:
        """What `spoil` and `compare_picked` take for an output; the latter none where elements have no order.

        How many elements, and the secret that decides which, count as they are when a function is queued.
        """
        head = (_LONG(spec.elements), _POINTER(self._buffers[spec.name].address))
        chosen = (picks, secret)
        if spec.name in self._unordered:
            return Arguments([*head, *chosen]), None
        compared = (self._reference(spec), *chosen, _POINTER(wrong.address))
        return Arguments([*head, *chosen]), Arguments([*head, *compared])

    def _reference(self, spec: ArraySpec) -> _Reference:
        bound, magnitude = self._problem.bound(spec.name), self._magnitude[spec.name]
        return _Reference(
            *(self._expected[spec.name].address, magnitude.address if magnitude else 0),
            *(bound.relative, bound.absolute, bound.largest, bound.rounding),
            *(self._key, _is_compared_as_integers(self._problem, spec)),
        )

    def compare(self, spec: ArraySpec) -> Verification:
        """Hold an output against its reference, element by element."""
        if spec.name in self._unordered:
            expected = self._unordered[spec.name]
            return compare_without_order(
                self._problem, spec, lambda one: self._buffers[one.name].held(one), expected
            )
        bound = self._problem.bound(spec.name)
        self._result.upload(np.array([0, 0, 0, 2**64 - 1], dtype=np.uint64))
        head = (_LONG(spec.elements), _POINTER(self._buffers[spec.name].address))
        arguments = [*head, self._reference(spec), _POINTER(self._result.address)]
        self._code_for(spec.dtype, None).launch("compare", arguments)
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
            detail=self._describe(spec, int(raw[3]), bound) if wrong else "",
            array=spec.name,
            first_wrong=int(raw[3]) if wrong else None,
        )

    def _describe(self, spec: ArraySpec, first: int, bound: ErrorBound) -> str:
        """What is wrong with an output, from the whole of it; of a very large one, from where that begins."""
        begin = first if spec.elements > _MOST_DESCRIBED else 0
        count = min(spec.elements - begin, _MOST_DESCRIBED)

        def download(buffer: DeviceBuffer, dtype: Any) -> Array:
            content: Array = buffer.download(dtype, count=count, offset=begin)
            return content

        got = download(self._buffers[spec.name], numpy_dtype(spec.dtype))
        expected = self.download(spec, begin=begin, count=count)
        before = np.full(got.nbytes, POISON, np.uint8).view(got.dtype)
        if spec.is_read:
            before = download(self._initial[spec.name], got.dtype)
        return describe_wrong(
            self._problem,
            spec.name,
            got,
            expected,
            compare(got, expected.values, expected.magnitude, bound).wrong,
            _bits(got) == _bits(before),
            None if count == spec.elements else np.arange(begin, begin + count),
        )

    @contextmanager
    def _shown(self, output: str) -> Iterator[None]:
        """Show an output's reference and magnitude, and hide them again."""
        self._hide(output)
        try:
            yield
        finally:
            self._hide(output)

    def _hide(self, output: str) -> None:
        for buffer in (self._expected[output], self._magnitude.get(output)):
            if buffer is not None:
                words = _LONG(buffer.nbytes // REFERENCE_BYTES)
                arguments = [words, _POINTER(buffer.address), _WORD(self._key)]
                self._code_for("f32", None).launch("hide", arguments)

    def _compute(self, host: Mapping[str, Array]) -> None:
        reference = self._problem.device_reference()
        if reference is None:
            self._upload(host)
            return
        for spec in self._problem.outputs:
            self._expected[spec.name] = DeviceBuffer(REFERENCE_BYTES * spec.elements)
            sized = DeviceBuffer(REFERENCE_BYTES * spec.elements) if reference.has_magnitude else None
            self._magnitude[spec.name] = sized
        code = self._code_for(self._problem.dtype, reference.source)
        arguments = [*map(self._packed, reference.arguments)]
        code.launch(reference.entry, arguments, reference.grid, reference.block)

    def _upload(self, host: Mapping[str, Array]) -> None:
        """References by NumPy."""
        if self._problem.flops >= _MANY_FLOPS:
            compute_in_all_threads()
        with memory_limited():
            expected_values = self._problem.reference(host)
        checks = self._problem.checks
        self._unordered = {name: kept for name, kept in expected_values.items() if checks[name].unordered}
        for name, expected in expected_values.items():
            if name in self._unordered:
                continue
            exact = _is_compared_as_integers(self._problem, self._problem.array(name))
            values = expected.values.astype(np.int64 if exact else np.float64, copy=False)
            self._expected[name] = DeviceBuffer(values.nbytes)
            self._expected[name].upload(values)
            magnitude = np.broadcast_to(expected.magnitude, values.shape).astype(np.float64)
            self._magnitude[name] = DeviceBuffer(magnitude.nbytes)
            self._magnitude[name].upload(magnitude)  # type: ignore[union-attr]

    def _packed(self, argument: int | float | Pointer) -> Any:
        if isinstance(argument, Pointer):
            return _POINTER(self._reference_address(argument.array))
        return _LONG(argument) if isinstance(argument, int) else _DOUBLE(argument)

    def _reference_address(self, name: str) -> int:
        """Address of what a `Pointer` names."""
        word, _, array = name.rpartition(" ")
        words: dict[str, Mapping[str, DeviceBuffer | None]] = {
            **{"": self._buffers, "expected": self._expected, "magnitude": self._magnitude},
            "initial": dict.fromkeys(self._buffers) | dict(self._initial),
        }
        found = words[word][array]
        return found.address if found else 0


def _bits(values: Array) -> Array:
    """Elements as integers of their size, so that NaN equals itself."""
    return values.view(f"u{values.itemsize}")


def _is_compared_as_integers(problem: Problem, spec: ArraySpec) -> bool:
    """Integers of which none may be off are compared as such: a double does not hold all of them."""
    bound = problem.bound(spec.name)
    return not is_float(spec.dtype) and not bound.relative and not bound.absolute
