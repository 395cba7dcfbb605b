# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the ladder is held against on the device: the vendor's library, PyTorch, and the driver's own copy.

PyTorch is no dependency: the user's own is imported when an operation's reference asks for it on a GPU, and
nowhere else.
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.context import DeviceBuffer, GpuContext
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.timer import Launch
from gpuprof.errors import BackendUnavailable, CaseFailure, CaseSkipped
from gpuprof.problems.dtypes import ELEMENT_TYPES, SUM, of_run
from gpuprof.problems.references import HostReal, LibraryCall, Pointer

#: Ways that torch has of computing a function, of which it is to be told one: members of `SDPBackend`.
_WAYS = {"scaled_dot_product_attention": ("CUDNN_ATTENTION", "FLASH_ATTENTION")}


class TorchLaunch:
    """Queues one execution; its result is torch's own array until `deliver` copies it to the output."""

    def __init__(self, compute: Callable[[], Any], output: Any, around: Callable[[], Any]) -> None:
        self._compute = compute
        self._output = output
        self._around = around
        self._result: Any = None

    def __call__(self) -> None:
        with self._around():
            self._result = self._compute()

    def deliver(self) -> None:
        """Queue the copy of the last result, which is no part of the function's time."""
        if self._result is not None:
            with self._around():
                self._output.copy_(self._result.view_as(self._output))


class Torch:
    """PyTorch on one stream."""

    def __init__(self, stream: int) -> None:
        from importlib import metadata

        try:
            self.version = metadata.version("torch")
        except metadata.PackageNotFoundError as error:
            raise BackendUnavailable(
                "PyTorch is not installed, so there is no reference.",
                fix="Install it with: pip install torch",
            ) from error
        self._stream = stream

    def launches(self, made: LibraryCall, arrays: ProblemArrays) -> list[TorchLaunch]:
        """A launch for each of torch's ways of computing a function.

        Raises:
            BackendUnavailable: The PyTorch that is installed cannot be used here.
            CaseSkipped: It has none for this problem.
        """
        try:
            import torch
        except (ImportError, OSError) as error:
            raise BackendUnavailable(f"PyTorch {self.version} cannot be imported: {error}.") from error
        function = getattr(torch.nn.functional, made.function, None)
        if function is None or not torch.cuda.is_available():
            raise BackendUnavailable(f"PyTorch {self.version} has no {made.function} for this GPU.")
        stream = torch.cuda.ExternalStream(self._stream)
        given = [_tensor(torch, arrays, each.array) for each in made.arguments if isinstance(each, Pointer)]
        output = _tensor(torch, arrays, arrays.problem.outputs[0].name)
        keywords = {
            key: bool(value) if isinstance(value, int) else value for key, value in made.keywords.items()
        }

        def compute() -> Any:
            return function(*given, **keywords)

        usable, refused = [], "it has no way of computing it"
        for way in _ways(made.function, compute):
            launch = TorchLaunch(way, output, lambda: torch.cuda.stream(stream))
            try:
                with torch.inference_mode():
                    for _ in range(3):  # until its memory for two results is there
                        launch()
                stream.synchronize()
            except RuntimeError as error:
                refused = str(error).partition("\n")[0]
            else:
                usable.append(launch)
        if not usable:
            raise CaseSkipped(f"PyTorch {self.version} cannot compute {arrays.problem.label}: {refused}")
        return usable


def _ways(function: str, compute: Callable[[], Any]) -> Iterable[Callable[[], Any]]:
    """The function as it is, or in each of the ways that are known of it."""
    if function not in _WAYS:
        return [compute]
    from torch.nn import attention

    def told(way: Any) -> Callable[[], Any]:
        def chosen() -> Any:
            with attention.sdpa_kernel(way):
                return compute()

        return chosen

    known = [getattr(attention.SDPBackend, name, None) for name in _WAYS[function]]
    return [told(way) for way in known if way is not None]


def _tensor(torch: Any, arrays: ProblemArrays, name: str) -> Any:
    spec = arrays.problem.array(name)
    element = ELEMENT_TYPES[spec.dtype]
    # Its elements as integers of their size: the interface knows no narrow floats.
    place = {"data": (arrays.address(name), False), "shape": spec.shape, "version": 2}
    interface = {**place, "typestr": f"<i{element.nbytes}"}
    found = torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")
    return found.view(getattr(torch, element.name))


_SUCCESS = 0
#: cublasMath_t. Without a flag that allows it, SGEMM computes in FP32 on CUDA cores: no TF32, no emulation.
_DEFAULT_MATH = 0
#: cudaDataType_t, by element type.
_CUDA_TYPES = {"f32": 0, "tf32": 0, "f16": 2, "bf16": 14, "e4m3": 28}
#: cublasComputeType_t: sums in FP32, of FP32 operands as they are and rounded to TF32.
_SUMS_IN_F32, _OF_TF32 = 68, 77
#: Attributes of cublasLtMatmulDesc_t and cublasLtMatmulPreference_t. Fast accumulation leaves sums of 8-bit
#: floats to the tensor cores.
_TRANS_A, _TRANS_B, _FAST_ACCUMULATION = 3, 4, 25
_MOST_WORKSPACE, _REDUCTIONS = 1, 3
#: cublasLtReductionScheme_t: parts of a sum are added in FP32, never in the output's type.
_IN_COMPUTE_TYPE = 2
#: What NVIDIA recommends for Hopper.
_WORKSPACE_BYTES = 32 << 20
_MOST_ALGORITHMS = 16


class Libraries:
    """Launches of library calls on one device; a library is loaded when it is first needed."""

    def __init__(self, context: GpuContext) -> None:
        self._context = context
        self._loaded: dict[str, Cublas | CublasLt | Torch] = {}

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Version of each library, by its name; one that cannot be used has none: its row says why."""
        versions = {}
        for name in names:
            if name == "numpy":
                blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
                versions["numpy_blas"] = f"{blas['name']} {blas['version']}"
            if name in _LIBRARIES:
                with suppress(BackendUnavailable, CaseFailure):
                    versions[name] = self._library(name).version
        return versions

    def launchers(self, made: LibraryCall, arrays: ProblemArrays) -> Sequence[Launch]:
        """What queues one execution of a library call: a launcher for each algorithm to choose from.

        Raises:
            CaseSkipped: The library has none for this problem.
        """
        if made.library == "driver":
            target, source = (argument.array for argument in made.arguments if isinstance(argument, Pointer))
            nbytes = arrays.problem.array(source).nbytes
            addresses = arrays.address(target), arrays.address(source)
            stream = self._context.stream
            return [
                lambda: call("copying on the device", driver().cuMemcpyDtoDAsync(*addresses, nbytes, stream))
            ]
        library = self._library(made.library)
        if isinstance(library, Torch):
            return library.launches(made, arrays)
        packed = [_packed(argument, arrays) for argument in made.arguments]
        if isinstance(library, CublasLt):
            types = [
                arrays.problem.array(each.array).dtype for each in made.arguments if isinstance(each, Pointer)
            ]
            return library.products(types, *packed)
        return [lambda: library.call(made.function, *packed)]

    def _library(self, name: str) -> "Cublas | CublasLt | Torch":
        if name not in self._loaded:
            self._loaded[name] = _LIBRARIES[name](int(self._context.stream))
        return self._loaded[name]


def _packed(argument: int | HostReal | Pointer, arrays: ProblemArrays) -> Any:
    match argument:
        case Pointer(array):
            return ctypes.c_void_p(arrays.address(array))
        case HostReal(value):
            # The pointer keeps the number alive as long as the call may be repeated.
            kind = ctypes.c_double if of_run(SUM, arrays.problem.dtype) == "f64" else ctypes.c_float
            return ctypes.pointer(kind(value))
    return argument


def _load(name: str) -> ctypes.CDLL:
    """A library of the nvidia-cublas package or the toolkit."""
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        found = load_nvidia_dynamic_lib(name)
    except (DynamicLibNotFoundError, RuntimeError, OSError) as error:
        raise BackendUnavailable(
            "cuBLAS is not installed, so there is no vendor reference.",
            fix="Install it with: pip install 'nvidia-cublas'",
        ) from error
    return ctypes.CDLL(found.abs_path)


def _checked(library: ctypes.CDLL, function: str, *arguments: Any) -> None:
    status = getattr(library, function)(*arguments)
    if status != _SUCCESS:
        raise CaseFailure(f"{function} returned cuBLAS status {status}.")


class Cublas:
    """A cuBLAS handle on one stream."""

    def __init__(self, stream: int) -> None:
        self._library = _load("cublas")
        self._handle = ctypes.c_void_p()
        _checked(self._library, "cublasCreate_v2", ctypes.byref(self._handle))
        self.call("cublasSetStream_v2", ctypes.c_void_p(stream))
        self.call("cublasSetMathMode", _DEFAULT_MATH)

    @property
    def version(self) -> str:
        number = ctypes.c_int()
        self.call("cublasGetVersion_v2", ctypes.byref(number))
        return _version(number.value)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function with the handle in front of its arguments."""
        _checked(self._library, function, self._handle, *arguments)


class _Heuristic(ctypes.Structure):
    """`cublasLtMatmulHeuristicResult_t`: an algorithm that cuBLASLt proposes."""

    _fields_ = (
        ("algo", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class CublasLt:
    """A cuBLASLt handle, with its workspace, for one stream."""

    def __init__(self, stream: int) -> None:
        self._library = _load("cublasLt")
        self._stream = ctypes.c_void_p(stream)
        self._handle = ctypes.c_void_p()
        self._call("cublasLtCreate", ctypes.byref(self._handle))
        self._workspace = DeviceBuffer(_WORKSPACE_BYTES)
        self._preference = self._made("cublasLtMatmulPreferenceCreate")
        for attribute, value in (
            (_MOST_WORKSPACE, ctypes.c_size_t(_WORKSPACE_BYTES)),
            (_REDUCTIONS, ctypes.c_uint32(_IN_COMPUTE_TYPE)),
        ):
            self._set("cublasLtMatmulPreferenceSetAttribute", self._preference, attribute, value)

    @property
    def version(self) -> str:
        self._library.cublasLtGetVersion.restype = ctypes.c_size_t
        return _version(int(self._library.cublasLtGetVersion()))

    def products(
        self, types: Sequence[str], trans_a: int, trans_b: int, m: int, n: int, k: int, *operands: Any
    ) -> list[Launch]:
        """Launches of a column-major product, one for each algorithm that the heuristic proposes.

        Operands are those of cuBLAS' gemm: alpha, A, its leading dimension, B, its own, beta, C, its own.
        """
        alpha, a, lda, b, ldb, beta, c, ldc = operands
        compute = _OF_TF32 if "tf32" in types else _SUMS_IN_F32
        product = self._made("cublasLtMatmulDescCreate", compute, _CUDA_TYPES["f32"])
        for attribute, value in (
            (_TRANS_A, ctypes.c_int32(trans_a)),
            (_TRANS_B, ctypes.c_int32(trans_b)),
            (_FAST_ACCUMULATION, ctypes.c_int8("e4m3" in types)),
        ):
            self._set("cublasLtMatmulDescSetAttribute", product, attribute, value)
        shapes = ((m, k)[:: -1 if trans_a else 1], (k, n)[:: -1 if trans_b else 1], (m, n))
        layouts = [
            self._made(
                "cublasLtMatrixLayoutCreate",
                _CUDA_TYPES[dtype],
                *map(ctypes.c_uint64, shape),
                ctypes.c_int64(leading),
            )
            for dtype, shape, leading in zip(types, shapes, (lda, ldb, ldc), strict=True)
        ]
        found, count = (_Heuristic * _MOST_ALGORITHMS)(), ctypes.c_int()
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            *(self._handle, product, *layouts, layouts[2], self._preference),
            *(_MOST_ALGORITHMS, found, ctypes.byref(count)),
        )
        usable = [each for each in found[: count.value] if each.state == _SUCCESS]
        if status != _SUCCESS or not usable:
            raise CaseSkipped(f"cuBLASLt has no algorithm for {m} x {n} x {k} (status {status}).")
        head = (product, alpha, a, layouts[0], b, layouts[1], beta, c, layouts[2], c, layouts[2])
        return [
            partial(
                self._call,
                *("cublasLtMatmul", self._handle, *head, ctypes.byref(each.algo)),
                *(ctypes.c_void_p(self._workspace.address), ctypes.c_size_t(_WORKSPACE_BYTES), self._stream),
            )
            for each in usable
        ]

    def _made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """A descriptor; it stays until the process ends, as the call may be repeated."""
        made = ctypes.c_void_p()
        self._call(function, ctypes.byref(made), *arguments)
        return made

    def _set(self, function: str, descriptor: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self._call(function, descriptor, attribute, ctypes.byref(value), size)

    def _call(self, function: str, *arguments: Any) -> None:
        _checked(self._library, function, *arguments)


_LIBRARIES: dict[str, type[Cublas | CublasLt | Torch]] = {
    "cublas": Cublas,
    "cublasLt": CublasLt,
    "torch": Torch,
}


def _version(number: int) -> str:
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
