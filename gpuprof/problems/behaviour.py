# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a problem does: arrays, inputs, references. As declared; coded operations override the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from gpuprof.operation import Check, Role
from gpuprof.problems.dtypes import is_float, numpy_dtype, of_run
from gpuprof.problems.formulas import ExpressionError, evaluate, evaluate_arrays, evaluate_real
from gpuprof.problems.generators import generate
from gpuprof.problems.numpy_later import NDArray, np
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_places import Axis, axes_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """One output as it must be.

    Args:
        values: Flat, in storage order: float64, or 64-bit integers for an output of integers.
        magnitude: What each element's error is measured by, float64; of length 1 where all share one.
    """

    values: Array
    magnitude: "NDArray[np.float64]"

    def at(self, indices: "NDArray[np.intp]") -> "Expected":
        shared = len(self.magnitude) == 1
        return Expected(self.values[indices], self.magnitude if shared else self.magnitude[indices])


@dataclass(frozen=True, slots=True)
class Pointer:
    """The device address of an array, in the arguments of a device reference or a library's function.

    Args:
        array: One of the problem's arrays, `expected NAME` or `magnitude NAME` of an output, or `initial
            NAME` of what one held before any kernel ran; null where it held nothing.
    """

    array: str


@dataclass(frozen=True, slots=True)
class DeviceReference:
    """Device code of the measuring side that fills the expected values and magnitudes of every output.

    Args:
        source: CUDA C++; `real` is the run's element type, `result_type` that of its results, and
            `value_of(element)` the number that one is.
        arguments: `int` for a long long, `float` for a double, or an address.
        has_magnitude: Whether it fills magnitudes; without, every element's is 1.
    """

    source: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[int | float | Pointer, ...]
    has_magnitude: bool


@dataclass(frozen=True, slots=True)
class HostReal:
    """A number of the type of sums, passed by its address on the host, as BLAS libraries want it."""

    value: float


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One call of a vendor's library, or of the driver's copy.

    Args:
        library: `cublas`, `cublasLt`, `torch`, or `driver` for a copy on the device.
        function: Its name; that of cuBLASLt takes the arguments of cuBLAS' gemm here.
        keywords: What one of torch takes by name.
    """

    library: str
    function: str
    arguments: tuple[int | HostReal | Pointer, ...]
    keywords: Mapping[str, float] = field(default_factory=dict)


#: Rows whose formula is evaluated at once, where it may be by rows, times how many there are.
_AT_ONCE = 1 << 22
#: Computes a problem on the host; returns the output, flat, in storage order.
HostCall = Callable[[], Array]


class Behaviour:
    """An operation that its declaration says all about."""

    def arrays(self, problem: Problem) -> tuple[ArraySpec, ...]:
        specs = []
        for name, declared in problem.operation.arrays.items():
            shape = tuple(evaluate(text, problem.dimensions) for text in declared.shape)
            if min(shape) < 1:
                raise ExpressionError(f"{name} would have the shape {shape}")
            dtype = of_run(declared.dtype, problem.dtype)
            specs.append(ArraySpec(name, shape, dtype, *role_of(problem, name)))
        return tuple(specs)

    def inputs(self, problem: Problem, seed: int) -> dict[str, Array]:
        """Every array that kernels read, by its declared content."""
        made: dict[str, Array] = {}
        for stream, spec in enumerate(problem.arrays):
            if spec.is_read:
                text = problem.operation.inputs[spec.name]
                made[spec.name] = generate(
                    *(text, spec.elements, spec.dtype, seed, stream, problem.dimensions, made)
                )
        return made

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        if not problem.operation.independent:
            return self._evaluated(problem, inputs)
        return {
            spec.name: self._of_rows(
                problem, inputs, spec, np.arange(spec.elements // _row_elements(problem, spec))
            )
            for spec in problem.outputs
        }

    def reference_at(
        self, problem: Problem, inputs: Mapping[str, Array], output: str, indices: "NDArray[np.intp]"
    ) -> Expected | None:
        """A formula is evaluated as a whole, or for the independent rows that the elements lie in."""
        if not problem.operation.independent:
            return None
        spec = problem.array(output)
        length = _row_elements(problem, spec)
        rows, which = np.unique(indices // length, return_inverse=True)
        return self._of_rows(problem, inputs, spec, rows).at(which * length + indices % length)

    def _of_rows(
        self, problem: Problem, inputs: Mapping[str, Array], spec: ArraySpec, rows: "NDArray[np.intp]"
    ) -> Expected:
        """Some rows of an output, in ascending order: of each slice by itself, a few of them at a time."""
        operation = problem.operation
        slices = prod(problem.sizes[: len(operation.independent)])
        one = replace(
            problem, sizes=(*(1 for _ in operation.independent), *problem.sizes[len(operation.independent) :])
        )
        of_slice = spec.elements // slices // _row_elements(problem, spec)
        at_once = max(1, _AT_ONCE // problem.sizes[len(operation.independent)])
        found = []
        for number in np.unique(rows // of_slice):
            theirs = {name: array.reshape(slices, -1)[number] for name, array in inputs.items()}
            own = rows[rows // of_slice == number] % of_slice
            for start in range(0, len(own), at_once):
                some = own[start : start + at_once] if operation.rows else None
                found.append(self._evaluated(one, theirs, some)[spec.name])
        return Expected(
            np.concatenate([part.values for part in found]),
            np.concatenate([part.magnitude for part in found]),
        )

    def _evaluated(
        self, problem: Problem, inputs: Mapping[str, Array], rows: "NDArray[np.intp] | None" = None
    ) -> dict[str, Expected]:
        """Every output by its formula, or these rows of each."""
        specs = [(spec, inputs[spec.name].reshape(spec.shape)) for spec in problem.arrays if spec.is_read]
        outputs = problem.outputs
        known: dict[str, Any] = {}
        if rows is not None:
            axis = len(problem.operation.independent)
            known["row"] = rows
            specs = [
                (spec, array.take(rows, axis) if spec.name in problem.operation.rows else array)
                for spec, array in specs
            ]
            outputs = tuple(
                replace(spec, shape=(*spec.shape[:axis], len(rows), *spec.shape[axis + 1 :]))
                for spec in outputs
            )
        values: dict[str, Any] = {
            **problem.dimensions,
            **{name: problem.rounded(name) for name in problem.scalars},
            **known,
            **{spec.name: array for spec, array in specs},
            # A formula names it all the same, and must not depend on it.
            **{
                spec.name: np.zeros(spec.shape, numpy_dtype(spec.dtype))
                for spec in problem.arrays
                if spec.unread
            },
        }
        for name, text in problem.operation.parts.items():
            values[name] = evaluate_arrays(text, values)
        expected = {}
        for spec in outputs:
            check = problem.checks[spec.name]
            result = evaluate_arrays(check.value, values)
            if check.unordered:
                keys = [evaluate_arrays(problem.checks[name].value, values) for name in check.together]
                result = sorted_rows(_no_longer(spec, check.value, result), spec.shape, keys)
            else:
                result = _of_shape(spec, check.value, result)
            floats = is_float(spec.dtype)
            result = result.astype(np.float64) if floats else _as_integers(spec, check, result)
            if check.magnitude:
                magnitude = _of_shape(spec, check.magnitude, evaluate_arrays(check.magnitude, values))
            else:
                magnitude = np.abs(result)
            expected[spec.name] = Expected(result, magnitude.astype(np.float64))
        return expected

    def axes(self, problem: Problem, output: str) -> tuple[Axis, ...]:
        """Rows and columns of a matrix, and numbers otherwise."""
        return axes_of(len(problem.array(output).shape))

    def describe_element(self, problem: Problem, output: str, index: int) -> str:
        """The element's position along each extent."""
        position = np.unravel_index(index, problem.array(output).shape)
        return f"{output}[{', '.join(map(str, position))}]"

    def device_reference(self, problem: Problem) -> DeviceReference | None:
        """References are computed by NumPy, or by the code that is declared."""
        declared = problem.operation.device_reference
        if declared is None:
            return None
        numbers = {**problem.dimensions, **{name: problem.rounded(name) for name in problem.scalars}}
        x, y, z = (evaluate(text, problem.dimensions) for text in declared.grid)
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

    def library_call(self, problem: Problem, reference: str) -> LibraryCall:
        """A declaration may name a function of torch."""
        declared = next(one for one in problem.operation.references if one.id == reference)
        return LibraryCall(
            library="torch",
            function=declared.function,
            arguments=tuple(map(Pointer, declared.arguments)),
            keywords={key: problem.rounded(name) for key, name in declared.keywords.items()},
        )

    def host_call(self, problem: Problem, reference: str, inputs: Mapping[str, Array]) -> HostCall:
        raise KeyError(reference)


def _row_elements(problem: Problem, spec: ArraySpec) -> int:
    """Elements of an output that a formula gives together: of a row, or of an independent slice."""
    return prod(spec.shape[len(problem.operation.independent) + bool(problem.operation.rows) :])


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


def sorted_rows(values: Array, shape: tuple[int, ...], keys: Sequence[Array] = ()) -> Array:
    """An unordered output's elements in ascending order within each row, flat; by those beside them first."""
    if keys:
        return values.ravel()[np.lexsort((values.ravel(), *reversed([key.ravel() for key in keys])))]
    return np.sort(values.reshape(-1) if len(shape) == 1 else values.reshape(shape), axis=-1).ravel()


def _no_longer(spec: ArraySpec, formula: str, result: Array) -> Array:
    """A formula's result for an unordered output, which may be shorter in one dimension."""
    if len(spec.shape) == 1 and result.ndim == 1 and result.size <= spec.elements:
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
