# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Through which pointers a kernel may change global memory, found by following values back from its stores.

What a kernel cannot write cannot race. The answer errs on the side of more: every value that may flow into
an address counts, in whatever order the instructions run.
"""

from collections.abc import Iterable, Mapping

from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Function, Instruction, Mem, Sym, symbols_of

#: Opcodes that write to memory; their address is the first operand that is one.
_WRITERS = ("st", "atom", "red", "cp", "wmma")
#: Spaces whose content no other block sees.
_ELSEWHERE = {"shared", "local", "param", "const"}
#: What flows into each register.
Origins = Mapping[str, frozenset[str | None]]
#: Types that may hold an address.
_WIDE = {"b64", "u64", "s64", "b128"}


def stored_symbols(function: Function) -> frozenset[str] | None:
    """Return the parameters and variables whose address, or whose content as a pointer, stores may go to.

    None when a store may go anywhere: its pointer was itself loaded from memory, or stands in a tensor map.
    """
    items = [item for item in function.body if isinstance(item, Instruction)]
    if any(_goes_by_a_map(item) for item in items):
        return None
    origins = origins_of(items)
    stored: set[str] = set()
    for item in items:
        address = _stored_to(item)
        if address is None:
            continue
        reached = pointers_of(address, origins)
        known = {name for name in reached if name is not None}
        if not reached or len(known) < len(reached):
            return None
        stored |= known
    return frozenset(stored)


def pointers_of(address: Mem, origins: Origins) -> frozenset[str | None]:
    """Return the symbols that an address comes from; None among them is what was loaded from memory."""
    if isinstance(address.base, Sym):
        return frozenset({address.base.name})
    return origins.get(getattr(address.base, "name", ""), frozenset())


def origins_of(items: Iterable[Instruction]) -> Origins:
    """Return the symbols that flow into each register, as addresses or as their content."""
    flows = []
    origins: dict[str, frozenset[str | None]] = {}
    for item in items:
        _, targets = reads_and_writes(item)
        if targets:
            sources, names = _sources(item)
            flows.append((targets, sources, names))
    readers: dict[str, list[int]] = {}
    for number, (_, sources, _) in enumerate(flows):
        for source in sources:
            readers.setdefault(source, []).append(number)
    # From symbols on: what an instruction makes of registers alone is looked at when something reaches these.
    pending = [number for number, (_, _, names) in reversed([*enumerate(flows)]) if names]
    while pending:
        targets, sources, names = flows[pending.pop()]
        found = names.union(*(origins[source] for source in sources if source in origins))
        for target in targets if found else ():
            before = origins.get(target, frozenset())
            if not found <= before:
                origins[target] = before | found
                pending += readers.get(target, ())
    return origins


def _goes_by_a_map(item: Instruction) -> bool:
    """Tell whether an instruction writes where a tensor map says."""
    spaces = [word for word in item.opcode if word in ("shared", "global")]
    return item.opcode[0] == "cp" and "tensor" in item.opcode and spaces[:1] == ["global"]


def _stored_to(item: Instruction) -> Mem | None:
    """Return the global address that an instruction may write to."""
    if item.opcode[0] not in _WRITERS:
        return None
    if item.opcode[0] == "cp":
        spaces = [word for word in item.opcode if word in ("shared", "global")]
        if spaces[:1] != ["global"]:
            return None
    elif _ELSEWHERE & set(item.opcode) or item.opcode[:2] == ("wmma", "load"):
        return None
    return next((operand for operand in item.operands if isinstance(operand, Mem)), None)


def _sources(item: Instruction) -> tuple[list[str], frozenset[str | None]]:
    """Return the registers and the symbols whose values an instruction's results are made of."""
    if item.opcode[0] not in ("ld", "ldu", "atom"):
        reads, _ = reads_and_writes(item)
        return reads, frozenset(symbols_of(item.operands))
    memory = next((operand for operand in item.operands if isinstance(operand, Mem)), None)
    if memory is not None and "param" in item.opcode and isinstance(memory.base, Sym):
        return [], frozenset({memory.base.name})
    return [], frozenset({None} if _WIDE & set(item.opcode) else ())
