# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How a header names a kernel's function: by its name, or as an instance of a template."""

import re
from collections.abc import Container, Mapping

from gpuprof.cuda_source.functions import kernel_functions
from gpuprof.errors import InputError

#: A function's name, namespaces included, and perhaps a template's arguments, constants and types, and the
#: types of its parameters.
_ENTRY = re.compile(
    r"(?:::)?[A-Za-z_]\w*(?: *:: *[A-Za-z_]\w*)* *(?:<(?P<arguments>[\w :,.<>()*&|^~!?+\-/%=]*)>)?"
    r" *(?:\( *(?:[A-Za-z_][\w :,<>*&]*)?\))? *\Z"
)
_LONGEST = 500


def entry_complaint(entry: str) -> str:
    """What is wrong with an entry, as the rest of a sentence; empty for a good one."""
    match = _ENTRY.match(entry)
    if match is None or len(entry) > _LONGEST:
        return f"must name a function, such as sgemm, or an instance such as sgemm<BM, BN>, not {entry!r}"
    arguments = match["arguments"] or ""
    if arguments.count("(") != arguments.count(")"):
        return f"has parentheses that do not match: {entry!r}"
    return ""


def default_entry(source: str, stem: str, parameters: Container[str]) -> str:
    """The entry of a header that names none: the function that is called like the file, else the only one."""
    functions = {function.name: function for function in kernel_functions(source)}
    function = functions.get(stem) or (next(iter(functions.values())) if len(functions) == 1 else None)
    if function is None or not all(name in parameters for name in function.template_names):
        return stem
    return function.entry


def sole_entry(source: str, stem: str) -> str:
    """The kernel of a source without a header: the one that its file is called by, else the only one.

    Raises:
        InputError: There are several, of which none is called so.
    """
    found = [function.name for function in kernel_functions(source)]
    if not found or base_name(stem) in found:
        return stem
    if len(found) > 1:
        raise InputError(
            f"{stem} holds {len(found)} kernels: {', '.join(found)}.", fix=f'Say which: entry="{found[0]}".'
        )
    return found[0]


def base_name(entry: str) -> str:
    """An entry's function without the template's arguments: `linear::sgemm<64, 64>` is `linear::sgemm`."""
    return re.sub(r"\s", "", re.split("[<(]", entry, maxsplit=1)[0]).removeprefix("::")


def function_name(name: str) -> str:
    """A function's own name, without namespaces, arguments and types: what profilers show at least."""
    plain = re.split(r"[<(]", name.replace("(anonymous namespace)", ""), maxsplit=1)[0]
    return (plain.split() or [""])[-1].rpartition("::")[2]


def with_values(entry: str, values: Mapping[str, str]) -> str:
    """An entry with values in the place of the macros that it names: `sgemm<BM>` is `sgemm<64>`."""
    name, bracket, arguments = entry.partition("<")

    def value(match: "re.Match[str]") -> str:
        text = values.get(match[0], match[0])
        return f"({text})" if text.startswith("-") else text

    return name.strip() + bracket + re.sub(r"\b[A-Za-z_]\w*", value, arguments).strip()
