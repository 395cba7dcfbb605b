# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the ladder is held against on the device: the vendor's library, and the driver's own copy."""

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.context import GpuContext
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.errors import BackendUnavailable, CaseFailure
from gpuprof.problems.behaviour import HostReal, LibraryCall, Pointer

_REAL = {"f32": ctypes.c_float, "f64": ctypes.c_double}
_SUCCESS = 0
#: cublasMath_t. Without a flag that allows it, SGEMM computes in FP32 on CUDA cores: no TF32, no emulation.
_DEFAULT_MATH = 0


class Libraries:
    """Launchers of library calls on one device; a library is loaded when it is first needed."""

    def __init__(self, context: GpuContext) -> None:
        self._context = context
        self._cublas: Cublas | None = None

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Version of each library, by its name; one that cannot be used has none: its row says why."""
        versions = {}
        for name in names:
            if name == "numpy":
                blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
                versions["numpy_blas"] = f"{blas['name']} {blas['version']}"
            if name == "cublas":
                with suppress(BackendUnavailable, CaseFailure):
                    versions[name] = self._library().version
        return versions

    def launcher(self, made: LibraryCall, arrays: ProblemArrays) -> Callable[[], None]:
        """What queues one execution of a library call."""
        if made.library == "driver":
            target, source = (argument.array for argument in made.arguments if isinstance(argument, Pointer))
            nbytes = arrays.problem.array(source).nbytes
            addresses = arrays.address(target), arrays.address(source)
            stream = self._context.stream
            return lambda: call(
                "copying on the device", driver().cuMemcpyDtoDAsync(*addresses, nbytes, stream)
            )
        library = self._library()
        packed = [_packed(argument, arrays) for argument in made.arguments]
        return lambda: library.call(made.function, *packed)

    def _library(self) -> "Cublas":
        if self._cublas is None:
            self._cublas = Cublas(int(self._context.stream))
        return self._cublas


def _packed(argument: int | HostReal | Pointer, arrays: ProblemArrays) -> Any:
    match argument:
        case Pointer(array):
            return ctypes.c_void_p(arrays.address(array))
        case HostReal(value):
            # The pointer keeps the number alive as long as the call may be repeated.
            return ctypes.pointer(_REAL[arrays.problem.dtype](value))
    return argument


class Cublas:
    """A cuBLAS handle on one stream, from the nvidia-cublas package or the toolkit."""

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
        self.call("cublasSetStream_v2", ctypes.c_void_p(stream))
        self.call("cublasSetMathMode", _DEFAULT_MATH)

    @property
    def version(self) -> str:
        """The library's version, for example `13.1.0`."""
        number = ctypes.c_int()
        self.call("cublasGetVersion_v2", ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function with the handle in front of its arguments."""
        self._call(function, self._handle, *arguments)

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != _SUCCESS:
            raise CaseFailure(f"{function} returned cuBLAS status {status}.")
