# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel file that chooses by size what a search found best at each: the text of its header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuprof.kernels.kernel import Kernel
from gpuprof.problems.formulas import variables
from gpuprof.results import size_label
from gpuprof.text import Extent
from gpuprof.tuning.size_rules import Rule

#: A sentence names so many sizes.
_MOST_SIZES = 8


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kernel to choose, as its header will say it.

    Args:
        id: Its id.
        kernel: What its requirements are.
        params: Values of its parameters.
        block: Its block.
    """

    id: str
    kernel: Kernel
    params: Mapping[str, int]
    block: Extent


def chooser_text(
    rules: Sequence[Rule[str]],
    chosen: Mapping[str, Chosen],
    dimensions: Sequence[str],
    device: str,
    rung: float | None = None,
) -> str:
    """The text of a kernel file that chooses.

    Args:
        rules: Which of `chosen` to take when, by the id.
        chosen: What there is to choose.
        dimensions: Those of the operation.
        device: Name of the device that was searched on.
        rung: Where it stands in its ladder; the last place when None.
    """
    first = next(iter(chosen.values())).kernel
    options = "".join(f'{name} = "{value}"\n' for name, value in first.options.items())
    head = (
        "/*gpuprof\n"
        'title = "The best that was found for the size"\n'
        f'operation = "{first.operation}"\n'
        f"{options}"
        + (f"rung = {rung:g}\n" if rung is not None else "")
        + 'idea = "No set of values is best at every size: a search timed them at some."\n'
    )
    tables = []
    for rule in rules:
        one = chosen[rule.target]
        because = f"Best there on {device} of what was searched: {_listed(rule.samples)}."
        tables.append(_table(one.id, [*rule.conditions, *_requirements(one, dimensions)], because))
    for name in dict.fromkeys(rule.target for rule in rules):
        one = chosen[name]
        if rules[-1].target == name and not _requirements(one, dimensions):
            break  # the last rule takes every size already
        tables.append(
            _table(one.id, _requirements(one, dimensions), "For sizes that the rules above leave over.")
        )
    return head + "\n" + "\n".join(tables) + "*/\n"


def _table(kernel: str, conditions: Sequence[str], because: str) -> str:
    when = " and ".join(f"({text})" if " or " in text else text for text in conditions) or "1"
    return f'[[choose]]\nkernel = "{kernel}"\nwhen = "{when}"\nbecause = "{because}"\n'


def _requirements(one: Chosen, dimensions: Sequence[str]) -> list[str]:
    """Conditions of a kernel that depend on the size, its own values put in."""
    return list(dict.fromkeys(_conditions(one, dimensions)))


def _conditions(one: Chosen, dimensions: Sequence[str]) -> Iterator[str]:
    x, y, z = one.block
    values = {**one.kernel.constants, **one.params}
    values |= {"block_x": x, "block_y": y, "block_z": z, "threads": x * y * z}
    for requirement in one.kernel.requirements:
        names = variables(requirement.condition)
        if names & {*dimensions, "arch", "sm_count", "real_bytes"}:
            yield re.sub(r"[A-Za-z_]\w*", lambda match: _put_in(match[0], values), requirement.condition)


def _put_in(name: str, values: Mapping[str, int]) -> str:
    """A name of a formula, or the value that stands for it."""
    if name not in values:
        return name
    return f"({values[name]})" if values[name] < 0 else str(values[name])


def _listed(samples: Sequence[Mapping[str, int]]) -> str:
    named = [size_label(tuple(sizes.values())) for sizes in samples]
    more = f" and {len(named) - _MOST_SIZES} more" if len(named) > _MOST_SIZES else ""
    return ", ".join(named[:_MOST_SIZES]) + more
