# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The ladders: every kernel file of a problem, in rung order, found by id or by published alias."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from gpuprof.errors import HeaderError, InputError
from gpuprof.kernels.header import Kernel, parse_kernel

KERNEL_ROOT = Path(__file__).parent


def load_kernel(path: Path) -> Kernel:
    """Read one kernel file.

    Raises:
        HeaderError: The file cannot be read or its header is faulty.
    """
    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise HeaderError(f"Cannot read the kernel file {path}: {why}.") from error
    return parse_kernel(source, path)


@cache
def ladder(op: str) -> tuple[Kernel, ...]:
    """Every shipped kernel of a problem, in rung order.

    Raises:
        HeaderError: A file is faulty, two kernels share an id or alias, one comes `after` none of them, or
            one chooses what it cannot.
    """
    kernels = [load_kernel(path) for path in sorted((KERNEL_ROOT / op).glob("*.cu"))]
    taken: dict[str, Kernel] = {}
    for kernel in kernels:
        for name in (kernel.id, *kernel.aliases):
            if name.lower() in taken:
                raise HeaderError(f"{kernel.path} and {taken[name.lower()].path} both use the name {name!r}.")
            taken[name.lower()] = kernel
    ids = sorted(kernel.id for kernel in kernels)
    for kernel in kernels:
        if kernel.after and kernel.after not in ids:
            raise HeaderError(f"{kernel.path}: after is {kernel.after!r}, not one of {', '.join(ids)}.")
        _check_choices(kernel, kernels)
    return tuple(sorted(kernels, key=lambda kernel: (kernel.rung, kernel.id)))


def find_kernel(op: str, name: str) -> Kernel:
    """The kernel with an id or published alias (in any case), or in a `.cu` file of the user's own.

    Raises:
        InputError: There is no such kernel; the message names the nearest ones.
        HeaderError: The user's file is faulty or solves another problem.
    """
    if name.endswith(".cu"):
        kernel = load_kernel(Path(name))
        if kernel.op != op:
            raise HeaderError(f"{name} is a {kernel.op} kernel, not a {op} kernel.")
        if any(kernel.id == shipped.id for shipped in ladder(op)):
            raise HeaderError(
                f"{name} has the id of a shipped kernel, {kernel.id!r}.", fix="Rename the file."
            )
        _check_choices(kernel, ladder(op))
        return kernel
    names = {alias.lower(): kernel for kernel in ladder(op) for alias in (kernel.id, *kernel.aliases)}
    if name.lower() in names:
        return names[name.lower()]
    near = get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"See `gpuprof list {op}`."
    raise InputError(f"There is no {op} kernel {name!r}.", fix=hint)


def _check_choices(kernel: Kernel, shipped: Iterable[Kernel]) -> None:
    """Refuse a choice that could never run in the kernel's place."""
    kernels = {other.id: other for other in shipped}
    for choice in kernel.choices:
        other = kernels.get(choice.kernel)
        if other is None:
            problem = f"not one of {', '.join(sorted(kernels))}"
        elif other.choices:
            problem = "which chooses among others itself"
        elif other.layout != kernel.layout:
            problem = f"whose layout is {other.layout}; this header's is {kernel.layout}"
        elif (other.result == "copy") != (kernel.result == "copy"):
            problem = "whose result is another one"
        else:
            continue
        raise HeaderError(f"{kernel.path}: choose.kernel is {choice.kernel!r}, {problem}.")
