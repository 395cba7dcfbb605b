# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""General matrix multiplication, `C[M,N] = alpha * A[M,K] @ B[K,N] + beta * C[M,N]`: what no formula says.

Storage orders, references of some elements only, and those of a GPU. The bound that its declaration gives
grows with sqrt(K): rounding errors of a sum of K terms, in any order, stay below lambda * sqrt(K) * u *
sum(|a*b|) with probability at least 1 - 2 * K * exp(-lambda**2 / 2) (Higham and Mary, "A New Approach to
Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019). At lambda = 8 a correct kernel
fails about once in 1e10 elements even at K = 4096, while a single dropped term of average size exceeds the
bound. Gradual underflow adds at most half a smallest number to each product (Higham, "Accuracy and Stability
of Numerical Algorithms", section 2.8).
"""

from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuprof.problems.behaviour import (
    Array,
    Behaviour,
    DeviceReference,
    Expected,
    HostCall,
    HostReal,
    Initial,
    LibraryCall,
    Pointer,
    role_of,
)
from gpuprof.problems.dtypes import rounded
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.wrong_places import Axis, axes_of

Doubles = NDArray[np.float64]
#: cuBLAS: operands as they are.
_NOT_TRANSPOSED = 0
_LETTERS = {"f32": "S", "f64": "D"}
#: Elements of C that a block of the device reference computes, along each side.
_TILE = 64


class GemmBehaviour(Behaviour):
    """GEMM in either storage order; C is read only with beta."""

    def arrays(self, problem: Problem) -> tuple[ArraySpec, ...]:
        """A, B and C, with rows and columns as they are stored."""
        m, n, k = problem.sizes
        order = 1 if _is_row_major(problem) else -1
        return (
            ArraySpec("A", (m, k)[::order], problem.dtype),
            ArraySpec("B", (k, n)[::order], problem.dtype),
            ArraySpec("C", (m, n)[::order], problem.dtype, *role_of(problem, "C")),
        )

    def inputs(self, problem: Problem, seed: int) -> dict[str, Array]:
        """A and B, and C with beta, uniform in [-1, 1)."""
        rng = np.random.Generator(np.random.SFC64(seed))
        drawn = np.float64 if problem.dtype == "f64" else np.float32  # NumPy draws no halves
        arrays: dict[str, Array] = {}
        for spec in problem.arrays:
            if spec.is_read:
                values = rng.random(spec.elements, dtype=drawn)
                values *= 2.0
                values -= 1.0
                arrays[spec.name] = rounded(values, problem.dtype)
        return arrays

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The product in float64, and |alpha| * |A|@|B| + |beta| * |C| as each element's magnitude."""
        order = _storage_order(problem)
        a, b = (self._matrix(problem, inputs, name).astype(np.float64) for name in "AB")
        old = self._matrix(problem, inputs, "C").astype(np.float64) if "C" in _read(problem) else None
        values, magnitude = _scaled(problem, a @ b, np.abs(a) @ np.abs(b), old)
        return {"C": Expected(values.ravel(order=order), magnitude.ravel(order=order))}

    def reference_at(
        self, problem: Problem, inputs: Mapping[str, Array], output: str, indices: NDArray[np.intp]
    ) -> Expected:
        """As `reference`, at some elements: only their rows of A and columns of B are multiplied."""
        m, n, _ = problem.sizes
        row, column = divmod(indices, n) if _is_row_major(problem) else divmod(indices, m)[::-1]
        rows, row_of = np.unique(row, return_inverse=True)
        columns, column_of = np.unique(column, return_inverse=True)
        a = self._matrix(problem, inputs, "A")[rows].astype(np.float64)
        b = self._matrix(problem, inputs, "B")[:, columns].astype(np.float64)
        old = inputs["C"][indices].astype(np.float64) if "C" in _read(problem) else None
        sizes = (np.abs(a) @ np.abs(b))[row_of, column_of]
        return Expected(*_scaled(problem, (a @ b)[row_of, column_of], sizes, old))

    def axes(self, problem: Problem, output: str) -> tuple[Axis, ...]:
        """Rows and columns of the matrix, in the order in which they are stored."""
        order = 1 if _is_row_major(problem) else -1
        return axes_of(2)[::order]

    def describe_element(self, problem: Problem, output: str, index: int) -> str:
        """Row and column of the matrix, in whichever order it is stored."""
        m, n, _ = problem.sizes
        row, column = divmod(index, n) if _is_row_major(problem) else divmod(index, m)[::-1]
        return f"C[{row}, {column}]"

    def device_reference(self, problem: Problem) -> DeviceReference:
        """A float64 GEMM on the device, since the host's takes minutes at large sizes."""
        m, n, k = problem.sizes

        def strides(rows: int, columns: int) -> tuple[int, int]:
            """Distances between elements of neighbouring rows and columns."""
            return (columns, 1) if _is_row_major(problem) else (1, rows)

        return DeviceReference(
            source=resources.files(__package__).joinpath("gemm_reference.cu").read_text(encoding="utf-8"),
            entry="reference_gemm",
            grid=(-(-n // _TILE), -(-m // _TILE), 1),
            block=(16, 16, 1),
            arguments=(
                *(m, n, k, float(problem.rounded("alpha"))),
                *(Pointer("A"), *strides(m, k)),
                *(Pointer("B"), *strides(k, n)),
                *(float(problem.rounded("beta")), Initial("C"), *strides(m, n)),
                *(Pointer("expected C"), Pointer("magnitude C")),
            ),
            has_magnitude=True,
        )

    def library_call(self, problem: Problem, reference: str) -> LibraryCall:
        """CuBLAS computes column-major: a row-major C is C transposed, and (A @ B)^T = B^T @ A^T."""
        m, n, k = problem.sizes
        a, b = Pointer("A"), Pointer("B")
        if _is_row_major(problem):
            m, n, a, b = n, m, b, a
        letter = _LETTERS.get(problem.dtype)
        return LibraryCall(
            library="cublas" if letter else "cublasLt",
            function=f"cublas{letter}gemm_v2" if letter else "cublasLtMatmul",
            arguments=(
                *(_NOT_TRANSPOSED, _NOT_TRANSPOSED, m, n, k),
                *(HostReal(problem.rounded("alpha")), a, m),
                *(b, k),
                *(HostReal(problem.rounded("beta")), Pointer("C"), m),
            ),
        )

    def host_call(self, problem: Problem, reference: str, inputs: Mapping[str, Array]) -> HostCall:
        """NumPy's matmul, of halves in float32 as their sums are."""
        order = _storage_order(problem)
        kind = np.dtype("f8" if problem.dtype == "f64" else "f4").type
        alpha, beta = (kind(problem.rounded(name)) for name in ("alpha", "beta"))
        a, b = (self._matrix(problem, inputs, name).astype(kind) for name in "AB")
        old = self._matrix(problem, inputs, "C").astype(kind) if "C" in _read(problem) else None

        def multiply() -> Array:
            result = np.matmul(a, b)
            if alpha != 1:
                result *= alpha
            if old is not None:
                result += beta * old
            flat: Array = rounded(result.ravel(order=order), problem.dtype)
            return flat

        return multiply

    @staticmethod
    def _matrix(problem: Problem, inputs: Mapping[str, Array], name: str) -> Array:
        """One input as rows and columns."""
        m, n, k = problem.sizes
        shape = {"A": (m, k), "B": (k, n), "C": (m, n)}[name]
        return inputs[name].reshape(shape, order=_storage_order(problem))


def _is_row_major(problem: Problem) -> bool:
    return problem.options["layout"] == "row"


def _storage_order(problem: Problem) -> Literal["C", "F"]:
    return "C" if _is_row_major(problem) else "F"


def _read(problem: Problem) -> set[str]:
    return {spec.name for spec in problem.arrays if spec.is_read}


def _scaled(problem: Problem, product: Any, size: Any, old: Any) -> tuple[Doubles, Doubles]:
    """alpha * A@B + beta * C and its magnitude; what exceeds the largest double is an infinity."""
    alpha, beta = (problem.rounded(name) for name in ("alpha", "beta"))
    with np.errstate(over="ignore"):
        expected, magnitude = alpha * product, abs(alpha) * size
        if old is not None:
            expected += beta * old
            magnitude += abs(beta) * np.abs(old)
    return expected, magnitude
