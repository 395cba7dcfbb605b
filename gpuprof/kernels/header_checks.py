# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What must hold of a header once it is read: names are known, and each means one thing."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gpuprof.errors import HeaderError
from gpuprof.kernels.entries import entry_complaint
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.launch_tables import check_blocks
from gpuprof.kernels.own_names import clash
from gpuprof.kernels.symbols import members_in, numbers_in, part_complaint, symbol_complaint
from gpuprof.kernels.texture import clash_among
from gpuprof.operation import Operation
from gpuprof.problems.dtypes import RUN_TYPES
from gpuprof.problems.formulas import ExpressionError, variables
from gpuprof.tables import TableReader, is_identifier

#: Variables every header formula may use besides the problem's dimensions and the kernel's own integers.
LAUNCH_VARIABLES = ("block_x", "block_y", "block_z", "threads", "real_bytes", "sm_count", "l2_bytes", "arch")
#: Of these, what is known before a kernel is chosen.
CHOICE_VARIABLES = ("real_bytes", "sm_count", "l2_bytes", "arch")


class Header(Struct, frozen=True):
    """The TOML text of a header, which begins on a line of a file."""

    text: str
    path: Path
    line: int

    def place_of(self, formula: str) -> str:
        """The file and the first line of the header that holds a formula."""
        at = self.text.find(formula)
        return f"{self.path}:{self.line + self.text.count(chr(10), 0, at)}" if at >= 0 else str(self.path)


def check_kernel(reader: TableReader, kernel: Kernel, operation: Operation) -> None:
    """Refuse a kernel whose fields name what is not there, or one thing twice."""
    known_arguments = (
        *operation.argument_names,
        *kernel.tensor_maps,
        *kernel.textures,
        *kernel.workspace,
    )
    arrays = (*operation.arrays, *kernel.workspace)
    for argument in members_in(kernel.arguments, arrays):
        whole = {*kernel.integers, *kernel.derived, *LAUNCH_VARIABLES}
        whole |= {"iteration"} if kernel.takes_several else set()
        if is_identifier(argument) and argument not in {*known_arguments, *whole}:
            raise reader.error("arguments", f"names {argument!r}, not one of {', '.join(known_arguments)}")
        if complaint := part_complaint(argument, arrays):
            raise reader.error("arguments", complaint)
    roles = {name: array.role for name, array in operation.arrays.items()}
    integers_known = {*CHOICE_VARIABLES, *operation.dimensions, *kernel.integers, *kernel.derived}
    if complaint := symbol_complaint(kernel, roles, {*integers_known, *operation.scalars}):
        raise reader.error("symbols", f"cannot be: {complaint}")
    for name in kernel.workspace:
        if name in (*kernel.integers, *kernel.tensor_maps, *LAUNCH_VARIABLES):
            raise reader.error(f"workspace.{name}", "is the name of something else")
    for name in kernel.textures:
        if name in (*operation.dimensions, *operation.scalars, *kernel.integers, *kernel.tensor_maps):
            raise reader.error(f"textures.{name}", "is the name of something else")
    if complaint := clash_among(kernel.textures, kernel.arguments):
        raise reader.error("textures", f"cannot be: {complaint}")
    for entry in kernel.entries:
        if complaint := entry_complaint(entry):
            raise reader.error("launches.entry" if kernel.takes_several else "entry", complaint)
    if not kernel.choices and not kernel.dtypes:
        raise reader.error("dtypes", f"must name one or more of {', '.join(RUN_TYPES)}")
    for value in kernel.dtypes:
        reader.require("dtypes", value, RUN_TYPES, "has")
    if kernel.after == kernel.id:
        raise reader.error("after", f"is {kernel.after!r}, this kernel itself")
    integers = [*kernel.parameters, *kernel.constants, *kernel.derived]
    for name in integers:
        if integers.count(name) > 1:
            raise reader.error(f"constants.{name}", "is a parameter too")
        if name in operation.argument_names or name in LAUNCH_VARIABLES:
            raise reader.error(f"parameters.{name}", "is the name of something else")
    if found := None if kernel.built else clash(kernel.source, integers):
        name, line = found
        raise reader.error(
            f"parameters.{name}",
            f"is given a value on line {line} of the source too",
            f"Remove it there: gpuprof defines {name} as a macro. A default may stand between #ifndef {name}"
            " and #endif.",
        )
    check_blocks(reader, kernel)


def check_formulas(kernel: Kernel, header: Header, operation: Operation) -> None:
    """Refuse a formula with an unknown name when the file is read, not when it is first launched."""
    shared = {*CHOICE_VARIABLES, *operation.dimensions, *kernel.integers}
    for choice in kernel.choices:  # whose names are the chosen kernel's
        _refuse_unknown([choice.least or "0"], None, header)
    for name, text in kernel.derived.items():
        _refuse_unknown([text], shared, header)
        shared.add(name)
    own = shared | {*LAUNCH_VARIABLES}
    texts = [choice.when for choice in kernel.choices]
    texts += [requirement.condition for requirement in kernel.requirements]
    maps = kernel.tensor_maps.values()
    texts += [text for spec in maps for listed in spec.lists.values() for text in listed]
    texts += [text for array in kernel.workspace.values() for text in array.shape]
    # Where there are several launches, each has a block of its own: nothing else knows one.
    _refuse_unknown(texts, shared if kernel.takes_several or kernel.choices else own, header)
    names = {*operation.argument_names, *kernel.tensor_maps, *kernel.textures, *kernel.workspace}
    own |= {"iteration"} if kernel.takes_several else set()
    for launch in kernel.launches:
        arrays = {*operation.arrays, *kernel.workspace}
        given = members_in(launch.arguments, arrays)
        numbers = numbers_in((text for text in given if text not in names), arrays)
        _refuse_unknown([*launch.grid, launch.dynamic_shared_bytes, *numbers], own, header)
        _refuse_unknown([launch.repeat], shared, header)


def _refuse_unknown(texts: Sequence[str], known: set[str] | None, header: Header) -> None:
    for text in texts:
        try:
            names = variables(text)
        except ExpressionError as error:
            raise HeaderError(f"{header.place_of(text)}: {error}.") from error
        if known is not None and (unknown := sorted(names - known)):
            raise HeaderError(
                f"{header.place_of(text)}: the expression {text!r} uses {unknown[0]!r}; known are"
                f" {', '.join(sorted(known))}."
            )
