# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sizes as people write them: `4096`, `512x1024x256`, and lists of these."""

import re

from gpuprof.errors import InputError
from gpuprof.operation import shape_of

#: Of at most 18 digits: int() refuses thousands of them, and any limit lies far below.
NUMBER = r"[0-9]{1,18}"
_SIZE = re.compile(rf"{NUMBER}(?:x{NUMBER})*\Z")


def parse_sizes(text: str, names: tuple[str, ...], option: str = "--sizes") -> tuple[tuple[int, ...], ...]:
    """Read a list of sizes such as `128,4096` or `512x1024x256`."""
    shape = shape_of(names)
    how = f"Write 4096 or {shape}, as numbers." if len(names) > 1 else "Write a number, such as 4096."
    sizes = []
    for written in split_list(text, option, lower=False):
        item = written.lower()
        if item.startswith("-") or "x-" in item:
            raise InputError(f"{option} {written!r} is negative.", fix="A size is at least 1.")
        if not is_size(item):
            raise InputError(f"{option} {written!r} is not a size.", fix=how)
        extents = tuple(map(int, item.split("x")))
        if len(extents) == 1:
            extents *= len(names)
        if len(extents) != len(names):
            raise InputError(
                f"{option} {written!r} has {len(extents)} extents; this problem has {len(names)}: {shape}.",
                fix=f"Write one number or {shape}." if len(names) > 1 else "Write one number.",
            )
        sizes.append(extents)
    return tuple(sizes)


def is_size(text: str) -> bool:
    """Whether a text is one number or several with `x` between them."""
    return _SIZE.match(text) is not None


def split_list(text: str, option: str, *, lower: bool = True) -> list[str]:
    """The entries of a list as users type it, `a,b`."""
    items = [item.strip() for item in (text.lower() if lower else text).split(",")]
    if not all(items):
        raise InputError(f"{option} {text!r} has an empty entry.", fix="Separate entries by single commas.")
    return items
