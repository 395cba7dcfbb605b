# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run CUDA sources and single PTX instructions on the executor."""

import functools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import nvrtc
from cuda_sources import kernel_table, line_of

from gpuprof.errors import CaseFailure
from gpuprof.executor import (
    Buffer,
    Definedness,
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchResult,
    Order,
    Program,
    UnsupportedInstruction,
    launch,
    load_program,
    other_orders,
)
from gpuprof.executor.arithmetic import exact

PTX_HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
KERNELS = Path(__file__).parents[2] / "gpuprof" / "kernels"
#: Those that tests change and launch by hand.
KERNELS_BY_HAND = kernel_table(Path(__file__).parent / "by_hand.cu")


def _checked(result):
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(str(status))
    return values[0] if values else None


def refused(program: Program, *args) -> UnsupportedInstruction:
    """Return what stops one warp of a kernel that uses what is not modelled, and that a thread reached it."""
    with pytest.raises(UnsupportedInstruction) as caught:
        launch(program, (1, 1, 1), (32, 1, 1), args, GlobalMemory())
    assert caught.value.reached_by is not None
    assert (caught.value.name, caught.value.line) in program.unmodelled
    return caught.value


@functools.cache
def compile_cuda(source: str, options: tuple[str, ...] = (), arch: str = "sm_90") -> str:
    """Return the PTX of one CUDA source; that of the virtual architecture, which needs no assembler."""
    return compile_both(source, options, arch.replace("sm", "compute"))[0]


@functools.cache
def compile_both(source: str, options: tuple[str, ...] = (), arch: str = "sm_90") -> tuple[str, bytes]:
    """Return the PTX and the cubin of one CUDA source; a virtual architecture has no cubin."""
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], []))
    flags = [f"--gpu-architecture={arch}", "-lineinfo", "--std=c++17", *options]
    status = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])[0]
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    ptx = b" " * _checked(nvrtc.nvrtcGetPTXSize(program))
    nvrtc.nvrtcGetPTX(program, ptx)
    cubin = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
    if cubin:
        nvrtc.nvrtcGetCUBIN(program, cubin)
    return ptx.rstrip(b"\0").decode(), cubin


def cuda_program(
    source: str, options: tuple[str, ...] = (), arch: str = "sm_90", *, follow_undefined: bool = False
) -> Program:
    """Decode the only `extern "C"` kernel of a source."""
    entry = re.search(
        r'extern "C" __global__ void (?:__(?:launch_bounds|cluster_dims)__\([^)]*\) )*(\w+)', source
    ).group(1)
    return load_program(
        compile_cuda(source, options, arch), entry, observer=Definedness() if follow_undefined else None
    )


def run_cuda(
    source: str,
    *arrays: np.ndarray,
    scalars: tuple = (),
    grid=(1, 1, 1),
    block=(32, 1, 1),
    shared: int = 0,
    options: tuple[str, ...] = (),
    arch: str = "sm_90",
    follow_undefined: bool = False,
    **keywords,
) -> tuple[list[Buffer], LaunchResult]:
    """Run a kernel on copies of the arrays, passed first, then the scalars; races show in any order."""
    program = cuda_program(source, options, arch, follow_undefined=follow_undefined)

    def run(order: Order | None = None):
        memory = GlobalMemory()
        buffers = [memory.allocate(array, f"array {i}") for i, array in enumerate(arrays)]
        arguments = [*buffers, *scalars]
        options = {"dynamic_shared_bytes": shared, "order": order, **keywords}
        return buffers, launch(program, grid, block, arguments, memory, **options)

    buffers, result = run()
    for order in () if "observers" in keywords else other_orders(result.openness, result.steps):
        try:
            run(order)
        except KernelFault as fault:
            if fault.kind in (FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE):
                raise
    return buffers, result


def run_ptx(
    text: str,
    *arrays: np.ndarray,
    scalars: tuple = (),
    grid=(1, 1, 1),
    block=(32, 1, 1),
    follow_undefined: bool = False,
) -> tuple[list[np.ndarray], LaunchResult]:
    """Run the kernel `k` of a PTX text, without its head, on copies of the arrays; return these."""
    memory = GlobalMemory()
    buffers = [memory.allocate(array, f"array {i}") for i, array in enumerate(arrays)]
    program = load_program(PTX_HEAD + text, "k", observer=Definedness() if follow_undefined else None)
    result = launch(program, grid, block, [*buffers, *scalars], memory)
    return [buffer.array() for buffer in buffers], result


def caught(source: str, *arrays: np.ndarray, **keywords) -> KernelFault:
    """Return the fault that a kernel commits."""
    with pytest.raises(KernelFault) as error:
        run_cuda(source, *arrays, **keywords)
    assert isinstance(error.value, CaseFailure)
    assert str(error.value.source_line) in str(error.value)
    return error.value


def tells(
    source: str,
    kind: FaultKind,
    line: str,
    words: str,
    *arrays: np.ndarray,
    thread: int | None = None,
    **keywords,
) -> KernelFault:
    """Hold the fault that a kernel commits to its kind, the text of its line, words, and x of its thread."""
    fault = caught(source, *arrays, **keywords)
    assert (fault.kind, fault.source_line) == (kind, line_of(source, line)), fault
    assert words in fault.detail
    assert thread is None or fault.thread == (thread, 0, 0), fault
    return fault


_NUMPY = {"b16": "uint16", "b32": "uint32", "b64": "uint64", "f16": "uint16", "pred": "uint8"}
_PREFIX = {"u": "uint", "s": "int", "f": "float"}


def numpy_type(kind: str) -> np.dtype:
    """Return the NumPy type of a PTX type's memory image."""
    return np.dtype(_NUMPY.get(kind) or _PREFIX[kind[0]] + kind[1:])


def run_instruction(text: str, kinds: tuple[str, ...], result: str, *columns) -> np.ndarray:
    """Execute a PTX instruction in every lane: `d` is the result of `a`, `b`, `c` and `e`, the columns.

    Operands of kind "pred" are given as 0 or 1.
    """
    arrays = [np.asarray(column, dtype=numpy_type(kind)) for column, kind in zip(columns, kinds, strict=True)]
    count = len(arrays[0])
    lines = [f".reg .{_register(kind)} {name};" for kind, name in zip(kinds, "abce", strict=False)]
    lines += [f".reg .{_register(result)} d;", ".reg .b64 p, i, q;", ".reg .b32 t;", ".reg .b16 h;"]
    lines += ["mov.u32 t, %tid.x;", "cvt.u64.u32 i, t;"]
    for number, (kind, name) in enumerate(zip(kinds, "abce", strict=False)):
        size = numpy_type(kind).itemsize
        lines += [f"ld.param.u64 p, [k_{number}];", f"mad.lo.u64 q, i, {size}, p;"]
        if kind == "pred":
            lines += ["ld.global.u8 h, [q];", f"setp.ne.u16 {name}, h, 0;"]
        else:
            lines += [f"ld.global.{_moved(kind)} {name}, [q];"]
    lines += [
        text,
        f"ld.param.u64 p, [k_{len(kinds)}];",
        f"mad.lo.u64 q, i, {numpy_type(result).itemsize}, p;",
    ]
    if result == "pred":
        lines += ["selp.u16 h, 1, 0, d;", "st.global.u8 [q], h;"]
    else:
        lines += [f"st.global.{_moved(result)} [q], d;"]
    params = ", ".join(f".param .u64 k_{i}" for i in range(len(kinds) + 1))
    text = f".visible .entry k({params})\n{{\n" + "\n".join(lines) + "\nret;\n}\n"
    out = np.zeros(count, dtype=numpy_type(result))
    return run_ptx(text, *arrays, out, block=(count, 1, 1))[0][-1]


def _register(kind: str) -> str:
    return {"u8": "b16", "s8": "b16", "f16": "b16"}.get(kind, kind)


def _moved(kind: str) -> str:
    return {"f16": "b16"}.get(kind, kind)


def exact_fma(a, b, c):
    """Return a * b + c of float32 or float64, rounded once to nearest."""
    if a.dtype == np.float32:
        product = np.multiply(a, b, dtype=np.float64)
        return exact.to_odd(*exact.two_sum(product, c.astype(np.float64))).astype(np.float32)
    a, b, c = np.broadcast_arrays(a, b, c)
    result = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    for where in zip(*np.nonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)), strict=True):
        value = Fraction(float(a[where])) * Fraction(float(b[where])) + Fraction(float(c[where]))
        if value:
            try:
                result[where] = float(value)
            except OverflowError:
                result[where] = np.inf if value > 0 else -np.inf
    return result
