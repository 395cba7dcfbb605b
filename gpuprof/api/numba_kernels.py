# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions that `numba.cuda.jit` made, as kernels: PTX that Numba compiles for the arguments of one call."""

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuprof.api.calling import BareLaunch, given_call, launched
from gpuprof.api.keywords import HeaderKeywords
from gpuprof.backends.select import named_arch
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import Ladder
from gpuprof.kernels.kernel import Built, Kernel, Launch
from gpuprof.measure.options import RunOptions
from gpuprof.measure.request import Request, make_request
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.toolchain.asking import version_of
from gpuprof.toolchain.numba_compiler import compile_function

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Argument, Call, Expectation


def is_numba(what: Any) -> bool:
    """Whether it is a CUDA function of Numba's; Numba is not imported to find out."""
    return type(what).__module__.split(".")[0] == "numba" and hasattr(what, "py_func")


def numba_request(
    functions: Sequence[Any],
    launch: BareLaunch | None,
    args: "Mapping[str, Argument]",
    expect: "Mapping[str, Expectation]",
    said: HeaderKeywords,
    folder: Path,
    how: RunOptions,
) -> Request:
    """What to measure of functions of Numba that are called with given arguments."""
    if launch is None:
        raise InputError("A call has no launch.", fix="Give grid and block, as in kernel[grid, block](…).")
    names = _names_of(functions[0])
    for function in functions:
        if sorted(_names_of(function)) != sorted(args):
            takes = ", ".join(_names_of(function))
            what = f"{function.py_func.__name__} takes {takes}, and args has {', '.join(args)}."
            raise InputError(what, fix="Name each of its parameters in args.")
    in_order = {name: args[name] for name in names}
    read = given_call(functions[0].py_func.__name__, in_order, expect, said, folder)
    arch = named_arch(how.device, how.arch)
    kernels = tuple(
        _kernel(function, rung, read, args, arch, how.compile_timeout_s)
        for rung, function in enumerate(functions)
    )
    ladder = Ladder(read.operation, kernels)
    request = make_request(ladder, sizes=[read.sizes], dtype=read.dtype, scalars=read.scalars)
    return replace(request, selections=launched(ladder, launch, read.integers))


def _names_of(function: Any) -> tuple[str, ...]:
    code = function.py_func.__code__
    return tuple(code.co_varnames[: code.co_argcount])


def _kernel(
    function: Any, rung: int, read: "Call", args: "Mapping[str, Argument]", arch: str, timeout_s: float
) -> Kernel:
    from gpuprof.problems.by_value import placeholder

    arrays = read.operation.arrays
    values: dict[str, Any] = {}
    arguments: list[str] = []
    for name in _names_of(function):
        if name not in arrays:
            values[name] = args[name]
            arguments.append(name)
            continue
        shape = tuple(map(int, arrays[name].shape))
        values[name] = placeholder(arrays[name].dtype, len(shape))
        arguments += _parts(name, shape, ELEMENT_TYPES[arrays[name].dtype].nbytes)
    code = compile_function(function, values, arch, timeout_s)
    name, file = function.py_func.__name__, function.py_func.__code__.co_filename
    return Kernel(
        id=name,
        file_name=Path(file).name,
        source="".join(linecache.getlines(file)) or f"# {name}\n",
        operation=read.operation.name,
        title=name,
        dtypes=(read.dtype,),
        entry=code.entry or name,
        arguments=tuple(arguments),
        launch=Launch((1, 1, 1), True, ("1", "1", "1"), "0"),
        rung=rung,
        built=Built(ptx=code.ptx, by=f"Numba {version_of('numba-cuda', 'numba')}", error=code.error),
    )


def _parts(name: str, shape: tuple[int, ...], item_bytes: int) -> list[str]:
    """What an array is to Numba's kernels: two owners, elements, bytes of one, address, extents, strides."""
    strides = [item_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    elements = strides[-1] * shape[0] // item_bytes
    return ["0", "0", str(elements), str(item_bytes), name, *map(str, shape), *map(str, reversed(strides))]
