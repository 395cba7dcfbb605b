# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof new`: a kernel file to start from, or a header for a kernel that has none."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from keyword import iskeyword
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from gpuprof.backends.arguments import points_to
from gpuprof.commands.output import print_written, write_file
from gpuprof.console import say
from gpuprof.cubin_file import function_of
from gpuprof.cuda_source.brackets import split_list
from gpuprof.cuda_source.declarations import declarations, members
from gpuprof.cuda_source.functions import KernelFunction, is_one_of_several, kernel_functions
from gpuprof.cuda_source.host_launch import HostLaunch, UnreadableError
from gpuprof.cuda_source.masking import blank, masked
from gpuprof.errors import GpuprofError, HeaderError, InputError
from gpuprof.executor import UnsupportedInstruction, Use, array_uses
from gpuprof.files import check_writable, same_file
from gpuprof.kernels.built_files import read_built
from gpuprof.kernels.carried import carried_files
from gpuprof.kernels.catalog import Ladder, load_ladder, read_source, shipped_ladder
from gpuprof.kernels.header import header_span
from gpuprof.kernels.shipped import shipped_names, shipped_operation, unknown
from gpuprof.kernels.starting_point import listed_texts, starting_point
from gpuprof.operation import Operation
from gpuprof.problems.declaration import FILE_NAME, RESERVED, load_operation
from gpuprof.problems.dtypes import ELEMENT_TYPES, is_float
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.problems.generators import default_generator
from gpuprof.text import listed
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiled_kernels, compiler_options, target_of
from gpuprof.toolchain.signature import BlockLimits, Declared, declared_parameters


def write_starting_point(what: str, path: Path, *, force: bool) -> None:
    """Write a kernel file, and say how to measure it."""
    given = Path(what)
    built = given.suffix in (".ptx", ".cubin") and given.is_file()
    if built and path != given.with_suffix(".toml"):
        raise InputError(
            f"The header of {given} cannot be {path}.",
            fix=f"Name it {given.with_suffix('.toml')}, beside it.",
        )
    if path.suffix != ".cu" and not built:
        raise InputError(f"{path} does not end in .cu.", fix=f"Name it {path.stem or 'mine'}.cu.")
    if built or (given.suffix in (".cu", ".cuh") and given.is_file()):
        _write(path, built_header(given) if built else with_own_header(given, read_source(given)), force)
        file = shlex.quote(what if built else str(path))
        say(f"Next: complete what {path.name} marks TODO; gpuprof run {file}")
        return
    operation, ladder, command = _found(what, path)
    for kernel in ladder.kernels if ladder else ():
        taken = path.stem.lower() in (name.lower() for name in (kernel.id, *kernel.aliases))
        if taken and not same_file(path, Path(what, kernel.file_name)):
            raise InputError(
                f"The {operation.name} ladder has a kernel called {path.stem}.",
                fix="Choose another name.",
            )
    _write(path, starting_point(operation, ladder, path.stem), force)
    say(f"Next: {command}")


def _write(path: Path, text: str, force: bool) -> None:
    check_writable(path, force)
    write_file(path, text)
    print_written(path)


def _found(what: str, path: Path) -> tuple[Operation, Ladder | None, str]:
    """The operation, its kernels where there are any, and the command that measures the new file."""
    file = shlex.quote(str(path))
    folder = Path(what)
    if what in shipped_names():
        return shipped_operation(what), shipped_ladder(what), f"gpuprof {what} -k {file}"
    if not folder.is_dir():
        raise unknown(what)
    operation = load_operation(folder / FILE_NAME)
    try:
        ladder = load_ladder(folder, may_be_empty=True)
    except HeaderError:  # a kernel that is being written
        ladder = None
    inside = path.absolute().parent == folder.absolute()
    command = f"gpuprof run {shlex.quote(str(folder))} -k {path.stem if inside else file}"
    return operation, ladder, command


_BYTES = {
    "char": "i8",
    "signed char": "i8",
    "int8_t": "i8",
    "unsigned char": "u8",
    "uint8_t": "u8",
    "uchar": "u8",
    "bool": "u8",
}
_VECTOR = re.compile(r"(?<=[a-z])[234]\Z|(?<=bfloat16)2\Z")
_TYPE = re.compile(r"(?:typename|class)\b")
#: Threads of a block, where nothing says how many.
_THREADS = 256
#: The value of a template's own parameter.
_OWN = 16
#: What PTX is compiled for, to see what a kernel does.
_TARGET = "sm_90"
#: Element types that values of so many bits most likely are, where PTX says no more.
_OF_BITS = {"b8": "u8", "b16": "f16", "b32": "f32", "b64": "f64"}
#: Blocks of so many axes.
_BLOCKS = {1: (_THREADS,), 2: (16, 16), 3: (8, 8, 4)}


def with_own_header(path: Path, source: str) -> str:
    """The source below a header for the function called like the file, or else the first that takes anything.

    Raises:
        InputError: It has one, or no kernel.
    """
    if header_span(source) is not None:
        raise InputError(f"{path} has a header.", fix=f"gpuprof run {path} measures it.")
    functions = kernel_functions(source)
    if not functions:
        raise InputError(f"{path} has no __global__ function.", fix="Name a file with a kernel.")
    named = [one for one in functions if one.name == path.stem]
    function = next(iter(named or [one for one in functions if one.parameters] or functions))
    others = [one.entry for one in functions if one is not function]
    name = function.name.rpartition("::")[2]
    values, own, code = [], {}, _without_other_kernels(source, name)
    host = HostLaunch(source, name, _bytes_of)
    template = zip(function.template or (), function.template_names, _instance(source, function), strict=True)
    for declared, word, given in template:
        if _TYPE.match(declared):
            defined = re.search(rf"\b(?:struct|class)\s+{re.escape(given.partition('<')[0] or '?')}\b", code)
            values.append(given if defined or _element(f"{given} *") else "float")
            continue
        number = _read(host.formula, given) or ""
        number = number if number.isdecimal() else str(1 if "bool" in declared.split() else _OWN)
        values.append(number if declared == word else word)  # or it has no name
        if declared != word:
            own[word] = int(number)
    entry = f"{function.name}<{', '.join(values)}>" if values else function.name
    taken = [
        replace(one, name=f"{one.name}_" if one.name in RESERVED or iskeyword(one.name) else one.name)
        for one in declared_parameters([source], entry, _aliases(code)) or ()
    ]
    instance = dict(zip(function.template_names, values, strict=True))
    if is_one_of_several(source, name):
        told = re.sub(r"[A-Za-z_]\w*", lambda word: instance.get(word[0], word[0]), function.types)
        entry += f"({told})"
    instance_of_own = re.sub(r"[A-Za-z_]\w*", lambda word: str(own.get(word[0], word[0])), entry)
    threads, blocks = (
        1 + "xyz".index(max("x", *re.findall(rf"\b{place}Idx\s*\.\s*([xyz])\b", code)))
        for place in ("thread", "block")
    )
    block = _BLOCKS[threads] + (1,) * (blocks - threads)
    uses: list[Use | None] | None = None
    with suppress(GpuprofError):  # it need not compile as it stands
        options = compiler_options(target_of(_TARGET, (source,)))
        carried = carried_files(source, path, ())
        (made,) = compile_entries_cached(source, path.name, [instance_of_own], options, carried)
        uses, block = _uses_of_ptx(made.ptx, made.entry), _allowed(made.block_limits, block)
    begin = sum(map(len, code.splitlines(keepends=True)[: function.line - 1]))
    structs = {one.name: held for one in taken if (held := _members(source, one.type))}
    around = _Around(
        code[begin:],
        partial(HostLaunch, source, name, lambda one: _bytes_of(str(instance.get(one, one)))),
        [one if one in own else "" for one in function.template_names],
        structs,
        {
            found["name"]: (
                kind,
                [_read(host.formula, one) or "" for one in re.findall(r"\[([^\]]*)", found["extents"])],
            )
            for found in _CONSTANT.finditer(code)
            if (kind := _element(found["type"])) and len(re.findall(rf"\b{found['name']}\b", code)) > 1
        },
    )
    lines = [*_header(entry, own, taken, uses, block, around)]
    return "\n".join(("/*gpuprof", *_named(others), *lines, "*/", source))


def _named(others: Sequence[str]) -> list[str]:
    """A line on a file's other kernels, if any."""
    return [f"# Of its other kernels: entry = {listed_texts(others)}"] if others else []


def _without_other_kernels(source: str, name: str) -> str:
    """The code of a file with one of its kernels alone."""
    code = masked(source)
    for one in declarations(source) or ():
        if "__global__" in one.head and not re.search(rf"\b{name}\s*\(", one.head):
            code = code[: one.begin] + blank(one.code) + code[one.end :]
    return code


def _guards(code: str) -> dict[str, tuple[str, bool]]:
    """What the place of a thread in the grid is held against, by axis: `x < nx`, `if (y >= ny) return`.

    And whether it is the place of its block alone.
    """
    found = {}
    for axis in "xyz":
        place = re.search(rf"\b(\w+)\s*=([^=;,]*)\bblockIdx\s*\.\s*{axis}\b(\s*[;,])?", code)
        held = re.compile(rf"\b{place[1]}\s*(?:<|>=)\s*(?:\w+\s*\.\s*)?(\w+)") if place else None
        if place and held and (bound := held.search(code, place.end())):
            found[axis] = (bound[1], bool(place[3]) and not place[2].strip())
    return found


T = TypeVar("T")


def _read(question: Callable[..., T], *given: object) -> T | None:
    """What host code says; None where it is not plain to read."""
    try:
        return question(*given)
    except UnreadableError:
        return None


def _bytes_of(written: str) -> int | None:
    """Bytes of a type of C; None where it is not known here."""
    kind, lanes = _element(f"{written} *"), _VECTOR.search(written)
    return ELEMENT_TYPES[kind].nbytes * int(lanes[0] if lanes else 1) if kind else None


def _aliases(code: str) -> dict[str, str]:
    """Other names of element types: `typedef float real;`."""
    found = re.findall(r"\btypedef\s+([\w\s]+?)\s*\b(\w+)\s*;", code)
    found += [told[::-1] for told in re.findall(r"\busing\s+(\w+)\s*=\s*([\w\s]+);", code)]
    found += [
        told[::-1]
        for told in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w ]+?)[ \t]*$", code, re.M)
    ]
    return {name: kind.strip() for kind, name in found if _element(f"{kind.strip()} *")}


def _members(source: str, struct: str) -> list[Declared]:
    """The numbers that a struct consists of; none where it has anything else."""
    found: list[Declared] = []
    for one in declarations(source) or ():
        around = re.sub(r"\{.*\}", "", one.code, flags=re.DOTALL)
        if not struct or not re.search(rf"\bstruct\b.*\b{re.escape(struct)}\b", around):
            continue
        for member in members(one):
            told = re.fullmatch(
                r"\s*(?P<type>[\w\s]+?)\s*(?P<names>\b\w+(?:\s*,\s*\w+)*)\s*;\s*", member.code
            )
            if not told or not _element(told["type"]):
                return []
            found += [Declared(told[0], told["type"], name.strip()) for name in told["names"].split(",")]
    return found


_CONSTANT = re.compile(
    r"\b__constant__\s+(?P<type>[\w\s:]+?)\s*\b(?P<name>\w+)\s*(?P<extents>(?:\[[^\]]*\]\s*)*);"
)


@dataclass(frozen=True, slots=True)
class _Around:
    """What a source says beside the parameters of a kernel.

    Args:
        code: The kernel, and what stands below it.
        launch: Its launch, by what formulas call its arguments.
        template: Its template's integers.
        structs: What structs that it takes consist of.
        constants: What the host sets before a launch: types, and the extents of an array.
    """

    code: str
    launch: Callable[..., HostLaunch]
    template: Sequence[str]
    structs: Mapping[str, Sequence[Declared]]
    constants: Mapping[str, tuple[str, Sequence[str]]]


def _instance(source: str, function: KernelFunction) -> list[str]:
    """The arguments of a template as a file first instantiates or launches it, else their defaults."""
    name = function.name.rpartition("::")[2]
    found = re.search(rf"\b{name}\s*<((?:[^<>;(){{}}]|<[^<>;(){{}}]*>)*)>\s*(?:<<<|\()", masked(source))
    given = split_list(found[1]) if found else []
    defaults = [declared.partition("=")[2] for declared in function.template or ()]
    told = (text.strip() for text in (*given[: len(defaults)], *defaults[len(given) :]))
    return [{"true": "1", "false": "0"}.get(text, text) for text in told]


def _allowed(limits: BlockLimits, block: tuple[int, ...]) -> tuple[int, ...]:
    """A block such as this that a kernel allows."""
    most = prod(limits.largest or block)
    return limits.required or (block if prod(block) <= most else (most, *[1] * (len(block) - 1)))


def built_header(path: Path) -> str:
    """The header of PTX or machine code, for the function that is called like the file, or else its first."""
    held = read_built(path)
    if not held.entries:
        raise InputError(f"{path} has no kernel.")
    if held.header_path == path and header_span(held.header) is not None:
        raise InputError(f"{path} has a header.", fix=f"gpuprof run {path} measures it.")
    entry = next((one for one in held.entries if function_of(one) == path.stem), held.entries[0])
    (kernel,) = compiled_kernels(held.built.ptx, [entry], "", held.built.cubin, "", ())
    uses = _uses_of_ptx(held.built.ptx, entry)
    taken = []
    for number, (one, use) in enumerate(zip(kernel.parameters, uses or repeat(None), strict=False)):
        if one.is_pointer or (one.may_be_pointer and (use or uses is None)):
            kind = f"{ELEMENT_TYPES[_accessed(use)].c_type} *"
        else:
            kind = f"{'float' if one.type[0] == 'f' else 'int'}{8 * one.nbytes}"
            kind = {"float32": "float", "float64": "double"}.get(kind, f"{kind}_t")
        taken.append(Declared(f"const {kind}", "" if one.is_struct else kind, f"x{number}"))
    block = _allowed(kernel.block_limits, (_THREADS,))
    others = [one for one in held.entries if one != entry]
    nothing = _Around("", partial(HostLaunch, "", "", _bytes_of), (), {}, {})
    return "\n".join((*_named(others), *_header(entry, {}, taken, uses, block, nothing), ""))


def _uses_of_ptx(ptx: str, entry: str) -> list[Use | None] | None:
    """What a kernel does with the array of each parameter; None where that cannot be told."""
    try:
        return array_uses(ptx, entry) if ptx else None
    except UnsupportedInstruction:
        return None


def _accessed(use: Use | None) -> str:
    """The element type as which a kernel reads or writes an array, as far as PTX says."""
    named = _OF_BITS.get(use.type, use.type.replace("s", "i")) if use else ""
    return named if named in ELEMENT_TYPES else "f32"


def _role(declared: Declared, use: Use | None, told: bool) -> str:
    """The role of an array, by what the kernel does with it, else by how its pointer is declared."""
    if not told:
        return "in" if "const" in declared.text.partition("*")[0].split() else "out"
    return "in" if use is None or not use.written else "inout" if use.read else "out"


def _header(
    entry: str,
    own: Mapping[str, int],
    taken: Sequence[Declared],
    uses: Sequence[Use | None] | None,
    block: Sequence[int],
    around: _Around,
) -> Iterator[str]:
    """The tables of a header that brings its operation along."""
    operation = function_of(re.split("[<(]", entry)[0].rpartition("::")[2])
    lists = {one.name: f"{one.name}_data" for one in taken if one.type.endswith("**")}
    structs = around.structs
    flat = [*taken, *(member for members in structs.values() for member in members)]
    kinds = {one.name: _element(one.type.replace("**", "*")) for one in flat}
    if len(kinds) < len(flat) or not kinds.keys().isdisjoint(RESERVED):
        structs, kinds = {}, {one.name: kinds[one.name] for one in taken}
    told = [*zip(taken, uses or repeat(None), strict=False)]
    arrays = {one.name: kinds[one.name] or _accessed(use) for one, use in told if one.type.endswith("*")}
    vectors = {one.name: kinds[one.name] and _VECTOR.search(one.type.rstrip("* ")) for one in taken}
    lanes = {name: found[0] for name, found in vectors.items() if found}
    values = {name: kind for name, kind in kinds.items() if kind and name not in arrays}
    scalars = {name: kind for name, kind in values.items() if is_float(kind)}
    sizes = [name for name, kind in values.items() if ELEMENT_TYPES[kind].nbytes > 2 and name not in scalars]
    places = {one.name: place for place, one in enumerate(taken)}
    known: dict[int, Any] = {places[name]: name for name in sizes if name in places}
    for name, members_of in structs.items():
        known[places[name]] = {f".{one.name}": one.name for one in members_of if one.name in sizes}
    host, alone = around.launch(known, around.template, {*kinds, *own, *RESERVED}), around.launch()
    launch = _launch_told(host, alone, own)
    of_grid = [*host.free, *sizes] or ["n"]
    allocated = {
        name: _read(host.shape, places[name], ELEMENT_TYPES[kind].nbytes * int(lanes.get(name, 1)))
        for name, kind in arrays.items()
        if name not in lists
    }
    defaults = [_read(alone.argument, places.get(name, len(places))) or "" for name in [*sizes, *host.free]]
    sizes = [*sizes, *host.free] or ["n"]
    roles = {
        one.name: _role(one, use, bool(uses) and one.name not in lists)
        for one, use in told
        if one.name in arrays
    }
    if not {"out", "inout"} & {*roles.values()}:
        roles |= dict.fromkeys([*arrays][-1:], "out")
    written = [lists.get(name, name) for name, role in roles.items() if role != "in"]
    names = {*arrays, *scalars, *sizes}
    # Of a type that is not known here, an enumeration or a struct, the compiler tells what it takes.
    arguments = [one.name if one.name in names else "1" if kinds[one.name] else "0" for one in taken]
    for name, members_of in structs.items():
        each = [f"{one.name if one.name in names else 1}{_as(kinds[one.name])}" for one in members_of]
        arguments[places[name]] = f"{{{', '.join(each)}}}"
    guards = _guards(around.code)
    bounds = [guards[axis] for axis in "xyz" if guards.get(axis, ("", False))[0] in sizes]
    if len(bounds) != len(block):
        bounds = [(name, False) for text in launch.grid or () for name in of_grid if name in _words(text)]
    if len(bounds) != len(block):
        bounds = [(name, False) for name in of_grid[: len(block)][::-1]]
    extents = [name for name, _ in bounds[::-1]] if len(bounds) > 1 else of_grid[:2]
    yield f'operation = "{operation}"'
    yield f'entry = "{entry}"'
    yield f"dimensions = {listed_texts(sizes)} # what --sizes sets"
    if defaults and all(one.isdecimal() and int(one) for one in defaults):
        yield f'default_sizes = "{"x".join(defaults)}" # as the file launches it'
    yield f"arguments = {listed_texts(arguments)} # or formulas of integers"
    if own:
        yield from ("[parameters] # of the template", *(f"{name} = {value}" for name, value in own.items()))
    guess = "TODO: " * (not all(map(allocated.get, arrays)))
    yield f"[arrays] # {guess}their extents, the last one fastest"
    moved: dict[str, int] = {}
    for name, kind in arrays.items():
        called = lists.get(name, name)
        role = f', role = "{roles[name]}"' if called in written else ""
        guess = " # or inout, where it reads what it held" if uses is None or name in lists else ""
        note = {"inout": " # or out, where it reads only what it wrote", "out": guess}.get(roles[name], "")
        shape = allocated.get(name) or extents
        shape = extents if sorted(shape) == sorted(extents) else shape  # a product of theirs has no order
        shape = [re.sub(r"[A-Za-z_]\w*", lambda word: str(own.get(word[0], word[0])), one) for one in shape]
        shape += filter(None, [lanes.get(name)])
        yield f'{called} = {{ shape = {listed_texts(shape)}, dtype = "{kind}"{role} }}{note}'
        elements = " * ".join(one if re.fullmatch(r"\w+", one) else f"({one})" for one in shape)
        both_ways = 1 + (roles[name] == "inout")
        moved[elements] = moved.get(elements, 0) + both_ways * ELEMENT_TYPES[kind].nbytes
    symbols = {}
    for name, (kind, cut) in around.constants.items():
        called = f"{name}_" if name in {*kinds, *sizes, *RESERVED} else name
        symbols[name] = called if cut or is_float(kind) else "1"
        if cut:
            yield f'{called} = {{ shape = {listed_texts(cut)}, dtype = "{kind}" }}'
        elif is_float(kind):
            scalars[called] = kind
    if symbols:
        yield "[symbols] # what the host sets before the launch"
        yield from (f'{name} = "{value}"' for name, value in symbols.items())
    if lists:
        yield "[workspace] # addresses of equal parts"
        for name, called in lists.items():
            yield f'{name} = {{ addresses = ["{called}"], shape = {listed_texts(extents[:1])} }}'
    if scalars:
        yield "[scalars]"
        yield from (f'{name} = {{ type = "{kind}", default = 1.0 }}' for name, kind in scalars.items())
    integers = [name for name, role in roles.items() if role != "out" and not is_float(arrays[name])]
    if integers:
        yield "[inputs] # or permutation, csr_offsets(nnz) …"
        yield from (f'{lists.get(name, name)} = "{default_generator(arrays[name])}"' for name in integers)
    nbytes = " + ".join(f"{each} * {elements}" for elements, each in moved.items())
    yield f'[work]\nbytes = "{nbytes or 0}" # that must move at least'
    yield "[check] # TODO: what each must hold, a formula of the arrays before"
    if any(is_float(arrays[name]) for name in roles if roles[name] != "in"):
        yield '# A sum is off by its terms: magnitude = "sum(abs(x))" beside such a value.'
    for name, kind in arrays.items():
        error = ', relative = "4 * u"' * is_float(kind)
        error += ', absolute = "tiny"' * (is_float(kind) and ELEMENT_TYPES[kind].nbytes < 4)
        if (called := lists.get(name, name)) in written:
            yield f'{called} = {{ value = ""{error} }}'
    yield from _launch_table(launch, own, block, bounds, around.code)


@dataclass(frozen=True, slots=True)
class _Launch:
    """What host code says of a launch, None where it does not; a block may be `fixed`, or depend on sizes."""

    grid: list[str] | None
    block: list[str] | None
    shared: str | None
    fixed: bool


def _launch_told(host: HostLaunch, alone: HostLaunch, own: Mapping[str, int]) -> _Launch:
    """What host code says, in formulas of what the kernel takes; a block that depends on that, in numbers."""
    grid, block, shared = _read(host.extents, 0), _read(host.extents, 1), _read(host.shared_bytes)
    for axis, one in zip("xyz", block or (), strict=False):
        if one in host.free:  # a launcher that takes the block
            host.free.remove(one)
            grid = grid and [re.sub(rf"\b{one}\b", f"block_{axis}", text) for text in grid]
            shared = shared and re.sub(rf"\b{one}\b", f"block_{axis}", shared)
    fixed = all(_words(one) <= {*own} for one in block or ())
    return _Launch(grid, block if fixed else _read(alone.extents, 1), shared, fixed)


def _words(formula: str) -> set[str]:
    return {*re.findall(r"[A-Za-z_]\w*", formula)}


def _as(kind: str | None) -> str:
    """How the type of a struct's integer is said, unless it has 32 bits."""
    return f" as {kind}" if kind and not is_float(kind) and ELEMENT_TYPES[kind].nbytes != 4 else ""


def _launch_table(
    told: _Launch,
    own: Mapping[str, int],
    block: Sequence[int],
    bounds: Sequence[tuple[str, bool]],
    code: str,
) -> Iterator[str]:
    """The table of the launch: as host code tells it, the rest as the kernel lets one guess."""
    grid, threads = told.grid, told.block
    block = [*block] if len(bounds) == len(block) else [_THREADS]
    try:
        block = [evaluate(extent, own) for extent in threads or ()] or block
    except ExpressionError:
        threads = None
    if grid is None:
        cut = zip(bounds, "xyz", strict=False)
        grid = [name if alone else f"cdiv({name}, block_{axis})" for (name, alone), axis in cut]
    else:
        cuts = zip(grid, [*block, 0, 0], "xyz", strict=False)
        grid = [re.sub(rf", {extent}\)\Z", f", block_{axis})", text) for text, extent, axis in cuts]
    for extents in (block, grid):
        while len(extents) > 1 and str(extents[-1]) == "1":
            extents.pop()
    words: dict[str, object] = {"block": threads, "grid": told.grid}
    if re.search(r"\bextern\b[^;{}()]*\b__shared__\b", code):
        words["dynamic_shared_bytes"] = told.shared
    guessed = listed([word for word, text in words.items() if text is None])
    yield "[launch]" + f" # TODO: {guessed}, which no launch in the file says plainly" * bool(guessed)
    yield f"block = {block}" + " # which default_sizes need" * (not told.fixed and threads is not None)
    yield f"grid = {listed_texts(grid)}"
    if len(words) > 2 or told.shared not in (None, "0"):
        yield f'dynamic_shared_bytes = "{told.shared or "4 * threads"}"'
    if re.search(r"\bthis_grid\b", code):
        yield "cooperative = true"


def _element(written: str) -> str | None:
    """The element type of a value, or of what a pointer is to; None where its declaration does not tell."""
    written = written.replace("cuda::", "").replace("std::", "")
    pointee = _VECTOR.sub("", written.removesuffix("*").strip()) if written.endswith("*") else written
    unsigned = pointee.startswith(("unsigned", "uint"))
    fits = (name for name, element in ELEMENT_TYPES.items() if points_to(f"{pointee}*", element))
    return _BYTES.get(pointee) or next((name for name in fits if name.startswith("u") == unsigned), None)
