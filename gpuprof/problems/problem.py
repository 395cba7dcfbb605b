# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A problem: an operation with its sizes, element type, scalars and options."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

from msgspec import Struct

from gpuprof.operation import Check, Operation, Role
from gpuprof.problems.check import ErrorBound
from gpuprof.problems.coded import CODED, GIVEN, OF_GIVEN
from gpuprof.problems.dtypes import (
    ELEMENT_TYPES,
    RESULT,
    RUN_TYPES,
    is_float,
    largest,
    numpy_dtype,
    of_run,
    rounded,
    smallest,
    wider,
)
from gpuprof.problems.formulas import ExpressionError, evaluate, evaluate_arrays, evaluate_real
from gpuprof.problems.generators import generate
from gpuprof.problems.numpy_later import NDArray, np
from gpuprof.problems.references import (
    Array,
    DeviceReference,
    Expected,
    HostCall,
    LibraryCall,
    Pointer,
    sorted_rows,
)
from gpuprof.problems.wrong_places import Axis, axes_of
from gpuprof.records import replace
from gpuprof.results import ProblemRecord, size_label

#: Rows whose formula is evaluated at once, where it may be by rows, times how many there are.
_AT_ONCE = 1 << 22
#: Bytes of arrays up to which their contents are drawn side by side: to draw some takes several times theirs.
_SIDE_BY_SIDE_BYTES = 1 << 30


class ArraySpec(Struct, frozen=True):
    """One device array of a problem.

    Args:
        shape: Extents as stored: elements along the last one are neighbours.
        unread: Of one that kernels may read for other scalars, why not for these, as the rest of a sentence
            after `though`; empty for any other.
        addresses: Of one that holds addresses, of which array each is, and how many bytes behind its start.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: Role = "in"
    unread: str = ""
    addresses: tuple[tuple[str, int], ...] = ()

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * ELEMENT_TYPES[self.dtype].nbytes

    def table(self, address: Callable[[str], int]) -> "Array":
        """The addresses that it holds, by where each array starts."""
        return np.array([address(name) + offset for name, offset in self.addresses], np.uint64)

    @property
    def is_read(self) -> bool:
        """Whether it has content before a kernel runs."""
        return self.role != "out"

    @property
    def is_output(self) -> bool:
        """Whether kernels write it, and it is verified."""
        return self.role != "in"


@dataclass(frozen=True)
class Problem:
    """One computation with its size: immutable, hashable, and the same wherever it travels."""

    operation: Operation
    sizes: tuple[int, ...]
    dtype: str = "f32"
    scalar_values: tuple[float, ...] = ()
    option_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Wherever it comes from, another process too: the class that computes its operation.
        object.__setattr__(self, "__class__", _class(self.operation.coded))

    @classmethod
    def of(
        cls,
        operation: Operation,
        sizes: tuple[int, ...],
        dtype: str = "f32",
        scalars: Mapping[str, float] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> "Problem":
        """A problem by names; scalars and options that are not named have their defaults."""
        given, chosen = scalars or {}, options or {}
        return cls(
            operation,
            tuple(sizes),
            dtype,
            tuple(float(given.get(name, scalar.default)) for name, scalar in operation.scalars.items()),
            tuple(chosen.get(name, option.default) for name, option in operation.options.items()),
        )

    def with_options(self, options: Mapping[str, str]) -> "Problem":
        merged = {**self.options, **options}
        return replace(self, option_values=tuple(merged[name] for name in self.operation.options))

    @property
    def label(self) -> str:
        """The size as a user types it, for example `4096` or `512x1024x256`."""
        return size_label(self.sizes)

    @property
    def dimensions(self) -> dict[str, int]:
        """Sizes by the names that kernel headers use in their formulas."""
        return dict(zip(self.operation.dimensions, self.sizes, strict=True))

    @property
    def scalars(self) -> dict[str, float]:
        """Numbers besides the sizes, as asked for."""
        return dict(zip(self.operation.scalars, self.scalar_values, strict=True))

    @property
    def options(self) -> dict[str, str]:
        """The variant of the operation."""
        return dict(zip(self.operation.options, self.option_values, strict=True))

    @property
    def is_ceiling(self) -> bool:
        """True for less than the operation, which bounds what it can reach."""
        declared = self.operation.options
        return any(
            declared[name].ceiling and value == declared[name].ceiling for name, value in self.options.items()
        )

    @property
    def checks(self) -> Mapping[str, Check]:
        """How outputs are held against their references, by name."""
        operation = self.operation
        return (operation.ceiling_checks if self.is_ceiling else {}) or operation.checks

    @property
    def real_bytes(self) -> int:
        """Bytes of an element of the run's type."""
        return ELEMENT_TYPES[self.dtype].nbytes

    def scalar_type(self, name: str) -> str:
        return of_run(self.operation.scalars[name].type, self.dtype)

    def rounded(self, name: str) -> float | int:
        """A scalar as the kernel receives it: rounded to its type."""
        dtype, value = self.scalar_type(name), self.scalars[name]
        if not is_float(dtype):
            return int(value)
        return float(rounded(value, dtype))

    def record(self) -> ProblemRecord:
        return ProblemRecord(
            operation=self.operation.name,
            sizes=self.dimensions,
            dtype=self.dtype,
            scalars=self.scalars,
            options=self.options,
            flops=self.flops,
            min_bytes=self.min_bytes,
            output_bytes=sum(spec.nbytes for spec in self.outputs),
        )

    @property
    def outputs(self) -> tuple[ArraySpec, ...]:
        return tuple(spec for spec in self.arrays if spec.is_output)

    def array(self, name: str) -> ArraySpec:
        return next(spec for spec in self.arrays if spec.name == name)

    @property
    def array_bytes(self) -> int:
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def flops(self) -> int:
        """Floating-point operations that the computation needs."""
        return self._work(self.operation.work.flops)

    @property
    def min_bytes(self) -> int:
        """Fewest bytes that must cross device memory: inputs read once, outputs written once."""
        return self._work(self.operation.work.bytes)

    def bound(self, output: str) -> "ErrorBound":
        """How far an element of an output may lie from its reference.

        Raises:
            ExpressionError: A formula of the operation has no value for this size, or a negative one.
        """
        dtype = self.array(output).dtype
        check = self.checks[output]
        # Where sums are kept in a wider type, the result is rounded once more, to its own.
        computed = wider(dtype, check.accumulate) if check.accumulate and is_float(dtype) else dtype
        values = {
            **self.dimensions,
            **self.scalars,
            "u": ELEMENT_TYPES[computed].roundoff,
            "tiny": smallest(computed),
            "truncation": RUN_TYPES[self.dtype].truncation,
        }
        relative, absolute = (float(evaluate_real(text, values)) for text in (check.relative, check.absolute))
        if relative < 0 or absolute < 0:
            raise ExpressionError(f"the error allowed in {output} would be negative")
        if computed == dtype:
            # Rounding errs by half the smallest number where `u` is no share of what is rounded.
            rounds = is_float(dtype) and relative + absolute > 0
            return ErrorBound(relative, absolute + rounds * smallest(dtype) / 2, largest(dtype))
        rounding = ELEMENT_TYPES[dtype].roundoff * (1 + relative)
        return ErrorBound(relative, absolute + smallest(dtype), largest(dtype), rounding)

    def _work(self, formula: str) -> int:
        result_bytes = ELEMENT_TYPES[of_run(RESULT, self.dtype)].nbytes
        own = {"real_bytes": self.real_bytes, "result_bytes": result_bytes}
        values = {**self.dimensions, **self.scalars, **own}
        return round(evaluate_real(formula, values))

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The device arrays, in the operation's order."""
        specs = []
        for name, declared in self.operation.arrays.items():
            shape = tuple(evaluate(text, self.dimensions) for text in declared.shape)
            if min(shape) < 1:
                raise ExpressionError(f"{name} would have the shape {shape}")
            dtype = of_run(declared.dtype, self.dtype)
            specs.append(ArraySpec(name, shape, dtype, *role_of(self, name)))
        return tuple(specs)

    @property
    def drawn(self) -> Any:
        """What its inputs follow from beside a seed: in another storage order they are the same numbers."""
        arrays = [(spec.name, spec.elements, spec.dtype, spec.is_read) for spec in self.arrays]
        return self.operation, self.sizes, arrays

    def inputs(self, seed: int) -> dict[str, Array]:
        """Reproducible flat arrays, in device storage order, for every array that a kernel reads."""
        from concurrent.futures import Future, ThreadPoolExecutor

        made: dict[str, Future[Array]] = {}
        with ThreadPoolExecutor(None if self.array_bytes <= _SIDE_BY_SIDE_BYTES else 1) as threads:
            for stream, spec in enumerate(self.arrays):
                if spec.is_read:
                    about = spec.elements, spec.dtype, seed, stream, self.dimensions
                    text, before = self.operation.inputs[spec.name], lambda name: made[name].result()
                    made[spec.name] = threads.submit(generate, text, *about, before)
        return {name: array.result() for name, array in made.items()}

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """Each output as it must be: float64 or 64-bit integers, flat, in storage order.

        Raises:
            ExpressionError: A formula of the operation cannot be evaluated for this size.
        """
        if not self.operation.independent:
            return self._evaluated(inputs)
        return {
            spec.name: self._of_rows(inputs, spec, np.arange(spec.elements // _row_elements(self, spec)))
            for spec in self.outputs
        }

    def reference_at(
        self, inputs: Mapping[str, Array], output: str, indices: "NDArray[np.intp]"
    ) -> Expected | None:
        """As `reference`, for some elements of one output only; None where that saves nothing.

        A formula is evaluated as a whole, or for the independent rows that the elements lie in.
        """
        if not self.operation.independent:
            return None
        spec = self.array(output)
        length = _row_elements(self, spec)
        rows, which = np.unique(indices // length, return_inverse=True)
        return self._of_rows(inputs, spec, rows).at(which * length + indices % length)

    def _of_rows(self, inputs: Mapping[str, Array], spec: ArraySpec, rows: "NDArray[np.intp]") -> Expected:
        """Some rows of an output, in ascending order: of each slice by itself, a few of them at a time."""
        operation = self.operation
        slices = prod(self.sizes[: len(operation.independent)])
        one = replace(
            self, sizes=(*(1 for _ in operation.independent), *self.sizes[len(operation.independent) :])
        )
        of_slice = spec.elements // slices // _row_elements(self, spec)
        at_once = max(1, _AT_ONCE // self.sizes[len(operation.independent)])
        found = []
        for number in np.unique(rows // of_slice):
            theirs = {name: array.reshape(slices, -1)[number] for name, array in inputs.items()}
            own = rows[rows // of_slice == number] % of_slice
            for start in range(0, len(own), at_once):
                some = own[start : start + at_once] if operation.rows else None
                found.append(one._evaluated(theirs, some)[spec.name])
        return Expected(
            np.concatenate([part.values for part in found]),
            np.concatenate([part.magnitude for part in found]),
        )

    def _evaluated(
        self, inputs: Mapping[str, Array], rows: "NDArray[np.intp] | None" = None
    ) -> dict[str, Expected]:
        """Every output by its formula, or these rows of each."""
        specs = [(spec, inputs[spec.name].reshape(spec.shape)) for spec in self.arrays if spec.is_read]
        outputs = self.outputs
        known: dict[str, Any] = {}
        if rows is not None:
            axis = len(self.operation.independent)
            known["row"] = rows
            specs = [
                (spec, array.take(rows, axis) if spec.name in self.operation.rows else array)
                for spec, array in specs
            ]
            outputs = tuple(
                replace(spec, shape=(*spec.shape[:axis], len(rows), *spec.shape[axis + 1 :]))
                for spec in outputs
            )
        values: dict[str, Any] = {
            **self.dimensions,
            **{name: self.rounded(name) for name in self.scalars},
            **known,
            **{spec.name: array for spec, array in specs},
            # A formula names it all the same, and must not depend on it.
            **{
                spec.name: np.zeros(spec.shape, numpy_dtype(spec.dtype))
                for spec in self.arrays
                if spec.unread
            },
        }
        for name, text in self.operation.parts.items():
            values[name] = evaluate_arrays(text, values)
        expected = {}
        for spec in outputs:
            check = self.checks[spec.name]
            result = evaluate_arrays(check.value, values)
            if check.unordered:
                keys = [evaluate_arrays(self.checks[name].value, values) for name in check.together]
                result = sorted_rows(_no_longer(spec, check.value, result), spec.shape, keys)
            else:
                result = _of_shape(spec, check.value, result)
            floats = is_float(spec.dtype)
            result = result.astype(np.float64) if floats else _as_integers(spec, check, result)
            if check.magnitude:
                magnitude = evaluate_arrays(check.magnitude, values)
                # A row's or a column's that says which, as NumPy spreads it.
                with suppress(ValueError):
                    if magnitude.ndim == len(spec.shape):
                        magnitude = np.broadcast_to(magnitude, spec.shape)
                magnitude = _of_shape(spec, check.magnitude, magnitude)
            else:
                magnitude = np.abs(result)
            expected[spec.name] = Expected(result, magnitude.astype(np.float64))
        return expected

    def axes(self, output: str) -> tuple[Axis, ...]:
        """Rows and columns of a matrix, and numbers otherwise."""
        return axes_of(len(self.array(output).shape))

    def describe_element(self, output: str, index: int) -> str:
        """The element's position along each extent."""
        position = np.unravel_index(index, self.array(output).shape)
        return f"{output}[{', '.join(map(str, position))}]"

    def device_reference(self) -> DeviceReference | None:
        """Device code that computes the references; None for those of the host."""
        declared = self.operation.device_reference
        if declared is None:
            return None
        numbers = {**self.dimensions, **{name: self.rounded(name) for name in self.scalars}}
        x, y, z = (evaluate(text, self.dimensions) for text in declared.grid)
        return DeviceReference(
            source=declared.source,
            entry=declared.entry,
            grid=(x, y, z),
            block=declared.block,
            arguments=tuple(
                numbers[name] if name in numbers else Pointer(name) for name in declared.arguments
            ),
            has_magnitude=True,
        )

    def library_call(self, reference: str) -> LibraryCall:
        """How one of the operation's references on the device computes this problem."""
        declared = next(one for one in self.operation.references if one.id == reference)
        return LibraryCall(
            library="torch",
            function=declared.function,
            arguments=tuple(map(Pointer, declared.arguments)),
            keywords={key: self.rounded(name) for key, name in declared.keywords.items()},
        )

    def host_call(self, reference: str, inputs: Mapping[str, Array]) -> HostCall:
        """How one of the operation's references on the host computes this problem."""
        raise KeyError(reference)


def _row_elements(problem: Problem, spec: ArraySpec) -> int:
    """Elements of an output that a formula gives together: of a row, or of an independent slice."""
    return prod(spec.shape[len(problem.operation.independent) + bool(problem.operation.rows) :])


@cache
def _class(coded: str) -> type[Problem]:
    code = {**CODED, GIVEN: OF_GIVEN}.get(coded)
    found: type[Problem] = getattr(import_module(code.module), code.name) if code else Problem
    return found


def role_of(problem: Problem, name: str) -> tuple[Role, str]:
    """Whether kernels read an array of a problem, write it, or both; and why they must not read it."""
    declared = problem.operation.arrays[name]
    if not declared.read_if or evaluate_real(declared.read_if, {**problem.dimensions, **problem.scalars}):
        return declared.role, ""
    return "out", declared.unread or f"{declared.read_if} does not hold"


def _as_integers(spec: ArraySpec, check: Check, result: Array) -> Array:
    """A formula's result for an output of integers; it keeps its fractions only where it may be off."""
    if np.issubdtype(result.dtype, np.integer):
        return result
    if result.dtype == np.bool_:
        return result.astype(np.int64)
    with np.errstate(invalid="ignore"):
        whole = result.astype(np.int64)
    if (np.abs(result) < 2.0**63).all() and (whole == result).all():
        return whole
    if check.relative == check.absolute == "0":
        raise ExpressionError(f"{check.value!r} gives fractions, and {spec.name} holds integers")
    return result


def _no_longer(spec: ArraySpec, formula: str, result: Array) -> Array:
    """A formula's result for an unordered output, which may be shorter in one dimension, and empty in any."""
    if result.ndim == 1 and result.size <= (spec.elements if len(spec.shape) == 1 else 0):
        return result
    return _of_shape(spec, formula, result)


def _of_shape(spec: ArraySpec, formula: str, result: Array) -> Array:
    """A formula's result, flat: of the output's shape, or as many elements and no shape of its own."""
    if result.shape == spec.shape or (result.size == spec.elements == 1):
        return np.ascontiguousarray(result).ravel()
    if result.ndim == 0 or result.size == 1:
        return np.full(spec.elements, result.reshape(()))
    raise ExpressionError(
        f"{formula!r} gives an array of shape {result.shape}; {spec.name} has the shape {spec.shape}"
    )
