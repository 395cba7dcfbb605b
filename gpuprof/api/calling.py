# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels without a header: what a program says of their arguments and their launch, as a request."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from numbers import Integral, Number
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpuprof.api.keywords import HeaderKeywords
from gpuprof.errors import InputError, asked
from gpuprof.kernels.built_files import BuiltFile, built_of_ptx, read_built
from gpuprof.kernels.catalog import read_source
from gpuprof.kernels.compiler_options import joined
from gpuprof.kernels.entries import sole_entry
from gpuprof.kernels.header_checks import LAUNCH_VARIABLES
from gpuprof.kernels.kernel import Kernel, Ladder, Launch, Workspace
from gpuprof.kernels.paths import Source
from gpuprof.kernels.preprocessing import found_headers, included
from gpuprof.kernels.shape import check_block
from gpuprof.kernels.symbols import members_in, numbers_in
from gpuprof.kernels.texture import texture_specs
from gpuprof.measure.request import AUTO, USUAL, Request, Selection, make_request, select
from gpuprof.operation import Operation
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.formulas import ExpressionError, evaluate, variables
from gpuprof.records import replace
from gpuprof.results import size_label
from gpuprof.text import KERNEL_ENDINGS, Extent, in_xyz

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Argument, Call, Expectation

#: One extent of a launch: a number, or a formula.
Extents = int | str | tuple[int | str, ...]
#: The same, or a function of sizes, parameters and, for a grid, the block.
LaunchValue = Extents | Callable[[Mapping[str, int]], Extents]

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


class BareLaunch(Struct, frozen=True):
    """How kernels without a header are launched; each parameter with one value or several."""

    grid: LaunchValue
    blocks: Sequence[LaunchValue]
    params: Mapping[str, int | Sequence[int]]
    said: HeaderKeywords

    @property
    def textures(self) -> Mapping[str, Mapping[str, Any]]:
        return self.said.get("textures") or {}

    @property
    def surfaces(self) -> Mapping[str, Mapping[str, Any]]:
        return self.said.get("surfaces") or {}


class GivenCall(Struct, frozen=True):
    """The arguments of kernels and what is expected of them; arrays are kept in a folder."""

    args: "Mapping[str, Argument]"
    expect: "Mapping[str, Expectation]"
    said: HeaderKeywords
    folder: Path

    def read(self, name: str, args: "Mapping[str, Argument]") -> "Call":
        """The call, of these arguments, with what the keywords say of its work and bounds.

        A list of arrays is an array of their addresses: each is an array of the operation under a number.
        None, of which a list is expected, is a list of as many outputs.
        """
        from gpuprof.problems.by_value import read_call

        several = {key: [None] * len(each) for key, each in self.expect.items() if isinstance(each, list)}
        args = {key: several.get(key) if value is None else value for key, value in args.items()}
        lists = {
            key: tuple(f"{key}_{number}" for number in range(len(value)))
            for key, value in args.items()
            if isinstance(value, list) and value
        }
        read = read_call(
            name,
            _without_lists(args, lists),
            _without_lists(self.expect, lists),
            self.folder,
            relative=self.said.get("relative"),
            absolute=self.said.get("absolute"),
            flops=self.said.get("flops"),
            nbytes=self.said.get("bytes"),
        )
        return replace(read, lists=lists)


def request_of(call: "Call", kernels: Iterable[Kernel], selections: Iterable[Selection]) -> Request:
    """What to measure of kernels that are called so."""
    ladder = Ladder(call.operation, tuple(kernels))
    request = make_request(ladder, sizes=[call.sizes], dtype=call.dtype, scalars=call.scalars)
    return replace(request, selections=tuple(selections))


def _without_lists(given: Mapping[str, Any], lists: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """What is given by name, each of a list by its own."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        names = lists.get(name, (name,))
        values = value if name in lists else [value]
        if not isinstance(values, list) or len(values) != len(names):
            raise InputError(f"{name} is a list of {len(names)} arrays.", fix="Expect a list of as many.")
        if name in lists and all(isinstance(item, Number) for item in values):
            raise InputError(f"{name} is a list of numbers.", fix=f"Give numpy.array({name}).")
        found |= zip(names, values, strict=True)
    return found


def of_function(call: "Call") -> "Call":
    """A call of a function, which takes the types of what it is given, and whose numbers may be constants."""
    arrays = call.operation.arrays
    given = {one.dtype for one in arrays.values() if one.role != "out" and ELEMENT_TYPES[one.dtype].roundoff}
    if given and "f64" not in given:
        for name in (name for name, one in arrays.items() if one.role == "out" and one.dtype == "f64"):
            what = f"{name} is expected in float64, and no array in args is."
            raise InputError(what, fix="Expect it in its own type, or give an array of float64 for it.")
    scalars = {name: replace(one, neutral=one.default) for name, one in call.operation.scalars.items()}
    return replace(call, operation=replace(call.operation, scalars=scalars))


def address_tables(call: "Call") -> dict[str, Workspace]:
    """The arrays of addresses among a call's arguments."""
    return {name: Workspace((str(len(of)),), "i64", of) for name, of in call.lists.items()}


def call_request(sources: Sequence[Path | Source], launch: BareLaunch, given: GivenCall) -> Request:
    """What to measure of kernels that are called with given arguments."""
    files = _read(sources)
    call = given.read(next(iter(files)).stem, _without_views(given.args, launch))
    taken = _taken(launch, tuple(given.args), call.operation)
    kernels = [
        replace(kernel, workspace=address_tables(call))
        for kernel in _bare(files, launch, call.operation, call.dtype, taken)
    ]
    return request_of(call, kernels, launched(kernels, launch, call.operation, call.integers))


def _without_views(args: "Mapping[str, Argument]", launch: BareLaunch) -> "Mapping[str, Argument]":
    """The arguments that have values of their own: all but textures and surfaces of other arguments."""
    views = {
        name: table["array"]
        for name, table in (*launch.textures.items(), *launch.surfaces.items())
        if table.get("array", name) != name
    }
    for name, array in views.items():
        if args.get(name) is not None:
            raise InputError(
                f"{name} is a view of {array}, and has a value too.",
                fix=f"Give None for {name}, or no array.",
            )
    return {name: value for name, value in args.items() if name not in views}


def bare_ladder(
    sources: Sequence[Path | Source], launch: BareLaunch, operation: Operation, dtype: str
) -> Ladder:
    """Kernels without a header that compute a declared operation; those that they have are not read."""
    kind = USUAL if dtype == AUTO else dtype
    taken = _taken(launch, operation.argument_names, operation)
    return Ladder(operation, tuple(_bare(_read(sources), launch, operation, kind, taken)))


def _taken(launch: BareLaunch, known: Sequence[str], operation: Operation) -> tuple[str, ...]:
    """What kernels take, in order, where it is said as in a header: names, formulas, structs of them."""
    taken = tuple(launch.said.get("arguments") or known)
    members = (text for text in members_in(taken, operation.arrays) if text not in known)
    for text in numbers_in(members, operation.arrays):
        try:
            unknown = sorted(variables(text) - {*known})
        except ExpressionError as error:
            raise InputError(f"The argument {text!r} cannot be used: {error}.") from error
        if unknown:
            what = f"{operation.name} has no argument {unknown[0]!r}."
            raise InputError(what, fix=f"It has {', '.join(known)}.")
    return taken


def _read(sources: Sequence[Path | Source]) -> dict[Path, str | BuiltFile]:
    """What each file holds."""
    files: dict[Path, str | BuiltFile] = {}
    for source in sources:
        path = source.path if isinstance(source, Source) else source
        if path.suffix == ".py":
            raise InputError(f"{path} is Python.", fix="Give the function in it, not the file.")
        if path.stem in (other.stem for other in files):
            raise InputError(f"Two kernels have the id {path.stem!r}.", fix="Rename one of them.")
        if not isinstance(source, Source):
            files[path] = read_built(path) if path.suffix in KERNEL_ENDINGS[1:] else read_source(path)
        else:
            files[path] = built_of_ptx(source.text, path) if source.ending == ".ptx" else source.text
    if not files:
        raise InputError("There is nothing to run.", fix="Name a kernel file.")
    return files


def _bare(
    files: Mapping[Path, str | BuiltFile],
    launch: BareLaunch,
    operation: Operation,
    dtype: str,
    arguments: tuple[str, ...],
) -> Iterator[Kernel]:
    """A kernel of each file, whose launch is still open."""
    parameters = {name: values_of(name, values)[0] for name, values in launch.params.items()}
    for name in parameters:
        if not name.isidentifier() or name in (*LAUNCH_VARIABLES, *operation.argument_names):
            raise InputError(f"{name!r} cannot be a parameter.", fix="Choose a name that means nothing else.")
    said = launch.said
    extents = {name: len(array.shape) for name, array in operation.arrays.items()}
    compile_options = joined(said.get("compile_options", ()))
    made: dict[str, Any]
    for rung, (path, content) in enumerate(files.items()):
        if isinstance(content, str):
            text, entry = content, said.get("entry") or sole_entry(content, path.stem)
            headers, options = found_headers(text, path, included(said.get("include", ())).include)
            made = {"headers": headers, "compile_options": (*compile_options, *options)}
        elif parameters or compile_options:
            raise InputError(
                f"{path.name} is compiled already, and takes neither params nor compile_options.",
                fix="Leave them out; the launch may be told in numbers.",
            )
        else:
            text, entry = content.source, said.get("entry") or content.default_entry(path.stem)
            made = {"built": content.built}
        yield Kernel(
            id=path.stem,
            file_name=f"{path.stem}.cu" if isinstance(content, str) else path.name,
            source=text,
            operation=operation.name,
            title=path.stem,
            dtypes=(dtype,),
            launches=(Launch(entry, arguments, cooperative=said.get("cooperative", False)),),
            any_block=True,
            rung=rung,
            parameters=parameters,
            textures=texture_specs(launch.textures, launch.surfaces, extents),
            **made,
        )


def launched(
    kernels: Iterable[Kernel],
    launch: BareLaunch,
    operation: Operation,
    integers: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Selection]:
    """Each kernel with each block and each set of parameters, its launch worked out as far as that goes.

    `integers` are sizes and numbers that are the same for all of it.
    """
    wanted = {name: values_of(name, values) for name, values in launch.params.items()}
    for kernel in kernels:
        known = {*LAUNCH_VARIABLES, *operation.dimensions, *kernel.parameters}
        (own,) = kernel.launches
        for params, given in product(select(kernel, wanted, kernel.id).params, launch.blocks):
            values = {**integers, **params}
            block = extents("block", given, values)
            check_block(kernel, block)
            values |= dict(zip(LAUNCH_VARIABLES, (*block, prod(block)), strict=False))
            grid = _formulas("grid", launch.grid, values, integers, known)
            shared = launch.said.get("dynamic_shared_bytes", own.dynamic_shared_bytes)
            made = replace(
                own,
                block=in_xyz(map(str, block), "1"),
                grid=in_xyz(grid, "1"),
                dynamic_shared_bytes=_formulas("dynamic_shared_bytes", shared, values, integers, known)[0],
            )
            yield Selection(replace(kernel, launches=(made,)), (params,), kernel.id)


def values_of(name: str, given: int | Sequence[int]) -> list[int]:
    """The values of a parameter."""
    values = list(given) if isinstance(given, Sequence) else [given]
    if not values:
        raise InputError(f"The parameter {name} has no value.", fix="Name at least one.")
    return [int(value) for value in values]


def extents(what: str, given: LaunchValue, values: Mapping[str, Any]) -> Extent:
    """Threads of a block or blocks of a grid in x, y and z; of a function, as it says of the `values`."""
    texts = _formulas(what, given, values, values, set())
    try:
        found = in_xyz((evaluate(text, {}) for text in texts), 1)
    except ExpressionError as error:
        raise InputError(f"The {what} has no value: {error}.") from error
    if min(found) < 1:
        raise InputError(f"The {what} would be {size_label(found)}.", fix="Each extent is at least 1.")
    return found


def _formulas(
    what: str,
    given: Any,
    values: Mapping[str, Any],
    constants: Mapping[str, Any],
    known: set[str],
) -> tuple[str, ...]:
    """What is said of one part of a launch, as formulas.

    A function is called with `values`; names among `constants` become their numbers, others must be `known`.
    """
    if callable(given):
        given = asked(what, given, dict(values))
    extents = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(extents) <= 3:
        raise InputError(f"{what} {given!r} has {len(extents)} extents.", fix="Give one to three.")
    texts = []
    for extent in extents:
        if isinstance(extent, bool) or not isinstance(extent, (str, Integral)):
            raise InputError(
                f"{what} {given!r} is neither a number nor a formula.", fix="For example (32, 8), or a text."
            )
        text = str(extent)
        try:
            unknown = sorted(variables(text) - known - constants.keys())
            if unknown:
                names = ", ".join(sorted({*known, *constants}))
                raise ExpressionError(f"unknown name {unknown[0]!r}; known are {names}")
        except ExpressionError as error:
            raise InputError(f"{what} {text!r} cannot be used: {error}.") from error
        texts.append(
            _NAME.sub(lambda name: f"({constants[name[0]]})" if name[0] in constants else name[0], text)
        )
    return tuple(texts)
