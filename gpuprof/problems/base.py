# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What every problem can tell: its sizes, its arrays, its work, and how exact an answer must be."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpuprof.problems.check import ErrorBound

Dtype = Literal["f32", "f64"]
Layout = Literal["row", "col"]
Array = NDArray[np.floating[Any]]

#: Bytes, C type and unit roundoff of each element type.
ITEM_BYTES: dict[str, int] = {"f32": 4, "f64": 8}
C_TYPE: dict[str, str] = {"f32": "float", "f64": "double"}
UNIT_ROUNDOFF: dict[str, float] = {"f32": 2.0**-24, "f64": 2.0**-53}


def error_bound(dtype: str, factor: float) -> ErrorBound:
    """A bound of so many unit roundoffs, and of as many smallest numbers where results underflow.

    Gradual underflow adds at most half a smallest number to each product (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 2.8), so that it may take the place of a unit roundoff term by term.

    Args:
        dtype: `f32` or `f64`.
        factor: How many; 0 demands equality.
    """
    info = np.finfo(numpy_dtype(dtype))
    smallest = float(info.smallest_subnormal)
    return ErrorBound(factor * UNIT_ROUNDOFF[dtype], factor * smallest, float(info.max))


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy type of `f32` or `f64`."""
    return np.dtype(np.float32 if dtype == "f32" else np.float64)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One device array of a problem.

    Args:
        name: The kernel argument it is passed as.
        shape: Rows and columns as stored: the elements of a row are neighbours.
        is_output: True for the array that the kernel writes and that is verified.
    """

    name: str
    shape: tuple[int, int]
    is_output: bool = False

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.shape[0] * self.shape[1]


@runtime_checkable
class Problem(Protocol):
    """One computation with its size; immutable and hashable."""

    op: ClassVar[str]

    @property
    def dtype(self) -> Dtype: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def label(self) -> str:
        """The size as a user types it, for example `4096` or `512x1024x256`."""
        ...

    @property
    def dimensions(self) -> dict[str, int]:
        """Sizes by the names that kernel headers use in their expressions."""
        ...

    @property
    def scalars(self) -> dict[str, int | float]:
        """Kernel arguments that are not arrays, by name."""
        ...

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The device arrays, inputs first, the output last."""
        ...

    @property
    def array_bytes(self) -> int:
        """Bytes of all its arrays."""
        ...

    @property
    def flops(self) -> int:
        """Floating-point operations that the computation needs."""
        ...

    @property
    def min_bytes(self) -> int:
        """Fewest bytes that must cross device memory: inputs read once, output written once."""
        ...

    @property
    def bound(self) -> ErrorBound:
        """How far an element of the result may lie from its reference."""
        ...

    def inputs(self, seed: int) -> dict[str, Array]:
        """Reproducible flat arrays, in device storage order, for every array that a kernel reads."""
        ...

    def reference(self, inputs: dict[str, Array]) -> tuple[Array, Array]:
        """Expected output and the magnitude that scales its error bound, float64, flat, storage order."""
        ...

    def reference_at(self, inputs: dict[str, Array], indices: NDArray[np.intp]) -> tuple[Array, Array]:
        """As `reference`, for some elements of the flat output only."""
        ...

    def describe_element(self, index: int) -> str:
        """Where an element of the flat output stands, for a message."""
        ...
