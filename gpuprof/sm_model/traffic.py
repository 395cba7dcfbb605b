# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What one executed memory instruction asks for: exact counts of its source line, over its executions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuprof.machine_code.sass import MachineCode, SassInstruction

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
        late: Share that come as late as from DRAM: blocks that read the same at a time all wait for it.
        spread: Lines of 128 bytes that it touches, per sector: a quarter where it takes whole ones.
        missing: Share of its executions that L1 does not hold the data of.
        sharers: Warps that then wait for the same data, of which one asks for it.
    """

    passes: float
    sectors: float = 0.0
    distant: float = 0.0
    late: float = 0.0
    spread: float = 1 / _SECTORS_PER_PASS
    missing: float = 1.0
    sharers: int = 1


@dataclass(frozen=True, slots=True)
class TrafficSites:
    """Where a launch's machine code executes, and what its instructions ask for.

    Args:
        code: Machine code.
        times: How often warps execute each of its blocks.
        sources: The source line of each line of the PTX text.
        requests: By line of the PTX text, of bulk copies by that of the source, and family what was counted:
            requests, sectors, wavefronts; and of some of them was seen: sectors, lines, which of them L1 did
            not hold, which of these another warp asked for, and which the block had not asked for before.
        blocks: Of the grid.
        at_once: Blocks that the device holds.
    """

    code: MachineCode
    times: Sequence[float]
    sources: Mapping[int, int]
    requests: Mapping[tuple[int, str], Mapping[str, float]]
    blocks: int
    at_once: int

    def place(self, one: SassInstruction) -> tuple[int, str]:
        """Where an instruction's traffic is counted; no family for one without."""
        family = _family(one)
        return (self.sources.get(one.line, 0) if family in _BULK else one.line), family

    def executed(self) -> Counter[tuple[int, str]]:
        """Return how often memory instructions execute, by the place where they are counted."""
        found: Counter[tuple[int, str]] = Counter()
        for block, times in zip(self.code.blocks, self.times, strict=True):
            for one in block.instructions:
                if (place := self.place(one))[1]:
                    found[place] += times  # type: ignore[assignment]
        return found


def _family(one: SassInstruction) -> str:
    """What counts an instruction's traffic; empty for none."""
    for family, opcodes in _BULK.items():
        if one.opcode.startswith(opcodes):
            return family
    return _FAMILIES.get(one.name, "")


def traffic_of(
    launches: Sequence[TrafficSites], read_bytes: float, written_bytes: float, l2_bytes: float
) -> list[dict[int, Traffic]]:
    """Return the traffic of each launch's instructions by their addresses.

    Args:
        launches: Of one case.
        read_bytes: What it reads at least once: this comes from DRAM, and what is read again from L2 if that
            may hold it until then.
        written_bytes: What it writes in the end.
        l2_bytes: That L2 holds.
    """
    found: list[dict[tuple[int, str], Traffic]] = []
    moved: list[dict[bool, float]] = []
    for one in launches:
        found.append({})
        moved.append(dict.fromkeys((True, False), 0.0))
        for place, times in one.executed().items():
            if times:
                found[-1][place] = asked = _of_place(place[1], one.requests.get(place, {}), times)
                moved[-1][place[1] in _READS] += asked.sectors * times * _SECTOR_BYTES
    all_read, all_written = (max(1.0, sum(each[reads] for each in moved)) for reads in (True, False))
    traffic: list[dict[int, Traffic]] = []
    for one, asked_for, each in zip(launches, found, moved, strict=True):
        least = each[True] * min(1.0, read_bytes / all_read)
        share, late = _from_dram(one, each[True], least, l2_bytes)
        stored = min(1.0, written_bytes / all_written)
        traffic.append({})
        for block in one.code.blocks:
            for instruction in block.instructions:
                place = one.place(instruction)
                if known := asked_for.get(place):
                    reads = place[1] in _READS
                    traffic[-1][instruction.address] = replace(
                        known, distant=share if reads else stored, late=late if reads else 0.0
                    )
    return traffic


def _from_dram(sites: TrafficSites, read: float, least: float, l2_bytes: float) -> tuple[float, float]:
    """Return the shares of what a launch reads from L2 that this reads from DRAM, and that come as late.

    L2 keeps what was read last. Until a block reads the same again, those beside it have read as much as it;
    and until the blocks that follow do, all that the blocks at once read has come by. What blocks read
    together comes from DRAM once, and all of them wait for it.
    """
    seen = [each for (_, family), each in sites.requests.items() if family in _READS]
    missed = sum(each.get("seen_missed", 0.0) for each in seen)
    fresh = sum(each.get("seen_fresh", 0.0) for each in seen) / missed if missed else 1.0
    at_once = min(sites.blocks, sites.at_once)
    of_all = fresh * read / sites.blocks * at_once
    waves = sites.blocks / at_once
    again = read * (1 - fresh) * _dropped(of_all, l2_bytes)
    later = max(0.0, waves * min(least, of_all) - least) * _dropped(least, l2_bytes)
    first = fresh * (1 + (waves - 1) * _dropped(least, l2_bytes)) / waves
    share = min(1.0, (least + again + later) / max(1.0, read))
    return share, max(share, min(1.0, first + again / max(1.0, read)))


def _dropped(nbytes: float, l2_bytes: float) -> float:
    """Share of so many bytes, read in turn over and over, that L2 does not keep."""
    return max(0.0, 1 - l2_bytes / nbytes) if nbytes else 0.0


def _of_place(family: str, counts: Mapping[str, float], times: float) -> Traffic:
    seen = counts.get("seen_sectors", 0.0)
    if family in _BULK:
        return Traffic(0.0, seen / counts["seen_copies"] if seen else 0.0)
    requests = counts.get("requests", 0.0) / times
    if family.startswith("shared"):
        return Traffic(counts.get("wavefronts", 0.0) / times or requests)
    sectors = counts.get("sectors", 0.0) / times
    spread = max(1 / _SECTORS_PER_PASS, counts.get("seen_lines", 0.0) / seen if seen else 0.0)
    passes = max(sectors * spread, requests)
    if family != "global_load" or not seen:
        return Traffic(passes, sectors, spread=spread)
    missed = counts.get("seen_missed", 0.0)
    missing = (missed + counts.get("seen_shared", 0.0)) / seen
    sharers = max(1, round(missing * seen / missed)) if missed else 1
    return Traffic(passes, sectors * missed / seen, spread=spread, missing=missing, sharers=sharers)
