# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arrays as a header names them: parts of them as arguments, and variables of a module that the host sets."""

import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

from gpuprof.cuda_source.brackets import split_list
from gpuprof.cuda_source.masking import line_of, masked
from gpuprof.errors import CaseFailure
from gpuprof.kernels.kernel import Kernel
from gpuprof.problems.dtypes import ELEMENT_TYPES, rounded
from gpuprof.problems.formulas import ExpressionError, evaluate, variables
from gpuprof.problems.problem import Problem
from gpuprof.tables import TableReader, is_identifier
from gpuprof.text import listed

_PART = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\s+as\s+(?P<dtype>\w+))?(?:\s*\+\s*(?P<offset>\S.*))?", re.ASCII
)
#: A number of a struct, with its type.
_TYPED = re.compile(rf"(?P<value>.*\S)\s+as\s+(?P<dtype>{'|'.join(ELEMENT_TYPES)})")
#: A constant without a value.
_SET_BY_HOST = re.compile(r"\b__constant__\s+[^;={}()]*?(?P<name>\w+)\s*(?:\[[^;={}()]*\]\s*)?;")
_FRACTION = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[+-]?\d+)?|[+-]?inf", re.IGNORECASE)
#: A float or double of the module, in PTX.
_FLOAT_VARIABLE = re.compile(
    r"^(?!.*\.v[24]\s).*\.(?:global|const)\s[^;=\[\n]*\.f(?:32|64)\s+([\w$%.]+)\s*[;=]", re.MULTILINE
)
_MOST_LISTED = 3
_FLOATS = {4: "<f", 8: "<d"}


class ArrayPart(Struct, frozen=True):
    """A pointer into an array: to elements of another type where there is one, from an element on."""

    name: str
    dtype: str
    offset: int

    def __str__(self) -> str:
        return self.name


class Members(Struct, frozen=True):
    """A struct that is passed by value: its members in order, and the types of integers among them."""

    text: str
    items: tuple["Argument", ...]
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


#: What a launch takes: a name, a part of an array, the number that a formula came to, or several of these.
Argument = str | int | ArrayPart | Members


class ModuleSymbol(Struct, frozen=True):
    """A variable of the module that holds an array's content or address, or a number.

    Args:
        dtype: Element type of a scalar of the operation; empty for a number that is what the variable is.
        is_output: Whether the variable stands for an array that kernels write, and that no argument names.
    """

    name: str
    array: str = ""
    is_address: bool = False
    number: int | float = 0
    dtype: str = ""
    is_output: bool = False

    def content(
        self, nbytes: int, is_float: bool, read: Callable[[str], bytes], address: Callable[[str], int]
    ) -> bytes:
        """What the host would copy to a variable of so many bytes.

        Raises:
            CaseFailure: It does not fit.
        """
        if self.is_address:
            content = address(self.array).to_bytes(8, "little")
        elif self.array:
            content = read(self.array)
        elif is_float or (self.dtype and ELEMENT_TYPES[self.dtype].roundoff):
            as_wide = nbytes in _FLOATS
            content = (
                struct.pack(_FLOATS[nbytes], self.number)
                if as_wide
                else rounded(self.number, self.dtype).tobytes()
            )
        elif isinstance(self.number, float):
            raise self._unfit(f"{self.number} is no integer, and {self.name} is no float or double")
        else:
            bits = 8 * nbytes
            if not -(2 ** (bits - 1)) <= self.number < 2**bits:
                raise self._unfit(f"{self.number} needs more than the {nbytes} bytes of {self.name}")
            content = (int(self.number) % 2**bits).to_bytes(nbytes, "little")
        if len(content) > nbytes or (self.is_output and len(content) < nbytes):
            raise self._unfit(f"{self.array} has {len(content)} bytes, and {self.name} {nbytes}")
        return content

    def _unfit(self, why: str) -> CaseFailure:
        return CaseFailure(f"The symbol {self.name} cannot be set: {why}.")


def array_part(text: str, arrays: Collection[str]) -> "re.Match[str] | None":
    """The parts of an argument such as `x as u32 + 4`; None where it is another one."""
    match = _PART.fullmatch(text)
    return match if match and match["name"] in arrays and (match["dtype"] or match["offset"]) else None


def part_complaint(text: str, arrays: Collection[str]) -> str:
    """Why an argument is no part of an array, though it begins like one; empty where all is well."""
    match = array_part(text, arrays)
    known = ", ".join(ELEMENT_TYPES)
    wrong = match is not None and match["dtype"] is not None and match["dtype"] not in ELEMENT_TYPES
    return f"has {text!r}, whose type is not one of {known}" if wrong else ""


def members_in(arguments: Iterable[str], arrays: Collection[str]) -> list[str]:
    """Arguments, of structs the members without their types."""
    return [
        name
        for text in arguments
        for name in [_typed(one, arrays)[0] for one in _struct(text) or ()] or [text]
    ]


def argument_of(
    text: str, names: Collection[str], arrays: Collection[str], values: Mapping[str, int]
) -> Argument:
    """An argument at a size: `names` stand for themselves."""
    if (members := _struct(text)) is not None:
        typed = [_typed(member, arrays) for member in members]
        items = [argument_of(member, names, arrays, values) for member, _ in typed]
        return Members(text, tuple(items), tuple(dtype for _, dtype in typed))
    if text in names:
        return text
    match = array_part(text, arrays)
    if match is None:
        return evaluate(text, values)
    offset = evaluate(match["offset"], values) if match["offset"] else 0
    return ArrayPart(match["name"], match["dtype"] or "", offset)


def _struct(text: str) -> list[str] | None:
    """The members of a struct; None of what is none."""
    whole = text.strip()
    return split_list(whole[1:-1]) if whole.startswith("{") and whole.endswith("}") else None


def _typed(member: str, arrays: Collection[str]) -> tuple[str, str]:
    """A member of a struct and, where it says one, the type that a number is passed as."""
    match = None if array_part(member, arrays) else _TYPED.fullmatch(member)
    return (match["value"], match["dtype"]) if match else (member, "")


def numbers_in(arguments: Iterable[str], arrays: Collection[str]) -> list[str]:
    """Formulas of integers in arguments that are no plain names."""
    found: list[str] = []
    for text in arguments:
        match = array_part(text, arrays)
        found += [match["offset"]] if match and match["offset"] else [] if match else [text]
    return found


def read_symbols(reader: TableReader) -> Mapping[str, str]:
    """The table `[symbols]`."""
    symbols = reader.take("symbols", dict, {})
    for name, value in symbols.items():
        if not all(map(is_identifier, name.split("::"))):
            raise reader.error(f"symbols.{name}", "is not the name of a variable")
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise reader.error(
                f"symbols.{name}", f"must be an array, &ARRAY, a scalar, a number or a formula, not {value!r}"
            )
    return {name: str(value) for name, value in symbols.items()}


def symbol_complaint(kernel: Kernel, operation_arrays: Mapping[str, str], known: Collection[str]) -> str:
    """What is wrong with a kernel's symbols; empty where nothing is.

    Arrays come with their roles; `known` are scalars, and what formulas may use.
    """
    for name, value in kernel.symbols.items():
        array = value.removeprefix("&").strip()
        if value.startswith("&"):
            if array not in (*operation_arrays, *kernel.workspace):
                return f"{name} is {value!r}, and no array is called {array!r}"
        elif value in operation_arrays:
            if operation_arrays[value] == "out" and _is_argument(value, kernel):
                return (
                    f"{name} is {value!r}, which is an argument too, and holds nothing before a kernel runs"
                )
        elif value not in known and _fraction(value) is None:
            try:
                unknown = sorted(variables(value) - set(known))
            except ExpressionError as error:
                return f"{name} is {value!r}: {error}"
            if unknown:
                return f"{name} is {value!r}, which uses {unknown[0]!r}; known are {', '.join(sorted(known))}"
    return ""


def left_unset(kernel: Kernel, ptx_of: Mapping[str, str]) -> str:
    """What is to be said of constants that the host would set, functions use, and the header does not set."""
    code = masked(kernel.source)
    found = {match["name"]: line_of(code, match.start()) for match in _SET_BY_HOST.finditer(code)}
    set_here = {name.rpartition("::")[2] for name in kernel.symbols}
    used = set[str]().union(*(_words_of(entry, ptx) for entry, ptx in ptx_of.items()))
    names = [name for name in found if name not in set_here and variable_named(name, used)]
    left = [f"{name} (line {found[name]})" for name in names]
    if not left:
        return ""
    return f"Nobody sets {listed(left, _MOST_LISTED)}: what the host copies there is said under [symbols]."


def _words_of(entry: str, ptx: str) -> set[str]:
    """Words of the instructions of a function and of those that it may call; directives begin with a dot."""
    parts = re.split(r"^(?=.*\.(?:entry|func)\b)", ptx, flags=re.MULTILINE)[1:]
    code = "".join(part for part in parts if f".entry {entry}(" in part or ".entry" not in part)
    return set(re.findall(r"\w+", re.sub(r"^\s*\..*", "", code, flags=re.MULTILINE)))


def symbols_of(kernel: Kernel, problem: Problem, values: Mapping[str, int]) -> tuple[ModuleSymbol, ...]:
    """A kernel's symbols at a size."""
    made = []
    for name, value in kernel.symbols.items():
        if value.startswith("&"):
            made.append(ModuleSymbol(name, value.removeprefix("&").strip(), is_address=True))
        elif value in problem.operation.arrays:
            writes = problem.array(value).is_output and not _is_argument(value, kernel)
            made.append(ModuleSymbol(name, value, is_output=writes))
        elif value in problem.operation.scalars:
            number = problem.rounded(value)
            made.append(ModuleSymbol(name, number=number, dtype=problem.scalar_type(value)))
        else:
            fraction = _fraction(value)
            number = evaluate(value, values) if fraction is None else fraction
            made.append(ModuleSymbol(name, number=number))
    return tuple(made)


def _fraction(text: str) -> float | None:
    """The number that a text is, if it has a point or an exponent."""
    return float(text) if _FRACTION.fullmatch(text) else None


def _is_argument(array: str, kernel: Kernel) -> bool:
    return any(re.search(rf"\b{array}\b", text) for text in kernel.arguments)


def float_variables(ptx: str) -> frozenset[str]:
    """The variables of a module, as machine code calls them, that are one float or double each."""
    return frozenset(_FLOAT_VARIABLE.findall(ptx))


def variable_named(name: str, variables_of_module: Iterable[str]) -> str | None:
    """The variable of machine code that a source calls so, mangled where C++ does so."""
    *spaces, last = name.split("::")
    mangled = re.compile(rf"_Z\w*?{''.join(f'{len(one)}{one}' for one in (*spaces, last))}E?")
    found = list(variables_of_module)
    return last if last in found and not spaces else next(filter(mangled.fullmatch, found), None)
