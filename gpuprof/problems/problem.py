# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A problem: an operation with its sizes, element type, scalars and options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from gpuprof.operation import Check, Operation, Role
from gpuprof.problems.dtypes import ELEMENT_TYPES, RESULT, RUN_TYPES, is_float, of_run
from gpuprof.problems.formulas import ExpressionError, evaluate_real
from gpuprof.problems.numpy_later import NDArray, np
from gpuprof.results import ProblemRecord, size_label

if TYPE_CHECKING:
    from gpuprof.problems.behaviour import Behaviour, DeviceReference, Expected, HostCall, LibraryCall
    from gpuprof.problems.check import ErrorBound
    from gpuprof.problems.wrong_places import Axis

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ArraySpec:
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
        from gpuprof.problems.dtypes import rounded

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
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The device arrays, in the operation's order."""
        return self._behaviour.arrays(self)

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

    def inputs(self, seed: int) -> "dict[str, Array]":
        """Reproducible flat arrays, in device storage order, for every array that a kernel reads."""
        return self._behaviour.inputs(self, seed)

    def reference(self, inputs: "Mapping[str, Array]") -> "dict[str, Expected]":
        """Each output as it must be: float64 or 64-bit integers, flat, in storage order.

        Raises:
            ExpressionError: A formula of the operation cannot be evaluated for this size.
        """
        return self._behaviour.reference(self, inputs)

    def reference_at(
        self, inputs: "Mapping[str, Array]", output: str, indices: "NDArray[np.intp]"
    ) -> "Expected | None":
        """As `reference`, for some elements of one output only; None where that saves nothing."""
        return self._behaviour.reference_at(self, inputs, output, indices)

    def bound(self, output: str) -> "ErrorBound":
        """How far an element of an output may lie from its reference.

        Raises:
            ExpressionError: A formula of the operation has no value for this size, or a negative one.
        """
        from gpuprof.problems.check import ErrorBound
        from gpuprof.problems.dtypes import largest, smallest, wider

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
            return ErrorBound(relative, absolute, largest(dtype))
        rounding = ELEMENT_TYPES[dtype].roundoff * (1 + relative)
        return ErrorBound(relative, absolute + smallest(dtype), largest(dtype), rounding)

    def axes(self, output: str) -> "tuple[Axis, ...]":
        """The words for the axes of an output, as it is stored."""
        return self._behaviour.axes(self, output)

    def describe_element(self, output: str, index: int) -> str:
        """Where an element of a flat output stands, for a message: `C[3, 5]`."""
        return self._behaviour.describe_element(self, output, index)

    def device_reference(self) -> "DeviceReference | None":
        """Device code that computes the references; None for those of the host."""
        return self._behaviour.device_reference(self)

    def library_call(self, reference: str) -> "LibraryCall":
        """How one of the operation's references on the device computes this problem."""
        return self._behaviour.library_call(self, reference)

    def host_call(self, reference: str, inputs: "Mapping[str, Array]") -> "HostCall":
        """How one of the operation's references on the host computes this problem."""
        return self._behaviour.host_call(self, reference, inputs)

    def _work(self, formula: str) -> int:
        result_bytes = ELEMENT_TYPES[of_run(RESULT, self.dtype)].nbytes
        own = {"real_bytes": self.real_bytes, "result_bytes": result_bytes}
        values = {**self.dimensions, **self.scalars, **own}
        return round(evaluate_real(formula, values))

    @property
    def _behaviour(self) -> "Behaviour":
        from gpuprof.problems.coded import behaviour_of

        return behaviour_of(self.operation)
