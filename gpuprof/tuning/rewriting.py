# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Putting values into a kernel file's header: text in, text out, and nothing else of the file changes.

What was written is read again and held against what was meant: a header that would say anything else is not
written.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuprof.comparison.tuned import value_of
from gpuprof.errors import InputError
from gpuprof.kernels.header import KernelFile, header_span
from gpuprof.kernels.kernel import Kernel
from gpuprof.results import Run
from gpuprof.tuning.space import Point, is_default, point_of, with_point


def best_everywhere(run: Run, kernels: Mapping[str, Kernel]) -> tuple[Point | None, dict[str, float]]:
    """The point to take at every size and on every device that a run searched, where it must be one.

    One that is tied with the best everywhere, the header's own before others; else, of those that were
    measured everywhere, the one that takes least by the geometric mean.

    Returns:
        The point, None where none gave a right result; and the sizes at which another one is better, with how
        much longer it takes there, as a share.
    """
    found = [tuned for tuned in (run.tuning.sizes if run.tuning else ()) if tuned.ties]
    tied = [[point_of(one, kernels[one.kernel]) for one in tuned.ties] for tuned in found]
    values: dict[Point, list[float]] = {}
    for tuned in found:
        held = {
            point_of(case, kernels[case.kernel]): value
            for case in run.cases
            if (case.device, case.problem.sizes) == (tuned.device, tuned.problem.sizes)
            and case.kernel in kernels
            and (value := value_of(case, tuned.by))
        }
        least = min(held.values(), default=0.0)
        for point, value in held.items():
            values.setdefault(point, []).append(value / least)
    measured = [point for point, shares in values.items() if len(shares) == len(found)]
    common = [point for point in measured if all(point in points for points in tied)]
    if not measured:
        return None, {}
    best = min(
        common or measured,
        key=lambda point: (
            not (common and is_default(point, kernels[point.kernel])),
            sum(map(math.log, values[point])),
        ),
    )
    several = len(run.devices) > 1
    return best, {
        f"{tuned.problem.label}{f' on {run.device_label(tuned.device)}' if several else ''}": share - 1
        for tuned, points, share in zip(found, tied, values[best], strict=True)
        if best not in points
    }


#: Reads a kernel file's text.
Read = Callable[[str], KernelFile]
_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?$")
_BY_HAND = "Write them there by hand."


def with_defaults(source: str, kernel: Kernel, point: Point, read: Read) -> str:
    """A file's text in which a point's values are a kernel's defaults.

    Raises:
        InputError: The header is written in a way that this cannot follow.
    """
    changed = {name: value for name, value in point.params if kernel.parameters[name] != value}
    block = point.block if point.block != kernel.launch.block and not kernel.launches else None
    text = _edited(source, kernel.id, changed, block)
    _check(source, text, read, with_point(kernel, point))
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


def _check(source: str, text: str, read: Read, meant: Kernel) -> None:
    """Refuse a text that would be read as anything else than the old kernels and what was meant.

    Raises:
        InputError: It would.
    """
    try:
        before, after = read(source), read(text)
    except InputError as error:
        raise InputError(
            f"The header of {meant.id} cannot take the values: {error.what}", fix=_BY_HAND
        ) from error
    expected = {kernel.id: _bare(kernel) for kernel in (*before.kernels, meant)}
    found = {kernel.id: _bare(kernel) for kernel in after.kernels}
    if found != expected or before.operation != after.operation:
        raise InputError(
            f"The header of {meant.id} would say something else with the new values.", fix=_BY_HAND
        )


def _bare(kernel: Kernel) -> Kernel:
    """A kernel without its text, and without what follows from its parameters."""
    launch = replace(kernel.launch, block=(1, 1, 1)) if kernel.launches else kernel.launch
    return replace(kernel, source="", launch=launch)


def _block(block: Sequence[int]) -> str:
    extents = list(block)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f"[{', '.join(map(str, extents))}]"
