# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What one executed memory instruction asks for: exact counts of its source line, over its executions."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from gpuprof.executor import predecessors
from gpuprof.machine_code.sass import MachineCode, SassInstruction
from gpuprof.records import replace

#: What an SM takes from L2 in a cycle at most, however few SMs ask.
MOST_L2_BYTES = 64.0
SECTOR_BYTES, _SECTORS_PER_PASS, _WORD_BYTES = 32, 4, 4
_FAMILIES = {
    **dict.fromkeys(("LDG", "LD"), "global_load"),
    **dict.fromkeys(("STG", "ST"), "global_store"),
    **dict.fromkeys(("LDS", "LDSM"), "shared_load"),
    "STS": "shared_store",
    "ATOMS": "shared_atomic",
    "LDL": "local_load",
    "STL": "local_store",
    "LDGSTS": "async_copy",
    "LDC": "constant_load",
    **dict.fromkeys(("REDG", "ATOMG", "RED", "ATOM"), "global_atomic"),
}
_GENERIC = {"LD": "shared_load", "ST": "shared_store"}
_BULK = {
    "bulk_load": ("UTMALDG", "UBLKCP.S.G"),
    "bulk_store": ("UTMASTG", "UTMAREDG", "UBLKCP.G.S", "UBLKRED"),
}
_READS = ("global_load", "async_copy", "bulk_load")
#: Either half of L2 holds what the SMs beside it read: what many read is there twice.
_COPIES = 2
#: Of the bytes of its sectors, what a store writes that takes them whole but at edges.
_PARTIAL = 0.75
#: Where traffic is counted: line of the PTX text, of bulk copies of the source, and family.
Place = tuple[int, str]


class Traffic(Struct, frozen=True):
    """What one executed instruction asks for, on average.

    Args:
        passes: Of the data path of shared memory and L1; of constants, words.
        sectors: Sectors that L1 does not hold.
        distant: Share of these that come from, or go to, DRAM.
        late: Share that come as late as from DRAM: blocks that read the same at a time all wait for it.
        spread: Lines of 128 bytes that it touches, per sector: a quarter where it takes whole ones.
        brought: Share that came beside what the block asked DRAM for before.
        readers: Blocks that read the same at a time.
        missing: Share of its executions that L1 does not hold the data of.
        sharers: Warps that then wait for the same data, of which one asks for it.
        partial: Whether it writes parts of sectors.
        writers: Warps of the block that store to the same lines.
        own: Share of the sectors of these that are not those of another, or of the store before.
        again: Whether the store before went to the same lines.
        run: Bytes that lie side by side of what blocks that are there at once access.
        busiest: Of the turns of an atomic operation of all blocks, the shares of the sector and of the part
            of L2 that has most of them.
    """

    passes: float = 0.0
    sectors: float = 0.0
    distant: float = 0.0
    late: float = 0.0
    brought: float = 0.0
    readers: float = 1.0
    spread: float = 1 / _SECTORS_PER_PASS
    missing: float = 1.0
    sharers: int = 1
    partial: bool = False
    writers: int = 1
    own: float = 1.0
    again: bool = False
    run: float = math.inf
    busiest: tuple[float, float] = (0.0, 0.0)


class TrafficSites(Struct, frozen=True):
    """Where a launch's machine code executes, and what its instructions ask for.

    Args:
        code: Machine code.
        times: How often warps execute each of its blocks.
        sources: The source line of each line of the PTX text.
        requests: What was counted: requests, sectors, wavefronts; and of some of them was seen: warps, and
            which had to wait, sectors, lines, which of them L1 did not hold, which of these another warp
            asked for, which the block had not asked for before, and how many runs these make.
        moving: By how many bytes the place moves along each axis of the grid; None where it is not known.
        grid: Of blocks.
        at_once: Blocks that the device holds.
    """

    code: MachineCode
    times: Sequence[float]
    sources: Mapping[int, int]
    requests: Mapping[Place, Mapping[str, float]]
    moving: Mapping[Place, tuple[int, ...] | None]
    grid: tuple[int, int, int]
    at_once: int

    def place(self, one: SassInstruction) -> Place:
        """Where an instruction's traffic is counted; no family for one without.

        Generic ones are counted by the memory that they turn out to access.
        """
        bulk = (name for name, opcodes in _BULK.items() if one.opcode.startswith(opcodes))
        family = next(bulk, _FAMILIES.get(one.name, ""))
        if one.name in _GENERIC and (shared := (one.line, _GENERIC[one.name])) in self.requests:
            return shared
        return (self.sources.get(one.line, 0) if family in _BULK else one.line), family

    def executed(self) -> Mapping[Place, float]:
        """Return how often memory instructions execute, by the place where they are counted."""
        found: defaultdict[Place, float] = defaultdict(float)
        for block, times in zip(self.code.blocks, self.times, strict=True):
            for one in block.instructions:
                if (place := self.place(one))[1]:
                    found[place] += times
        return found

    def told_by_requests(self, most: Sequence[float]) -> list[float]:
        """Return `times`, and of loops that may never be gone through what their requests tell.

        As often as what was counted at a place and no other block asked for, the one with most first.

        Args:
            most: How often each block may execute.
        """
        asked = [
            # Who waits in a loop asks as often as it takes.
            Counter(self.place(one) for one in block.instructions if "STRONG" not in one.opcode)
            for block in self.code.blocks
        ]
        known, times = self.executed(), list(self.times)
        left = {place: seen.get("requests", 0.0) - known[place] for place, seen in self.requests.items()}
        before = predecessors(self.code.blocks)
        for number in sorted(range(len(asked)), key=lambda one: -asked[one].total()):
            if not times[number] and math.isinf(most[number]):
                here = {place: count for place, count in asked[number].items() if place in left}
                times[number] = max([0.0, *(left[place] / count for place, count in here.items())])
                for place, count in here.items():
                    left[place] -= count * times[number]
                for one in before[number]:
                    times[one] = times[one] or min(most[one], times[number])
        # Lanes of a warp that change one word go through ptxas' loop around a swap one after the other.
        for number, block in enumerate(self.code.blocks):
            for instruction in block.instructions:
                seen = self.requests.get(self.place(instruction), {})
                if "CAST" in instruction.opcode and "turns" in seen:
                    times[number] *= seen["turns"] / seen["requests"]
        return times


def traffic_of(
    launches: Sequence[TrafficSites],
    read_bytes: float,
    written_bytes: float,
    l2_bytes: float,
    unwritten_bytes: float = 0.0,
) -> list[dict[int, Traffic]]:
    """Return the traffic of each launch's instructions by their addresses.

    Args:
        launches: Of one case.
        read_bytes: What it reads at least once: this comes from DRAM, and what is read again from L2 if that
            may hold it until then.
        written_bytes: What it writes in the end.
        l2_bytes: That L2 holds.
        unwritten_bytes: That wait in L2 to be written to DRAM at most; each new one drives out any of them.
    """
    found: list[dict[Place, Traffic]] = []
    moved: list[dict[Place, float]] = []
    for one in launches:
        times = {place: count for place, count in one.executed().items() if count}
        found.append({p: _of_place(p[1], one.requests.get(p, {}), count) for p, count in times.items()})
        moved.append({p: found[-1][p].sectors * count * SECTOR_BYTES for p, count in times.items()})
    read, written = (
        max(1.0, sum(n for each in moved for (_, family), n in each.items() if (family in _READS) == reads))
        for reads in (True, False)
    )
    traffic: list[dict[int, Traffic]] = []
    for one, asked_for, each in zip(launches, found, moved, strict=True):
        reads = {place: nbytes for place, nbytes in each.items() if place[1] in _READS}
        least = sum(reads.values()) * min(1.0, read_bytes / read)
        once = min(1.0, written_bytes / written)
        turns = written_bytes / max(1.0, unwritten_bytes)
        stored = once * (1 + math.expm1(-turns) / turns if turns else 0.0), 0.0, 1.0
        wrote = once * sum(nbytes for place, nbytes in each.items() if place not in reads)
        far = _from_dram(one, reads, least, wrote, l2_bytes)
        traffic.append({})
        for block in one.code.blocks:
            for instruction in block.instructions:
                place = one.place(instruction)
                if known := asked_for.get(place):
                    distant, late, readers = far.get(place, stored)
                    traffic[-1][instruction.address] = replace(
                        known, distant=distant, late=late, readers=readers, run=_run(one, place)
                    )
    return traffic


def _from_dram(
    sites: TrafficSites, read: Mapping[Place, float], least: float, wrote: float, l2_bytes: float
) -> dict[Place, tuple[float, float, float]]:
    """Return the shares of what each place reads from L2 that come from DRAM, that come as late, and readers.

    L2 keeps what was read or written last. Until a block reads the same again, those beside it have moved as
    much as it; and until later blocks do, all those between. What blocks read together comes from DRAM once,
    and all of them wait for it.
    """
    blocks = math.prod(sites.grid)
    at_once = min(blocks, sites.at_once)
    fresh, moving = {}, {}
    for place in read:
        seen = sites.requests.get(place, {})
        missed = seen.get("seen_missed", 0.0)
        fresh[place] = seen.get("seen_fresh", 0.0) / missed if missed else 1.0
        # Where all blocks are there at once, each may go on to other places later.
        moving[place] = (blocks > at_once and sites.moving.get(place)) or (1, 1, 1)

    def of(place: Place, following: float) -> float:
        """What so many blocks, one after the other, read at a place, each byte once."""
        return fresh[place] * read[place] / blocks * _different(sites.grid, moving[place], following)

    # Blocks that move unevenly, or by less than they read, read the same in a way that is not known.
    shared = min(1.0, least / max(1.0, sum(of(place, blocks) for place in read)))
    most = {place: shared * of(place, blocks) for place in read}

    def footprint(following: float) -> float:
        return wrote * following / blocks + sum(min(most[place], of(place, following)) for place in read)

    again = _dropped(footprint(at_once), l2_bytes)
    far = {}
    for place, nbytes in read.items():
        each = min(most[place], of(place, at_once)) * blocks / at_once
        new = min(1.0, most[place] / max(1.0, each))
        until = max(at_once, _period(sites.grid, moving[place]))
        dropped = _dropped(footprint(until), l2_bytes)
        on_busiest = _of_whole_waves(new, blocks / at_once)
        more = (1 - fresh[place]) * again
        far[place] = (
            min(1.0, each * (new + (1 - new) * dropped) / max(1.0, nbytes) + more),
            min(1.0, fresh[place] * (on_busiest + (1 - on_busiest) * dropped) + more),
            fresh[place] * nbytes / max(1.0, each),
        )
    return far


def _of_whole_waves(new: float, waves: float) -> float:
    """Return the share that is new of what an SM reads which has a block of the last wave, too.

    If the first wave reads all, the last one finds all in L2.
    """
    if waves <= 1:
        return new
    missing = math.ceil(waves) - waves
    return (new * waves + missing * (new * waves - 1) / (waves - 1)) / math.ceil(waves)


def _run(sites: TrafficSites, place: Place) -> float:
    """Return how many bytes lie side by side of what blocks that are there at once read, or write.

    Those of blocks that begin one after the other are, where each goes on where the one before ends.
    """
    reads = place[1] in _READS
    alike = [seen for (_, family), seen in sites.requests.items() if (family in _READS) == reads]
    name = "seen_fresh" if reads else "seen_own_sectors"
    run = SECTOR_BYTES * sum(seen.get(name, 0.0) for seen in alike)
    run /= max(1.0, sum(seen.get("seen_runs", 0.0) for seen in alike))
    following = sites.at_once
    for extent, step in zip(sites.grid, sites.moving.get(place) or (), strict=False):
        if extent > 1:
            if abs(step) > run:
                break
            run += abs(step) * (min(following, extent) - 1)
            following = math.ceil(following / extent)
    return run or math.inf


def _different(grid: Sequence[int], moves: Sequence[int], following: float) -> float:
    """How many different places so many blocks in a row read at, which move along some axes of the grid."""
    count, covered = 1.0, following
    for extent, moving in zip(grid, moves, strict=True):
        count *= min(covered, extent) if moving else 1
        covered = math.ceil(covered / extent)
    return min(count, following)


def _period(grid: Sequence[int], moves: Sequence[int]) -> int:
    """After how many blocks one reads the same again."""
    period = 1
    for extent, moving in zip(grid, moves, strict=True):
        if not moving and extent > 1:
            break
        period *= extent
    return period


def _dropped(nbytes: float, l2_bytes: float) -> float:
    """Share of so many bytes, read in turn over and over, that L2 does not keep."""
    return max(0.0, 1 - l2_bytes / _COPIES / nbytes) if nbytes else 0.0


def _of_place(family: str, counts: Mapping[str, float], times: float) -> Traffic:
    seen = counts.get("seen_sectors", 0.0)
    if family in _BULK:
        sectors = seen / counts["seen_copies"] if seen else 0.0
        spread = counts.get("seen_lines", 0.0) / max(1.0, seen)
        return Traffic(0.0, sectors, spread=max(1 / _SECTORS_PER_PASS, spread))
    # Machine code may leave some of what is counted to others of the same place.
    times = max(times, counts.get("requests", 0.0))
    requests = counts.get("requests", 0.0) / times
    if family == "constant_load":
        return Traffic(counts.get("useful_bytes", 0.0) / _WORD_BYTES / times)
    if family.startswith("shared"):
        return Traffic(counts.get("wavefronts", 0.0) / times or requests)
    sectors = counts.get("sectors", 0.0) / times
    spread = max(
        1 / _SECTORS_PER_PASS,
        counts.get("seen_placed_lines", 0.0) / _SECTORS_PER_PASS / seen if seen else 0.0,
    )
    passes = max(sectors * (counts["seen_passes"] / seen if counts.get("seen_passes") else spread), requests)
    if family not in ("global_load", "async_copy") or not seen:
        useful = counts.get("useful_bytes", 0.0) / times
        partial = family == "global_store" and useful < _PARTIAL * SECTOR_BYTES * sectors
        busiest = counts.get("seen_busiest_sector", 0.0), counts.get("seen_busiest_part", 0.0)
        known = Traffic(passes, sectors, spread=spread, partial=partial, busiest=busiest)
        if own := counts.get("seen_own_lines", 0.0):
            known = replace(
                known,
                writers=max(1, round(counts["seen_lines"] / own)),
                own=counts["seen_own_sectors"] / seen,
                again=counts.get("seen_again", 0.0) >= own / 2,
            )
        return known
    missed = counts.get("seen_missed", 0.0)
    sharers = max(1, round(1 + counts.get("seen_shared", 0.0) / missed)) if missed else 1
    return Traffic(
        *(passes, sectors * missed / seen),
        spread=spread,
        missing=counts["seen_waiting"] / counts["seen_warps"],
        sharers=sharers,
        brought=counts.get("seen_brought", 0.0) / max(1.0, counts.get("seen_fresh", 0.0)),
    )
