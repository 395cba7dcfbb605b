# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""By what means the threads of a program may order what they do, read off its instructions."""

from gpuprof.executor.program.flow import BasicBlock, End, is_cluster_wait, reads_and_writes
from gpuprof.executor.program.loops import waiting_loops
from gpuprof.executor.steps.barrier_steps import names_count
from gpuprof.executor.steps.batch import OrderingMeans
from gpuprof.executor.steps.coding import Coder
from gpuprof.executor.steps.memory_steps import STRONG
from gpuprof.executor.steps.warp_steps import names_all

_ELSEWHERE = frozenset({"global", "local", "param", "const"})


def means_of(coder: Coder, flow: list[BasicBlock]) -> OrderingMeans:
    """Return the means of a program whose blocks were decoded."""
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
    idle: dict[int, frozenset[int]] = {}
    for item in items:
        if lines := coder.idle.get(id(item)):
            idle[item.line] = idle.get(item.line, frozenset()) | lines
    return OrderingMeans(
        phased=coder.phased,
        partial=any(names_count(item) or is_cluster_wait(item) for item in ends),
        fences=coder.fences,
        in_shared=not coder.phased and _orders_shared(coder, flow),
        polled=frozenset(polled),
        takes=takes,
        idle=idle,
    )


def _orders_shared(coder: Coder, flow: list[BasicBlock]) -> bool:
    near = [item for block in flow for item in block.body if not _ELSEWHERE & set(item.opcode)]
    strong = any(i.opcode[0] in ("ld", "st") and STRONG & set(i.opcode) for i in near)
    atomic = coder.fences and any(i.opcode[0] in ("atom", "red") for i in near)
    atomic |= any("cas" in i.opcode for i in near)  # one that fails has only read
    return strong or atomic or any(i.opcode[:2] == ("bar", "warp") and not names_all(i) for i in near)
