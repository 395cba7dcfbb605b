# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From the arguments that a header names to what the compiled kernel takes: checked, sized, in order."""

import re
import struct
from collections.abc import Callable, Sequence

from msgspec import Struct

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.errors import CaseFailure
from gpuprof.kernels.entries import base_name
from gpuprof.kernels.header import header_end
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shape import ConfiguredCase, OneLaunch
from gpuprof.kernels.symbols import Argument as Named
from gpuprof.kernels.symbols import ArrayPart, Members
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.problems.dtypes import ELEMENT_TYPES, ElementType, rounded
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.text import format_extent, listed
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
_UNKNOWN = Declared("", "", "")


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
        return self.content


class StructArgument(Struct, frozen=True):
    """A struct by value: its members, each with its first byte."""

    nbytes: int
    members: tuple[tuple[int, ArrayArgument | ValueArgument], ...]

    def packed(self, address: Callable[[str], int]) -> bytes:
        made = bytearray(self.nbytes)
        for start, member in self.members:
            content = member.packed(address)
            made[start : start + len(content)] = content
        return bytes(made)


Argument = ArrayArgument | ValueArgument | StructArgument | TensorMap | Texture
#: What an argument may name besides dimensions and scalars.
_Known = dict[str, TensorMap | Texture | ArraySpec]


class _Taken(Struct, frozen=True):
    """What a kernel takes in one place: as its code says, and as its source does where that is known."""

    parameter: Parameter
    written: Declared = _UNKNOWN

    @property
    def is_pointer(self) -> bool:
        """Whether PTX says so, or the source where PTX does not tell a pointer from an integer."""
        may_be = self.parameter.may_be_pointer
        return bool(self.parameter.is_pointer) or (may_be and self.written.type.endswith("*"))

    @property
    def text(self) -> str:
        kind = "a pointer" if self.is_pointer else self.parameter.text
        return f"`{self.written.text}`, {kind}" if self.written.text else kind

    def is_integer_of(self, nbytes: int) -> bool:
        """Whether it is an integer of at least so many bytes."""
        return self.parameter.is_integer and self.parameter.nbytes >= nbytes and not self.is_pointer


#: The member of a struct that is an address.
_POINTER = _Taken(Parameter("u", _HANDLE_BYTES, is_pointer=True, is_struct=False))


def bind_arguments(case: ConfiguredCase, launch: OneLaunch, compiled: CompiledKernel) -> tuple[Argument, ...]:
    """What to pass for each argument of a launch.

    A number is passed as wide as the kernel takes it: `int nx` and `long long nx` are both right.

    Raises:
        CaseFailure: The kernel's parameters do not fit; the message names each that does not.
    """
    kernel, parameters = case.kernel, compiled.parameters
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
        declared = (_UNKNOWN,) * len(parameters)
    if len(names) != len(parameters):
        by_name = kernel.built is not None and bool(kernel.built.by)
        raise CaseFailure(
            f"{kernel.id} is given {len(names)} arguments ({', '.join(names)}); {function} takes"
            f" {_counted(declared)}.",
            fix=reordering(names, declared)
            or ("Profile the kernel that it launches, with what that takes." if by_name else "")
            or "Make arguments in the header say what the kernel takes, in order.",
        )
    _check_symbols(kernel, launch)
    known: _Known = {spec.name: spec for spec in (*case.problem.arrays, *case.workspace)}
    known |= {made.argument: made for made in case.tensor_maps}
    known |= {made.argument: made for made in case.textures}
    bound: list[Argument] = []
    misfits: list[str] = []
    for index, name in enumerate(launch.arguments):
        taken = _Taken(parameters[index], declared[index])
        argument = _bind(name, taken, case.problem, known)
        if taken.written.type in HANDLES and not isinstance(argument, str | Texture):
            argument = "a number"
        if isinstance(argument, str):
            misfits.append(f"argument {index + 1} of {function} is {taken.text}, and {name} is {argument}")
        else:
            bound.append(argument)
    if misfits:
        raise CaseFailure(
            f"The arguments of {kernel.id} do not fit: {'; '.join(misfits)}.",
            fix=reordering(names, declared)
            or _naming_views(names, declared, known)
            or _naming_members(launch.arguments, parameters)
            or "Fix the kernel's parameters, or in its header or call the order of arguments or a dtype.",
        )
    return tuple(bound)


def _check_symbols(kernel: Kernel, launch: OneLaunch) -> None:
    texts = (kernel.source, *kernel.headers.values())
    for symbol in launch.symbols if kernel.built is None else ():
        name = symbol.name.rpartition("::")[2]
        if not any(re.search(rf"\b{name}\b", text[header_end(text) :]) for text in texts):
            raise CaseFailure(
                f"The header of {kernel.id} sets {symbol.name}, and {kernel.file_name} has no such variable.",
                fix="Name a __constant__ or __device__ variable under [symbols].",
            )


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


def _naming_views(names: Sequence[str], declared: Sequence[Declared], known: _Known) -> str:
    """What the header or call should say of textures, surfaces and arrays of other elements."""
    tables, views, types = [], [], []
    for name, one in zip(names, declared, strict=True):
        found = known.get(name)
        if one.type in HANDLES and not isinstance(found, Texture):
            tables.append(f"[{HANDLES[one.type]}.{name if name.isidentifier() else one.name}]")
        elif isinstance(found, ArraySpec):
            held = ELEMENT_TYPES[found.dtype]
            fitting = (kind for kind, element in ELEMENT_TYPES.items() if points_to(one.type, element))
            kind = next(fitting, None) if points_to(one.type, held) is False else None
            if kind and not held.roundoff and held.nbytes in (1, ELEMENT_TYPES[kind].nbytes):
                views.append(f'"{name} as {kind}"')
            elif kind and held.roundoff:
                types.append(f'{name} of {ELEMENT_TYPES[kind].numpy} (in a header dtype = "{kind}")')
    if tables:
        return f"Say how they are read, in a table each: {', '.join(tables)}."
    if views:
        return f"Say in arguments what they hold: {listed(views)}."
    return f"Give it, or expect, arrays of what it takes: {listed(types)}." if types else ""


def _naming_members(arguments: Sequence[object], parameters: Sequence[Parameter]) -> str:
    """What the header should say of structs by value, where it does not."""
    pairs = zip(arguments, parameters, strict=True)
    plain = any(taken.is_struct and not isinstance(given, Members) for given, taken in pairs)
    return 'The members of a struct stand in braces, in order: "{x, n}".' if plain else ""


def _bind(given: Named, taken: _Taken, problem: Problem, known: _Known) -> Argument | str:
    """What to pass for one argument; where it does not fit, what it is, as the end of a sentence."""
    if isinstance(given, Members):
        return _struct(given, taken, problem, known)
    if isinstance(given, int):
        content = _null(given, taken) or _as_float(given, taken.parameter)
        return ValueArgument(str(given), content) if content else _size("", given, taken)
    part = given if isinstance(given, ArrayPart) else None
    found = known.get(str(given))
    if isinstance(found, ArraySpec):
        return _array(found, taken, part)
    if found is not None:
        return _opaque(found, taken)
    if given in problem.dimensions:
        return _size(str(given), problem.dimensions[str(given)], taken)
    return _number(str(given), problem, taken)


def _opaque(made: TensorMap | Texture, taken: _Taken) -> Argument | str:
    if isinstance(made, TensorMap):
        fits = taken.parameter.is_struct and taken.parameter.nbytes == TENSOR_MAP_BYTES
        return made if fits else f"a tensor map, a struct of {TENSOR_MAP_BYTES} bytes"
    fits = taken.is_integer_of(_HANDLE_BYTES) and taken.parameter.nbytes == _HANDLE_BYTES
    return made if fits else f"a {made.word}, {made.c_type}"


def _array(spec: ArraySpec, taken: _Taken, part: ArrayPart | None) -> Argument | str:
    element = ELEMENT_TYPES[part.dtype if part and part.dtype else spec.dtype]
    offset = part.offset if part else 0
    if not 0 <= offset < max(1, spec.elements):
        return f"an array of {spec.elements} elements, which has none at {offset}"
    fits = taken.parameter.may_be_pointer and points_to(taken.written.type, element) is not False
    # Compilers of other languages pass an array as a struct of its address and what of it is not constant.
    if fits or (not taken.written.text and taken.parameter.may_hold_pointer):
        return ArrayArgument(spec.name, offset * ELEMENT_TYPES[spec.dtype].nbytes)
    return f"an array of {element.c_type}"


def _struct(members: Members, taken: _Taken, problem: Problem, known: _Known) -> Argument | str:
    """A struct whose members lie as in C: each at a multiple of its own size."""
    placed: list[tuple[int, ArrayArgument | ValueArgument]] = []
    end, widest = 0, 1
    for item, dtype in zip(members.items, members.dtypes, strict=True):
        # A size is of any width here: the header says of which.
        given = problem.dimensions.get(item, item) if isinstance(item, str) else item
        if isinstance(given, str) and given in problem.scalars:
            dtype = dtype or problem.scalar_type(given)
        is_array = str(given) in known
        member = _bind(given, _POINTER if is_array else _value_of(dtype or "i32"), problem, known)
        if not isinstance(member, ArrayArgument | ValueArgument):
            return f"a struct, whose {item} is {member}"
        nbytes = _HANDLE_BYTES if isinstance(member, ArrayArgument) else len(member.content)
        start = -(-end // nbytes) * nbytes
        placed.append((start, member))
        end, widest = start + nbytes, max(widest, nbytes)
    end = -(-end // widest) * widest
    fits = end == taken.parameter.nbytes
    return StructArgument(end, tuple(placed)) if fits else f"a struct of {end} bytes"


def _value_of(dtype: str) -> _Taken:
    kind = ELEMENT_TYPES[dtype]
    is_half = kind.nbytes == _HALF_BYTES and bool(kind.roundoff)
    return _Taken(Parameter("f" if kind.roundoff else "s", kind.nbytes, is_pointer=False, is_struct=is_half))


def _size(name: str, value: int, taken: _Taken) -> Argument | str:
    """A size by its name, or a constant of the header: that may be of any width that holds it, `bool` too."""
    nbytes, written = taken.parameter.nbytes, taken.written.type
    if not taken.is_integer_of(_SIZE_BYTES if name else 1):
        other = f"more than {nbytes} bytes of it hold" if taken.parameter.is_float else "a number"
        return f"a size, an integer of at least {_SIZE_BYTES} bytes" if name else other
    signed = bool(written) and not re.search(r"\bu(?:nsigned|int|long|short)\w*|size_t", written)
    largest = 2 ** (8 * nbytes - 1) - 1
    if signed and value > largest:
        number = f"{value}, " if name else ""
        return f"{number}an overflow: the largest {written} is {largest}"
    if not -(2 ** (8 * nbytes - 1)) <= value < 2 ** (8 * nbytes):
        return f"{value}, which needs more than {nbytes} bytes"
    return ValueArgument(name or str(value), value.to_bytes(nbytes, "little", signed=value < 0))


def _null(value: float, taken: _Taken) -> bytes:
    """What a pointer is passed for 0; nothing for another number or parameter."""
    return bytes(taken.parameter.nbytes) if value == 0 and taken.is_pointer else b""


def _as_float(value: float, parameter: Parameter) -> bytes:
    """What a floating-point parameter is passed; nothing where it holds no such number, or is another."""
    if not parameter.is_float or parameter.nbytes not in _FLOATS:
        return b""
    try:
        return struct.pack(_FLOATS[parameter.nbytes], value)
    except (OverflowError, struct.error):  # beyond the largest
        return b""


def _number(name: str, problem: Problem, taken: _Taken) -> Argument | str:
    """A scalar: whatever the kernel takes it as, it is the number that the reference computes with."""
    kind, value = ELEMENT_TYPES[problem.scalar_type(name)], problem.rounded(name)
    parameter, content = taken.parameter, b""
    if not kind.roundoff:
        bits = 8 * parameter.nbytes
        content = _null(value, taken)
        if taken.is_integer_of(1) and -(2 ** (bits - 1)) <= value < 2**bits:
            content = int(value).to_bytes(parameter.nbytes, "little", signed=value < 0)
    elif as_float := _as_float(value, parameter):
        content = as_float
    elif parameter.is_struct or (kind.nbytes == _HALF_BYTES and not taken.written.type):
        # A half is a struct of its bits, and only bits to LLVM; it may stand for a number that it holds.
        half = problem.scalar_type(name) if kind.nbytes == _HALF_BYTES else problem.dtype
        is_half = parameter.nbytes == ELEMENT_TYPES[half].nbytes == _HALF_BYTES
        if is_half and (as_half := rounded(value, half)) == value:
            content = as_half.tobytes()
    return (
        ValueArgument(name, content) if content else f"a number of type {kind.c_type} ({kind.nbytes} bytes)"
    )
