# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A header for a kernel that has none: what its source, its machine code and its host code say."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from keyword import iskeyword
from math import prod
from pathlib import Path

from gpuprof.backends.arguments import HANDLES
from gpuprof.commands.header_tables import (
    THREADS,
    VECTOR,
    HeaderTables,
    SourceFacts,
    Taken,
    accessed,
    element_type,
    read,
)
from gpuprof.cubin_file import function_of
from gpuprof.cuda_source.brackets import split_list, without_template_lists
from gpuprof.cuda_source.declarations import declarations, members
from gpuprof.cuda_source.functions import KernelFunction, is_one_of_several, kernel_functions
from gpuprof.cuda_source.host_launch import HostLaunch
from gpuprof.cuda_source.masking import masked, without_directives, without_spans
from gpuprof.cuda_source.unfolding import unfolded
from gpuprof.errors import GpuprofError, InputError
from gpuprof.executor import ArrayUses, UnsupportedInstruction, Use, array_uses
from gpuprof.kernels.built_files import read_built
from gpuprof.kernels.entries import function_name
from gpuprof.kernels.header import header_span
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing, found_headers
from gpuprof.problems.declaration import RESERVED
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.records import replace
from gpuprof.text import listed, one_line, renamed
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiled_kernels, compiler_options, target_of
from gpuprof.toolchain.signature import BlockLimits, Declared, Parameter, declaration, declared_parameters

_DYNAMIC = re.compile(r"\bextern\b[^;{}()]*\b__shared__\b")
_TYPE = re.compile(r"(?:typename|class|template)\b")
#: What is called so counts.
_INDEX = re.compile(r"ind(?:ex|ices)|idx|(?<![a-z])(?:ind|id)|offset|stride", re.IGNORECASE)
#: The value of a template's own parameter.
_OWN = 16
#: What PTX is compiled for, to see what a kernel does.
_TARGET = "sm_90"
#: Blocks of so many axes.
_BLOCKS = {1: (THREADS,), 2: (16, 16), 3: (8, 8, 4)}


def with_own_header(path: Path, source: str, called: str = "", command: Preprocessing = NOTHING) -> str:
    """The source below a header for one of its functions.

    It is the one called so, or like the file, or else the first that takes a pointer, or anything.

    Args:
        command: What was typed of folders and macros.

    Raises:
        InputError: It has a header, or no kernel, or one that leaves nothing to check.
    """
    if header_span(source) is not None:
        raise InputError(f"{path} has a header.", fix=f"gpuprof run {path} measures it.")
    written = unfolded(source)
    carried, folder_options = found_headers(source, path, command.include)
    functions = kernel_functions(written)
    if not functions:
        holding = next((name for name, text in carried.items() if kernel_functions(text)), "")
        fix = f"Name {holding}, which it includes." if holding else "Name a file with a kernel."
        raise InputError(f"{path} has no __global__ function.", fix=fix)
    function = _chosen(functions, (called, path.stem))
    others = [one.entry for one in functions if one is not function]
    name = function_name(function.name)
    texts = (written, *carried.values())
    code = _without_other_kernels(written, name)
    host = HostLaunch(written, name, _bytes_of, beside=carried.values())
    instance, aliases = _instance(written, function), _aliases("\n".join((code, *carried.values())))
    values, own = _template_values(function, instance, aliases, code, texts, host)
    entry = f"{function.name}<{', '.join(values)}>" if values else function.name
    taken = declared_parameters([written], entry, aliases) or ()
    types = dict(zip(function.template_names, values, strict=True))
    if is_one_of_several(written, name):
        entry += f"({renamed(function.types, types)})"
    threads, blocks = (
        1 + "xyz".index(max("x", *re.findall(rf"\b{place}Idx\s*\.\s*([xyz])\b", code)))
        for place in ("thread", "block")
    )
    block = _BLOCKS[threads] + (1,) * (blocks - threads)
    begin = sum(map(len, code.splitlines(keepends=True)[: function.line - 1]))
    uses, broken, dynamic = None, "", bool(_DYNAMIC.search(code[begin:]))
    is_cooperative = "this_grid" in code[begin:]
    try:
        virtual = target_of(_TARGET, (source,)).replace("sm", "compute")  # machine code takes ptxas long
        options = compiler_options(virtual, (*command.define.items(),), folder_options)
        (made,) = compile_entries_cached(source, path.name, [renamed(entry, own)], options, carried)
        uses, block = _uses_of_ptx(made.ptx, made.entry), _allowed(made.block_limits, block)
        body = made.ptx.partition(f".entry {made.entry}(")[2].partition("\n}")[0]
        is_cooperative &= "%envreg" in body  # the grid's barrier, which its ranks need not
        shared = re.findall(r"\.extern \.shared [^;]*?([\w$]+)\[\]", made.ptx)
        dynamic = any(re.search(rf"(?<![\w$]){re.escape(one)}(?![\w$])", body) for one in shared)
        told = zip(taken, made.parameters, strict=False)
        taken = tuple(_as_compiled(code, place, *one) for place, one in enumerate(told))
    except GpuprofError as error:
        broken = one_line(str(error)).replace("*/", "* /")
    parameters = _parameters(taken, uses, texts)
    around = SourceFacts(
        code[begin:],
        partial(
            HostLaunch,
            written,
            name,
            lambda one: _bytes_of(renamed(one, {**aliases, **types}), texts),
            beside=carried.values(),
        ),
        [one if one in own else "" for one in values],
        _variables(code, texts, uses, host),
        dynamic,
        is_cooperative,
    )
    tables = [*HeaderTables(own, parameters, uses is not None, block, around).of(entry)]
    if not any('role = "' in line for line in tables) and all(one.kind for one in parameters):
        what = f"{path}:{function.line}: {name} writes to no array, so that nothing of it can be checked."
        fix = "What it computes belongs in an array that it takes, or in a __device__ variable."
        raise InputError(broken or what, fix=fix if not broken else f"{name} takes no array.")
    todo = [f"# TODO: {broken.rstrip('.')}. What is said of the kernel is a guess."] * bool(broken)
    cluster = re.findall(
        r"\bclusterDim\s*\.\s*[xyz]\s*=\s*([^;]+);", "" if "__cluster_dims__" in code else code
    )[:3]
    if cluster:
        extents = ", ".join(" ".join(extent.split()) for extent in cluster)
        todo += [f"# TODO: __cluster_dims__({extents}) before {name}, as the launch has it."]
    return "\n".join(("/*gpuprof", *todo, *_named(others), *tables, "*/", source))


def _chosen(functions: Sequence[KernelFunction], words: Sequence[str]) -> KernelFunction:
    """The function that one of the words names, or else the first that takes a pointer, or anything."""
    named = (one for word in words for one in functions if function_name(one.name) == word)
    first = max(functions, key=lambda one: ("*" in "".join(one.parameters), bool(one.parameters)))
    return next(named, first)


def _template_values(
    function: KernelFunction,
    instance: Sequence[str],
    aliases: Mapping[str, str],
    code: str,
    texts: Sequence[str],
    host: HostLaunch,
) -> tuple[list[str], dict[str, int]]:
    """What stands for each parameter of a template, by an instance of it, and numbers of the header's own."""
    values, own = [], {}
    for declared, word, given in zip(function.template or (), function.template_names, instance, strict=True):
        last = given.rpartition("::")[2]
        if _TYPE.match(declared):
            given = aliases.get(last, given)
            defined = re.search(rf"\b(?:struct|class)\s+{re.escape(given.partition('<')[0] or '?')}\b", code)
            guess = "int" if _INDEX.search(word) else "float"
            values.append(given if defined or element_type(f"{given} *") else guess)
        elif held := _enumerators(declared, texts):
            values.append(next((one for one in held if one.rpartition("::")[2] == last), held[0]))
        else:
            number = read(host.formula, given) or ""
            if not number.removeprefix("-").isdecimal():
                number = str(1 if "bool" in declared.split() else _OWN)
            values.append(number if declared == word else _usable(word))  # or it has no name
            if declared != word:
                own[values[-1]] = int(number)
    return values, own


def _as_compiled(code: str, place: int, declared: Declared, compiled: Parameter) -> Declared:
    """A parameter; a number of a type that no text tells, such as one of a library's, as what it is."""
    declared = replace(declared, name=declared.name or f"unnamed{place}")
    told = declared.type.endswith("*") or declared.type in HANDLES or element_type(declared.type)
    is_enum = re.search(rf"\benum\b[^;{{}}]*\b{re.escape(declared.type)}\s*\{{", code)
    is_number = not (told or is_enum or compiled.is_struct) and compiled.nbytes >= 4
    return replace(declared, type=_type_of(compiled)) if is_number else declared


def _parameters(taken: Sequence[Declared], uses: ArrayUses | None, texts: Sequence[str]) -> list[Taken]:
    """What a kernel takes, structs as their members, which bear their struct's name where that must be."""
    vectors = [_lanes(one) for one in taken]
    structs = [_accessor(one) or _members(one.type, texts) for one in taken]
    names = [one.name for one in (*taken, *(member for held in structs for member in held))]
    is_plain = len({*names}) == len(names) and {*names}.isdisjoint(RESERVED)
    found = []
    for place, (one, vector, held) in enumerate(zip(taken, vectors, structs, strict=True)):
        begin, is_tensor = 0, bool(_ACCESSOR.match(one.type))
        extents = tuple(each.name for each in held[1 : 1 + len(held) // 2]) if is_tensor else ()
        for member in vector or held or [one]:
            nbytes = 8 if member.type.endswith("*") else _bytes_of(member.type) or 1
            begin = -(-begin // nbytes) * nbytes
            kind, lanes = _held(member, texts)
            is_own = not vector and (is_plain or not held or is_tensor)
            found.append(
                Taken(
                    _usable(member.name if is_own else f"{one.name}_{member.name}"),
                    member.text,
                    member.type,
                    place,
                    f".{member.name}" * bool(vector or held),
                    kind,
                    lanes,
                    uses.parameters[place].get(begin) if uses else None,
                    extents,
                )
            )
            begin += nbytes
    return found


#: How PyTorch gives kernels a tensor: an address, extents and strides.
_ACCESSOR = re.compile(r"(?:\w+::)*PackedTensorAccessor(?P<bits>\d*)<(?P<given>.*)>\Z")


def _accessor(one: Declared) -> list[Declared]:
    """An array, its extents and its strides, which follow from these; nothing of another parameter."""
    match = _ACCESSOR.match(one.type)
    if match is None:
        return []
    element, count, *more = (*split_list(match["given"]), "")
    if not count.isdecimal():
        return []
    index = "int" if match["bits"] == "32" else (more[1:-1] or ["int64_t"])[0]
    extents = [f"{one.name}_{axis}" for axis in range(int(count))]
    strides = [" * ".join(extents[axis + 1 :]) or "1" for axis in range(len(extents))]
    numbers = [Declared(one.text, index, name) for name in (*extents, *strides)]
    return [Declared(one.text, f"{element} *", one.name), *numbers]


def _lanes(one: Declared) -> list[Declared]:
    """The numbers of a vector of CUDA's, such as `uint2`; nothing of another parameter."""
    kind, lanes = _element(f"{one.type} *") if VECTOR.search(one.type) else (None, 0)
    return [Declared(one.text, ELEMENT_TYPES[kind].c_type, axis) for axis in "xyzw"[:lanes] if kind]


def _held(member: Declared, texts: Sequence[str]) -> tuple[str | None, int]:
    """The element type of a value, or of an array's or texture's elements, and how many of it one is."""
    kind, lanes = _element(member.type)
    if member.type in HANDLES:
        read_as = re.search(rf"\btex\w+\s*<([\w\s]+)>\s*\(\s*{re.escape(member.name)}\b", texts[0])
        return _element(f"{read_as[1].strip()} *") if read_as else (None, 0)
    if kind or not member.type.endswith("*"):
        return kind, lanes if kind else 0
    pointee = _members(member.type.rstrip("* "), texts)
    is_of_one_type = len({one.type for one in pointee}) == 1
    return (element_type(f"{pointee[0].type} *"), len(pointee)) if is_of_one_type else (None, 0)


def _element(written: str) -> tuple[str | None, int]:
    """The element type of a value, or of what a pointer is to, and how many a vector has, 0 of a number."""
    vector = VECTOR.search(written.rstrip("* "))
    return element_type(written.replace("**", "*")), int(vector[0]) if vector else 0


def _usable(name: str) -> str:
    """A name for what a source calls so, which a header may have another meaning for."""
    return f"{name}_" if name in RESERVED or iskeyword(name) else name


def _named(others: Sequence[str]) -> list[str]:
    """A line on a file's other kernels, if any."""
    return [f"# Other kernels, for entry: {listed(others, 8)}"] * bool(others)


def _without_other_kernels(source: str, name: str) -> str:
    """The code of a file with one of its kernels alone."""
    others = (
        (one.begin, one.end)
        for one in declarations(source) or ()
        if "__global__" in one.head and not re.search(rf"\b{name}\s*\(", one.head)
    )
    return without_spans(masked(source), others)


def _bytes_of(written: str, texts: Sequence[str] = ()) -> int | None:
    """Bytes of a type of C, or of a struct of equal members; None where it is not known here."""
    kind, lanes = _element(f"{written} *")
    if kind:
        return ELEMENT_TYPES[kind].nbytes * max(1, lanes)
    sizes = [_bytes_of(one.type) for one in _members(written, texts)]
    return sum(filter(None, sizes)) if len({*sizes}) == 1 else None


def _aliases(code: str) -> dict[str, str]:
    """Other names of element types: `typedef float real;`."""
    found = re.findall(r"\btypedef\s+([\w\s]+?)\s*\b(\w+)\s*;", code)
    found += [told[::-1] for told in re.findall(r"\busing\s+(\w+)\s*=\s*([\w\s]+);", code)]
    found += [
        told[::-1]
        for told in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w ]+?)[ \t]*$", code, re.M)
    ]
    return {name: kind.strip() for kind, name in found if element_type(f"{kind.strip()} *")}


#: Numbers and pointers that a type declares as its members.
_NAMED = r"[*\s]*\b\w+\s*(?:\[\s*\d+\s*\])?"
_DATA = re.compile(rf"\s*([\w\s:]+?)({_NAMED}(?:\s*,{_NAMED})*)\s*(?:=[^;,]*)?;\s*")
#: What a type declares and its objects do not hold.
_WITHOUT_DATA = re.compile(r"\s*(?:using|typedef|static\w*|friend|template)\b")
#: The longest array whose elements a header lists as a struct's members.
_LISTED = 32


def _members(struct: str, texts: Sequence[str]) -> list[Declared]:
    """The numbers and pointers that a struct consists of; none where it has anything else."""
    found: list[Declared] = []
    name, _, given = struct.partition("<")
    told = re.compile(rf"\b(?:struct|class)\b.*\b{re.escape(name)}\b", re.DOTALL)
    for one in (one for text in texts for one in declarations(text) or ()) if name else ():
        around = re.sub(r"\{.*\}", "", one.code, flags=re.DOTALL)
        if one.is_function or "{" not in one.code or not told.search(around):
            continue
        taken = KernelFunction(name, 0, (), tuple(split_list("".join(without_template_lists(one.head)[1]))))
        defaults = (text.partition("=")[2].strip() for text in taken.template or ())
        known = dict(zip(taken.template_names, defaults, strict=True))
        known |= dict(zip(known, filter(None, split_list(given.removesuffix(">"))), strict=False))
        for member in members(one):
            if member.is_function or _WITHOUT_DATA.match(member.code):
                continue
            data = _DATA.fullmatch(renamed(member.code, known))
            words = data[2].split(",") if data else []
            parts = [part for word in words for part in _elements(word)]
            held = [declaration(f"{data[1]} {part}", {}) for part in parts] if data else []
            if not held or not all(element_type(part.type) for part in held):
                return []
            found += held
        break
    return found


def _elements(word: str) -> list[str]:
    """A member of a struct by its name; an array's elements by theirs, none where they are too many."""
    name, _, count = word.partition("[")
    number = int(count.strip("] ") or 0)
    return [f"{name.strip()}{index}" for index in range(number) if number <= _LISTED] if count else [name]


_VARIABLE = re.compile(
    r"\b__(?P<space>constant|device)__\s+(?:__\w+__\s+)*(?P<type>[\w\s:]+?)\s*(?P<held>\b\w+\s*(?:[\[,=][^;]*)?);"
)


def _variables(
    code: str, texts: Sequence[str], uses: ArrayUses | None, host: HostLaunch
) -> dict[str, tuple[str, list[str], Use]]:
    """Variables that a kernel uses, but what the source itself gives a value for good."""
    found: dict[str, tuple[str, list[str], Use]] = {}
    declared = ((told, one) for told in _VARIABLE.finditer(code) for one in split_list(told["held"]))
    for told, one in declared:
        word = re.findall(r"\w+", one)[0]
        kind, lanes = _held(Declared("", f"{told['type']} *", word), texts)
        named = re.compile(rf"(?:.*\D{len(word)})?{word}(?:E\w*)?")  # mangled, if static or in a namespace
        held = [use for name, use in uses.variables.items() if named.fullmatch(name)] if uses else []
        use = held[0] if held else None
        if uses is None and told["space"] == "constant" and len(re.findall(rf"\b{word}\b", code)) > 1:
            use = Use("", read=True)
        if use and (use.written or "=" not in one):
            cut = re.findall(r"\[([^\]]*)", one.partition("=")[0])
            shape = [*(read(host.formula, extent) or "" for extent in cut), *[str(lanes)][: bool(lanes)]]
            found[word] = (kind or "", shape, use)
    return found


def _instance(source: str, function: KernelFunction, deepest: int = 2) -> list[str]:
    """The arguments of a template as a file first instantiates or launches it, else their defaults.

    A template's parameter of the function around a launch is what that function is first called with.
    """
    name = function.name.rpartition("::")[2]
    written, code = rf"\b{name}\s*<((?:[^<>;(){{}}]|<[^<>;(){{}}]*>|\([^<>;(){{}}]*\))*)>", masked(source)
    found = None
    for text in (without_directives(code), code):  # what macros make, before the macros
        found = found or re.search(rf"{written}\s*(?:<<\s*<|\()", text) or re.search(written, text)
    given, place = (split_list(found[1]), found.start()) if found else ([], -1)
    for one in declarations(source) or () if deepest else ():
        if one.begin <= place < one.end:
            head, lists = without_template_lists(one.head)
            outer = re.search(r"(\w+)\s*\(", head)
            if lists and outer:
                launcher = KernelFunction(outer[1], 0, (), tuple(split_list(lists[-1])))
                known = zip(launcher.template_names, _instance(source, launcher, deepest - 1), strict=True)
                told = {word: value for word, value in known if value}
                given = [told.get(word, word) for word in given]
    defaults = [declared.partition("=")[2] for declared in function.template or ()]
    values = (text.strip() for text in (*given[: len(defaults)], *defaults[len(given) :]))
    return [{"true": "1", "false": "0"}.get(text, text) for text in values]


_ENUMERATION = re.compile(
    r"\s*(?:typedef\s+)?enum\b(?:\s+(?:class|struct)\b)?\s*(?P<name>\w*)[^{};]*\{(?P<values>[^}]*)\}\s*(?P<alias>\w*)"
)


def _enumerators(declared: str, texts: Sequence[str]) -> list[str]:
    """All values of a template's parameter that is an enumeration of the file's; none of another."""
    kind = re.findall(r"\w+", declared.partition("=")[0])[-2:][0]
    for one in (one for text in texts for one in declarations(text) or ()):
        held = _ENUMERATION.match(one.code)
        if held and kind in (held["name"], held["alias"]):
            names = (part.partition("=")[0].strip() for part in split_list(held["values"]))
            return ["::".join((*filter(None, one.namespaces), kind, name)) for name in names if name]
    return []


def _allowed(limits: BlockLimits, block: tuple[int, ...]) -> tuple[int, ...]:
    """A block such as this that a kernel allows."""
    most = prod(limits.largest or block)
    block = limits.required or (block if prod(block) <= most else (most, *[1] * (len(block) - 1)))
    while len(block) > 1 and limits.required and block[-1] == 1:
        block = block[:-1]
    return block


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
    for place, one in enumerate(kernel.parameters):
        used = uses.parameters[place] if uses else {}
        if one.is_struct and (members := _members_of_ptx(held.built.ptx, entry, place, one.nbytes, used)):
            taken += members
            continue
        use = used.get(0)
        kind = _type_of(one)
        if one.is_pointer or (one.may_be_pointer and (use or uses is None)):
            kind = _pointer(use)
        if one.is_struct or (one.is_pointer and uses is not None and use is None):
            kind = ""  # Triton's hidden pointers are null where nothing is behind them
        text = one.text if one.is_struct else f"const {kind}"
        taken.append(Taken(f"x{place}", text, kind, place, kind=element_type(kind), use=use))
    block = _allowed(kernel.block_limits, (THREADS,))
    others = [one for one in held.entries if one != entry]
    nothing = SourceFacts("", partial(HostLaunch, "", "", _bytes_of), (), {}, False, False)
    tables = HeaderTables({}, taken, uses is not None, block, nothing).of(entry)
    return "\n".join((*_named(others), *tables, ""))


def _members_of_ptx(ptx: str, entry: str, place: int, nbytes: int, uses: Mapping[int, Use]) -> list[Taken]:
    """What a struct holds by the loads of its members: arrays, numbers, and 0 where nothing is loaded.

    Nothing is known of a member that may be loaded from a computed address.
    """
    body = ptx.partition(f".entry {entry}(")[2].partition("\n}")[0]
    parameter = rf"\[{re.escape(entry)}_param_{place}(?:\+(\d+))?\]"
    kinds: dict[int, str] = {}
    for lanes, kind, begin in re.findall(
        rf"\bld\.param\S*?(?:\.v(\d))?\.([bsuf]\d+)\s[^;\[]*{parameter}", body
    ):
        for lane in range(int(lanes or 1)):
            kinds[int(begin or 0) + lane * int(kind[1:]) // 8] = kind
    is_computed = re.search(rf"\bmov\S*\s[^;,]*,\s*{re.escape(entry)}_param_{place};", body)
    found, at = [], 0
    while kinds and at < nbytes:
        free = min((one for one in kinds if one > at), default=nbytes) - at
        width = (
            int(kinds[at][1:]) // 8
            if at in kinds
            else next(one for one in (8, 4, 2, 1) if not at % one and one <= free)
        )
        name = f"x{place}_{at}" if at in kinds or is_computed else "0"
        kind = (
            _pointer(uses[at]) if at in uses else _type_of(Parameter(kinds.get(at, "b"), width, False, False))
        )
        text, kind = (f".b{8 * width}", "") if is_computed and at not in kinds else (f"const {kind}", kind)
        found.append(Taken(name, text, kind, place, f".{at}", element_type(kind), use=uses.get(at)))
        at += width
    return found


def _pointer(use: Use | None) -> str:
    return f"{ELEMENT_TYPES[accessed(use)].c_type} *"


def _type_of(compiled: Parameter) -> str:
    """What a number is in C, as far as machine code tells."""
    kind = f"{'float' if compiled.type[0] == 'f' else 'int'}{8 * compiled.nbytes}"
    return {"float32": "float", "float64": "double"}.get(kind, f"{kind}_t")


def _uses_of_ptx(ptx: str, entry: str) -> ArrayUses | None:
    """What a kernel does with arrays; None where that cannot be told."""
    try:
        return array_uses(ptx, entry) if ptx else None
    except UnsupportedInstruction:
        return None
