# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel file that chooses by size and device what was found best: the text of its header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuprof.errors import InputError
from gpuprof.kernels.header import header_span
from gpuprof.kernels.kernel import Kernel
from gpuprof.problems.formulas import variables
from gpuprof.results import size_label
from gpuprof.text import Extent
from gpuprof.tuning.size_rules import Rule

#: A sentence names so many sizes.
_MOST_SIZES = 8
_TABLE = re.compile(r"^[ \t]*\[\[?[ \t]*([\w.\"' -]+?)[ \t]*\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kernel to choose, as its header will say it."""

    id: str
    kernel: Kernel
    params: Mapping[str, int]
    block: Extent

    def requirements(self, dimensions: Sequence[str]) -> list[str]:
        """Conditions that depend on the size or the device, its own values put in."""
        return list(dict.fromkeys(_conditions(self, (*dimensions, *_OF_DEVICES))))

    def of_size(self, dimensions: Sequence[str]) -> list[str]:
        """Those of its requirements that depend on the size alone."""
        return [text for text in self.requirements(dimensions) if variables(text) <= {*dimensions}]


#: What conditions may read besides the size.
_OF_DEVICES = ("arch", "sm_count", "real_bytes")


@dataclass(frozen=True, slots=True)
class ChooserPart:
    """The rules that devices of one kind gave; without a condition they hold on any other device too."""

    device: str
    condition: str
    rules: Sequence[Rule[str]]


def chooser_text(
    parts: Sequence[ChooserPart],
    chosen: Mapping[str, Chosen],
    dimensions: Sequence[str],
    others: Sequence[Chosen] = (),
) -> str:
    """The text of a kernel file that chooses.

    Args:
        parts: The rules, those of all other devices last.
        chosen: What the rules name, by the id.
        dimensions: Those of the operation.
        others: Kernels to fall back on where no rule holds, the best first.
    """
    first = next(iter(chosen.values())).kernel
    options = "".join(f'{name} = "{value}"\n' for name, value in first.options.items())
    return (
        "/*gpuprof\n"
        'title = "The best that was found for the size"\n'
        f'operation = "{first.operation}"\n'
        f"{options}"
        'idea = "No kernel and no set of values is best at every size: these were, at those named below."\n'
        f"\n{_tables(parts, chosen, dimensions, others)}*/\n"
    )


def with_choices(
    source: str,
    parts: Sequence[ChooserPart],
    chosen: Mapping[str, Chosen],
    dimensions: Sequence[str],
    others: Sequence[Chosen] = (),
) -> str:
    """The text of a file that chooses already, with other choices; what stands above them stays.

    Raises:
        InputError: Its choices are not the last thing in its header.
    """
    span = header_span(source)
    assert span is not None
    header = source[span[0] : span[1]]
    tables = list(_TABLE.finditer(header))
    begin = next((number for number, table in enumerate(tables) if table[1] == "choose"), len(tables))
    if begin == len(tables) or any(table[1] != "choose" for table in tables[begin:]):
        raise InputError(
            "The [[choose]] tables are not the last ones of the header.", fix="Move them to its end."
        )
    kept = source[: span[0] + tables[begin].start()]
    return f"{kept.rstrip()}\n\n{_tables(parts, chosen, dimensions, others)}{source[span[1] :]}"


def _tables(
    parts: Sequence[ChooserPart],
    chosen: Mapping[str, Chosen],
    dimensions: Sequence[str],
    others: Sequence[Chosen],
) -> str:
    tables: list[str] = []
    listed: list[list[str]] = []
    for part in parts:
        for rule in part.rules:
            one = chosen[rule.target]
            lead = [part.condition] if part.condition else []
            conditions = [*lead, *rule.conditions, *one.requirements(dimensions)]
            because = f"Best on {part.device} at {_listed(rule.samples)}."
            tables.append(_table(one.id, list(dict.fromkeys(conditions)), because))
            if not lead and not rule.conditions:
                listed.append(one.requirements(dimensions))
            if not conditions:
                return "\n".join(tables)  # it takes whatever is left over
    for one in others:
        needed = one.requirements(dimensions)
        if any({*conditions} <= {*needed} for conditions in listed):
            continue  # what it can take, a kernel that is listed takes
        listed.append(needed)
        tables.append(_table(one.id, needed, "For every other size."))
        if not needed:
            break
    return "\n".join(tables)


def _table(kernel: str, conditions: Sequence[str], because: str) -> str:
    when = " and ".join(f"({text})" if _is_loose(text) else text for text in conditions) or "1"
    return f'[[choose]]\nkernel = "{kernel}"\nwhen = "{when}"\nbecause = "{because}"\n'


def _is_loose(text: str) -> bool:
    """Whether a condition needs parentheses among others."""
    return " or " in text or " if " in text


def _conditions(one: Chosen, names: Sequence[str]) -> Iterator[str]:
    x, y, z = one.block
    values = {**one.kernel.constants, **one.params}
    values |= {"block_x": x, "block_y": y, "block_z": z, "threads": x * y * z}
    for requirement in one.kernel.requirements:
        if variables(requirement.condition) & {*names}:
            yield re.sub(r"[A-Za-z_]\w*", lambda match: _put_in(match[0], values), requirement.condition)


def _put_in(name: str, values: Mapping[str, int]) -> str:
    """A name of a formula, or the value that stands for it."""
    if name not in values:
        return name
    return f"({values[name]})" if values[name] < 0 else str(values[name])


def _listed(samples: Sequence[Mapping[str, int]]) -> str:
    named = [size_label(tuple(sizes.values())) for sizes in samples]
    if len(named) > _MOST_SIZES:
        return f"{', '.join(named[:_MOST_SIZES])} and {len(named) - _MOST_SIZES} more sizes"
    return " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
