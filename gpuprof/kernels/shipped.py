# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The operations that come with gpuprof; what a command line needs to know of them before it is read."""

from functools import cache
from pathlib import Path

from gpuprof.errors import InputError, did_you_mean, nearest_file
from gpuprof.operation import Operation
from gpuprof.problems.declaration import FILE_NAME, load_operation

KERNEL_ROOT = Path(__file__).parent


def shipped_names() -> tuple[str, ...]:
    """Names of the operations that come with gpuprof."""
    # Not by `glob`: it takes a folder that could not be listed for an empty one.
    return tuple(sorted(path.name for path in KERNEL_ROOT.iterdir() if (path / FILE_NAME).is_file()))


@cache
def shipped_operation(name: str) -> Operation:
    """An operation that comes with gpuprof.

    Raises:
        InputError: There is none of that name.
    """
    if name not in shipped_names():
        listed = f"Choose one of {', '.join(shipped_names())}."
        fix = did_you_mean(name, shipped_names(), listed, most=1)
        raise InputError(f"There is no operation {name!r}.", fix=fix)
    return load_operation(KERNEL_ROOT / name / FILE_NAME)


def unknown(what: str) -> InputError:
    """What a user named is no operation that comes with gpuprof, and no path."""
    listed = f"Choose one of {', '.join(shipped_names())}, or write your own: docs/operations.md says how."
    fix = nearest_file(Path(what)) or did_you_mean(what, shipped_names(), listed, most=1)
    return InputError(f"There is no operation {what!r}, and no folder or kernel file of that name.", fix=fix)
