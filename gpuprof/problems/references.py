# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a problem's outputs must be, and what computes that: here, on a GPU, or in a library."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from gpuprof.problems.numpy_later import NDArray, np

Array = NDArray[Any]


class Expected(Struct, frozen=True):
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


class Pointer(Struct, frozen=True):
    """The device address of an array, in the arguments of a device reference or a library's function.

    Args:
        array: One of the problem's arrays, `expected NAME` or `magnitude NAME` of an output, or `initial
            NAME` of what one held before any kernel ran; null where it held nothing.
    """

    array: str


class DeviceReference(Struct, frozen=True):
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


class HostReal(Struct, frozen=True):
    """A number of the type of sums, passed by its address on the host, as BLAS libraries want it."""

    value: float


class LibraryCall(Struct, frozen=True):
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


#: Computes a problem on the host; returns the output, flat, in storage order.
HostCall = Callable[[], Array]


def sorted_rows(values: Array, shape: tuple[int, ...], keys: Sequence[Array] = ()) -> Array:
    """An unordered output's elements in ascending order within each row, flat; by those beside them first."""
    if keys:
        return values.ravel()[np.lexsort((values.ravel(), *reversed([key.ravel() for key in keys])))]
    return np.sort(values.reshape(-1) if len(shape) == 1 else values.reshape(-1, shape[-1]), axis=-1).ravel()
