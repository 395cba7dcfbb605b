# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What one executed memory instruction asks for: exact counts of its source line, over its executions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuprof.machine_code.sass import MachineCode, SassInstruction
from gpuprof.results import SourceLine

_SECTOR_BYTES, _SECTORS_PER_PASS = 32, 4
_FAMILIES = {
    **dict.fromkeys(("LDG", "LD"), "global_load"),
    **dict.fromkeys(("STG", "ST"), "global_store"),
    **dict.fromkeys(("LDS", "LDSM"), "shared_load"),
    "STS": "shared_store",
    "LDGSTS": "async_copy",
    **dict.fromkeys(("REDG", "ATOMG", "RED", "ATOM"), "global_atomic"),
}
_BULK = {
    "bulk_load": ("UTMALDG", "UBLKCP.S.G"),
    "bulk_store": ("UTMASTG", "UTMAREDG", "UBLKCP.G.S", "UBLKRED"),
}
_READS = ("global_load", "async_copy", "bulk_load")


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one executed instruction asks for, on average.

    Args:
        passes: Of the data path of shared memory and L1.
        sectors: Sectors that L1 does not hold.
        distant: Share of these that come from, or go to, DRAM.
        spread: Lines of 128 bytes that it touches, per sector: a quarter where it takes whole ones.
    """

    passes: float
    sectors: float = 0.0
    distant: float = 0.0
    spread: float = 1 / _SECTORS_PER_PASS


@dataclass(frozen=True, slots=True)
class TrafficSites:
    """Where a launch's machine code executes, and where its instructions come from.

    Args:
        code: Machine code.
        times: How often warps execute each of its blocks.
        sources: The source line of each line of the PTX text.
        lines_per_sector: By source line and family, 128-byte lines that a warp touches per sector; a
            quarter where it takes whole ones.
        l1_hits: By source line, the share of loads' sectors that L1 holds.
        copied: By source line and family, sectors of a bulk copy.
    """

    code: MachineCode
    times: Sequence[float]
    sources: Mapping[int, int]
    lines_per_sector: Mapping[tuple[int, str], float]
    l1_hits: Mapping[int, float]
    copied: Mapping[tuple[int, str], float]

    def executed(self) -> Counter[tuple[int, str]]:
        """Return how often memory instructions execute, by source line and family."""
        found: Counter[tuple[int, str]] = Counter()
        for block, times in zip(self.code.blocks, self.times, strict=True):
            for one in block.instructions:
                if family := _family(one):
                    found[self.sources.get(one.line, 0), family] += times  # type: ignore[assignment]
        return found


def _family(one: SassInstruction) -> str:
    """What counts an instruction's traffic; empty for none."""
    for family, opcodes in _BULK.items():
        if one.opcode.startswith(opcodes):
            return family
    return _FAMILIES.get(one.name, "")


def traffic_of(
    launches: Sequence[TrafficSites],
    lines: Sequence[SourceLine],
    read_bytes: float,
    written_bytes: float,
) -> list[dict[int, Traffic]]:
    """Return the traffic of each launch's instructions by their addresses.

    Args:
        launches: Of one case.
        lines: Its exact counts by source line.
        read_bytes: What it reads at least once: this comes from DRAM, and what is read again from L2.
        written_bytes: What it writes in the end.
    """
    counts = {line.line: line.counters for line in lines}
    executed: Counter[tuple[int, str]] = Counter()
    for one in launches:
        executed.update(one.executed())
    found: dict[tuple[int, str], Traffic] = {}
    moved = dict.fromkeys((True, False), 0.0)
    for (line, family), times in executed.items():
        if times:
            found[line, family] = one_line = _of_line(launches[0], line, family, counts.get(line, {}), times)
            moved[family in _READS] += one_line.sectors * times * _SECTOR_BYTES
    distant = {
        reads: min(1.0, least / moved[reads]) if moved[reads] else 0.0
        for reads, least in ((True, read_bytes), (False, written_bytes))
    }
    return [_by_address(one, found, distant) for one in launches]


def _of_line(
    sites: TrafficSites, line: int, family: str, counts: Mapping[str, float], times: float
) -> Traffic:
    if family in _BULK:
        return Traffic(0.0, sites.copied.get((line, family), 0.0))
    requests = counts.get(f"{family}_requests", 0.0) / times
    if family.startswith("shared"):
        return Traffic(counts.get(f"{family}_wavefronts", 0.0) / times or requests)
    sectors = counts.get(f"{family}_sectors", 0.0) / times
    whole = 1 / _SECTORS_PER_PASS
    spread = max(whole, sites.lines_per_sector.get((line, family), whole))
    hits = sites.l1_hits.get(line, 0.0) if family == "global_load" else 0.0
    return Traffic(max(sectors * spread, requests), sectors * (1 - hits), spread=spread)


def _by_address(
    sites: TrafficSites, found: Mapping[tuple[int, str], Traffic], distant: Mapping[bool, float]
) -> dict[int, Traffic]:
    traffic = {}
    for block in sites.code.blocks:
        for one in block.instructions:
            family = _family(one)
            if known := found.get((sites.sources.get(one.line, 0), family)):
                traffic[one.address] = replace(known, distant=distant[family in _READS])
    return traffic
