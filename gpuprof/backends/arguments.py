# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From the arguments that a header names to what the compiled kernel takes: checked, sized, in order."""

import struct
from dataclasses import dataclass

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.errors import CaseFailure
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import LaunchShape, OneLaunch
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.toolchain.nvrtc import CompiledKernel
from gpuprof.toolchain.signature import Parameter, declared_types, parameters_of

#: Integers narrower than this cannot hold a size.
_SIZE_BYTES = 4
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_FLOATS_BY_NAME = ("float", "double")


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """The address of one of the problem's arrays."""

    name: str


@dataclass(frozen=True, slots=True)
class ValueArgument:
    """A number, as the bytes that the kernel reads."""

    name: str
    content: bytes


Argument = ArrayArgument | ValueArgument | TensorMap


def bind_arguments(
    kernel: Kernel, problem: Problem, shape: LaunchShape, launch: OneLaunch, compiled: CompiledKernel
) -> tuple[Argument, ...]:
    """What to pass for each argument of a launch.

    A number is passed as wide as the kernel takes it: `int nx` and `long long nx` are both right.

    Args:
        kernel: The kernel, for messages.
        problem: Gives the arguments' values.
        shape: Gives the tensor maps and the workspace.
        launch: Names the arguments.
        compiled: The PTX of its function, which tells what that takes.

    Raises:
        CaseFailure: The kernel's parameters do not fit; the message names each that does not.
    """
    parameters = parameters_of(compiled.ptx, launch.entry)
    names = launch.arguments
    if len(names) != len(parameters):
        raise CaseFailure(
            f"The header of {kernel.id} names {len(names)} arguments ({', '.join(map(str, names))});"
            f" {_called(kernel, launch)} takes {len(parameters)}.",
            fix="Make arguments in the header say what the kernel takes, in order.",
        )
    maps = {made.argument: made for made in shape.tensor_maps}
    workspace = {spec.name: spec for spec in shape.workspace}
    types = declared_types(kernel.source, launch.entry) or ()
    bound: list[Argument] = []
    misfits: list[str] = []
    for index, (name, parameter) in enumerate(zip(names, parameters, strict=True)):
        written = types[index] if len(types) == len(names) else None
        if isinstance(name, int):
            argument: Argument | None
            argument, wanted = _size(str(name), name, parameter)
        elif name in maps:
            argument = maps[name] if _takes_map(parameter) else None
            wanted = f"a tensor map, a struct of {TENSOR_MAP_BYTES} bytes"
        elif name in problem.dimensions:
            argument, wanted = _size(name, problem.dimensions[name], parameter)
        elif name in problem.scalars:
            argument, wanted = _number(name, problem, parameter)
        else:
            argument, wanted = _array(workspace.get(name) or problem.array(name), parameter, written)
        if argument is None:
            found = f"{written} ({parameter.text})" if written else parameter.text
            misfits.append(f"{name} is {wanted}, and the kernel takes {found} in its place")
        else:
            bound.append(argument)
    if misfits:
        name = launch.entry if kernel.launches else kernel.id
        raise CaseFailure(
            f"The arguments of {name} do not fit: {'; '.join(misfits)}.",
            fix="Mend the kernel's parameters, or the order of arguments in its header.",
        )
    return tuple(bound)


def _takes_map(parameter: Parameter) -> bool:
    return parameter.is_struct and parameter.nbytes == TENSOR_MAP_BYTES


def _called(kernel: Kernel, launch: OneLaunch) -> str:
    """A launch's function in a sentence: where there is only one, it needs no name."""
    return launch.entry if kernel.launches else "its kernel"


def _array(spec: ArraySpec, parameter: Parameter, written: str | None) -> tuple[Argument | None, str]:
    element = ELEMENT_TYPES[spec.dtype].c_type
    fits = parameter.may_be_pointer
    if written is not None and fits:
        pointee = written.removesuffix("*").strip()
        fits = written.endswith("*") or not _is_plain_number(written)
        fits = fits and not (pointee in _FLOATS_BY_NAME and element in _FLOATS_BY_NAME and pointee != element)
    return (ArrayArgument(spec.name) if fits else None), f"an array of {element}"


def _is_plain_number(written: str) -> bool:
    words = {"int", "long", "short", "char", "unsigned", "signed", "size_t", "bool", "float", "double"}
    return set(written.split()) <= words


def _size(name: str, value: int, parameter: Parameter) -> tuple[Argument | None, str]:
    if not parameter.is_integer or parameter.nbytes < _SIZE_BYTES:
        return None, f"a size, an integer of at least {_SIZE_BYTES} bytes"
    if not -(2 ** (8 * parameter.nbytes - 1)) <= value < 2 ** (8 * parameter.nbytes):
        return None, f"{value}, which needs more than {parameter.nbytes} bytes"
    return ValueArgument(name, value.to_bytes(parameter.nbytes, "little", signed=value < 0)), ""


def _number(name: str, problem: Problem, parameter: Parameter) -> tuple[Argument | None, str]:
    """A scalar: whatever the kernel takes it as, it is the number that the reference computes with."""
    kind, value = ELEMENT_TYPES[problem.scalar_type(name)], problem.rounded(name)
    if kind.roundoff:
        fits = parameter.is_float and parameter.nbytes in _FLOATS
        content = struct.pack(_FLOATS[parameter.nbytes], value) if fits else b""
    else:
        fits = parameter.is_integer and parameter.nbytes >= kind.nbytes
        content = int(value).to_bytes(parameter.nbytes, "little", signed=value < 0) if fits else b""
    return (ValueArgument(name, content) if fits else None), f"a number of type {kind.c_type}"
