# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Matrix transpose: `out[nx, ny] = in[ny, nx]^T`, rows stored one after the other."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gpuprof.problems.base import ITEM_BYTES, Array, ArraySpec, Dtype, Layout, error_bound, numpy_dtype
from gpuprof.problems.check import ErrorBound

#: `copy` kernels of the ladder move the same bytes without transposing: they are its ceiling.
Result = Literal["transpose", "copy"]


@dataclass(frozen=True, slots=True)
class Transpose:
    """One out-of-place transpose.

    Args:
        nx: Columns of the input, rows of the output.
        ny: Rows of the input, columns of the output.
        dtype: Element type of both arrays.
        result: `copy` for the kernels that only copy, as the ladder's ceiling.
    """

    op: ClassVar[str] = "transpose"
    nx: int
    ny: int
    dtype: Dtype = "f32"
    result: Result = "transpose"

    @property
    def layout(self) -> Layout:
        """Both arrays are row-major."""
        return "row"

    @property
    def label(self) -> str:
        """`N` for a square, else `NXxNY`."""
        return str(self.nx) if self.nx == self.ny else f"{self.nx}x{self.ny}"

    @property
    def dimensions(self) -> dict[str, int]:
        """nx and ny."""
        return {"nx": self.nx, "ny": self.ny}

    @property
    def scalars(self) -> dict[str, int | float]:
        """nx and ny."""
        return dict(self.dimensions)

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The input `in` and the output `out`."""
        rows, columns = (self.ny, self.nx) if self.result == "copy" else (self.nx, self.ny)
        return ArraySpec("in", (self.ny, self.nx)), ArraySpec("out", (rows, columns), is_output=True)

    @property
    def array_bytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(spec.elements for spec in self.arrays) * ITEM_BYTES[self.dtype]

    @property
    def flops(self) -> int:
        """A transpose computes nothing."""
        return 0

    @property
    def min_bytes(self) -> int:
        """Every element read once and written once."""
        return 2 * self.nx * self.ny * ITEM_BYTES[self.dtype]

    @property
    def bound(self) -> ErrorBound:
        """Moving data must not change it."""
        return error_bound(self.dtype, 0.0)

    def inputs(self, seed: int) -> dict[str, Array]:
        """The input, uniform in [0, 1)."""
        rng = np.random.Generator(np.random.SFC64(seed))
        return {"in": rng.random(self.nx * self.ny, dtype=numpy_dtype(self.dtype))}

    def reference(self, inputs: dict[str, Array]) -> tuple[Array, Array]:
        """The rearranged input; the magnitude is 1 because equality is demanded."""
        source = inputs["in"].astype(np.float64)
        expected = source if self.result == "copy" else source.reshape(self.ny, self.nx).T.ravel()
        return expected, np.ones(1)

    def reference_at(self, inputs: dict[str, Array], indices: NDArray[np.intp]) -> tuple[Array, Array]:
        """The rearranged input at some elements of the flat output."""
        source = indices if self.result == "copy" else indices % self.ny * self.nx + indices // self.ny
        return inputs["in"][source].astype(np.float64), np.ones(1)

    def describe_element(self, index: int) -> str:
        """An element of the flat output as `out[row, column]`."""
        columns = self.nx if self.result == "copy" else self.ny
        return f"out[{index // columns}, {index % columns}]"
