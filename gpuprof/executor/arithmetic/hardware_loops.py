# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The hottest float arithmetic by this machine's own instructions, where llvmlite is installed.

NumPy has no fused multiply-add, and doing it exactly with NumPy's other functions takes ten passes over the
data in float32 and forty in float64. NumPy adds and multiplies well, but gives NaNs of its own, and to look
for them takes another pass. LLVM compiles a loop around the CPU's instruction that also gives the NaNs of the
GPU, and NumPy's C interface makes that loop a ufunc, which brings broadcasting and strides. The results are
those of `exact` and `nans`, bit for bit.
"""

import ctypes
import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.nans import CANONICAL, GENERATED, PRIORITY
from gpuprof.executor.arithmetic.native_code import compiled, multiplies_and_adds

#: Name to LLVM's expression of x, y and z, and how many of them there are.
_OPERATIONS = {
    "add": ("fadd {type} %x0, %x1", 2),
    "sub": ("fsub {type} %x0, %x1", 2),
    "mul": ("fmul {type} %x0, %x1", 2),
    "fma": ("call {type} @llvm.fma.{suffix}({type} %x0, {type} %x1, {type} %x2)", 3),
}
#: Types of a loop: LLVM's name, and NumPy's.
_TYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "f32": ("float", np.dtype(np.float32)),
    "f64": ("double", np.dtype(np.float64)),
}
#: A NumPy inner loop: arrays of operands, length, and byte strides come in; see NumPy's ufunc C interface.
_LOOP = """
declare {type} @llvm.fma.{suffix}({type}, {type}, {type})
define void @loop(ptr %args, ptr %length, ptr %steps, ptr %unused) {{
entry:
  %n = load i64, ptr %length
{operands}
{choices}
  call void @strided({given}, i64 %n)
  ret void
}}
define internal void @strided({formal}, i64 %n) alwaysinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{addresses}
{loads}
  %computed = {operation}
{nans}
  store {type} %result, ptr %at{out}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  ret void
}}
!0 = distinct !{{!0, !1, !2}}
!1 = !{{!"llvm.loop.vectorize.width", i32 8}}
!2 = !{{!"llvm.loop.interleave.count", i32 1}}
"""
_OPERAND = """
  %argp{i} = getelementptr ptr, ptr %args, i64 {i}
  %stepp{i} = getelementptr i64, ptr %steps, i64 {i}
  %arg{i} = load ptr, ptr %argp{i}
  %step{i} = load i64, ptr %stepp{i}"""
_ADDRESS = """
  %off{i} = mul i64 %i, %step{i}
  %at{i} = getelementptr i8, ptr %arg{i}, i64 %off{i}"""
#: A case that LLVM knows the strides of, and makes a vector loop of.
_CHOICE = """
  br label %is{number}
is{number}:
{tests}
  br i1 %same{number}_{last}, label %do{number}, label %after{number}
do{number}:
  call void @strided({given}, i64 %n)
  ret void
after{number}:"""
_LOAD = """
  %{value} = load {type}, ptr %at{i}"""
#: With `.ftz` a subnormal is a zero of its sign: whatever has no bit of the exponent.
_FLUSH = """
  %bits_{value} = bitcast float {source} to i32
  %exponent_{value} = and i32 %bits_{value}, 2139095040
  %tiny_{value} = icmp eq i32 %exponent_{value}, 0
  %sign_{value} = and i32 %bits_{value}, -2147483648
  %flushed_{value} = select i1 %tiny_{value}, i32 %sign_{value}, i32 %bits_{value}
  %{value} = bitcast i32 %flushed_{value} to float"""
_NAN32 = """
  %isnan = fcmp uno float {value}, {value}
  %result = select i1 %isnan, float {canonical}, float {value}"""
_NEW64 = """
  %isnew = fcmp uno double %computed, %computed
  %before = select i1 %isnew, double {generated}, double %computed"""
#: A NaN of the operand is handed on, as a quiet one; `before` is what comes out where it is a number.
_NAN64 = """
  %isnan{i} = fcmp uno double %x{i}, %x{i}
  %bits{i} = bitcast double %x{i} to i64
  %quiet{i} = or i64 %bits{i}, 2251799813685248
  %nan{i} = bitcast i64 %quiet{i} to double
  {to} = select i1 %isnan{i}, double %nan{i}, double {before}"""
#: Place of `PyUFunc_FromFuncAndData` in NumPy's table of ufunc functions, part of its binary interface.
_FROM_LOOPS = 1


@functools.cache
def hardware_loop(name: str, kind: str) -> Callable[..., Any] | None:
    """Return a ufunc that rounds once to nearest and gives the NaNs of the GPU.

    Args:
        name: `add`, `sub` or `mul` of two operands, or `fma`, which is (a, b, c) -> a * b + c; of f32 with
            `.ftz` behind it, where subnormal operands and results are zeros.
        kind: `f32` or `f64`.

    Returns:
        None when llvmlite is not installed, or when the CPU has no fused multiply-add.
    """
    if not multiplies_and_adds():
        return None
    operation, _, flushes = name.partition(".")
    return _as_ufunc(_Loop(operation, kind, bool(flushes)))


@dataclass(frozen=True)
class _Loop:
    """The loop of one ufunc."""

    name: str
    kind: str
    flushes: bool

    @property
    def count(self) -> int:
        """Operands."""
        return _OPERATIONS[self.name][1]

    def source(self) -> str:
        """Return the loop, and before it the cases of strides that are common."""
        kind, dtype = _TYPES[self.kind]
        each = range(self.count + 1)  # the last is the result

        def given(steps: Sequence[str]) -> str:
            return ", ".join(f"ptr %arg{i}, i64 {steps[i]}" for i in each)

        # Every operand has a value for each lane, or one of them has a single value.
        size = str(dtype.itemsize)
        common = [[size] * (self.count + 1)] + [
            [*("0" if i == single else size for i in range(self.count)), size] for single in range(self.count)
        ]
        choices = [
            _CHOICE.format(
                number=number, tests=_same_steps(number, steps), last=self.count, given=given(steps)
            )
            for number, steps in enumerate(common)
        ]
        return _LOOP.format(
            type=kind,
            suffix=self.kind,
            operands="".join(_OPERAND.format(i=i) for i in each),
            choices="".join(choices),
            given=given([f"%step{i}" for i in each]),
            formal=", ".join(f"ptr {'noalias ' * (i == self.count)}%arg{i}, i64 %step{i}" for i in each),
            addresses="".join(_ADDRESS.format(i=i) for i in each),
            loads="".join(self._load(i) for i in range(self.count)),
            operation=_OPERATIONS[self.name][0].format(type=kind, suffix=self.kind),
            nans=self._single_nans() if self.kind == "f32" else self._double_nans(),
            out=self.count,
        )

    def _load(self, i: int) -> str:
        if not self.flushes:
            return _LOAD.format(value=f"x{i}", i=i, type=_TYPES[self.kind][0])
        given = _LOAD.format(value=f"given{i}", i=i, type=_TYPES[self.kind][0])
        return given + _FLUSH.format(value=f"x{i}", source=f"%given{i}")

    def _single_nans(self) -> str:
        """Return lines that finish a float: there is one NaN."""
        flush = _FLUSH.format(value="rounded", source="%computed") if self.flushes else ""
        value = "%rounded" if self.flushes else "%computed"
        return flush + _NAN32.format(canonical=_constant(CANONICAL), value=value)

    def _double_nans(self) -> str:
        """Return lines that finish a double: hand on an operand's NaN, or make one where there is none."""
        lines = _NEW64.format(generated=_constant(GENERATED))
        before = "%before"
        for place, i in enumerate(reversed(PRIORITY[self.name]), 1):
            to = "%result" if place == self.count else f"%chosen{i}"
            lines += _NAN64.format(i=i, to=to, before=before)
            before = to
        return lines


@functools.cache
def _compiled(loop: _Loop) -> Any:
    """Compile a loop; the cache keeps the machine code alive."""
    return compiled(loop.source(), optimised=True)


def _same_steps(number: int, steps: Sequence[str]) -> str:
    """Return lines whose last names a bit: whether all strides are these."""
    lines, all_so_far = [], "true"
    for i, step in enumerate(steps):
        lines.append(f"  %is{number}_{i} = icmp eq i64 %step{i}, {step}")
        lines.append(f"  %same{number}_{i} = and i1 {all_so_far}, %is{number}_{i}")
        all_so_far = f"%same{number}_{i}"
    return "\n".join(lines)


def _constant(nan: np.floating[Any]) -> str:
    """Return a NaN as LLVM writes floats of either width: as bits of a double."""
    return f"0x{int(np.float64(nan).view(np.uint64)):016X}"


@functools.cache
def _tables(loop: _Loop) -> tuple[Any, Any, Any, bytes]:
    """What the ufunc refers to as long as it lives: its loop, the loop's data, operand types, and a name."""
    types = bytes([_TYPES[loop.kind][1].num]) * (loop.count + 1)
    return (
        (ctypes.c_void_p * 1)(_compiled(loop).get_function_address("loop")),
        (ctypes.c_void_p * 1)(),
        ctypes.create_string_buffer(types, len(types)),
        loop.name.encode(),
    )


def _as_ufunc(loop: _Loop) -> Callable[..., Any]:
    functions = importlib.import_module("numpy._core._multiarray_umath")._UFUNC_API
    *arrays, name = _tables(loop)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(functions, None), ctypes.POINTER(ctypes.c_void_p))
    pointers, counts, texts = [ctypes.c_void_p] * 3, [ctypes.c_int] * 4, [ctypes.c_char_p] * 2
    from_loops = ctypes.PYFUNCTYPE(ctypes.py_object, *pointers, *counts, *texts, ctypes.c_int)(
        table[_FROM_LOOPS]
    )
    no_identity = -1
    addresses = (ctypes.addressof(array) for array in arrays)
    ufunc: Callable[..., Any] = from_loops(
        *addresses, 1, loop.count, 1, no_identity, name, b"rounded once, with the NaNs of the GPU", 0
    )
    return ufunc
