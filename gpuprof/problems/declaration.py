# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read an operation's declaration from TOML: `operation.toml`, or the same tables in a kernel's header."""

import shlex
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any, get_args

from gpuprof.errors import PATH_ERRORS, HeaderError, InputError, reason
from gpuprof.files import read_input
from gpuprof.operation import (
    ArrayDeclaration,
    Check,
    DeviceReferenceDeclaration,
    Operation,
    OptionDeclaration,
    Rate,
    ReferenceDeclaration,
    Role,
    ScalarDeclaration,
    ScalarType,
    Work,
)
from gpuprof.problems.coded import CODED
from gpuprof.problems.dtypes import ELEMENT_TYPES, OF_RUN, REAL, RESULT, RUN_TYPES, integer_range
from gpuprof.problems.formulas import ExpressionError, Language, variables
from gpuprof.problems.generators import check_generator, default_generator
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.tables import FilePlace, TableReader, is_identifier, is_integer, read_toml

FILE_NAME = "operation.toml"
#: Names that formulas of launches and work know besides an operation's own.
RESERVED = (
    *("block_x", "block_y", "block_z", "threads", "real_bytes", "result_bytes", "sm_count"),
    *("l2_bytes", "arch"),
    *("u", "tiny", "truncation", "real"),
)
#: Fields of a check that may stand beside the outputs, and then hold for all of them.
_SHARED = ("relative", "absolute", "equal", "magnitude", "accumulate", "unordered")
_EXAMPLE = "An operation has dimensions, [arrays.NAME], [work] and [check]; see docs/operations.md."


def load_operation(path: Path) -> Operation:
    """Read an operation's file."""
    try:
        text = read_input(path)
    except PATH_ERRORS as error:
        fix = "Name .cu files, or a folder with operation.toml; docs/operations.md shows one."
        if isinstance(error, FileNotFoundError) and any(path.parent.glob("*.cu")):
            kernels = f"{shlex.quote(str(path.parent))}/*.cu"
            fix = f"Name its kernel files, {kernels}; docs/operations.md shows an {path.name}."
        raise HeaderError(f"Cannot read the operation {path}: {reason(error)}.", fix=fix) from error
    reader = TableReader(read_toml(text, str(path)), FilePlace(str(path), text), fix=_EXAMPLE)
    operation = read_operation(reader, reader.take("name", str))
    if "device_reference" in reader:
        made = _read_device_reference(reader.section("device_reference"), operation, path.parent)
        operation = replace(operation, device_reference=made)
    reader.finish()
    return operation


def read_operation(reader: TableReader, name: str, title_key: str = "title") -> Operation:
    """Take an operation's fields; others are left in the reader."""
    if not is_identifier(name):
        raise reader.error("name", f"must be a name of letters, digits and _, not {name!r}")
    dimensions = reader.strings("dimensions")
    arrays = {key: _read_array(table) for key, table in reader.named_sections("arrays")}
    scalars = {key: _read_scalar(table) for key, table in reader.named_sections("scalars")}
    _check_names(reader, dimensions, arrays, scalars)
    operation = Operation(
        name=name,
        title=reader.take(title_key, str, name),
        dimensions=dimensions,
        default_sizes=_read_sizes(reader, dimensions),
        arrays=arrays,
        scalars=scalars,
        options={key: _read_option(table) for key, table in reader.named_sections("options")},
        inputs=_read_inputs(reader.section("inputs", {}), arrays, dimensions),
        work=_read_work(reader.section("work", {}), (*dimensions, *scalars), arrays),
        checks={},
        references=tuple(_read_reference(each, arrays, scalars) for each in reader.sections("references")),
        help=reader.take("help", str, ""),
        coded=reader.take("coded", str, ""),
    )
    for key, array in arrays.items():
        for text in array.shape:
            _check_formula(reader, f"arrays.{key}.shape", text, dimensions)
        if array.read_if:
            names = (*dimensions, *scalars)
            _check_formula(reader, f"arrays.{key}.read_if", array.read_if, names, "reals")
    if all(array.role == "in" for array in arrays.values()):
        raise reader.error(
            "arrays", "have nothing to check: none is out or inout", 'Add role = "out" to what kernels write.'
        )
    _check_coded(reader, operation)
    check = reader.section("check", {})
    independent, rows = _read_independent(check, operation)
    operation = replace(operation, independent=independent, rows=rows)
    operation = replace(operation, parts=_read_parts(check, operation))
    return replace(
        operation,
        checks=_read_checks(check, operation),
        ceiling_checks=_read_ceiling_checks(reader, operation),
    )


def _check_coded(reader: TableReader, operation: Operation) -> None:
    """Refuse code that does not exist or is of another operation, and references without any."""
    if not operation.coded:
        if any(reference.library != "torch" for reference in operation.references):
            raise reader.error("references", "need code of gpuprof's own that calls them, but for torch's")
        return
    reader.require("coded", operation.coded, CODED)
    code = CODED[operation.coded]
    found = (operation.dimensions, operation.arrays, operation.scalars, operation.options)
    wanted = (code.dimensions, code.arrays, code.scalars, code.options)
    for word, names, known in zip(("dimensions", "arrays", "scalars", "options"), found, wanted, strict=True):
        if tuple(names) != known:
            listed = ", ".join(known) or "none"
            raise reader.error("coded", f"is {operation.coded!r}, whose {word} are {listed}")


def _check_names(reader: TableReader, dimensions: tuple[str, ...], *others: Iterable[str]) -> None:
    if not dimensions:
        raise reader.error("dimensions", "must name at least one size")
    tables = zip(("dimensions", "arrays", "scalars"), (dimensions, *others), strict=True)
    named = [(table, name) for table, names in tables for name in names]
    names = [name for _, name in named]
    for table, name in named:
        if not is_identifier(name):
            raise reader.error(table, f"names {name!r}, which is not a name of letters, digits and _")
        if names.count(name) > 1:
            raise reader.error(table, f"names {name!r}, which something else is called too")
        # Code does not read its names in formulas, whose language is a part of Python's.
        if name in RESERVED or (iskeyword(name) and "coded" not in reader):
            raise reader.error(table, f"names {name!r}, which formulas use for something else")


def _read_sizes(reader: TableReader, dimensions: tuple[str, ...]) -> str:
    text: str = reader.take("default_sizes", str, "1024")
    try:
        parse_sizes(text, dimensions, "default_sizes")
    except InputError as error:
        what = error.what.removeprefix("default_sizes ").rstrip(".")
        raise reader.error("default_sizes", what, error.fix) from error
    return text


def _read_array(reader: TableReader) -> ArrayDeclaration:
    dtype = reader.choice("dtype", (*OF_RUN, *ELEMENT_TYPES), REAL)
    shape = reader.formulas("shape")
    if not 1 <= len(shape) <= 5:
        raise reader.error("shape", "must be one to five formulas")
    role: Any = reader.choice("role", get_args(Role), "in")
    read_if, unread = reader.formula("read_if", ""), reader.take("unread", str, "")
    if read_if and role != "inout":
        raise reader.error("read_if", f"is for arrays that are inout, and this is {role}")
    if unread and not read_if:
        raise reader.error("unread", "says why an array must not be read: that is for read_if to decide")
    reader.finish()
    return ArrayDeclaration(shape, role, dtype, read_if, unread.rstrip("."))


def _read_scalar(reader: TableReader) -> ScalarDeclaration:
    neutral = reader.take("neutral", float) if "neutral" in reader else None
    scalar = ScalarDeclaration(
        type=reader.choice("type", get_args(ScalarType), "real"),  # type: ignore[arg-type]
        default=reader.take("default", float, 1.0),
        neutral=neutral,
        help=reader.take("help", str, ""),
    )
    if scalar.type[0] in "iu":
        least, most = integer_range(scalar.type)
        if not scalar.default.is_integer() or not least <= scalar.default <= most:
            raise reader.error("default", f"is {scalar.default:g}, which no {scalar.type} holds")
    reader.finish()
    return scalar


def _read_option(reader: TableReader) -> OptionDeclaration:
    values = reader.take("values", dict)
    if not values or not all(isinstance(text, str) for text in values.values()):
        raise reader.error("values", "must be a table of words for headings")
    ceiling = reader.take("ceiling", str, "")
    if ceiling and ceiling not in values:
        raise reader.error("ceiling", f"is {ceiling!r}, not one of {', '.join(values)}")
    option = OptionDeclaration(values, reader.choice("default", tuple(values), next(iter(values))), ceiling)
    reader.finish()
    return option


def _read_inputs(
    reader: TableReader, arrays: dict[str, ArrayDeclaration], dimensions: tuple[str, ...]
) -> dict[str, str]:
    inputs: dict[str, str] = {}
    for key, array in arrays.items():
        if array.role != "out":
            text = reader.take(key, str, default_generator(array.dtype))
            try:
                check_generator(text, array.dtype, dimensions, tuple(inputs))
            except ExpressionError as error:
                raise reader.error(key, f"is not valid content: {error}") from error
            inputs[key] = text
    for key in reader.table:
        raise reader.error(key, f"is not an array that kernels read; those are {', '.join(inputs) or 'none'}")
    return inputs


def _read_work(reader: TableReader, names: tuple[str, ...], arrays: Mapping[str, ArrayDeclaration]) -> Work:
    moved = [f"{_bytes_of(array)}{' * 2' * (array.role == 'inout')}" for array in arrays.values()]
    reader.fix = f'[work]\nbytes = "{" + ".join(moved)}"'  # what to write where it is missing
    rate = reader.choice("rate", get_args(Rate), "bytes")
    work = Work(
        flops=reader.formula("flops", "0"),
        bytes=reader.formula("bytes"),
        rate=rate,  # type: ignore[arg-type]
    )
    for key, text in (("flops", work.flops), ("bytes", work.bytes)):
        _check_formula(reader, key, text, (*names, "real_bytes", "result_bytes"), "reals")
    if rate == "flops" and work.flops.strip() == "0":
        raise reader.error("flops", "is 0, and the operation rated by it")
    reader.finish()
    return work


def _bytes_of(array: ArrayDeclaration) -> str:
    extents = [text if text.isalnum() else f"({text})" for text in array.shape]
    element = ELEMENT_TYPES.get(array.dtype)
    of_run = "result_bytes" if array.dtype == RESULT else "real_bytes"
    return " * ".join([*extents, str(element.nbytes) if element else of_run])


def _read_ceiling_checks(reader: TableReader, operation: Operation) -> dict[str, Check]:
    """Checks of the kernels that an option calls a ceiling; without any they are those of all kernels."""
    if "ceiling" not in reader:
        return {}
    if not any(option.ceiling for option in operation.options.values()):
        raise reader.error("ceiling", "has checks for kernels that no option calls a ceiling")
    return _read_checks(reader.section("ceiling"), operation)


def _read_independent(reader: TableReader, operation: Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What of the arrays a formula needs for a part of an output."""
    names, rows = (
        () if key in operation.arrays else reader.strings(key, []) for key in ("independent", "rows")
    )
    if operation.dimensions[: len(names)] != names or any(
        array.shape[: len(names)] != names for array in operation.arrays.values()
    ):
        raise reader.error(
            "independent", "must be dimensions with which the list of them and all arrays begin"
        )
    outputs = [name for name, array in operation.arrays.items() if array.role != "in"]
    next_one = operation.dimensions[len(names) : len(names) + 1]
    if (rows and not names) or any(
        name not in operation.arrays or operation.arrays[name].shape[len(names) :][:1] != next_one
        for name in (*rows, *(outputs if rows else ()))
    ):
        raise reader.error(
            "rows", "must be arrays that have, as all outputs, one more dimension behind the independent ones"
        )
    return names, rows


def _read_device_reference(
    reader: TableReader, operation: Operation, folder: Path
) -> DeviceReferenceDeclaration:
    """The table `device_reference` and the file that it names, which stands beside the operation's."""
    name = reader.take("source", str)
    path = folder / name
    if Path(name).name != name or name.startswith(".") or path.is_symlink() or path.suffix == ".cu":
        raise reader.error("source", f"is {name!r}, not a header beside {FILE_NAME}")
    try:
        source = read_input(path)
    except PATH_ERRORS as error:
        raise reader.error("source", f"is {name!r}, which cannot be read: {reason(error)}") from error
    block = (*reader.take("block", list), 1, 1)[:3]
    if not all(is_integer(extent) and 0 < extent <= 1024 for extent in block):
        raise reader.error("block", "must be one to three positive integers")
    grid = (*reader.formulas("grid"), "1", "1")[:3]
    for text in grid:
        _check_formula(reader, "grid", text, operation.dimensions)
    outputs = [name for name, array in operation.arrays.items() if array.role != "in"]
    results = [f"{word} {output}" for word in ("expected", "magnitude") for output in outputs]
    arguments = reader.strings("arguments")
    known = (*operation.argument_names, *results)
    for argument in arguments:
        reader.require("arguments", argument, known, "names")
    for wanted in results:
        if wanted not in arguments:
            raise reader.error("arguments", f"lack {wanted!r}, which nothing else computes")
    made = DeviceReferenceDeclaration(source, reader.take("entry", str), block, grid, arguments)  # type: ignore[arg-type]
    reader.finish()
    return made


def _read_parts(reader: TableReader, operation: Operation) -> dict[str, str]:
    """Formulas under names, in order; each may use those before it."""
    if "parts" in operation.arrays:
        return {}
    parts: dict[str, str] = {}
    for name, text in reader.take("parts", dict, {}).items():
        if not is_identifier(name) or name in (*operation.argument_names, *RESERVED):
            raise reader.error(f"parts.{name}", "must be a name that nothing else has")
        if not isinstance(text, str):
            raise reader.error(f"parts.{name}", f"must be a formula, not {text!r}")
        _check_formula(reader, f"parts.{name}", text, (*_known_to_checks(operation), *parts), "arrays")
        parts[name] = text
    return parts


def _known_to_checks(operation: Operation) -> list[str]:
    read = [name for name, array in operation.arrays.items() if array.role != "out"]
    return [*read, *operation.scalars, *operation.dimensions, *(["row"] if operation.rows else [])]


def _read_checks(reader: TableReader, operation: Operation) -> dict[str, Check]:
    """One check for each output; what stands beside the arrays' names holds for all of them."""
    shared = {key: reader.table.pop(key) for key in _SHARED if key in reader}
    checks = {}
    for key, array in operation.arrays.items():
        if array.role == "in":
            continue
        entry = reader.table.pop(key, {})
        table = entry if isinstance(entry, dict) else {"value": entry}
        own = TableReader({**shared, **table}, reader.where, f"{reader.name}{key}.", _EXAMPLE)
        checks[key] = _read_check(own, operation, array)
    for key in reader.table:
        raise reader.error(key, f"is not an output; those are {', '.join(checks)}")
    return checks


def _read_check(reader: TableReader, operation: Operation, array: ArrayDeclaration) -> Check:
    value = reader.take("value", str, "" if operation.coded else None)
    equal = reader.take("equal", bool, False)
    relative, absolute = reader.formula("relative", ""), reader.formula("absolute", "")
    exact = array.dtype in ELEMENT_TYPES and not ELEMENT_TYPES[array.dtype].roundoff
    if equal and (relative or absolute):
        raise reader.error("equal", "leaves no room for relative or absolute")
    unordered = reader.take("unordered", bool, False)  # copies, which are equal unless something is said
    if not (equal or relative or absolute or exact or unordered):
        raise reader.error("relative", "is missing: say how far off a result may be, or equal = true")
    accumulate = reader.take("accumulate", str, "")
    floats = [name for name, element in ELEMENT_TYPES.items() if element.roundoff]
    if accumulate and accumulate not in floats:
        raise reader.error("accumulate", f"is {accumulate!r}, not one of {', '.join(floats)}")
    check = Check(
        value=value,
        magnitude=reader.formula("magnitude", ""),
        relative=relative or "0",
        absolute=absolute or "0",
        accumulate=accumulate,
        unordered=unordered,
        together=reader.strings("together", []),
    )
    for name in check.together:
        other = operation.arrays.get(name)
        beside = other is not None and other.role != "in" and other.shape == array.shape
        if not (check.unordered and beside and len(array.shape) == 1):
            raise reader.error("together", f"names {name!r}, no output of the same one dimension")
    if check.unordered and (check.magnitude or operation.coded):
        raise reader.error("unordered", "leaves no room for magnitude, nor for code of gpuprof's own")
    known = (*_known_to_checks(operation), *operation.parts)
    for key, text in (("value", check.value), ("magnitude", check.magnitude)):
        if text or (key == "value" and not operation.coded):
            _check_formula(reader, key, text, known, "arrays", outputs=operation.arrays)
    for key, text in (("relative", check.relative), ("absolute", check.absolute)):
        names = (*operation.dimensions, *operation.scalars, "u", "tiny", "truncation")
        _check_formula(reader, key, text, names, "reals")
    reader.finish()
    return check


def _read_reference(
    reader: TableReader, arrays: Iterable[str], scalars: Iterable[str]
) -> ReferenceDeclaration:
    options = reader.take("options", dict, {})
    if not all(isinstance(value, str) for value in options.values()):
        raise reader.error("options", f"must be a table of words, not {options!r}")
    reference = ReferenceDeclaration(
        id=reader.take("id", str),
        title=reader.take("title", str),
        idea=reader.take("idea", str, ""),
        on_host=reader.take("on_host", bool, False),
        library=reader.take("library", str, ""),
        options=options,
        dtypes=reader.strings("dtypes", []),
        function=reader.take("function", str, ""),
        arguments=reader.strings("arguments", []),
        keywords=reader.take("keywords", dict, {}),
    )
    called = (is_identifier(reference.function), reference.function.startswith("_"))
    if reference.library == "torch" and called != (True, False):
        raise reader.error("function", f"is {reference.function!r}, not one of torch.nn.functional")
    for key, given, known in (
        ("arguments", reference.arguments, arrays),
        ("keywords", reference.keywords.values(), scalars),
    ):
        if any(name not in known for name in given):
            raise reader.error(key, f"may hold {', '.join(known) or 'nothing'}")
    for dtype in reference.dtypes:
        reader.require("dtypes", dtype, RUN_TYPES, "has")
    reader.finish()
    return reference


def _check_formula(
    reader: TableReader,
    key: str,
    text: str,
    known: Iterable[str],
    language: Language = "integers",
    outputs: Iterable[str] = (),
) -> None:
    """Refuse a formula with an unknown name when the file is read, not when it is first evaluated."""
    names = ", ".join(sorted(known))
    try:
        used = variables(text, language)
    except ExpressionError as error:
        fix = "" if text.strip() else f"Write one; known are {names}."
        raise reader.error(key, f"is not a formula: {error}", fix) from error
    for name in sorted(used - set(known)):
        fix = f'Where kernels read what {name} held before, its role is "inout".' if name in outputs else ""
        raise reader.error(key, f"uses {name!r}; known are {names}", fix)
