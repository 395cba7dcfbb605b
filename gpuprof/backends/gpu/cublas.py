# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The few calls of cuBLAS that serve as references, from the nvidia-cublas package or the toolkit."""

import ctypes
from typing import Any

from gpuprof.errors import BackendUnavailable, CaseFailure

_SUCCESS = 0
#: cublasMath_t. Without a flag that allows it, SGEMM computes in FP32 on CUDA cores: no TF32, no emulation.
_DEFAULT_MATH = 0
_OPERATIONS = {"n": 0, "t": 1}
_REAL = {"f32": ctypes.c_float, "f64": ctypes.c_double}
_LETTER = {"f32": "S", "f64": "D"}


class Cublas:
    """A cuBLAS handle on one stream.

    Args:
        stream: The stream's address.

    Raises:
        BackendUnavailable: The library is not installed or cannot be used.
    """

    def __init__(self, stream: int) -> None:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

        try:
            found = load_nvidia_dynamic_lib("cublas")
        except (DynamicLibNotFoundError, RuntimeError, OSError) as error:
            raise BackendUnavailable(
                "cuBLAS is not installed, so there is no vendor reference.",
                fix="Install it with: pip install 'nvidia-cublas'",
            ) from error
        self._library = ctypes.CDLL(found.abs_path)
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._call("cublasSetMathMode", self._handle, _DEFAULT_MATH)

    @property
    def version(self) -> str:
        """The library's version, for example `13.1.0`."""
        number = ctypes.c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def gemm(
        self,
        dtype: str,
        m: int,
        n: int,
        k: int,
        alpha: float,
        a: int,
        b: int,
        beta: float,
        c: int,
    ) -> None:
        """Queue a column-major `C[m,n] = alpha * A[m,k] @ B[k,n] + beta * C`, no operand transposed.

        Args:
            dtype: `f32` or `f64`.
            m: Rows of A and C.
            n: Columns of B and C.
            k: Columns of A, rows of B.
            alpha: Factor of the product.
            a: Device address of A.
            b: Device address of B.
            beta: Factor of C's old content.
            c: Device address of C.
        """
        real = _REAL[dtype]
        plain = _OPERATIONS["n"]
        self._call(
            f"cublas{_LETTER[dtype]}gemm_v2",
            self._handle,
            *(plain, plain, m, n, k),
            *(ctypes.byref(real(alpha)), ctypes.c_void_p(a), m),
            *(ctypes.c_void_p(b), k),
            *(ctypes.byref(real(beta)), ctypes.c_void_p(c), m),
        )

    def transpose(self, dtype: str, rows: int, columns: int, source: int, target: int) -> None:
        """Queue `target[columns, rows] = source[rows, columns]` transposed, both row-major.

        Args:
            dtype: `f32` or `f64`.
            rows: Rows of the source.
            columns: Columns of the source.
            source: Device address.
            target: Device address.
        """
        real = _REAL[dtype]
        # In column-major terms the source is columns x rows and the target rows x columns.
        self._call(
            f"cublas{_LETTER[dtype]}geam",
            self._handle,
            *(_OPERATIONS["t"], _OPERATIONS["n"], rows, columns),
            *(ctypes.byref(real(1.0)), ctypes.c_void_p(source), columns),
            *(ctypes.byref(real(0.0)), ctypes.c_void_p(target), rows),
            *(ctypes.c_void_p(target), rows),
        )

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != _SUCCESS:
            raise CaseFailure(f"{name} returned cuBLAS status {status}.")
