# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a program asks of CuTe DSL's functions, with a stand-in for its compiler: NVRTC, called as CuTe is.

And of Numba's, whose own package for CUDA is missing.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from compile_support import compile_source

import gpuprof
from gpuprof.toolchain.function_compilers import numba_code
from gpuprof.toolchain.nvrtc import compiler_options

SOURCE = """extern "C" __global__ void __launch_bounds__(THREADS) scaled(float *x, float *y, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    extern __shared__ float held[];
    held[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (i < n) y[i] = FACTOR * a * held[threadIdx.x];
}"""
#: As CuTe writes the launch of its own functions: 128 floats of shared memory.
HOST = """  llvm.func @cutlass_scale(%arg0: i32) -> i32 {
    %7 = llvm.mlir.constant(1 : i32) : i32
    %10 = llvm.mlir.constant(512 : i64) : i64
    %16 = llvm.getelementptr %12[0, 1, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %7, %16 : i32, !llvm.ptr
    %18 = llvm.getelementptr %12[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %10, %18 : i64, !llvm.ptr
"""
X = np.arange(1000, dtype=np.float32)


class DSL:
    __module__ = "cutlass.cutlass_dsl"


def compiled(function, *given, options):
    x, y, a, factor, n, *rest = given
    assert (x, y, a, n) == ((("Float32", (1000,)),) * 2 + (("Float32", 2.0), 1000))
    alone, with_default = function._decorator_kind == "alone", function.__name__ == "__call__"
    assert rest == ["a stream", abs][: 0 if alone else 1 + with_default]
    assert "--gpu-arch sm_90a" in options
    assert "--dump-dir " in options  # else it leaves files where the user stands
    if factor == 13:
        raise ValueError("\x1b[91m13 is\x1b[0m no factor")
    defines = [("THREADS", "128"), ("FACTOR", str(factor))]
    made = compile_source(SOURCE, "k.cu", "scaled", compiler_options("sm_90", defines))
    return SimpleNamespace(__ptx__=made.ptx, __cubin__=made.cubin, ir_module=HOST)


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    names = ("cutlass", "cutlass.cute", "cutlass.cute.runtime")
    whole, cute, runtime = modules = [ModuleType(name) for name in names]
    whole.cute, whole.Float32 = cute, lambda a: ("Float32", a)
    whole.Float32.__qualname__ = "Float32"
    cute.compile, cute.jit = compiled, lambda preprocess: lambda function: marked(function, "alone")
    runtime.make_fake_stream = lambda: "a stream"
    runtime.make_fake_compact_tensor = lambda kind, shape, stride_order, assumed_align: ("Float32", shape)
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)


def marked(function, kind):
    function._dsl_cls, function._decorator_kind = DSL, kind
    return function


def scaled(x, y, a, factor: "cutlass.Constexpr", n):  # noqa: F821 - what CuTe looks at
    """The body is CuTe's affair."""


def scale(x, y, a, factor: "cutlass.Constexpr", n, stream: "CUstream"):  # noqa: F821
    """And this one's."""


def profiled(function, factor=3, **how):
    args = {"x": X, "y": None, "a": np.float32(2), "factor": factor, "n": 1000}
    given = {"expect": {"y": 6 * X}, "grid": 8, "block": 128, "device": "sim:h200", **how}
    return gpuprof.profile(function, args=args, **given)


class Scaling:
    """As CuTe's own examples are written."""

    def __call__(self, x, y, a, factor: "Constexpr", n, stream: "CUstream", then: "Constexpr" = abs):  # noqa: F821
        """And this one's."""

    marked(__call__, "jit")


def test_an_object_whose_class_says_how_it_is_called_is_a_kernel():
    for what in (Scaling(), Scaling().__call__):
        run = profiled(what)
        assert run.case().ok
        assert run.record.kernels[0].id == "Scaling"


@pytest.mark.parametrize(("function", "kind"), [(scale, "jit"), (scaled, "kernel")])
def test_a_function_is_a_kernel_whatever_launches_it(function, kind):
    run = profiled(marked(function, kind))
    assert run.case().ok
    record = run.record.kernels[0]
    assert (record.id, record.file_name) == (function.__name__, "test_cute.py")


def test_what_does_not_fit_is_told():
    function = marked(scale, "jit")
    assert "13 is no factor" in profiled(function, 13).case().reason
    assert "holds at most 128 threads" in profiled(function, block=256).case().reason
    with pytest.raises(gpuprof.InputError, match="scale takes x, y, a, factor, n, and args has x"):
        gpuprof.profile(function, args={"x": X}, expect={"x": X}, grid=1, block=1)


def test_numba_without_its_package_for_cuda_is_told_what_is_missing(monkeypatch):
    cuda = SimpleNamespace(compiler=SimpleNamespace(), dispatcher=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "numba", SimpleNamespace(typeof=type, void=print, cuda=cuda))
    monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
    with pytest.raises(ValueError, match="pip install -U numba-cuda"):
        numba_code(print, {}, "sm_90")
