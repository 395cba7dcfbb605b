# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The scopes of strong accesses and of fences, which say whom they order."""

from collections.abc import Iterable
from dataclasses import replace

from gpuprof.executor.program.ptx import Instruction, Label

_SCOPED = frozenset({"ld", "st", "atom", "red", "fence"})


def is_for_its_block(item: Instruction) -> bool:
    """Whether an access has the scope of its block; behind `shared`, `cta` names the window instead."""
    return "cta" in _scopes(item)


def in_lone_blocks(body: Iterable[Instruction | Label]) -> list[Instruction | Label]:
    """Return the instructions of a kernel without clusters: there the scope of a cluster is a block."""
    return [_narrowed(item) if isinstance(item, Instruction) else item for item in body]


def _narrowed(item: Instruction) -> Instruction:
    if item.opcode[0] not in _SCOPED or "mbarrier_init" in item.opcode or "cluster" not in _scopes(item):
        return item
    words = item.opcode
    return replace(
        item,
        opcode=tuple(
            "cta" if word == "cluster" and words[place - 1] != "shared" else word
            for place, word in enumerate(words)
        ),
    )


def _scopes(item: Instruction) -> list[str]:
    """Return the words that name one; behind `shared` the same words name a window."""
    before = ("", *item.opcode)
    return [word for word, last in zip(item.opcode, before, strict=False) if last != "shared"]
