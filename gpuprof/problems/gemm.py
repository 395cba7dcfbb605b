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

Of all types but f32 and f64 the elements of A and B are numbers of the type, so that their products are
exact in FP32; sums are FP32's, and the result is rounded once more, to its own type. Tensor cores truncate
what they add: each term by at most `truncation`, relative to the largest term or partial sum. Partial sums of
products of mean zero grow with sqrt(K) and the errors of K terms with sqrt(K) of that, so their share of
sum(|a*b|) does not grow with K (Higham and Mary, "Sharper Probabilistic Backward Error Analysis for Basic
Linear Algebra Kernels with Random Data", SIAM J. Sci. Comput. 42(5), 2020). It stays near one truncation, of
which 8 are allowed; 32 products that are left out are off by more in many an element, up to K = 16384.
"""

from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

from gpuprof.problems.dtypes import SUM, numpy_dtype, of_run, rounded
from gpuprof.problems.numpy_later import NDArray, np
from gpuprof.problems.problem import ArraySpec, Problem, role_of
from gpuprof.problems.references import (
    Array,
    DeviceReference,
    Expected,
    HostCall,
    HostReal,
    LibraryCall,
    Pointer,
)
from gpuprof.problems.wrong_places import Axis, axes_of

_LETTERS = {"f32": "S", "f64": "D"}
#: Elements of C that a block of the device reference computes, along each side.
_TILE = 64


class GemmProblem(Problem):
    """GEMM in either storage order; C is read only with beta."""

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """A, B and C, with rows and columns as they are stored."""
        shapes, declared = _shapes(self), self.operation.arrays
        return tuple(
            ArraySpec(
                name,
                shape if name in _row_major(self) else shape[::-1],
                of_run(declared[name].dtype, self.dtype),
                *role_of(self, name),
            )
            for name, shape in shapes.items()
        )

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The product in float64, and |alpha| * |A|@|B| + |beta| * |C| as each element's magnitude."""
        order = _storage_order(self, "C")
        a, b = (self._matrix(inputs, name).astype(np.float64) for name in "AB")
        old = self._matrix(inputs, "C").astype(np.float64) if "C" in _read(self) else None
        values, magnitude = _scaled(self, a @ b, np.abs(a) @ np.abs(b), old)
        return {"C": Expected(values.ravel(order=order), magnitude.ravel(order=order))}

    def reference_at(self, inputs: Mapping[str, Array], output: str, indices: "NDArray[np.intp]") -> Expected:
        """As `reference`, at some elements: rows of A by the columns of B that each of them meets."""
        row, column = _place(self, indices)
        order = np.lexsort((column, row))
        rows_of: dict[bytes, list[Array]] = {}
        for places in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
            rows_of.setdefault(column[places].tobytes(), []).append(places)
        product, sizes = np.empty(len(row)), np.empty(len(row))
        for places in map(np.stack, rows_of.values()):
            a = self._matrix(inputs, "A")[row[places[:, 0]]].astype(np.float64)
            b = self._matrix(inputs, "B")[:, column[places[0]]].astype(np.float64)
            product[places], sizes[places] = a @ b, np.abs(a) @ np.abs(b)
        old = inputs["C"][indices].astype(np.float64) if "C" in _read(self) else None
        return Expected(*_scaled(self, product, sizes, old))

    def axes(self, output: str) -> tuple[Axis, ...]:
        """Rows and columns of the matrix, in the order in which they are stored."""
        return axes_of(2)[:: 1 if "C" in _row_major(self) else -1]

    def describe_element(self, output: str, index: int) -> str:
        """Row and column of the matrix, in whichever order it is stored."""
        row, column = _place(self, index)
        return f"C[{row}, {column}]"

    def device_reference(self) -> DeviceReference:
        """A float64 GEMM on the device, since the host's takes minutes at large sizes."""
        m, n, k = self.sizes

        def strides(name: str) -> tuple[int, int]:
            """Distances between elements of neighbouring rows and columns."""
            rows, columns = _shapes(self)[name]
            return (columns, 1) if name in _row_major(self) else (1, rows)

        return DeviceReference(
            source=resources.files(__package__).joinpath("gemm_reference.cu").read_text(encoding="utf-8"),
            entry="reference_gemm",
            grid=(-(-n // _TILE), -(-m // _TILE), 1),
            block=(16, 16, 1),
            arguments=(
                *(m, n, k, float(self.rounded("alpha"))),
                *(Pointer("A"), *strides("A")),
                *(Pointer("B"), *strides("B")),
                *(float(self.rounded("beta")), Pointer("initial C"), *strides("C")),
                *(Pointer("expected C"), Pointer("magnitude C")),
            ),
            has_magnitude=True,
        )

    def library_call(self, reference: str) -> LibraryCall:
        """CuBLAS computes column-major: a row-major C is C transposed, and (A @ B)^T = B^T @ A^T."""
        m, n, k = self.sizes
        left, right = "AB"
        if "C" in _row_major(self):
            m, n, left, right = n, m, right, left
        # What it takes as a matrix lies in columns.
        turned = [(name in _row_major(self)) != ("C" in _row_major(self)) for name in (left, right)]
        letter = _LETTERS.get(self.dtype)
        return LibraryCall(
            library="cublas" if letter else "cublasLt",
            function=f"cublas{letter}gemm_v2" if letter else "cublasLtMatmul",
            arguments=(
                *(*map(int, turned), m, n, k),
                *(HostReal(self.rounded("alpha")), Pointer(left), k if turned[0] else m),
                *(Pointer(right), n if turned[1] else k),
                *(HostReal(self.rounded("beta")), Pointer("C"), m),
            ),
        )

    def host_call(self, reference: str, inputs: Mapping[str, Array]) -> HostCall:
        """NumPy's matmul in the type of sums."""
        order = _storage_order(self, "C")
        kind = numpy_dtype(of_run(SUM, self.dtype)).type
        alpha, beta = (kind(self.rounded(name)) for name in ("alpha", "beta"))
        a, b = (self._matrix(inputs, name).astype(kind) for name in "AB")
        old = self._matrix(inputs, "C").astype(kind) if "C" in _read(self) else None

        def multiply() -> Array:
            result = np.matmul(a, b)
            if alpha != 1:
                result *= alpha
            if old is not None:
                result += beta * old
            flat: Array = rounded(result.ravel(order=order), self.array("C").dtype)
            return flat

        return multiply

    def _matrix(self, inputs: Mapping[str, Array], name: str) -> Array:
        """One input as rows and columns."""
        return inputs[name].reshape(_shapes(self)[name], order=_storage_order(self, name))


def _shapes(problem: Problem) -> dict[str, tuple[int, int]]:
    """Rows and columns of each matrix."""
    m, n, k = problem.sizes
    return {"A": (m, k), "B": (k, n), "C": (m, n)}


def _row_major(problem: Problem) -> str:
    """The matrices that lie in rows; the others lie in columns."""
    return {"row": "ABC", "col": "", "tn": "AC"}[problem.options["layout"]]


def _storage_order(problem: Problem, name: str) -> Literal["C", "F"]:
    return "C" if name in _row_major(problem) else "F"


def _place(problem: Problem, index: Any) -> tuple[Any, Any]:
    """Row and column of elements of C, by their places in memory."""
    m, n, _ = problem.sizes
    row, column = divmod(index, n) if "C" in _row_major(problem) else divmod(index, m)[::-1]
    return row, column


def _read(problem: Problem) -> set[str]:
    return {spec.name for spec in problem.arrays if spec.is_read}


def _scaled(problem: Problem, product: Any, size: Any, old: Any) -> tuple[Array, Array]:
    """alpha * A@B + beta * C and its magnitude; what exceeds the largest double is an infinity."""
    alpha, beta = (problem.rounded(name) for name in ("alpha", "beta"))
    with np.errstate(over="ignore"):
        expected, magnitude = alpha * product, abs(alpha) * size
        if old is not None:
            expected += beta * old
            magnitude += abs(beta) * np.abs(old)
    return expected, magnitude
