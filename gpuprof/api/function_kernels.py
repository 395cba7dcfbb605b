# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of numba.cuda and CuTe DSL as kernels: what their compilers make of one call's arguments."""

import inspect
import linecache
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuprof.api.calling import BareLaunch, GivenCall, extents, launched, of_function, request_of
from gpuprof.backends.select import named_arch
from gpuprof.errors import InputError
from gpuprof.kernels.kernel import Built, Kernel, Launch
from gpuprof.measure.request import Request
from gpuprof.options import RunOptions
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.numpy_later import np
from gpuprof.toolchain.function_compilers import compile_with, cute_code, numba_code, version_of

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Argument, Call


def is_function(what: Any) -> bool:
    """Whether it is a function of Numba's or CuTe's; neither is imported to find out."""
    cute = getattr(getattr(_called(what), "_dsl_cls", None), "__module__", "")
    return _is_numba(what) or cute.split(".")[0] == "cutlass"


def _is_numba(what: Any) -> bool:
    return type(what).__module__.split(".")[0] == "numba" and hasattr(what, "py_func")


def _called(what: Any) -> Any:
    """What is called where it is: of an object whose class says so, as CuTe's examples are, that method."""
    return what.__call__ if hasattr(type(what).__call__, "_dsl_cls") else what


def function_request(
    functions: Sequence[Any], launch: BareLaunch, given: GivenCall, how: RunOptions
) -> Request:
    """What to measure of such functions, which are called with given arguments."""
    args = given.args
    functions = [_called(function) for function in functions]
    for function in functions:
        if sorted(_names_of(function, args)) != sorted(args):
            takes = ", ".join(_names_of(function, args))
            what = f"{_name_of(function)} takes {takes}, and args has {', '.join(args)}."
            raise InputError(what, fix="Name each of its parameters in args.")
    in_order = {name: args[name] for name in _names_of(functions[0], args)}
    read = of_function(given.read(_name_of(functions[0]), in_order))
    arch = named_arch(how.device, how.arch)
    kernels = [
        _kernel(function, rung, read, args, launch, arch, how.compile_timeout_s)
        for rung, function in enumerate(functions)
    ]
    return request_of(read, kernels, launched(kernels, launch, read.operation, read.integers))


def _plain(function: Any) -> Any:
    return function.py_func if _is_numba(function) else inspect.unwrap(function)


def _names_of(function: Any, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Its parameters; nobody needs to give a stream of CuTe's, or what has a default."""
    return tuple(
        name
        for name, one in _parameters(function).items()
        if name in args or ("tream" not in str(one.annotation) and one.default is inspect.Parameter.empty)
    )


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function.py_func if _is_numba(function) else function).parameters


def _name_of(function: Any) -> str:
    name: str = _plain(function).__name__
    return type(function.__self__).__name__ if name == "__call__" else name


def _kernel(
    function: Any,
    rung: int,
    read: "Call",
    args: "Mapping[str, Argument]",
    launch: BareLaunch,
    arch: str,
    timeout_s: float,
) -> Kernel:
    plain, arrays = _plain(function), read.operation.arrays
    values: dict[str, Any] = {}
    arguments: list[str] = []
    for name in _names_of(function, args):
        if name not in arrays:
            values[name] = args[name]
            arguments.append(name)
            continue
        shape, kind = tuple(map(int, arrays[name].shape)), numpy_dtype(arrays[name].dtype)
        if _is_numba(function) and name in read.compound:
            shape, kind = shape[:-1], read.compound[name]
        values[name] = np.empty(shape, kind)
        arguments += _parts(name, shape, kind.itemsize) if _is_numba(function) else [name]
    who, packages, code = "Numba", ["numba-cuda", "numba"], partial(numba_code, function, values, arch)
    if not _is_numba(function):
        known = _parameters(function)
        arguments = [name for name in arguments if "Constexpr" not in str(known[name].annotation)]
        block = extents("block", launch.blocks[0], read.integers)
        who, packages = "CuTe DSL", ["nvidia-cutlass-dsl"]
        code = partial(cute_code, function, values, block, arch)
    made = compile_with(who, code, timeout_s)
    name, file = _name_of(function), plain.__code__.co_filename
    launched_as = Launch(
        made.entry or name,
        tuple(arguments),
        dynamic_shared_bytes=str(made.shared_bytes),
        cooperative="%envreg" in made.ptx,  # the grid's barrier
    )
    return Kernel(
        id=name,
        file_name=Path(file).name,
        source="".join(linecache.getlines(file)) or f"# {name}\n",
        operation=read.operation.name,
        title=name,
        dtypes=(read.dtype,),
        launches=(launched_as,),
        any_block=True,
        rung=rung,
        built=Built(made.ptx, made.cubin, f"{who} {version_of(*packages)}", made.error),
    )


def _parts(name: str, shape: tuple[int, ...], item_bytes: int) -> list[str]:
    """What an array is to Numba's kernels: two owners, elements, bytes of one, address, extents, strides."""
    strides = [item_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    elements = strides[-1] * shape[0] // item_bytes
    return ["0", "0", str(elements), str(item_bytes), name, *map(str, shape), *map(str, reversed(strides))]
