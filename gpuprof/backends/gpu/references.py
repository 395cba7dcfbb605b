# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the ladder is held against: the vendor's library, and the driver's own copy."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from gpuprof.backends.gpu.context import GpuContext
from gpuprof.backends.gpu.cublas import Cublas
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.verifier import ProblemArrays
from gpuprof.errors import BackendUnavailable, CaseFailure
from gpuprof.problems.base import ITEM_BYTES
from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose


class References:
    """Launchers of the references on one device; cuBLAS is loaded when it is first needed.

    Args:
        context: The open device.
    """

    def __init__(self, context: GpuContext) -> None:
        self._context = context
        self._cublas: Cublas | None = None

    def versions(self, names: Sequence[str]) -> dict[str, str]:
        """Version of each library that one of the references calls, by the library's name.

        A library that cannot be used has none: its reference's row says why.
        """
        versions = {}
        if "numpy" in names:
            blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
            versions["numpy_blas"] = f"{blas['name']} {blas['version']}"
        if any(name.startswith("cublas") for name in names):
            with suppress(BackendUnavailable, CaseFailure):
                versions["cublas"] = self._library().version
        return versions

    def launcher(self, name: str, arrays: ProblemArrays) -> Callable[[], None]:
        """What queues one execution of a reference.

        Args:
            name: A device reference of `measure.references`.
            arrays: The problem's arrays.

        Raises:
            BackendUnavailable: cuBLAS is not installed.
        """
        problem = arrays.problem
        output = arrays.output.address
        if isinstance(problem, Gemm):
            return self._gemm(problem, arrays.inputs["A"].address, arrays.inputs["B"].address, output)
        source = arrays.inputs["in"].address
        if name == "device_copy":
            return self._copy(problem, source, output)
        return self._transpose(problem, source, output)

    def _library(self) -> Cublas:
        if self._cublas is None:
            self._cublas = Cublas(int(self._context.stream))
        return self._cublas

    def _gemm(self, problem: Gemm, a: int, b: int, c: int) -> Callable[[], None]:
        cublas = self._library()
        m, n, k = problem.m, problem.n, problem.k
        if problem.layout == "row":
            # Row-major C is column-major C transposed, and (A @ B)^T = B^T @ A^T.
            m, n, a, b = n, m, b, a
        return lambda: cublas.gemm(problem.dtype, m, n, k, problem.alpha, a, b, problem.beta, c)

    def _transpose(self, problem: Transpose, source: int, target: int) -> Callable[[], None]:
        cublas = self._library()
        return lambda: cublas.transpose(problem.dtype, problem.ny, problem.nx, source, target)

    def _copy(self, problem: Transpose, source: int, target: int) -> Callable[[], None]:
        nbytes = problem.nx * problem.ny * ITEM_BYTES[problem.dtype]
        stream = self._context.stream
        return lambda: call(
            "copying on the device", driver().cuMemcpyDtoDAsync(target, source, nbytes, stream)
        )
