# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A header for a kernel that has none: what its source, its machine code and its host code say."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from keyword import iskeyword
from math import prod
from pathlib import Path

from gpuprof.commands.header_tables import (
    THREADS,
    VECTOR,
    SourceFacts,
    accessed,
    element_type,
    header_tables,
    read,
)
from gpuprof.cubin_file import function_of
from gpuprof.cuda_source.brackets import split_list
from gpuprof.cuda_source.declarations import declarations, members
from gpuprof.cuda_source.functions import KernelFunction, is_one_of_several, kernel_functions
from gpuprof.cuda_source.host_launch import HostLaunch
from gpuprof.cuda_source.masking import blank, masked
from gpuprof.errors import GpuprofError, InputError
from gpuprof.executor import UnsupportedInstruction, Use, array_uses
from gpuprof.kernels.built_files import read_built
from gpuprof.kernels.carried import carried_files
from gpuprof.kernels.header import header_span
from gpuprof.kernels.starting_point import listed_texts
from gpuprof.problems.declaration import RESERVED
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.text import renamed
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiled_kernels, compiler_options, target_of
from gpuprof.toolchain.signature import BlockLimits, Declared, declared_parameters

_TYPE = re.compile(r"(?:typename|class|template)\b")
#: The value of a template's own parameter.
_OWN = 16
#: What PTX is compiled for, to see what a kernel does.
_TARGET = "sm_90"
#: Blocks of so many axes.
_BLOCKS = {1: (THREADS,), 2: (16, 16), 3: (8, 8, 4)}


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
            values.append(given if defined or element_type(f"{given} *") else "float")
            continue
        number = read(host.formula, given) or ""
        number = number if number.isdecimal() else str(1 if "bool" in declared.split() else _OWN)
        values.append(number if declared == word else _usable(word))  # or it has no name
        if declared != word:
            own[values[-1]] = int(number)
    entry = f"{function.name}<{', '.join(values)}>" if values else function.name
    taken = [
        replace(one, name=_usable(one.name))
        for one in declared_parameters([source], entry, _aliases(code)) or ()
    ]
    instance = dict(zip(function.template_names, values, strict=True))
    if is_one_of_several(source, name):
        entry += f"({renamed(function.types, instance)})"
    threads, blocks = (
        1 + "xyz".index(max("x", *re.findall(rf"\b{place}Idx\s*\.\s*([xyz])\b", code)))
        for place in ("thread", "block")
    )
    block = _BLOCKS[threads] + (1,) * (blocks - threads)
    uses: list[Use | None] | None = None
    with suppress(GpuprofError):  # it need not compile as it stands
        options = compiler_options(target_of(_TARGET, (source,)))
        carried = carried_files(source, path, ())
        (made,) = compile_entries_cached(source, path.name, [renamed(entry, own)], options, carried)
        uses, block = _uses_of_ptx(made.ptx, made.entry), _allowed(made.block_limits, block)
    begin = sum(map(len, code.splitlines(keepends=True)[: function.line - 1]))
    structs = {one.name: held for one in taken if (held := _members(source, one.type))}
    around = SourceFacts(
        code[begin:],
        partial(HostLaunch, source, name, lambda one: _bytes_of(str(instance.get(one, one)))),
        [one if one in own else "" for one in values],
        structs,
        {
            found["name"]: (
                kind,
                [read(host.formula, one) or "" for one in re.findall(r"\[([^\]]*)", found["extents"])],
            )
            for found in _CONSTANT.finditer(code)
            if (kind := element_type(found["type"])) and len(re.findall(rf"\b{found['name']}\b", code)) > 1
        },
    )
    lines = [*header_tables(entry, own, taken, uses, block, around)]
    return "\n".join(("/*gpuprof", *_named(others), *lines, "*/", source))


def _usable(name: str) -> str:
    """A name for what a source calls so, which a header may have another meaning for."""
    return f"{name}_" if name in RESERVED or iskeyword(name) else name


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


def _bytes_of(written: str) -> int | None:
    """Bytes of a type of C; None where it is not known here."""
    kind, lanes = element_type(f"{written} *"), VECTOR.search(written)
    return ELEMENT_TYPES[kind].nbytes * int(lanes[0] if lanes else 1) if kind else None


def _aliases(code: str) -> dict[str, str]:
    """Other names of element types: `typedef float real;`."""
    found = re.findall(r"\btypedef\s+([\w\s]+?)\s*\b(\w+)\s*;", code)
    found += [told[::-1] for told in re.findall(r"\busing\s+(\w+)\s*=\s*([\w\s]+);", code)]
    found += [
        told[::-1]
        for told in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w ]+?)[ \t]*$", code, re.M)
    ]
    return {name: kind.strip() for kind, name in found if element_type(f"{kind.strip()} *")}


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
            if not told or not element_type(told["type"]):
                return []
            found += [Declared(told[0], told["type"], name.strip()) for name in told["names"].split(",")]
    return found


_CONSTANT = re.compile(
    r"\b__constant__\s+(?P<type>[\w\s:]+?)\s*\b(?P<name>\w+)\s*(?P<extents>(?:\[[^\]]*\]\s*)*);"
)


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
    for number, (one, use) in enumerate(zip(kernel.parameters, uses or repeat(None), strict=False)):
        if one.is_pointer or (one.may_be_pointer and (use or uses is None)):
            kind = f"{ELEMENT_TYPES[accessed(use)].c_type} *"
        else:
            kind = f"{'float' if one.type[0] == 'f' else 'int'}{8 * one.nbytes}"
            kind = {"float32": "float", "float64": "double"}.get(kind, f"{kind}_t")
        if one.is_struct or (one.is_pointer and uses is not None and use is None):
            kind = ""  # Triton's hidden pointers are null where nothing is behind them
        taken.append(Declared(f"const {kind}", kind, f"x{number}"))
    block = _allowed(kernel.block_limits, (THREADS,))
    others = [one for one in held.entries if one != entry]
    nothing = SourceFacts("", partial(HostLaunch, "", "", _bytes_of), (), {}, {})
    return "\n".join((*_named(others), *header_tables(entry, {}, taken, uses, block, nothing), ""))


def _uses_of_ptx(ptx: str, entry: str) -> list[Use | None] | None:
    """What a kernel does with the array of each parameter; None where that cannot be told."""
    try:
        return array_uses(ptx, entry) if ptx else None
    except UnsupportedInstruction:
        return None
