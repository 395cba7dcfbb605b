# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Fused multiply-add by this machine's own instruction, where llvmlite is installed.

NumPy has no such function, and doing it exactly with NumPy's others takes ten passes over the data in
float32 and forty in float64. LLVM compiles a loop around the CPU's instruction, and NumPy's C interface
makes that loop a ufunc, which brings broadcasting and strides. The results are the same bit for bit.
"""

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

#: A NumPy inner loop: arrays of operands, length, and byte strides come in; see NumPy's ufunc C interface.
_LOOP = """
define void @loop_{suffix}(ptr noalias %args, ptr noalias %length, ptr noalias %steps, ptr %unused) {{
entry:
  %n = load i64, ptr %length
{operands}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{addresses}
  %x = load {type}, ptr %at0
  %y = load {type}, ptr %at1
  %z = load {type}, ptr %at2
  %r = call {type} @llvm.fma.{suffix}({type} %x, {type} %y, {type} %z)
  store {type} %r, ptr %at3
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
declare {type} @llvm.fma.{suffix}({type}, {type}, {type})
"""
_OPERAND = """
  %argp{i} = getelementptr ptr, ptr %args, i64 {i}
  %stepp{i} = getelementptr i64, ptr %steps, i64 {i}
  %arg{i} = load ptr, ptr %argp{i}
  %step{i} = load i64, ptr %stepp{i}"""
_ADDRESS = """
  %off{i} = mul i64 %i, %step{i}
  %at{i} = getelementptr i8, ptr %arg{i}, i64 %off{i}"""
_TYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "float": ("f32", np.dtype(np.float32)),
    "double": ("f64", np.dtype(np.float64)),
}
#: Place of `PyUFunc_FromFuncAndData` in NumPy's table of ufunc functions, part of its binary interface.
_FROM_LOOPS = 1


@functools.cache
def hardware_fma() -> Callable[..., Any] | None:
    """Return a ufunc (a, b, c) -> a * b + c, rounded once, for float32 and float64.

    Returns:
        None when llvmlite is not installed, or when the CPU has no such instruction.
    """
    try:
        from llvmlite import binding as llvm
    except ImportError:
        return None
    if not llvm.get_host_cpu_features().get("fma", False):
        return None
    return _as_ufunc([_compiled().get_function_address(f"loop_{suffix}") for suffix, _ in _TYPES.values()])


@functools.cache
def _compiled() -> Any:
    """Compile both loops; the cache keeps the machine code alive."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("".join(_source(kind, suffix) for kind, (suffix, _) in _TYPES.items()))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    llvm.create_pass_builder(machine, tuning).getModulePassManager().run(
        module, llvm.create_pass_builder(machine, tuning)
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _source(kind: str, suffix: str) -> str:
    operands = "".join(_OPERAND.format(i=i) for i in range(4))
    addresses = "".join(_ADDRESS.format(i=i) for i in range(4))
    return _LOOP.format(type=kind, suffix=suffix, operands=operands, addresses=addresses)


@functools.cache
def _loop_tables() -> tuple[Any, Any, Any]:
    """Arrays that the ufunc refers to as long as it lives: loops, their data, and operand types."""
    count = len(_TYPES)
    kinds = [dtype.num for _, dtype in _TYPES.values() for _ in range(4)]
    return (
        (ctypes.c_void_p * count)(),
        (ctypes.c_void_p * count)(),
        ctypes.create_string_buffer(bytes(kinds), len(kinds)),
    )


def _as_ufunc(addresses: list[int]) -> Callable[..., Any]:
    functions = importlib.import_module("numpy._core._multiarray_umath")._UFUNC_API
    loops, data, kinds = _loop_tables()
    loops[:] = addresses
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(functions, None), ctypes.POINTER(ctypes.c_void_p))
    pointers, counts, texts = [ctypes.c_void_p] * 3, [ctypes.c_int] * 4, [ctypes.c_char_p] * 2
    from_loops = ctypes.PYFUNCTYPE(ctypes.py_object, *pointers, *counts, *texts, ctypes.c_int)(
        table[_FROM_LOOPS]
    )
    arrays = [ctypes.addressof(array) for array in (loops, data, kinds)]
    no_identity = -1
    ufunc: Callable[..., Any] = from_loops(
        *arrays, len(addresses), 3, 1, no_identity, b"fma", b"a * b + c, rounded once", 0
    )
    return ufunc
