# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The TOML header of a kernel file: its fields, their checks, and what they say of a launch.

The header is the first comment of a `.cu` file, opened by `/*gpuprof`. It is the one truth about a kernel:
its place in the ladder, how it is launched and which problems it takes. A file may hold several rungs that
differ in their parameters only: each is a `[[variants]]` entry.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

from gpuprof.counters import COUNTERS
from gpuprof.cuda_source.masking import uncommented
from gpuprof.errors import HeaderError, InputError
from gpuprof.kernels.built_files import BuiltFile
from gpuprof.kernels.candidates import read_candidates
from gpuprof.kernels.compiler_options import ALLOWED_TEXT, joined, refused_option
from gpuprof.kernels.entries import default_entry
from gpuprof.kernels.header_checks import Header, check_formulas, check_kernel
from gpuprof.kernels.kernel import Kernel, Ladder, Requirement, Study
from gpuprof.kernels.launch_tables import open_launch, read_launches, read_workspace
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing, prepared, read_define, read_preprocessing
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.kernels.symbols import read_symbols
from gpuprof.kernels.tensor_map import read_tensor_maps
from gpuprof.kernels.texture import read_textures
from gpuprof.operation import Operation
from gpuprof.problems.declaration import read_operation
from gpuprof.records import replace
from gpuprof.results import Choice, Direction, PublishedFigure
from gpuprof.schema import Positive, complaint_about
from gpuprof.tables import FilePlace, TableReader, is_identifier, is_integer, read_toml

_OPENING = re.compile(r"/\*gpuprof\b")
#: What may be meant for it, or stand where it is not looked for.
_NEAR = re.compile(r"/\*+!?\s*gpuprof\b")
#: What a header that chooses leaves to the chosen kernel's; what its own step moves depends on that too.
_OF_THE_CHOSEN = (
    *("arguments", "launch", "entry", "parameters", "constants", "tensor_maps", "require", "textures"),
    *("surfaces", "dtypes", "compile_options", "moves", "after", "shape_of", "variants", "launches"),
    *("workspace", "symbols", "poison_inout", "candidates"),
)
#: What a launch occupies, which a step may move as well as a counter. `shared_bytes` is static and dynamic.
RESOURCES = (
    "registers_per_thread",
    "shared_bytes",
    "theoretical_occupancy_pct",
    "grid_blocks",
    "block_threads",
)
#: Every figure that a header's `moves` may name.
MOVABLE = (*dict.fromkeys((*COUNTERS, *RESOURCES)),)
#: Rung of a kernel that names none: above every shipped one.
_LAST_RUNG = 1000.0

#: What a header says of a source only, and what to do where there is none.
_OF_A_SOURCE = ("choose", "parameters", "candidates", "include", "define", "compile_options")
_COMPILED_FIX = "Integers for formulas stand in [constants]; to try others, measure the source."

#: The smallest header that brings its operation along, for a file of which no operation is known.
WHOLE_HEADER = """/*gpuprof
operation = "my_copy"
dimensions = ["n"]
arguments = ["n", "x", "y"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = { value = "x", equal = true }
[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/"""


def read_kernels(
    source: str,
    path: Path,
    asked: Operation | None = None,
    command: Preprocessing = NOTHING,
    built: BuiltFile | None = None,
) -> Ladder:
    """Read a kernel file's header; one that names no operation is of the one that was asked for.

    Of a file that is not CUDA C++, `built` is what it holds.

    Raises:
        HeaderError: The header is missing, is not TOML, or a field is missing, unknown or of the wrong type.
    """
    if built is not None and (command.include or command.define):
        raise InputError(f"-I and -D are for CUDA C++; {path} is compiled already.", fix="Leave them out.")
    header = _header_of(source, path, built, asked)
    fix = minimal_header(asked) if asked else f"Start the file with:\n{WHOLE_HEADER}"
    where = str(header.path)
    table = read_toml(header.text, where, header.line)
    reader = TableReader(table, FilePlace(where, header.text, header.line), fix=fix)
    if "choose" in reader:
        for name in _OF_THE_CHOSEN:
            if name in reader:
                raise reader.error(name, "does not go with choose: the chosen kernel brings its own")
    if built is not None:
        for name in _OF_A_SOURCE:
            if name in reader:
                raise reader.error(name, "is for CUDA C++, and this is compiled already", _COMPILED_FIX)
    compile_options = _read_compile_options(reader)
    preprocessing = read_preprocessing(reader, path.parent)
    operation = _read_operation(reader, asked)
    kernel = replace(_read_kernel(reader, source, path, operation, built), compile_options=compile_options)
    if built is not None:
        kernel = replace(kernel, built=built.built)
    elif not kernel.choices:
        kernel = prepared(kernel, path, preprocessing, command)
    variants = tuple(
        _read_variant(entry, kernel, operation, command.define) for entry in reader.sections("variants")
    ) or (kernel,)
    reader.finish()
    ids = [variant.id for variant in variants]
    for variant in variants:
        if ids.count(variant.id) > 1:
            raise HeaderError(f"{path}: two variants are called {variant.id!r}.")
        if variant.built is not None and variant.defines:
            raise HeaderError(f"{path}: {variant.id} has macros, and is compiled already.", fix=_COMPILED_FIX)
        check_formulas(variant, header, operation)
    if kernel.choices and uncommented(source[header_end(source) :]).strip():
        raise HeaderError(
            f"{path} has code below a header that chooses: it would never run.",
            fix="Put the code into a file of its own, or leave out choose.",
        )
    return Ladder(operation, variants)


def _header_of(source: str, path: Path, built: BuiltFile | None, asked: Operation | None) -> Header:
    text, where = (source, path) if built is None else (built.header, built.header_path)
    found = header_span(text)
    if found is not None:
        return Header(text[slice(*found)], where, text.count("\n", 0, found[0]) + 1)
    if (unclosed := header_span(f"{text}*/")) is not None:
        line = text[: unclosed[0]].count("\n") + 1
        raise HeaderError(
            f"{where}:{line}: the header that starts here has no end.",
            fix="Write */ on a line of its own between the header and the code.",
        )
    if near := _NEAR.search(text):
        line = text.count("\n", 0, near.start()) + 1
        why = "stands below code: move it up" if near[0] == "/*gpuprof" else "must begin with /*gpuprof"
        raise HeaderError(f"{where}:{line}: the header {why}.")
    beside = "" if built is None else f" A file {path.with_suffix('.toml').name} beside it may hold it too."
    top = "" if path.suffix == ".cubin" else " at its top"
    raise HeaderError(f"{path} has no /*gpuprof … */ header{top}.", fix=_how_to_start(path, asked) + beside)


def _how_to_start(path: Path, asked: Operation | None) -> str:
    """What to do about a file that says nothing of itself."""
    if path.suffix != ".cu":
        return f"gpuprof new {path} {path.with_suffix('.toml')} writes one for its kernel, to complete."
    if asked is None:
        return f"gpuprof new {path} START.cu writes a copy with one for its kernel, to complete."
    return minimal_header(asked)


def minimal_header(operation: Operation) -> str:
    """The smallest header that works for an operation, for the message of one that does not."""
    names = ", ".join(f'"{name}"' for name in operation.argument_names)
    grid = ", ".join(
        f'"cdiv({name}, block_{axis})"'
        for name, axis in zip(reversed(operation.dimensions[:2]), "xy", strict=False)
    )
    return (
        f'Start the file with:\n/*gpuprof\ntitle = "My kernel"\noperation = "{operation.name}"\n'
        f"arguments = [{names}]\n[launch]\nblock = [32, 8]\ngrid = [{grid}]\n*/"
    )


def entry_in_header(source: str, kernel_id: str) -> str:
    """The entry that a header names for one of its kernels; empty where it names none, or is no header.

    Nothing else of it is looked at: what it declares may not be there any more.
    """
    found = header_span(source)
    try:
        table = read_toml(source[slice(*found)], "") if found else {}
    except HeaderError:
        return ""
    variants = table.get("variants")
    tables = [*(variants if isinstance(variants, list) else ()), table]
    for each in tables:
        if isinstance(each, dict) and (each is table or each.get("id") == kernel_id):
            entry = each.get("entry")
            if isinstance(entry, str):
                return entry
    return ""


def header_end(source: str) -> int:
    """Where the code of a kernel file begins, behind its header; 0 without one."""
    found = header_span(source)
    return found[1] + len("*/") if found else 0


def header_span(source: str) -> tuple[int, int] | None:
    """Begin and end of a header's TOML text, which only other comments may precede."""
    opening = _OPENING.search(source)
    if opening is None or uncommented(source[: opening.start()]).strip():
        return None
    end = source.find("*/", opening.end())
    return None if end < 0 else (opening.end(), end)


def _read_operation(reader: TableReader, asked: Operation | None) -> Operation:
    key = "problem" if "problem" in reader else "operation"
    path = Path(reader.where)
    if asked is None and (path.parent / "operation.toml").is_file():
        folder = shlex.quote(str(path.parent))
        reader.fix = f"An operation.toml stands beside it: gpuprof run {folder} -k {shlex.quote(path.stem)}"
    name = reader.take(key, str, asked.name if asked else None)
    if "dimensions" in reader:
        return read_operation(reader, name, title_key="operation_title")
    if asked is not None and name == asked.name:
        return asked
    try:
        operation = shipped_operation(name)
    except HeaderError:
        raise
    except InputError as error:
        what = f"is {name!r}: {error.what[:1].lower()}{error.what[1:].rstrip('.')}"
        own = f" If a folder declares it: gpuprof run FOLDER -k {shlex.quote(path.name)}"
        fix = error.fix if error.fix.startswith("Did you mean") else error.fix + own
        raise reader.error(key, what, fix) from error
    reader.fix = minimal_header(operation)
    return operation


def _read_kernel(
    reader: TableReader, source: str, path: Path, operation: Operation, built: BuiltFile | None
) -> Kernel:
    choices = _read_choices(reader)
    parameters = _read_parameters(reader)
    launch = open_launch("" if choices else _default_entry(reader, source, path.stem, parameters, built))
    # What the file leaves out, each of its variants says.
    before = () if choices else (launch,)
    launches, any_block = read_launches(reader, before, False, is_open="variants" in reader)
    name = _read_id(reader, path.stem)
    workspace = read_workspace(reader, operation)
    maps = read_tensor_maps(reader, (*operation.arrays, *workspace))
    constants, derived = _read_constants(reader)
    base = Kernel(
        id=name,
        file_name=path.name,
        source=source,
        operation=operation.name,
        title=name,
        dtypes=() if choices else ("f32",),
        launches=launches,
        any_block=any_block,
        rung=_LAST_RUNG,
        study=Study(
            reader.take("study", str, ""),
            reader.take("citation", str, ""),
            reader.take("citation_url", str, ""),
        ),
        reference=reader.take("reference", str, ""),
        options=_read_options(reader, operation),
        parameters=parameters,
        constants=constants,
        derived=derived,
        tensor_maps=maps,
        textures=read_textures(
            reader,
            {name: len(array.shape) for name, array in operation.arrays.items()}
            | {name: len(array.shape) for name, array in workspace.items()},
        ),
        choices=choices,
        workspace=workspace,
        symbols=read_symbols(reader),
        poison_inout=reader.take("poison_inout", bool, True),
        candidates=read_candidates(reader, parameters, any_block=any_block),
    )
    kernel = _read_rung(reader, base)
    check_kernel(reader, kernel, operation)
    return kernel


def _default_entry(
    reader: TableReader, source: str, stem: str, parameters: Mapping[str, int], built: BuiltFile | None
) -> str:
    """The function of a header that names none."""
    if "entry" in reader or "launches" in reader:
        return ""
    return built.default_entry(stem) if built else default_entry(source, stem, parameters)


def _read_rung(reader: TableReader, base: Kernel) -> Kernel:
    """What a file says of its kernel, and each variant of itself; what is left out is as in `base`."""
    return replace(
        base,
        title=reader.take("title", str, base.title),
        rung=reader.take("rung", float, base.rung),
        idea=reader.take("idea", str, base.idea),
        change=reader.take("change", str, base.change),
        bottleneck=reader.take("bottleneck", str, base.bottleneck),
        aliases=reader.strings("aliases", []),
        dtypes=reader.strings("dtypes", list(base.dtypes)),
        requirements=tuple(map(_read_requirement, reader.sections("require"))) or base.requirements,
        published=tuple(map(_read_published, reader.sections("published"))),
        moves=_read_moves(reader) or base.moves,
        after=reader.take("after", str, base.after),
        shape_of=reader.take("shape_of", str, base.shape_of),
    )


def _read_variant(
    reader: TableReader, kernel: Kernel, operation: Operation, defined: Mapping[str, str]
) -> Kernel:
    """A rung of its own: its file's header with other texts, parameters, macros, or another of its functions.

    Macros of the command line, `defined`, come before the variant's.
    """
    name = _read_id(reader)
    parameters = _read_parameters(reader)
    for key in parameters:
        if key not in kernel.parameters:
            known = ", ".join(kernel.parameters)
            others = f"; those are {known}" if known else ""
            raise reader.error(
                f"parameters.{key}",
                f"is not a parameter of this file{others}",
                "Name it with its default in a [parameters] table, before the variants.",
            )
    launches, any_block = read_launches(reader, kernel.launches, kernel.any_block)
    variant = replace(
        _read_rung(reader, kernel),
        id=name,
        launches=launches,
        any_block=any_block,
        parameters={**kernel.parameters, **parameters},
        defines={**kernel.defines, **_read_own_define(reader, kernel), **defined},
    )
    reader.finish()
    check_kernel(reader, variant, operation)
    return variant


def _read_id(reader: TableReader, default: str | None = None) -> str:
    name: str = reader.take("id", str, default)
    if name != default and not is_identifier(name):
        raise reader.error("id", f"must be a name of letters, digits and _, not {name!r}")
    return name


def _read_own_define(reader: TableReader, kernel: Kernel) -> Mapping[str, str]:
    define = read_define(reader)
    for name in define:
        if name in (*kernel.integers, *kernel.derived):
            raise reader.error(f"define.{name}", "is a parameter of this file")
    return define


def _read_compile_options(reader: TableReader) -> tuple[str, ...]:
    options = joined(reader.strings("compile_options", []))
    if (refused := refused_option(options)) is not None:
        what = f"holds {refused!r}, which no kernel file may ask of the compiler"
        raise reader.error("compile_options", what, ALLOWED_TEXT)
    return options


def _read_options(reader: TableReader, operation: Operation) -> Mapping[str, str]:
    chosen = {}
    for name, option in operation.options.items():
        value = reader.choice(name, tuple(option.values), option.default)
        if value != option.default:
            chosen[name] = value
    return chosen


def _read_constants(reader: TableReader) -> tuple[Mapping[str, int], Mapping[str, str]]:
    """The table `constants`: integers, and formulas of those that follow from the problem."""
    values = reader.take("constants", dict, {})
    derived = {name: text for name, text in values.items() if isinstance(text, str)}
    for name in derived:
        _check_macro(reader, "constants", name)
    integers = {name: value for name, value in values.items() if name not in derived}
    return _checked_integers(reader, "constants", integers), derived


def _read_parameters(reader: TableReader) -> Mapping[str, int]:
    return _checked_integers(reader, "parameters", reader.take("parameters", dict, {}))


def _checked_integers(reader: TableReader, key: str, values: Mapping[str, object]) -> Mapping[str, int]:
    for name, value in values.items():
        _check_macro(reader, key, name)
        if not is_integer(value) or abs(cast("int", value)) >= 2**63:
            listed = f"Give one here, and those to try under [candidates]: {name} = {value}."
            fix = listed if key == "parameters" and isinstance(value, list) else ""
            raise reader.error(f"{key}.{name}", f"must name an integer, not {value!r}", fix=fix)
    return cast("Mapping[str, int]", values)


def _check_macro(reader: TableReader, key: str, name: str) -> None:
    if not is_identifier(name):
        raise reader.error(f"{key}.{name}", "must be a name of letters, digits and _, as C takes it")


def _read_choices(reader: TableReader) -> tuple[Choice, ...]:
    if "choose" not in reader:
        return ()
    choices: list[Choice] = []
    for entry in reader.sections("choose"):
        several = isinstance(entry.table.get("kernel"), list)
        names = entry.strings("kernel") if several else (entry.take("kernel", str),)
        when, because = entry.take("when", str), entry.take("because", str, "")
        least = entry.take("least", str, "")
        if not names:
            raise entry.error("kernel", "must name a kernel")
        choices += [Choice(name, when, because, least) for name in names]
        entry.finish()
    if not choices:
        raise reader.error("choose", "must name at least one kernel")
    return tuple(choices)


def _read_moves(reader: TableReader) -> Mapping[str, Direction]:
    moves = reader.take("moves", dict, {})
    words = get_args(Direction)
    for name, word in moves.items():
        reader.require("moves", name, MOVABLE, "names")
        reader.require(f"moves.{name}", word, words)
    return cast("Mapping[str, Direction]", moves)


def _read_requirement(reader: TableReader) -> Requirement:
    requirement = Requirement(reader.take("condition", str), reader.take("because", str))
    reader.finish()
    return requirement


def _read_published(reader: TableReader) -> PublishedFigure:
    time_ms = reader.take("time_ms", float, 0.0) or None
    if time_ms is not None and (complaint := complaint_about(Positive, time_ms)):
        raise reader.error("time_ms", complaint)
    figure = PublishedFigure(
        size=reader.take("size", str), time_ms=time_ms, note=reader.take("note", str, "")
    )
    reader.finish()
    return figure
