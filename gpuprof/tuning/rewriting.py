# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Putting values into a kernel file's header: text in, text out, and nothing else of the file changes.

What was written is read again and held against what was meant: a header that would say anything else is not
written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuprof.errors import InputError
from gpuprof.kernels.header import KernelFile, header_span
from gpuprof.kernels.kernel import Kernel, Study
from gpuprof.tuning.space import Point, with_point

#: Reads a kernel file's text.
Read = Callable[[str], KernelFile]
_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?$")
_BY_HAND = "Write them there by hand."


@dataclass(frozen=True, slots=True)
class Variant:
    """A point that gets an id of its own."""

    id: str
    point: Point


def with_defaults(source: str, kernel: Kernel, point: Point, read: Read) -> str:
    """A file's text in which a point's values are a kernel's defaults.

    Raises:
        InputError: The header is written in a way that this cannot follow.
    """
    changed = {name: value for name, value in point.params if kernel.parameters[name] != value}
    block = point.block if point.block != kernel.launch.block and not kernel.launches else None
    text = _edited(source, kernel.id, changed, block)
    _check(source, text, read, {kernel.id: with_point(kernel, point)}, kernel.id)
    return text


def with_variants(source: str, kernel: Kernel, variants: Sequence[Variant], read: Read) -> str:
    """A file's text with further kernels of the same code, which differ from one that is there.

    Raises:
        InputError: The header cannot take them.
    """
    tables = []
    has_variants = re.search(r"^\s*\[\[\s*variants", source, re.MULTILINE) is not None
    if not has_variants:
        # With variants a file's own id is one of them, or none.
        aliases = f"aliases = [{', '.join(map(_quoted, kernel.aliases))}]\n" if kernel.aliases else ""
        tables.append(f'[[variants]]\nid = "{kernel.id}"\n{aliases}')
    for variant in variants:
        # A variant differs from the file's own values, which those of another variant hide.
        changed = [
            f"{name} = {value}"
            for name, value in variant.point.params
            if has_variants or kernel.parameters[name] != value
        ]
        table = f'[[variants]]\nid = "{variant.id}"\n'
        if changed:
            table += f"parameters = {{ {', '.join(changed)} }}\n"
        if not kernel.launches and (has_variants or variant.point.block != kernel.launch.block):
            table += f"launch = {{ block = {_block(variant.point.block)} }}\n"
        tables.append(table)
    span = header_span(source)
    assert span is not None
    body = source[: span[1]].rstrip()
    text = body + "\n\n" + "\n".join(tables) + source[span[1] :].lstrip("\n")
    meant = {variant.id: replace(with_point(kernel, variant.point), id=variant.id) for variant in variants}
    _check(source, text, read, meant, kernel.id)
    return text


def _edited(source: str, kernel_id: str, changed: Mapping[str, int], block: Sequence[int] | None) -> str:
    """The text with numbers replaced where the header gives them."""
    span = header_span(source)
    assert span is not None
    lines = source[span[0] : span[1]].split("\n")
    for name, value in changed.items():
        _replace_value(lines, kernel_id, name, str(value), r"[-+]?[0-9][0-9_]*|0x[0-9a-fA-F]+")
    if block is not None:
        _replace_value(lines, kernel_id, "block", _block(block), r"\[[^\]]*\]")
    return source[: span[0]] + "\n".join(lines) + source[span[1] :]


def _own_lines(lines: Sequence[str], kernel_id: str) -> list[int]:
    """Lines that may give one kernel's values: its variant's, where it has one, then the file's."""
    tables: list[tuple[str, int]] = []
    table, number = "", 0
    variant_of: dict[int, str] = {}
    for line in lines:
        if match := _TABLE.match(line):
            table = match[2]
            number += table == "variants"
        tables.append((table, number if table.startswith("variants") else 0))
        if table == "variants" and (match := re.match(r"\s*id\s*=\s*[\"'](\w+)[\"']", line)):
            variant_of[number] = match[1]
    own = next((number for number, name in variant_of.items() if name == kernel_id), 0)
    wanted = ("variants", "variants.parameters", "variants.launch")
    mine = [place for place, (name, of) in enumerate(tables) if own and of == own and name in wanted]
    shared = [place for place, (name, _) in enumerate(tables) if name in ("", "parameters", "launch")]
    # What a variant does not give itself is the file's, and that of other variants too.
    return mine if own else shared


def _replace_value(lines: list[str], kernel_id: str, name: str, value: str, pattern: str) -> None:
    own = _own_lines(lines, kernel_id)
    field = re.compile(rf"((?:^|[{{,])\s*{name}\s*=\s*)({pattern})(?=\s*(?:[,}}#]|$))")
    for place in own:
        text, count = field.subn(lambda match: match[1] + value, lines[place], count=1)
        if count:
            lines[place] = text
            return
    inline = re.compile(r"^(\s*parameters\s*=\s*\{)(.*)$")
    for place in own:
        if match := inline.match(lines[place]):
            rest = match[2] if match[2].lstrip().startswith("}") else f",{match[2]}"
            lines[place] = f"{match[1]} {name} = {value}{rest}"
            return
    for place in own:
        if name != "block" and re.match(r"\s*id\s*=", lines[place]):  # a variant that has the file's values
            lines.insert(place + 1, f"parameters = {{ {name} = {value} }}")
            return
    raise InputError(f"The header of {kernel_id} gives {name} in a way that cannot be edited.", fix=_BY_HAND)


def _check(source: str, text: str, read: Read, meant: Mapping[str, Kernel], kernel_id: str) -> None:
    """Refuse a text that would be read as anything else than the old kernels and what was meant.

    Raises:
        InputError: It would.
    """
    try:
        before, after = read(source), read(text)
    except InputError as error:
        raise InputError(
            f"The header of {kernel_id} cannot take the values: {error.what}", fix=_BY_HAND
        ) from error
    expected = {kernel.id: _bare(kernel) for kernel in before.kernels}
    new = meant.keys() - expected.keys()
    expected |= {name: (_untold if name in new else _bare)(kernel) for name, kernel in meant.items()}
    found = {kernel.id: (_untold if kernel.id in new else _bare)(kernel) for kernel in after.kernels}
    if found != expected or before.operation != after.operation:
        raise InputError(
            f"The header of {kernel_id} would say something else with the new values.", fix=_BY_HAND
        )


def _bare(kernel: Kernel) -> Kernel:
    """A kernel without its text, and without what follows from its parameters."""
    launch = replace(kernel.launch, block=(1, 1, 1)) if kernel.launches else kernel.launch
    return replace(kernel, source="", launch=launch)


def _untold(kernel: Kernel) -> Kernel:
    """A kernel without what is told of it: what another variant of its file tells does not hold for it."""
    untold: dict[str, Any] = dict.fromkeys(
        ("title", "idea", "change", "bottleneck", "reference", "after"), ""
    )
    return replace(_bare(kernel), **untold, rung=0.0, aliases=(), published=(), moves={}, study=Study())


def _block(block: Sequence[int]) -> str:
    extents = list(block)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f"[{', '.join(map(str, extents))}]"


def _quoted(text: str) -> str:
    return f'"{text}"'
