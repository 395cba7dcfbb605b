# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From the arguments that a header names to what the compiled kernel takes: checked, sized, in order."""

import re
import struct
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.errors import CaseFailure
from gpuprof.kernels.entries import base_name
from gpuprof.kernels.header import header_end
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch
from gpuprof.kernels.symbols import ArrayPart, Members
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.problems.dtypes import ELEMENT_TYPES, ElementType, rounded
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.text import format_extent
from gpuprof.toolchain.nvrtc import CompiledKernel
from gpuprof.toolchain.signature import Declared, Parameter, declared_parameters

_C_FLOATS = {"float": 4, "double": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2}
_SIZED = re.compile(r"(?:std::|cuda::std::)?(?P<sign>u?)int(?P<bits>8|16|32|64)_t\Z")
_INTEGER_WORDS = {"signed", "unsigned", "char", "short", "int", "long", "size_t", "bool", "uint"}
#: Integers that name what has no address, with the tables of a header that describe it.
HANDLES = {"cudaTextureObject_t": "textures", "cudaSurfaceObject_t": "surfaces"}
#: Bytes without a meaning of their own: any array may be read through them.
_BYTES = {"void", "char", "unsigned char", "signed char", "uint8_t", "int8_t"}


def points_to(written: str, element: ElementType) -> bool | None:
    """Whether a type is a pointer to an element type.

    Reading floating-point numbers as integers of their size, or any elements as bytes, unsigned integers or
    vectors, is the kernel's affair.

    Returns:
        None where it cannot be told.
    """
    if not written:
        return None
    if written in HANDLES:
        return False
    if not written.endswith("*"):
        return False if _integer_bytes(written) or written in _C_FLOATS else None
    pointee = written.removesuffix("*").strip()
    if pointee in _BYTES:
        return None
    if pointee in _C_FLOATS:
        # Both spellings of a half are one type, and so are those of a bfloat16.
        as_wide = _C_FLOATS.get(element.c_type) == _C_FLOATS[pointee]
        return as_wide and ("bfloat" in pointee) == ("bfloat" in element.c_type)
    nbytes = _integer_bytes(pointee)
    if nbytes is None:
        return None
    if element.roundoff and (pointee.startswith(("unsigned", "uint")) or nbytes == element.nbytes):
        return None
    return nbytes == element.nbytes


def _integer_bytes(written: str) -> int | None:
    """Bytes of a plain integer type; None for any other."""
    if match := _SIZED.match(written):
        return int(match["bits"]) // 8
    words = written.split()
    if not words or not set(words) <= _INTEGER_WORDS:
        return None
    if "char" in words or "bool" in words:
        return 1
    if "short" in words:
        return 2
    return 8 if "long" in words or "size_t" in words else 4


#: Integers narrower than this cannot hold a size.
_SIZE_BYTES = 4
_FLOATS = {4: "<f", 8: "<d"}
_HALF_BYTES = 2
_HANDLE_BYTES = 8
#: A member of a struct, of which nothing is known but what the header says.
_POINTER, _UNKNOWN = Parameter("u", _HANDLE_BYTES, is_pointer=True, is_struct=False), Declared("", "", "")


class ArrayArgument(Struct, frozen=True):
    """The address of one of the problem's arrays, or of an element so many bytes behind."""

    name: str
    offset_bytes: int = 0

    def packed(self, address: Callable[[str], int]) -> bytes:
        """What the kernel is given, by where each array starts."""
        return (address(self.name) + self.offset_bytes).to_bytes(_HANDLE_BYTES, "little")


class ValueArgument(Struct, frozen=True):
    """A number, as the bytes that the kernel reads."""

    name: str
    content: bytes

    def packed(self, address: Callable[[str], int]) -> bytes:
        """The same."""
        return self.content


class StructArgument(Struct, frozen=True):
    """A struct by value: its members, each with its first byte."""

    nbytes: int
    members: tuple[tuple[int, ArrayArgument | ValueArgument], ...]

    def packed(self, address: Callable[[str], int]) -> bytes:
        """The same."""
        made = bytearray(self.nbytes)
        for start, member in self.members:
            content = member.packed(address)
            made[start : start + len(content)] = content
        return bytes(made)


Argument = ArrayArgument | ValueArgument | StructArgument | TensorMap | Texture


def bind_arguments(case: ConfiguredCase, launch: OneLaunch, compiled: CompiledKernel) -> tuple[Argument, ...]:
    """What to pass for each argument of a launch.

    A number is passed as wide as the kernel takes it: `int nx` and `long long nx` are both right.

    Raises:
        CaseFailure: The kernel's parameters do not fit; the message names each that does not.
    """
    kernel, problem = case.kernel, case.problem
    parameters = compiled.parameters
    declared = declared_parameters(
        (kernel.source, *kernel.headers.values()), launch.entry, dict(case.defines)
    )
    names, function = list(map(str, launch.arguments)), base_name(launch.entry)
    if complaint := compiled.block_limits.complaint(launch.block):
        raise CaseFailure(
            f"The block of {function} {complaint}; the launch has {format_extent(launch.block)}.",
            fix="Make block in the header what the kernel was compiled for.",
        )
    if declared is None or len(declared) != len(parameters):
        declared = tuple(Declared("", "", "") for _ in parameters)
    if len(names) != len(parameters):
        by_name = kernel.built is not None and bool(kernel.built.by)
        raise CaseFailure(
            f"{kernel.id} is given {len(names)} arguments ({', '.join(names)}); {function} takes"
            f" {_counted(declared)}.",
            fix=reordering(names, declared)
            or ("Profile the kernel that it launches, with what that takes." if by_name else "")
            or "Make arguments in the header say what the kernel takes, in order.",
        )
    maps = {made.argument: made for made in case.tensor_maps}
    textures = {made.argument: made for made in case.textures}
    workspace = {spec.name: spec for spec in case.workspace}
    bound: list[Argument] = []
    misfits: list[str] = []
    given = zip(launch.arguments, parameters, declared, strict=True)
    for index, (name, parameter, written) in enumerate(given, 1):
        argument: Argument | None
        if isinstance(name, Members):
            argument, wanted = _struct(name, problem, workspace, parameter)
        elif isinstance(name, ArrayPart):
            spec = workspace.get(name.name) or problem.array(name.name)
            argument, wanted = _array(spec, parameter, written, name)
        elif isinstance(name, int):
            argument, wanted = _size(str(name), name, parameter, written)
            if not name and _is_pointer(parameter, written):  # the null pointer
                argument = ValueArgument("0", bytes(parameter.nbytes))
        elif name in maps:
            fits = parameter.is_struct and parameter.nbytes == TENSOR_MAP_BYTES
            argument = maps[name] if fits else None
            wanted = f"a tensor map, a struct of {TENSOR_MAP_BYTES} bytes"
        elif name in textures:
            fits = _takes_integer(parameter, written, _HANDLE_BYTES) and parameter.nbytes == _HANDLE_BYTES
            argument = textures[name] if fits else None
            wanted = f"a {textures[name].word}, {textures[name].c_type}"
        elif name in problem.dimensions:
            argument, wanted = _size(name, problem.dimensions[name], parameter, written)
        elif name in problem.scalars:
            argument, wanted = _number(name, problem, parameter, written)
        else:
            argument, wanted = _array(workspace.get(name) or problem.array(name), parameter, written)
        if argument is None or (written.type in HANDLES and not isinstance(argument, Texture)):
            kind = "a pointer" if _is_pointer(parameter, written) else parameter.text
            taken = f"`{written.text}`, {kind}" if written.text else kind
            misfits.append(f"argument {index} of {function} is {taken}, and {name} is {wanted or 'a number'}")
        else:
            bound.append(argument)
    texts = (kernel.source, *kernel.headers.values())
    for symbol in launch.symbols if kernel.built is None else ():
        name = symbol.name.rpartition("::")[2]
        if not any(re.search(rf"\b{name}\b", text[header_end(text) :]) for text in texts):
            raise CaseFailure(
                f"The header of {kernel.id} sets {symbol.name}, and {kernel.file_name} has no such variable.",
                fix="Name a __constant__ or __device__ variable under [symbols].",
            )
    if misfits:
        raise CaseFailure(
            f"The arguments of {kernel.id} do not fit: {'; '.join(misfits)}.",
            fix=reordering(names, declared)
            or _naming_views(names, declared, textures)
            or _naming_members(launch.arguments, parameters)
            or "Fix the kernel's parameters, or in its header the order of arguments or an array's dtype.",
        )
    return tuple(bound)


def _counted(declared: Sequence[Declared]) -> str:
    texts = ", ".join(one.text for one in declared)
    return f"{len(declared)}: {texts}" if texts.strip(", ") else str(len(declared))


def reordering(names: Sequence[str], declared: Sequence[Declared]) -> str:
    """What the header should say where the kernel's parameters bear the arguments' names in another order."""
    known = {name.lower(): name for name in names}
    wanted = [known.get(one.name.lower(), "") for one in declared]
    if wanted == list(names) or sorted(wanted) != sorted(names) or len(known) != len(names):
        return ""
    listed = ", ".join(f'"{name}"' for name in wanted)
    return f"By its parameters' names: arguments = [{listed}]."


def _naming_views(names: Sequence[str], declared: Sequence[Declared], known: Collection[str]) -> str:
    """What the header should say of parameters that are textures or surfaces, where it does not."""
    tables = [
        f"[{HANDLES[one.type]}.{name if name.isidentifier() else one.name}]"
        for name, one in zip(names, declared, strict=True)
        if one.type in HANDLES and name not in known
    ]
    return f"Say how they are read, in a table each: {', '.join(tables)}." if tables else ""


def _naming_members(arguments: Sequence[object], parameters: Sequence[Parameter]) -> str:
    """What the header should say of structs by value, where it does not."""
    pairs = zip(arguments, parameters, strict=True)
    plain = any(taken.is_struct and not isinstance(given, Members) for given, taken in pairs)
    return 'The members of a struct stand in braces, in order: "{x, n}".' if plain else ""


def _array(
    spec: ArraySpec, parameter: Parameter, written: Declared, part: ArrayPart | None = None
) -> tuple[Argument | None, str]:
    element = ELEMENT_TYPES[part.dtype if part and part.dtype else spec.dtype]
    fits = parameter.may_be_pointer and points_to(written.type, element) is not False
    # Compilers of other languages pass an array as a struct of its address and what of it is not constant.
    fits = fits or (not written.text and parameter.may_hold_pointer)
    offset = part.offset if part else 0
    if not 0 <= offset < max(1, spec.elements):
        return None, f"an array of {spec.elements} elements, which has none at {offset}"
    offset *= ELEMENT_TYPES[spec.dtype].nbytes
    return (ArrayArgument(spec.name, offset) if fits else None), f"an array of {element.c_type}"


def _struct(
    members: Members, problem: Problem, workspace: Mapping[str, ArraySpec], parameter: Parameter
) -> tuple[Argument | None, str]:
    """A struct whose members lie as in C: each at a multiple of its own size."""
    placed: list[tuple[int, ArrayArgument | ValueArgument]] = []
    end, widest = 0, 1
    for item, dtype in zip(members.items, members.dtypes, strict=True):
        is_scalar = isinstance(item, str) and item in problem.scalars
        dtype = dtype or (problem.scalar_type(str(item)) if is_scalar else "i32")
        number = problem.dimensions.get(item, item) if isinstance(item, str) else item
        member: Argument | None
        if isinstance(number, int):
            member, wanted = _size(str(number), number, _value_of(dtype), _UNKNOWN)
        elif is_scalar:
            member, wanted = _number(str(item), problem, _value_of(dtype), _UNKNOWN)
        else:
            spec = workspace.get(str(item)) or problem.array(str(item))
            part = item if isinstance(item, ArrayPart) else None
            member, wanted = _array(spec, _POINTER, _UNKNOWN, part)
        if not isinstance(member, ArrayArgument | ValueArgument):
            return None, f"a struct, whose {item} is {wanted}"
        nbytes = _HANDLE_BYTES if isinstance(member, ArrayArgument) else len(member.content)
        start = -(-end // nbytes) * nbytes
        placed.append((start, member))
        end, widest = start + nbytes, max(widest, nbytes)
    end = -(-end // widest) * widest
    return (
        StructArgument(end, tuple(placed)) if end == parameter.nbytes else None
    ), f"a struct of {end} bytes"


def _value_of(dtype: str) -> Parameter:
    kind = ELEMENT_TYPES[dtype]
    return Parameter(
        "f" if kind.roundoff else "s",
        kind.nbytes,
        is_pointer=False,
        is_struct=kind.nbytes == _HALF_BYTES and bool(kind.roundoff),
    )


def _is_pointer(parameter: Parameter, written: Declared) -> bool:
    """Whether PTX says so, or the source where PTX does not tell a pointer from an integer."""
    return bool(parameter.is_pointer) or (parameter.may_be_pointer and written.type.endswith("*"))


def _takes_integer(parameter: Parameter, written: Declared, nbytes: int) -> bool:
    return parameter.is_integer and parameter.nbytes >= nbytes and not _is_pointer(parameter, written)


def _size(name: str, value: int, parameter: Parameter, written: Declared) -> tuple[Argument | None, str]:
    # A constant of the header may be of any width that holds it: `bool` too.
    if not _takes_integer(parameter, written, 1 if name == str(value) else _SIZE_BYTES):
        return None, f"a size, an integer of at least {_SIZE_BYTES} bytes"
    signed = bool(written.type) and not re.search(r"\bu(?:nsigned|int|long|short)\w*|size_t", written.type)
    largest = 2 ** (8 * parameter.nbytes - 1) - 1
    if signed and value > largest:
        number = "" if name == str(value) else f"{value}, "
        return None, f"{number}an overflow: the largest {written.type} is {largest}"
    if not -(2 ** (8 * parameter.nbytes - 1)) <= value < 2 ** (8 * parameter.nbytes):
        return None, f"{value}, which needs more than {parameter.nbytes} bytes"
    return ValueArgument(name, value.to_bytes(parameter.nbytes, "little", signed=value < 0)), ""


def _number(
    name: str, problem: Problem, parameter: Parameter, written: Declared
) -> tuple[Argument | None, str]:
    """A scalar: whatever the kernel takes it as, it is the number that the reference computes with."""
    kind, value = ELEMENT_TYPES[problem.scalar_type(name)], problem.rounded(name)
    if kind.roundoff:
        # A half is a struct of its bits; it may stand for a number that it holds.
        half = problem.scalar_type(name) if kind.nbytes == _HALF_BYTES else problem.dtype
        is_half = parameter.is_struct and parameter.nbytes == ELEMENT_TYPES[half].nbytes == _HALF_BYTES
        as_half = rounded(value, half) if is_half else None
        fits = (parameter.is_float and parameter.nbytes in _FLOATS) or as_half == value
        if as_half is not None:
            content = as_half.tobytes()
        else:
            content = struct.pack(_FLOATS[parameter.nbytes], value) if fits else b""
    else:
        bits = 8 * parameter.nbytes
        fits = _takes_integer(parameter, written, 1) and -(2 ** (bits - 1)) <= value < 2**bits
        content = int(value).to_bytes(parameter.nbytes, "little", signed=value < 0) if fits else b""
    return (
        ValueArgument(name, content) if fits else None
    ), f"a number of type {kind.c_type} ({kind.nbytes} bytes)"
