# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Steps of a control slice: they count what instructions cost and check where they go, and move no values."""

from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.memory.shared_groups import SharedAccess, SharedGroup
from gpuprof.executor.program.ptx import Instruction, Mem, Reg, Sym
from gpuprof.executor.program.slicing import Accesses
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step
from gpuprof.executor.steps.memory_steps import address_reader, element_of, parts_of
from gpuprof.executor.steps.spaces import MemoryRequest, SharedSpace


def address_only(step: Step) -> Step:
    """Return what runs a step without letting values move."""

    def run(batch: Batch) -> None:
        batch.events.address_only = True
        try:
            step(batch)
        finally:
            batch.events.address_only = False

    return run


def shared_accesses(coder: Coder, group: Accesses) -> Step:
    """Return what counts address-only accesses to shared memory around one address."""
    first, _ = group.items[0]
    number = coder.site("address-only accesses", first)
    members = [_access(coder, item, distance) for item, distance in group.items]
    spaces = [
        SharedSpace(MemoryRequest(access.site, item.line, access.size, access.offset))
        for access, (item, _) in zip(members, group.items, strict=True)
    ]
    assert isinstance(group.base, Reg | Sym)
    read = address_reader(coder, first, Mem(group.base))

    def step(batch: Batch) -> None:
        address, mask, groups = read(batch), batch.mask, batch.memo.shared_groups
        if number not in groups:
            groups[number] = SharedGroup(members, batch.shared.size)
        if not groups[number].count(address, mask):
            for access, space in zip(members, spaces, strict=True):
                space.pattern(batch, address, mask, load=access.load)

    return step


def _access(coder: Coder, item: Instruction, distance: int) -> SharedAccess:
    load = item.opcode[0] == "ld"
    size = ARITHMETIC[element_of(item)].itemsize * len(parts_of(item.operands[0 if load else 1]))
    site = coder.site("shared_load" if load else "shared_store", item)
    return SharedAccess(site, distance - coder.shared_start, size, load)
