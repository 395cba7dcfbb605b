# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""General matrix multiplication: `C[M,N] = alpha * A[M,K] @ B[K,N] + beta * C[M,N]`."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gpuprof.problems.base import ITEM_BYTES, Array, ArraySpec, Dtype, Layout, error_bound, numpy_dtype
from gpuprof.problems.check import Doubles, ErrorBound

#: Multiple of sqrt(K) * unit roundoff that an element's error may reach. Rounding errors of a sum of K terms,
#: in any order, stay below lambda * sqrt(K) * u * sum(|a*b|) with probability at least
#: 1 - 2 * K * exp(-lambda**2 / 2) (Higham and Mary, "A New Approach to Probabilistic Rounding Error
#: Analysis", SIAM J. Sci. Comput. 41(5), 2019). At lambda = 8 a correct kernel fails about once in 1e10
#: elements even at K = 4096, while a single dropped term of average size exceeds the bound.
_LAMBDA = 8.0


@dataclass(frozen=True, slots=True)
class Gemm:
    """One GEMM in BLAS terms.

    Args:
        m: Rows of A and C.
        n: Columns of B and C.
        k: Columns of A, rows of B.
        dtype: Element type of every array.
        layout: Storage order of all three arrays.
        alpha: Factor of the product.
        beta: Factor of C's previous content; with 0, C is never read.
    """

    op: ClassVar[str] = "gemm"
    m: int
    n: int
    k: int
    dtype: Dtype = "f32"
    layout: Layout = "row"
    alpha: float = 1.0
    beta: float = 0.0

    @property
    def label(self) -> str:
        """`K` for a cube, else `MxNxK`."""
        return str(self.m) if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"

    @property
    def dimensions(self) -> dict[str, int]:
        """M, N and K."""
        return {"M": self.m, "N": self.n, "K": self.k}

    @property
    def scalars(self) -> dict[str, int | float]:
        """M, N, K, alpha and beta."""
        return {**self.dimensions, "alpha": self.alpha, "beta": self.beta}

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """A, B and the output C."""
        return (
            ArraySpec("A", self._stored(self.m, self.k)),
            ArraySpec("B", self._stored(self.k, self.n)),
            ArraySpec("C", self._stored(self.m, self.n), is_output=True),
        )

    def _stored(self, rows: int, columns: int) -> tuple[int, int]:
        return (rows, columns) if self.layout == "row" else (columns, rows)

    @property
    def array_bytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(spec.elements for spec in self.arrays) * ITEM_BYTES[self.dtype]

    @property
    def flops(self) -> int:
        """2*M*N*K for the product; scaling by alpha and beta is not counted, as is usual for GEMM."""
        return 2 * self.m * self.n * self.k

    @property
    def min_bytes(self) -> int:
        """A and B read once, C written once, and read once when beta is not 0."""
        c_passes = 2 if self.beta else 1
        return ITEM_BYTES[self.dtype] * (self.m * self.k + self.k * self.n + c_passes * self.m * self.n)

    @property
    def bound(self) -> ErrorBound:
        """Bound on |error| / (|alpha| * |A|@|B| + |beta| * |C|), growing with sqrt(K)."""
        return error_bound(self.dtype, _LAMBDA * sqrt(self.k) + 4.0)

    def inputs(self, seed: int) -> dict[str, Array]:
        """A and B, and C when beta is not 0, uniform in [-1, 1)."""
        rng = np.random.Generator(np.random.SFC64(seed))
        dtype = numpy_dtype(self.dtype)
        arrays: dict[str, Array] = {}
        for spec in self.arrays:
            if spec.is_output and not self.beta:
                continue
            values = rng.random(spec.elements, dtype=dtype)
            values *= 2.0
            values -= 1.0
            arrays[spec.name] = values
        return arrays

    def reference(self, inputs: dict[str, Array]) -> tuple[Array, Array]:
        """The product in float64, and |alpha| * |A|@|B| + |beta| * |C| as each element's magnitude."""
        order = self.storage_order
        a = inputs["A"].astype(np.float64).reshape((self.m, self.k), order=order)
        b = inputs["B"].astype(np.float64).reshape((self.k, self.n), order=order)
        old = inputs["C"].astype(np.float64).reshape((self.m, self.n), order=order) if self.beta else None
        expected, magnitude = self._scaled(a @ b, np.abs(a) @ np.abs(b), old)
        return expected.ravel(order=order), magnitude.ravel(order=order)

    def reference_at(self, inputs: dict[str, Array], indices: NDArray[np.intp]) -> tuple[Array, Array]:
        """As `reference`, at some elements: only their rows of A and columns of B are multiplied."""
        in_row_order = self.layout == "row"
        row, column = divmod(indices, self.n) if in_row_order else divmod(indices, self.m)[::-1]
        rows, row_of = np.unique(row, return_inverse=True)
        columns, column_of = np.unique(column, return_inverse=True)
        a = inputs["A"].reshape((self.m, self.k), order=self.storage_order)[rows].astype(np.float64)
        b = inputs["B"].reshape((self.k, self.n), order=self.storage_order)[:, columns].astype(np.float64)
        old = inputs["C"][indices].astype(np.float64) if self.beta else None
        return self._scaled((a @ b)[row_of, column_of], (np.abs(a) @ np.abs(b))[row_of, column_of], old)

    def _scaled(self, product: Doubles, size: Doubles, old: Doubles | None) -> tuple[Doubles, Doubles]:
        """alpha * A@B + beta * C and its magnitude; what exceeds the largest double is an infinity."""
        with np.errstate(over="ignore"):
            expected, magnitude = self._alpha * product, abs(self._alpha) * size
            if old is not None:
                expected += self._beta * old
                magnitude += abs(self._beta) * np.abs(old)
        return expected, magnitude

    def describe_element(self, index: int) -> str:
        """An element of the flat output as `C[row, column]`."""
        if self.layout == "row":
            return f"C[{index // self.n}, {index % self.n}]"
        return f"C[{index % self.m}, {index // self.m}]"

    @property
    def storage_order(self) -> Literal["C", "F"]:
        """NumPy's letter for the layout."""
        return "C" if self.layout == "row" else "F"

    @property
    def _alpha(self) -> float:
        """Alpha as the kernel receives it, rounded to the element type."""
        return float(numpy_dtype(self.dtype).type(self.alpha))

    @property
    def _beta(self) -> float:
        return float(numpy_dtype(self.dtype).type(self.beta))
