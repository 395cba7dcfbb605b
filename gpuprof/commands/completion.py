# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shell offers behind an option: operations, kernels, sizes, devices."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import typer

from gpuprof.errors import GpuprofError
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.text import KERNEL_ENDINGS

if TYPE_CHECKING:
    from gpuprof.kernels.catalog import Ladder

#: Extents that are tried most.
_USUAL_EXTENTS = (128, 256, 512, 1024, 2048, 4096, 8192)
_USUAL_BLOCKS = ("8x32", "16x16", "32x8", "32x32", "64", "128", "256", "512")
#: Characters of a description: one line of a narrow terminal.
_LONGEST = 60

Offer = list[tuple[str, str]]


def operations(incomplete: str) -> Offer:
    """The operations that come with gpuprof."""
    return _fitting(((name, shipped_operation(name).title) for name in shipped_names()), incomplete)


def kernels(ctx: typer.Context, incomplete: str) -> Offer:
    """Kernels of the command's ladder, behind the ones that are typed already; then files."""
    ladder = _ladder(ctx)
    held = [(kernel.id, kernel.title) for kernel in ladder.kernels] if ladder else []
    files = [(str(path), "a kernel file") for path in _kernel_files(incomplete.rpartition(",")[2])]
    return _in_list([*held, *files], incomplete)


def tunable(incomplete: str) -> Offer:
    """Operations and kernels that come with gpuprof, then files and folders."""
    from gpuprof.kernels.catalog import shipped_ladder

    held = [(name, shipped_operation(name).title) for name in shipped_names()]
    held += [
        (kernel.id, kernel.title)
        for name in shipped_names()
        for kernel in shipped_ladder(name).kernels
        if kernel.candidates
    ]
    return _fitting(
        [*held, *((str(path), "a kernel file") for path in _kernel_files(incomplete))], incomplete
    )


def sizes(ctx: typer.Context, incomplete: str) -> Offer:
    """The operation's own sizes, then the usual ones."""
    ladder = _ladder(ctx)
    own = ladder.operation.default_sizes.split(",") if ladder else []
    return _in_list([(text, "") for text in dict.fromkeys((*own, *map(str, _USUAL_EXTENTS)))], incomplete)


def blocks(incomplete: str) -> Offer:
    """The usual blocks."""
    return _in_list([(text, "") for text in _USUAL_BLOCKS], incomplete)


def devices(incomplete: str) -> Offer:
    """Where kernels can run, and the cards that the executor can stand in for."""
    from gpuprof.devices.cards import card_names, load_card

    offered = [
        ("auto", "the first GPU, else the executor"),
        ("all", "every GPU"),
        ("sim", "the executor on the CPU"),
        ("none", "compile only"),
    ]
    offered += [(f"sim:{name}", f"the executor, as {load_card(name).name}") for name in card_names()]
    return _in_list(offered, incomplete)


def words(*choices: str) -> Callable[[str], Offer]:
    """A function that offers a few words."""
    return lambda incomplete: _fitting(((choice, "") for choice in choices), incomplete)


def _ladder(context: typer.Context) -> "Ladder | None":
    """The ladder that a command measures, as far as its command line tells."""
    from gpuprof.kernels.catalog import shipped_ladder
    from gpuprof.kernels.paths import ladder_of

    name = str(context.info_name)
    if name in shipped_names():
        return shipped_ladder(name)
    # An option that still lacks its value leaves the arguments before it unread.
    typed = context.params.get("paths") or [text for text in context.args if not text.startswith("-")]
    paths = [Path(path) for path in typed]
    if len(paths) == 1 and str(paths[0]) in shipped_names():
        return shipped_ladder(str(paths[0]))
    with suppress(GpuprofError, OSError):
        return ladder_of(paths)
    return None


def _kernel_files(incomplete: str) -> Iterator[Path]:
    """Kernel files and folders that begin so."""
    folder = Path(incomplete).parent if incomplete else Path()
    with suppress(OSError, ValueError):
        yield from sorted(path for path in folder.iterdir() if path.suffix in KERNEL_ENDINGS)


def _in_list(offered: Iterable[tuple[str, str]], incomplete: str) -> Offer:
    """The last entry of a list is completed, and none is offered twice."""
    typed, comma, last = incomplete.rpartition(",")
    taken = set(typed.split(","))
    fitting = [(text, says) for text, says in _fitting(offered, last) if text not in taken]
    return [(f"{typed}{comma}{text}", says) for text, says in fitting]


def _fitting(offered: Iterable[tuple[str, str]], incomplete: str) -> Offer:
    # A description of two lines would be a word of its own to the shell.
    return [
        (text, shorten(says, _LONGEST, placeholder=" …"))
        for text, says in offered
        if text.startswith(incomplete)
    ]
