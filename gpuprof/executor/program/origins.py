# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which of a program's symbols what registers hold may come from."""

from collections.abc import Iterable, Mapping

from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Instruction, Mem, Sym, symbols_of

#: What flows into each register.
Origins = Mapping[str, frozenset[str | None]]
#: Types that may hold an address.
_WIDE = {"b64", "u64", "s64", "b128"}


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


def _sources(item: Instruction) -> tuple[list[str], frozenset[str | None]]:
    """Return the registers and the symbols whose values an instruction's results are made of."""
    if item.opcode[0] not in ("ld", "ldu", "atom"):
        reads, _ = reads_and_writes(item)
        return reads, frozenset(symbols_of(item.operands))
    memory = next((operand for operand in item.operands if isinstance(operand, Mem)), None)
    if memory is not None and "param" in item.opcode and isinstance(memory.base, Sym):
        return [], frozenset({memory.base.name})
    return [], frozenset({None} if _WIDE & set(item.opcode) else ())
