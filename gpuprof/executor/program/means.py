# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""By what means the threads of a program may order what they do, and whom, read off its instructions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import Struct, field

from gpuprof.executor.program.flow import BasicBlock, End, is_cluster_wait, reads_and_writes
from gpuprof.executor.program.guesses import Ends
from gpuprof.executor.program.loops import waiting_loops
from gpuprof.executor.program.ptx import Imm, Instruction, Label

#: Qualifiers of loads and stores that are strong: they may meet without being a race. The last three name
#: a cache: ptxas makes strong instructions of them.
STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio", "cg", "cv", "wt"})
_ELSEWHERE = frozenset({"global", "local", "param", "const"})
_EVERYBODY = 0xFFFFFFFF
#: What has a scope.
_SCOPED = frozenset({"ld", "st", "atom", "red", "fence"})


class OrderingMeans(Struct, frozen=True):
    """By what means threads of a program may order what they do.

    Attributes:
        phased: By mbarriers, or with the copy engine.
        partial: By barriers of some of a block's warps, or of clusters.
        fences: By fences, or operations that release: its blocks may wait for each other.
        in_shared: Accesses to shared memory by more than (m)barriers and `__syncwarp` of whole warps.
        polled: Source lines of loads in loops that go on until one of them finds what another thread stores.
        takes: By what atomic operations find, or stores by them: who comes first may matter.
        idle: The stores that the value of a load may go to, by its line, where it may go to none
            (`guesses.idle_loads`).
    """

    phased: bool = False
    partial: bool = False
    fences: bool = False
    in_shared: bool = False
    polled: frozenset[int] = frozenset()
    takes: bool = False
    idle: Mapping[int, Ends] = field(default_factory=dict)


def means_of(
    flow: list[BasicBlock], idle_loads: Mapping[int, Ends], *, phased: bool, fences: bool
) -> OrderingMeans:
    """Return the means of a program; `idle_loads` as of `guesses`."""
    items = [item for block in flow for item in block.items]
    atomics = [item for item in items if item.opcode[0] in ("atom", "red")]
    read = {name for item in items for name in reads_and_writes(item)[0]}
    takes = any(
        {"cas", "exch"} & set(item.opcode) or not read.isdisjoint(reads_and_writes(item)[1])
        for item in atomics
    )
    ends = (block.last for block in flow if block.end in (End.BARRIER, End.CLUSTER_WAIT) and block.last)
    bodies = {number for loops in waiting_loops(flow).values() for loop in loops for number in loop.body}
    polled = {item.line for number in bodies for item in flow[number].body if item.opcode[0] == "ld"}
    idle: dict[int, Ends] = {}
    for item in items:
        if stores := idle_loads.get(id(item)):
            idle[item.line] = idle.get(item.line, frozenset()) | stores
    return OrderingMeans(
        phased=phased,
        # Or if a barrier says how many threads it takes.
        partial=any(is_cluster_wait(i) or len(i.operands) > (3 if "red" in i.opcode else 1) for i in ends),
        fences=fences,
        in_shared=not phased and _orders_shared(flow, fences=fences),
        polled=frozenset(polled),
        takes=takes,
        idle=idle,
    )


def _orders_shared(flow: list[BasicBlock], *, fences: bool) -> bool:
    near = [item for block in flow for item in block.body if not _ELSEWHERE & set(item.opcode)]
    strong = any(i.opcode[0] in ("ld", "st") and STRONG & set(i.opcode) for i in near)
    atomic = fences and any(i.opcode[0] in ("atom", "red") for i in near)
    atomic |= any("cas" in i.opcode for i in near)  # one that fails has only read
    return strong or atomic or any(i.opcode[:2] == ("bar", "warp") and not names_all(i) for i in near)


def names_all(item: Instruction) -> bool:
    """Tell whether a warp operation names all lanes of the warp, whatever registers hold."""
    operand = item.operands[-1]
    return isinstance(operand, Imm) and operand.bits & _EVERYBODY == _EVERYBODY


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
