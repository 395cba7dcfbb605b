# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of Triton as kernels: a case for what its compiler makes of each configuration."""

import linecache
from collections.abc import Mapping, Sequence
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpuprof.api.calling import GivenCall, LaunchValue, address_tables, extents, of_function, request_of
from gpuprof.backends.select import named_arch
from gpuprof.errors import InputError
from gpuprof.kernels.kernel import Built, Kernel, Launch, Workspace
from gpuprof.kernels.tensor_map import TensorMapSpec
from gpuprof.machine import usable_cores
from gpuprof.measure.request import Request, Selection
from gpuprof.options import RunOptions
from gpuprof.problems.dtypes import ELEMENT_TYPES, numpy_dtype
from gpuprof.problems.numpy_later import np
from gpuprof.text import in_xyz
from gpuprof.toolchain.function_compilers import ArrayOf, FunctionCode, JitCall, compile_calls, version_of

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Call

#: What a configuration says of the compiler, by the names that a launch uses too.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
#: Keywords of `profile` that are for functions of Triton alone.
TRITON_WORDS = ("constexprs", *_OPTIONS)


def is_triton(what: Any) -> bool:
    """Whether it is a function of Triton's, tuned or not, be it by a tuner of its caller's own.

    Triton is not imported to find out.
    """
    return hasattr(what, "fn") and any(
        kind.__module__.split(".")[0] == "triton" for kind in type(what).__mro__
    )


def _is_descriptor(value: Any) -> bool:
    """Whether it is a tensor map that a program makes for the copy engine."""
    return type(value).__name__ == "TensorDescriptor"


class _Function(Struct, frozen=True):
    """A function without its decorators: configurations with their hooks, and what computes constants."""

    jit: Any
    configs: tuple[tuple[Mapping[str, Any], Any], ...]
    heuristics: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return str(self.jit.fn.__name__)

    @property
    def constants(self) -> tuple[str, ...]:
        return tuple(param.name for param in self.jit.params if param.is_constexpr)

    @property
    def defaults(self) -> dict[str, Any]:
        return {param.name: param.default for param in self.jit.params if param.has_default}

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(param.name for param in self.jit.params if not param.is_constexpr)


def triton_request(functions: Sequence[Any], grid: LaunchValue, given: GivenCall, how: RunOptions) -> Request:
    """What to measure of functions of Triton that are called with given arguments."""
    found = [_unwrapped(function) for function in functions]
    said, expect = given.said, given.expect
    constants = {**said.get("constexprs", {})}
    first = found[0]
    defaults = {name: value for name, value in first.defaults.items() if name in first.arguments}
    args = {**defaults, **given.args}
    arguments: dict[str, Any] = {}
    absent: dict[str, None] = {}
    for name, value in args.items():
        if all(name in function.constants for function in found):
            constants[name] = value
        elif value is None and name not in expect and expect.keys() <= args.keys():
            absent[name] = None
        else:
            arguments[name] = value.base if _is_descriptor(value) else value
    options = {name: value for name, value in said.items() if name in _OPTIONS}
    for function in found:
        # An option may be a parameter too.
        own = options.keys() & {*function.constants}
        _check_names(function, {**args, **constants, **dict.fromkeys(own)})
    in_order = {name: arguments[name] for name in first.arguments if name in arguments}
    read = of_function(given.read(first.name, in_order))
    # Heuristics and grids ask what an output is, and whether it is there.
    outputs = {
        name: np.empty(tuple(map(int, one.shape)), numpy_dtype(one.dtype))
        for name, one in read.operation.arrays.items()
        if arguments.get(name) is None
    }
    described = {name: value for name, value in args.items() if _is_descriptor(value)}
    known = {**arguments, **outputs, **absent, **constants, **options, **described}
    calls = [
        (function, rung, *_call_of(function, config, hook, known, read))
        for rung, function in enumerate(found)
        for config, hook in function.configs
    ]
    made = compile_calls(
        [call for *_, call in calls], named_arch(how.device, how.arch), how.compile_timeout_s, usable_cores()
    )
    selections = [
        _selection(function, rung, meta, code, grid, read)
        for (function, rung, meta, _), code in zip(calls, made, strict=True)
    ]
    firsts = {selection.kernel.id: selection.kernel for selection in reversed(selections)}
    if len(firsts) != len(found):
        raise InputError("Two functions have one name.", fix="Rename one of them.")
    return request_of(read, [firsts[function.name] for function in found], selections)


def _call_of(
    function: _Function, config: Mapping[str, Any], hook: Any, given: Mapping[str, Any], read: "Call"
) -> tuple[dict[str, Any], JitCall]:
    """All that a grid may ask for of one configuration, by name, and what to compile."""
    if twice := sorted({*config} & {*given}):
        raise InputError(
            f"{twice[0]} of {function.name} is in its configurations already.", fix=f"Leave out {twice[0]}."
        )
    # Each configuration has descriptors of its own, whose boxes its hook may choose.
    own = {name: copy(value) for name, value in given.items() if _is_descriptor(value)}
    meta = {**function.defaults, **given, **config, **own}
    if own and hook:
        hook(meta)
    for computed in function.heuristics:
        meta |= {name: compute(dict(meta)) for name, compute in computed.items()}
    arrays = read.operation.arrays
    values: dict[str, Any] = {}
    for name in (*function.arguments, *function.constants):
        if name in own:
            own[name].base = ArrayOf(ELEMENT_TYPES[arrays[name].dtype].numpy)
            values[name] = own[name]
        elif name in arrays:
            values[name] = ArrayOf(ELEMENT_TYPES[arrays[name].dtype].numpy)
        elif name in read.lists:
            values[name] = ArrayOf("int64")
        elif name in meta:
            value = meta[name]
            values[name] = value.item() if hasattr(value, "item") else value  # a number of NumPy's
    return meta, JitCall(function.jit, values, {name: meta[name] for name in _OPTIONS if name in meta})


def _unwrapped(function: Any) -> _Function:
    """The function below `autotune` and `heuristics`, in whichever order they stand."""
    configs: tuple[tuple[Mapping[str, Any], Any], ...] = (({}, None),)
    heuristics: list[Mapping[str, Any]] = []
    while hasattr(function, "fn") and not hasattr(function, "params"):
        if hasattr(function, "configs"):
            configs = tuple((one.all_kwargs(), getattr(one, "pre_hook", None)) for one in function.configs)
        elif hasattr(function, "values"):
            heuristics.append(function.values)
        function = function.fn
    return _Function(function, configs, tuple(heuristics))


def _check_names(function: _Function, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in (*function.arguments, *function.constants):
            known = ", ".join((*function.arguments, *function.constants))
            raise InputError(f"{function.name} has no argument {name!r}.", fix=f"It has {known}.")
    chosen = set.intersection(*(set(config) for config, _ in function.configs)).union(*function.heuristics)
    for param in function.jit.params:
        if param.name not in (*given, *chosen) and not param.has_default:
            where = "constexprs" if param.is_constexpr else "args"
            raise InputError(f"{function.name} is given no {param.name}.", fix=f"Name it in {where}.")


def _selection(
    function: _Function,
    rung: int,
    meta: Mapping[str, Any],
    code: FunctionCode,
    grid: LaunchValue,
    read: "Call",
) -> Selection:
    """The kernel of one configuration, and its parameters: the constants and options that are integers."""
    params = {
        name: int(value)
        for name, value in meta.items()
        if name in (*function.constants, *_OPTIONS) and isinstance(value, Integral)
    }
    x, y, z = extents("grid", grid, meta)
    x *= code.ctas
    workspace = {
        f"triton_scratch_{number}": Workspace((str(nbytes * x * y * z),), "u8")
        for number, nbytes in enumerate(code.scratch_bytes)
        if nbytes
    } | address_tables(read)
    names = (f"triton_scratch_{number}" for number in range(len(code.scratch_bytes)))
    hidden = [name if name in workspace else "0" for name in names]
    threads = in_xyz([str(code.threads or 1)], "1")
    launch = Launch(
        *(code.entry or function.name, (*code.taken, *hidden), threads, (str(x), str(y), str(z))),
        dynamic_shared_bytes=str(code.shared_bytes),
    )
    file = function.jit.fn.__code__.co_filename
    kernel = Kernel(
        id=function.name,
        file_name=Path(file).name,
        source="".join(linecache.getlines(file)) or function.jit.src,
        operation=read.operation.name,
        title=function.name,
        dtypes=(read.dtype,),
        launches=(launch,),
        rung=rung,
        parameters=params,
        workspace=workspace,
        tensor_maps={name: _map_of(name, meta[name], *of) for name, of in code.maps.items()},
        built=Built(code.ptx, code.cubin, f"Triton {version_of('triton')}", code.error),
    )
    return Selection(kernel, (params,), kernel.id)


def _map_of(name: str, described: Any, box: Sequence[int], swizzle: int) -> TensorMapSpec:
    """A descriptor as a header would declare it, where dimensions begin with the last."""
    usual = dict.fromkeys(("steps", "start", "l2_promotion_bytes"), ())
    lists = {"box": box, "extents": described.shape, "strides": described.strides[:-1], **usual}
    texts = {key: tuple(str(value) for value in reversed(values)) for key, values in lists.items()}
    return TensorMapSpec((name,), texts, swizzle, described.padding)
