# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Matrix transpose, `out[nx, ny] = in[ny, nx]^T`, and the copy of the same bytes that bounds it."""

from collections.abc import Mapping
from importlib import resources

from gpuprof.problems.numpy_later import NDArray, np
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import (
    Array,
    DeviceReference,
    Expected,
    HostReal,
    LibraryCall,
    Pointer,
)

#: Rows transposed at a time: so many lines of the CPU's cache are in use at once.
_BAND_ROWS = 32
#: cuBLAS: the first operand transposed, the second as it is.
_TRANSPOSED, _NOT_TRANSPOSED = 1, 0
_LETTERS = {"f32": "S", "f64": "D"}


class TransposeProblem(Problem):
    """A transpose, or with the option `result = copy` a copy, which no formula tells apart."""

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The input, and the output with its extents exchanged unless it is a copy."""
        nx, ny = self.sizes
        shape = (ny, nx) if _is_copy(self) else (nx, ny)
        return (
            ArraySpec("in", (ny, nx), self.dtype),
            ArraySpec("out", shape, self.dtype, "out"),
        )

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The rearranged input; the magnitude is 1 because equality is demanded."""
        nx, ny = self.sizes
        source = inputs["in"].reshape(ny, nx)
        if _is_copy(self):
            return {"out": Expected(source.ravel().astype(np.float64), np.ones(1))}
        values = np.empty((nx, ny), np.float64)
        for row in range(0, ny, _BAND_ROWS):
            band = slice(row, row + _BAND_ROWS)
            values[:, band] = source[band].T
        return {"out": Expected(values.ravel(), np.ones(1))}

    def reference_at(self, inputs: Mapping[str, Array], output: str, indices: "NDArray[np.intp]") -> Expected:
        nx, ny = self.sizes
        source = indices if _is_copy(self) else indices % ny * nx + indices // ny
        return Expected(inputs["in"][source].astype(np.float64), np.ones(1))

    def device_reference(self) -> DeviceReference:
        """The rearrangement on the device, which saves moving arrays to and fro."""
        nx, ny = self.sizes
        return DeviceReference(
            source=resources.files(__package__).joinpath("transpose_reference.cu").read_text("utf-8"),
            entry="reference_transpose",
            grid=(1024, 1, 1),
            block=(256, 1, 1),
            arguments=(nx, ny, int(_is_copy(self)), Pointer("in"), Pointer("expected out")),
            has_magnitude=False,
        )

    def library_call(self, reference: str) -> LibraryCall:
        """The driver's copy, or cuBLAS' geam: in its column-major terms the input is nx x ny."""
        nx, ny = self.sizes
        if reference == "device_copy":
            return LibraryCall("driver", "copy", (Pointer("out"), Pointer("in")))
        return LibraryCall(
            library="cublas",
            function=f"cublas{_LETTERS[self.dtype]}geam",
            arguments=(
                *(_TRANSPOSED, _NOT_TRANSPOSED, ny, nx),
                *(HostReal(1.0), Pointer("in"), nx),
                *(HostReal(0.0), Pointer("out"), ny),
                *(Pointer("out"), ny),
            ),
        )


def _is_copy(problem: Problem) -> bool:
    return problem.options["result"] == "copy"
