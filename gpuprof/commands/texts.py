# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What users type behind options, read into values; what the values mean is checked with the request."""

from collections.abc import Iterable, Mapping

from gpuprof.errors import InputError, did_you_mean
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.preprocessing import NOTHING, Preprocessing, parse_preprocessing
from gpuprof.measure.request import (
    PARAMETER,
    Request,
    Selection,
    find_kernels,
    make_request,
    named_kernels,
    select,
)
from gpuprof.operation import Operation, ReferenceDeclaration
from gpuprof.options import REFERENCES, SelectOptions
from gpuprof.problems.sizes import is_size, parse_sizes, split_list
from gpuprof.text import Extent, in_xyz


def parse_blocks(text: str, option: str = "--block") -> tuple[Extent, ...]:
    """Read a list of blocks such as `8x32` or `8x32,16x16`, threads in x, y and optionally z."""
    blocks: list[Extent] = []
    for item in split_list(text, option):
        parts = item.split("x")
        if not is_size(item) or len(parts) > 3:
            raise InputError(
                f"{option} {item!r} is not a block.", fix="Write XxY in threads, for example 8x32."
            )
        blocks.append(in_xyz(map(int, parts), 1))
    return tuple(blocks)


def _refuse_one_row(text: str, kernels: Iterable[Kernel]) -> None:
    """Refuse a list of numbers that was meant as one block: `32,8` for `32x8`, or `32,32` for any kernel."""
    items = split_list(text, "--block")
    twice = len(set(items)) < len(items)
    of_rows = any(kernel.block[1] > 1 for kernel in kernels)
    if len(items) > 1 and all(item.isdecimal() for item in items) and (twice or of_rows):
        rows = ",".join(f"{item}x1" for item in dict.fromkeys(items))
        raise InputError(
            f"--block {text} lists {len(items)} blocks of one row each.",
            fix=f"Write {'x'.join(items[:3])} for one block of that shape, or {rows}.",
        )


def parse_assignments(texts: list[str]) -> dict[str, float]:
    """Read `name=value` texts, as typed behind `--set`."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            found[name.strip()] = float(value if equals else "")
        except ValueError as error:
            raise InputError(
                f"--set {text!r} is not an assignment.", fix="Write name=value, for example --set scale=0.5."
            ) from error
    return found


def parse_values(texts: list[str]) -> dict[str, list[int]]:
    """Read `NAME=1|2|4` texts, as typed behind `--values`, several of them separated by commas."""
    found: dict[str, list[int]] = {}
    for item in (item for text in texts for item in split_list(text, "--values", lower=False)):
        match = PARAMETER.match(item)
        if match is None:
            raise InputError(
                f"--values {item!r} names no values.", fix="Write NAME=8|16|32, or BM=64|128,BN=64."
            )
        found.setdefault(match["name"], []).extend(map(int, match["values"].split("|")))
    return found


def choose_kernels(
    ladder: Ladder, texts: list[str], everything: bool, command: Preprocessing = NOTHING
) -> list[Selection]:
    """The kernels a user named; none for all rungs of the ladder.

    `texts` are as typed behind `--kernel`: ids, published names or `.cu` files, separated by commas, each
    perhaps with parameters: `reg_8x8:BK=16`, `mine.cu:BM=64|128,BN=64`.
    """
    if texts and everything:
        raise InputError("--all and --kernel exclude each other.", fix="Drop one of them.")
    return [
        select(kernel, params, name)
        for text in texts
        for name, params in named_kernels(text, "--kernel")
        for kernel in find_kernels(ladder, name, command)
    ]


def choose_references(operation: Operation, text: str) -> tuple[ReferenceDeclaration, ...]:
    """The references that `--reference` names."""
    words = [word.strip().lower() for word in text.split(",")]
    for word in words:
        if word not in REFERENCES:
            fix = did_you_mean(word, REFERENCES, "Choose vendor, cpu, all or none.")
            raise InputError(f"--reference {word!r} is not a reference.", fix=fix)
    return tuple(
        reference
        for reference in operation.references
        if "all" in words or ("cpu" if reference.on_host else "vendor") in words
    )


def preprocessing_of(select: SelectOptions) -> Preprocessing:
    """What was typed behind `-I` and `-D`."""
    return parse_preprocessing(select.include or [], select.define or [])


def selected(
    ladder: Ladder,
    select: SelectOptions,
    command: Preprocessing,
    scalars: Mapping[str, float] | None = None,
    references: str = "none",
) -> Request:
    """What a command line selects, as a checked request; further scalars have options of their own."""
    operation = ladder.operation
    chosen = choose_kernels(ladder, select.kernel or [], select.everything, command)
    if select.block is not None:
        _refuse_one_row(select.block, [each.kernel for each in chosen] or ladder.rungs)
    return make_request(
        ladder,
        chosen,
        parse_sizes(select.sizes or operation.default_sizes, operation.dimensions),
        parse_blocks(select.block) if select.block is not None else (),
        select.dtype,
        {**parse_assignments(select.set_ or []), **(scalars or {})},
        choose_references(operation, references),
    )
