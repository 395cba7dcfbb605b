# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a user asks for: sizes and blocks read from the command line, checked before anything is opened."""

import math
import re
from dataclasses import dataclass

import numpy as np

from gpuprof.errors import InputError
from gpuprof.kernels.catalog import find_kernel, ladder
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import Extent, check_block
from gpuprof.measure.references import Reference, choose_references
from gpuprof.problems import OPERATIONS
from gpuprof.problems.base import Dtype, numpy_dtype

#: CUDA's limit on the threads of a block, the same on every architecture that NVRTC compiles for.
MAX_THREADS_PER_BLOCK = 1024
#: Of at most 18 digits each: int() refuses thousands of them, and any limit here lies far below.
_NUMBER = r"[0-9]{1,18}"
_SIZE = re.compile(rf"{_NUMBER}(?:x{_NUMBER})*\Z")
#: Largest extent: kernels take sizes as 32-bit integers, and tile arithmetic needs headroom above them.
_MAX_EXTENT = 2**31 - 2**16


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request for one problem family.

    Args:
        op: `gemm` or `transpose`.
        kernels: The kernels to run, in rung order.
        sizes: Each size's extents: M, N, K or nx, ny.
        blocks: Blocks to run instead of each kernel's own; empty for its own.
        references: What to measure beside the kernels, where there is a GPU.
    """

    op: str
    kernels: tuple[Kernel, ...]
    sizes: tuple[tuple[int, ...], ...]
    blocks: tuple[Extent, ...]
    dtype: Dtype = "f32"
    alpha: float = 1.0
    beta: float = 0.0
    references: tuple[Reference, ...] = ()


def parse_sizes(text: str, names: tuple[str, ...], option: str = "--sizes") -> tuple[tuple[int, ...], ...]:
    """Read a list of sizes such as `128,4096` or `512x1024x256`.

    Args:
        text: Comma-separated; one number stands for all extents.
        names: The extents' names, for example M, N, K.
        option: Where the text came from, for messages.

    Raises:
        InputError: A size is malformed, zero, negative or too large.
    """
    shape = "x".join(map(str.upper, names))
    sizes = []
    for item in _items(text, option):
        if item.startswith("-") or "x-" in item:
            raise InputError(f"{option} {item!r} is negative.", fix="A size is at least 1.")
        if not _SIZE.match(item):
            raise InputError(f"{option} {item!r} is not a size.", fix=f"Write 4096 or {shape}, as numbers.")
        extents = tuple(map(int, item.split("x")))
        if len(extents) == 1:
            extents *= len(names)
        if len(extents) != len(names):
            raise InputError(
                f"{option} {item!r} has {len(extents)} extents; this problem has {len(names)}: {shape}.",
                fix=f"Write one number or {shape}.",
            )
        if 0 in extents:
            raise InputError(f"{option} {item!r} has a zero extent.", fix="A size is at least 1.")
        if max(extents) > _MAX_EXTENT:
            raise InputError(f"{option} {item!r} is too large.", fix=f"Extents go up to {_MAX_EXTENT}.")
        if extents not in sizes:
            sizes.append(extents)
    return tuple(sizes)


def parse_blocks(text: str) -> tuple[Extent, ...]:
    """Read a list of blocks such as `8x32` or `8x32,16x16`, threads in x, y and optionally z.

    Raises:
        InputError: A block is malformed, empty or has more than 1024 threads.
    """
    blocks: list[Extent] = []
    for item in _items(text, "--block"):
        parts = item.split("x")
        if not _SIZE.match(item) or len(parts) > 3:
            raise InputError(
                f"--block {item!r} is not a block.", fix="Write XxY in threads, for example 8x32."
            )
        x, y, z = (int(part) for part in (*parts, "1", "1")[:3])
        if 0 in (x, y, z):
            raise InputError(f"--block {item!r} has a zero extent.", fix="Each extent is at least 1.")
        if x * y * z > MAX_THREADS_PER_BLOCK:
            raise InputError(
                f"--block {item!r} has {x * y * z} threads; a block holds at most {MAX_THREADS_PER_BLOCK}.",
                fix="Choose a smaller block.",
            )
        if (x, y, z) not in blocks:
            blocks.append((x, y, z))
    return tuple(blocks)


def parse_sim_blocks(text: str | None) -> int | None:
    """Read `--sim-blocks`: 0 stands for all, None for a choice by size.

    Raises:
        InputError: It is neither `all` nor a positive number.
    """
    if text is None:
        return None
    if text == "all":
        return 0
    if not re.fullmatch(_NUMBER, text) or int(text) == 0:
        raise InputError(f"--sim-blocks {text!r} is not a number of blocks.", fix="Write all, or 1 or more.")
    return int(text)


def choose_kernels(op: str, names: list[str], everything: bool) -> tuple[Kernel, ...]:
    """The kernels a user named, or the whole ladder.

    Raises:
        InputError: A name is unknown, two files give one id, or both `--all` and `--kernel` were given.
    """
    if names and everything:
        raise InputError("--all and --kernel exclude each other.", fix="Drop one of them.")
    if not names:
        return ladder(op)
    found = [find_kernel(op, name) for text in names for name in _items(text, "--kernel", lower=False)]
    kernels: dict[str, Kernel] = {}
    for kernel in found:
        other = kernels.setdefault(kernel.id, kernel)
        if other.path.resolve() != kernel.path.resolve():
            raise InputError(
                f"{other.path} and {kernel.path} have one id, {kernel.id!r}.", fix="Rename one of the files."
            )
    return tuple(sorted(kernels.values(), key=lambda kernel: (kernel.rung, kernel.id)))


def check_blocks(kernels: tuple[Kernel, ...], blocks: tuple[Extent, ...], chosen: bool) -> None:
    """Refuse blocks that no kernel, or a kernel the user named, can run with.

    Raises:
        InputError: With the first reason found.
    """
    refusals: list[InputError] = []
    for kernel in kernels:
        for block in blocks:
            try:
                check_block(kernel, block, MAX_THREADS_PER_BLOCK)
            except InputError as error:
                if chosen:
                    raise
                refusals.append(error)
    if blocks and len(refusals) == len(kernels) * len(blocks):
        raise refusals[0]


def _items(text: str, option: str, *, lower: bool = True) -> list[str]:
    items = [item.strip() for item in (text.lower() if lower else text).split(",")]
    if not all(items):
        raise InputError(f"{option} {text!r} has an empty entry.", fix="Separate entries by single commas.")
    return items


def build_request(
    op: str,
    kernels: list[str],
    everything: bool,
    sizes: str,
    block: str | None,
    dtype: str,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    references: str = "none",
) -> Request:
    """Check a command line's texts and turn them into a request.

    Raises:
        InputError: One of them is wrong; the message says which, and how to write it.
    """
    if dtype not in ("f32", "f64"):
        raise InputError(f"--dtype {dtype!r} is not a type.", fix="Choose f32 or f64.")
    for name, value in (("--alpha", alpha), ("--beta", beta)):
        if not math.isfinite(value):
            raise InputError(f"{name} {value} is not a finite number.")
        if abs(value) > float(np.finfo(numpy_dtype(dtype)).max):
            raise InputError(
                f"{name} {value} is too large for {dtype}.", fix="Choose a smaller one, or --dtype f64."
            )
    chosen = choose_kernels(op, kernels, everything)
    blocks = parse_blocks(block) if block is not None else ()
    check_blocks(chosen, blocks, chosen=bool(kernels))
    return Request(
        op=op,
        kernels=chosen,
        sizes=parse_sizes(sizes, tuple(OPERATIONS[op].dimension_names)),
        blocks=blocks,
        dtype="f64" if dtype == "f64" else "f32",
        alpha=alpha,
        beta=beta,
        references=choose_references(op, references),
    )
