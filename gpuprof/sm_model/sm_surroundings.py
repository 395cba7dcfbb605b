# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the SM that plays a launch has of the rest of the device, from a card's constants."""

import math
from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from gpuprof.devices.card_constants import CardConstants
from gpuprof.devices.device import Device
from gpuprof.sm_model.played_launch import PlayedLaunch
from gpuprof.sm_model.traffic import MOST_L2_BYTES, SECTOR_BYTES

_STORE_SECTORS = 16
#: Waves of empty blocks that were timed, of so many threads on each SM.
_WAVES, _THREADS, _LANES = (4, 16), 2048, 32
#: Code was timed in parts of so many instructions; the first ones are fetched ahead.
_CODE_PART, _CODE_PARTS, _CODE_AHEAD = 256, 32, 4
#: By how much the first copy of a tensor map takes longer where all SMs ask for it, as measured on an H200:
#: 2,292 cycles cold and 669 warm, less what DRAM takes more than L2.
_MAP_CYCLES = 1245
#: Blocks on each SM beside which DRAM's latency was measured.
_BESIDE = ("few", 1, 2, 4, 7)
#: Of requests of 16 lines: the last answer comes later by how far one varies, times the logarithm of that.
_OF_LINES, _LINES = "_of_16_lines", 16
#: Of its rate: beyond it requests wait for their turn.
_MOST_USED = 0.9


class SmSurroundings(Struct, frozen=True):
    """What surrounds the SM, in its cycles.

    Args:
        l1_latency: Of a load that hits in L1.
        l2_latency: The same of L2.
        dram_latency: The same of DRAM.
        l2_cycles: From one sector of L2 to the next.
        dram_cycles: The same of DRAM.
        barrier_cycles: From one warp that reaches a barrier to the next.
        l2_write_cycles: From one sector that L2 takes to the next; as `l2_cycles` if 0.
        release_cycles: From the last warp at a barrier to the first instruction behind it.
        block_cycles: From one block that starts to the next, at least.
        warp_cycles: From one warp of a block that starts to the next.
        bulk_latency: From a bulk copy to its arrival from L2.
        crowd_cycles: Of all SMs that have blocks, a nanosecond.
        loaded: How many cycles later DRAM answers when so much of its rate is used: a share, cycles on
            average, and how far answers vary around that.
    """

    l1_latency: float
    l2_latency: float
    dram_latency: float
    l2_cycles: float
    dram_cycles: float
    barrier_cycles: float
    l2_write_cycles: float = 0.0
    release_cycles: float = 15.0
    block_cycles: float = 0.0
    warp_cycles: float = 0.0
    bulk_latency: float = 0.0
    crowd_cycles: float = 0.0
    loaded: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))

    def later(self, used: float) -> tuple[float, float]:
        """By how many cycles DRAM answers later when so much of its rate is used, and how far that varies."""
        for (low, late, vary), (high, later, varies) in pairwise(self.loaded):
            if used < high:
                part = (used - low) / (high - low)
                return late + (later - late) * part, vary + (varies - vary) * part
        return self.loaded[-1][1:]


def surroundings_of(device: Device, constants: CardConstants, launch: PlayedLaunch) -> SmSurroundings:
    """Return what each of the SMs that have a block of a launch has of the device."""
    rates, values = constants.rates, constants.values
    # The busiest SM has as much of what all share as its part of the blocks.
    active = launch.blocks / launch.most_blocks(device)
    cycles_per_ns = device.sm_clock_mhz / 1e3
    share = cycles_per_ns * active
    store = _STORE_SECTORS * values["l2_store_128_apart_16_requests_per_ns"]
    alone = values["store_128_apart_16_interval_cycles"] / _STORE_SECTORS
    barrier = device.sm_count * cycles_per_ns / rates["barriers_gips"]
    # Who has his share of the work from the start ends when the SM does that is farthest from DRAM.
    shared_out = launch.blocks <= launch.resident * device.sm_count
    copied = rates["dram_copy_gbps"] if shared_out else values[f"dram_copies_beside_{_BESIDE[-1]}_gbps"]
    mixed, gbps = _dram_use(launch, rates, copied)
    return SmSurroundings(
        l1_latency=rates["l1_latency_cycles"],
        l2_latency=rates["l2_latency_cycles"],
        dram_latency=rates["dram_latency_cycles"],
        l2_cycles=SECTOR_BYTES / min(MOST_L2_BYTES, rates["l2_gbps"] / share),
        dram_cycles=SECTOR_BYTES / min(MOST_L2_BYTES, gbps / share),
        barrier_cycles=barrier,
        l2_write_cycles=max(alone, share / store),
        release_cycles=values["bar_1_warps_cycles"] - barrier,
        block_cycles=_block_us(values) * 1e3 / device.sm_count * share,
        warp_cycles=values["block_of_1024_start_cycles"] / (1024 // _LANES - 1),
        bulk_latency=values["bulk_load_of_128_times_1_cycles"] - values["mbarrier_1_warps_cycles"],
        crowd_cycles=share,
        loaded=_loaded(values, mixed),
    )


def _loaded(values: Mapping[str, float], mixed: float) -> tuple[tuple[float, float, float], ...]:
    """Return `SmSurroundings.loaded`, where so much of DRAM's work is `mixed` reads and writes."""
    found: list[tuple[float, float, float]] = []
    for blocks in _BESIDE:
        used = later = varies = 0.0
        for part, name in ((1 - mixed, "dram"), (mixed, "dram_copies")):
            most = values[f"{name}_beside_{_BESIDE[-1]}_gbps"]
            used += part * values[f"{name}_beside_{blocks}_gbps"] / most
            later += part * values[f"{name}_latency_beside_{blocks}_cycles"]
            one, lines = (values[f"dram_latency{of}_beside_{blocks}_cycles"] for of in ("", _OF_LINES))
            varies += part * (lines - one) / math.log(_LINES)
        if not found:
            found.append((0.0, 0.0, varies))
        if found[-1][0] < used <= _MOST_USED:
            found.append((used, max(0.0, later - values["dram_latency_beside_few_cycles"]), varies))
    return tuple(found)


def _block_us(values: Mapping[str, float]) -> float:
    """Return what an SM takes from one empty block to the next, all SMs alike."""
    few, many = (values[f"empty_blocks_of_128_waves_{waves}_us"] for waves in _WAVES)
    return max(0.0, many - few) / ((_WAVES[1] - _WAVES[0]) * (_THREADS // 128))


def fetch_cycles(launch: PlayedLaunch, values: Mapping[str, float]) -> float:
    """Return what it takes to fetch code beyond what is fetched ahead, and tensor maps."""
    executed = [
        one.name
        for block, (times, _) in zip(launch.code.blocks, launch.times, strict=True)
        for one in (block.instructions if times else ())
    ]
    ahead, whole = (values[f"code_flushed_all_sms_{size}_cycles"] for size in ("16k", "128k"))
    slowest = (_CODE_PARTS * whole - _CODE_AHEAD * ahead) / (_CODE_PARTS - _CODE_AHEAD)
    code = max(0.0, len(executed) / _CODE_PART - _CODE_AHEAD)
    code *= slowest - values["code_flushed_all_sms_start_cycles"]
    return code + (_MAP_CYCLES if "UTMALDG" in executed else 0.0)


def _dram_use(launch: PlayedLaunch, rates: Mapping[str, float], copied: float) -> tuple[float, float]:
    """Return how much of DRAM's work reads and writes it by turns, and its rate, which is less then."""
    moved = {True: 0.0, False: 0.0}
    for block, (times, _) in zip(launch.code.blocks, launch.times, strict=True):
        for one in block.instructions:
            if asked := launch.traffic.get(one.address):
                moved[one.name in ("STG", "ST")] += times * asked.sectors * asked.distant
    mixed = 2 * min(moved.values()) / max(1e-9, sum(moved.values()))
    alone = rates["dram_write_gbps"] if moved[True] > moved[False] else rates["dram_read_gbps"]
    return mixed, alone + mixed * (copied - alone)
