# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The modelled time of a case: one SM plays the share of the busiest, wave after wave."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.errors import GpuprofError
from gpuprof.executor import loops_of
from gpuprof.machine_code.sass import MachineCode
from gpuprof.sm_model.control_words import ControlWord
from gpuprof.sm_model.machine_steps import step_of
from gpuprof.sm_model.path import usual_path
from gpuprof.sm_model.sm import Played, SmSurroundings, StreamingMultiprocessor
from gpuprof.sm_model.traffic import Traffic

_SECTOR_BYTES = 32
#: What an SM takes from L2 in a cycle at most, however few SMs ask.
_MOST_L2_BYTES = 64.0
#: Instructions to play at most; waves beyond them follow from those before.
_BUDGET = 300_000
_MOST_WAVES = 6
#: Share of a kernel's instructions that may be executed or not.
_UNSURE = 0.02
#: Of a path, the share of instructions that it may leave out and still be the whole life of a warp.
_LEFT_OUT = 0.02
#: A cold kernel fetches its code and its arguments from DRAM, one after the other.
_COLD_FETCHES = 2
_UNPLAYED = ("UBLKCP", "UTMALDG", "UTMASTG", "SYNCS", "HGMMA", "IGMMA", "QGMMA")
_NEEDED = ("l2_gbps", "dram_read_gbps", "barriers_gips", "launch_floor_us", "event_floor_us")


class NotModelled(GpuprofError):
    """Why a case has no modelled time."""


@dataclass(frozen=True, slots=True)
class PlayedLaunch:
    """A launch to be modelled.

    Args:
        code: Machine code.
        words: Its control words, in the order of addresses.
        times: How often warps of the whole grid execute each block of it: at least and at most.
        traffic: Of memory instructions, by their addresses.
        blocks: Of the grid.
        warps: Of a block.
        resident: Blocks that an SM holds.
    """

    code: MachineCode
    words: Sequence[ControlWord]
    times: Sequence[tuple[float, float]]
    traffic: Mapping[int, Traffic]
    blocks: int
    warps: int
    resident: int


@dataclass(frozen=True, slots=True)
class Modelled:
    """A modelled time.

    Args:
        us: In microseconds, with what an empty launch takes.
        reasons: Where the cycles of a usual warp went, as shares of them: `issue`, `dependency`, `memory` and
            `barrier`.
        tail: Share of the time in which the last blocks leave room on their SM.
    """

    us: float
    reasons: Mapping[str, float]
    tail: float


def modelled(launches: Sequence[PlayedLaunch], device: Device) -> Modelled:
    """Return the modelled time of a case whose launches follow each other, caches cold.

    Args:
        launches: In order.
        device: With its measured rates.

    Raises:
        NotModelled: Something of it is not known, or not played.
    """
    missing = [name for name in _NEEDED if name not in device.measured_rates]
    if missing or not device.sm_clock_mhz:
        raise NotModelled(f"Its device was not measured: {', '.join(missing)}.")
    cycles = _COLD_FETCHES * latencies(device)["dram_latency_cycles"]
    tail, reasons = 0.0, dict[str, float]()
    for launch in launches:
        _check(launch)
        taken, last, why = _cycles(launch, device)
        cycles, tail = cycles + taken, tail + last
        reasons = {name: reasons.get(name, 0.0) + why.get(name, 0.0) for name in {*reasons, *why}}
    rates, total = device.measured_rates, max(1e-9, sum(reasons.values()))
    between = rates["event_floor_us"] + (len(launches) - 1) * rates["launch_floor_us"]
    shares = {name: each / total for name, each in reasons.items()}
    return Modelled(between + cycles / device.sm_clock_mhz, shares, tail / cycles)


def _check(launch: PlayedLaunch) -> None:
    """Refuse what is not known for certain."""
    least = most = 0.0
    for block, (low, high) in zip(launch.code.blocks, launch.times, strict=True):
        least += low * len(block.instructions)
        most += high * len(block.instructions)
        unplayed = [one.name for one in block.instructions if one.name in _UNPLAYED]
        if high and unplayed:
            raise NotModelled(f"It has {unplayed[0]}, which is not modelled yet.")
    if not most <= (1 + _UNSURE) * least:
        raise NotModelled("How often its machine code executes is not known for certain.")


def _cycles(launch: PlayedLaunch, device: Device) -> tuple[float, float, Mapping[str, float]]:
    """Return the cycles of a launch, those of them that are its tail, and where a warp's went."""
    blocks = launch.code.blocks
    times = [low / (launch.blocks * launch.warps) for low, _ in launch.times]
    path = usual_path(blocks, times, loops_of(blocks))
    known = latencies(device)
    steps = [
        [step_of(one, launch.words, launch.traffic, known) for one in block.instructions] for block in blocks
    ]
    rates = surroundings_of(device, min(device.sm_count, launch.blocks))
    each = math.ceil(launch.blocks / device.sm_count)
    resident = min(launch.resident, each)

    def play(count: int) -> Played:
        sm = StreamingMultiprocessor(steps, path, launch.warps, min(resident, count), rates)
        return sm.play(count)

    lengths = [len(block.instructions) for block in blocks]
    whole = sum(count * length for count, length in zip(times, lengths, strict=True))
    if sum(lengths[number] for number in path) >= (1 - _LEFT_OUT) * whole:
        waves = max(1, min(_MOST_WAVES, int(_BUDGET / (resident * launch.warps * max(1.0, whole)))))
        played = play(min(each, waves * resident))
        tail = 0.0 if each % resident == 0 or each < resident else _last(played)
        return _extrapolated(played, each, resident), tail, played.reasons
    full, rest = divmod(each, resident)
    played = play(resident)
    cycles = full * _life(played, times, lengths, resident * launch.warps)
    tail = _life(play(rest), times, lengths, rest * launch.warps) if rest else 0.0
    return cycles + tail, tail, played.reasons


def surroundings_of(device: Device, active: int) -> SmSurroundings:
    """Return what each of so many active SMs has of the device.

    Args:
        device: With its measured rates.
        active: SMs that have a block.
    """
    known, measured = latencies(device), device.measured_rates
    cycles_per_ns = device.sm_clock_mhz / 1e3
    share = cycles_per_ns * active
    return SmSurroundings(
        l1_latency=known["l1_latency_cycles"],
        l2_latency=known["l2_latency_cycles"],
        dram_latency=known["dram_latency_cycles"],
        l2_cycles=_SECTOR_BYTES / min(_MOST_L2_BYTES, measured["l2_gbps"] / share),
        dram_cycles=_SECTOR_BYTES / min(_MOST_L2_BYTES, measured["dram_read_gbps"] / share),
        barrier_cycles=device.sm_count * cycles_per_ns / measured["barriers_gips"],
    )


def _last(played: Played) -> float:
    return played.ends[-1] - played.ends[-2] if len(played.ends) > 1 else 0.0


def _extrapolated(played: Played, blocks: int, resident: int) -> float:
    """Return when the last of an SM's blocks ends, of which the first ones were played."""
    ends = sorted(played.ends)
    left = blocks - len(ends)
    if len(ends) >= 3 * resident:  # the second last wave shows how fast blocks follow each other
        return ends[-1] + left * (ends[-resident - 1] - ends[-2 * resident - 1]) / resident
    return ends[-1] * (1 + left / len(ends))


def _life(played: Played, times: Sequence[float], lengths: Sequence[int], warps: int) -> float:
    """Return how long a warp lives: in each block the passes played, and more like the later ones."""
    life = instructions = rest = 0.0
    for number, (count, length) in enumerate(zip(times, lengths, strict=True)):
        spent = played.spent.get(number)
        if spent is None:
            rest += count * length
            continue
        by_place: dict[int, list[float]] = defaultdict(list)
        for place, cycles in spent:
            by_place[place].append(cycles)
        means = [sum(by_place[place]) / len(by_place[place]) for place in sorted(by_place)]
        passes, later = len(spent) / warps, means[len(means) // 3 :]
        mean, steady = sum(means) / len(means), sum(later) / len(later)
        life += min(count, passes) * mean + max(0.0, count - passes) * steady
        instructions += count * length
    return life * (1 + rest / max(1.0, instructions))
