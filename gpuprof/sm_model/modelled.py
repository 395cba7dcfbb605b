# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The modelled time of a case: one SM plays the share of the busiest, wave after wave."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

from msgspec import Struct

from gpuprof.devices.card_constants import CardConstants, constants_of
from gpuprof.devices.device import Device
from gpuprof.executor import loops_of, reached
from gpuprof.machine_code.sass import Block
from gpuprof.records import replace
from gpuprof.sm_model.machine_steps import steps_of
from gpuprof.sm_model.path import hottest, is_met_in, may_end, passes_of
from gpuprof.sm_model.played_blocks import Played
from gpuprof.sm_model.played_launch import NotModelled, PlayedLaunch, usual_times
from gpuprof.sm_model.sm import StreamingMultiprocessor
from gpuprof.sm_model.sm_surroundings import SmSurroundings, fetch_cycles, surroundings_of
from gpuprof.sm_model.step import REASONS, Step, StepKind
from gpuprof.sm_model.tiles import WORKING, tiles_of
from gpuprof.sm_model.warp_paths import paths_of

#: Instructions to play at most; waves beyond them follow from those before.
_BUDGET = 300_000
_MOST_WAVES = 6
#: How much more instructions may be executed than those that are played.
_MOST_UNSURE = 1.5
#: Ends of the interval for what is modelled, beside errors with samples/: of a card that was measured, of
#: one of its architecture, and of any other.
_INTERVALS = {"card": (0.75, 1.3), "architecture": (0.7, 1.5), "other": (0.6, 1.8)}
#: What atomic operations to few places take may be so many times more or less: how L2 deals out its lines,
#: and who comes at the same time, is not known.
_ATOMICS = 2
#: How much longer warps may take that bring tiles to others by themselves: products took 6 to 62 % longer
#: than modelled (H200), as they wait until addresses are read, and for parts of words.
_BROUGHT = 1.3
#: Ways to L2 and back until a block knows what another has stored.
_HANDED_ON = 3
#: Of a path, the share of instructions that it may leave out and still be the whole life of a warp.
_LEFT_OUT = 0.02
#: How many times as long as what a warp executes a path may be, which has whole passes of loops.
_MOST_MADE_UP = 2
#: What goes through the caches of textures.
_UNPLAYED = ("TEX", "TLD", "TLD4", "TXD", "SULD", "SUST", "SUATOM", "SURED")
#: How often a warp may try a compare-and-swap on average and still be played.
_MOST_TRIES = 2


class Modelled(Struct, frozen=True):
    """A modelled time.

    Args:
        us: In microseconds, with what an empty launch takes.
        low_us: What it may take at least, by the model's errors.
        high_us: And at most.
        lines: Where it goes, as shares of it: by source line, 0 for what has none, and reason, `REASONS` of
            a usual warp's cycles.
        tail: Share in which the last blocks leave room on their SM.
        launch: Share of an empty launch, and of what is fetched cold.
    """

    us: float
    low_us: float
    high_us: float
    lines: Mapping[tuple[int, str], float]
    tail: float
    launch: float


def modelled(launches: Sequence[PlayedLaunch], device: Device) -> Modelled:
    """Return the modelled time of a case whose launches follow each other, caches cold.

    Args:
        launches: In order.
        device: With its measured rates.

    Raises:
        NotModelled: Something of it is not known, or not played.
    """
    if not device.sm_clock_mhz:
        raise NotModelled("The clock of its device is not known.")
    constants = constants_of(device)
    rates, values = constants.rates, constants.values
    # An empty kernel has no arguments, which come from L2, and no stores: they take there and back as long as
    # atomic operations, and a block's end waits for L2's latency of that. The last of DRAM's answers to all
    # SMs comes later than that to one, as with many lines.
    cold = len(launches) * values["fetch_add_32_apart_4_latency_cycles"]
    cold += values["dram_latency_of_16_lines_beside_few_cycles"] - values["dram_latency_beside_few_cycles"]
    cold += sum(fetch_cycles(launch, values) for launch in launches)
    cycles, tail, atomics, most = 0.0, 0.0, 0.0, 1.0
    spent: defaultdict[tuple[int, str], float] = defaultdict(float)
    for launch in launches:
        most = max(most, _check(launch))
        taken, last, where, crowd, longer = _cycles(launch, device, constants)
        cycles, tail, atomics = cycles + taken, tail + last, atomics + min(taken, crowd)
        most = max(most, longer)
        whole = max(1e-9, sum(where.values()))
        for key, each in where.items():
            spent[key] += each / whole * (taken - last)
    between = len(launches) * rates["launch_floor_us"] + cold / device.sm_clock_mhz
    us = between + cycles / device.sm_clock_mhz
    low, high = _INTERVALS[constants.near]
    unsure = atomics / device.sm_clock_mhz / us
    low, high = low * (1 - unsure / _ATOMICS), high * most * (1 + unsure * (_ATOMICS - 1))
    shares = {key: each / device.sm_clock_mhz / us for key, each in spent.items()}
    return Modelled(us, low * us, high * us, shares, tail / device.sm_clock_mhz / us, between / us)


def _check(launch: PlayedLaunch) -> float:
    """Refuse what is not played, or not known for certain; return how often instructions execute, at most.

    Returns:
        Relative to what is played.
    """
    least = most = 0.0
    rare, blocks = launch.rare, launch.code.blocks
    for number, (block, (low, high)) in enumerate(zip(blocks, launch.times, strict=True)):
        unplayed = [one.name for one in block.instructions if one.name in _UNPLAYED]
        if high and unplayed:
            raise NotModelled(f"It has {unplayed[0]}: textures and surfaces are not modelled.")
        called = [block.callee] if high and block.callee is not None else []
        if number in reached(called, lambda one: blocks[one].ways):
            raise NotModelled("It has a function that calls itself, which is not modelled.")
        least += low * len(block.instructions)
        most += (low if number in rare else 2 * low if math.isinf(high) else high) * len(block.instructions)
    if not most <= _MOST_UNSURE * least:
        raise NotModelled("How often its machine code executes is not known for certain.")
    return most / least


def _of_one_block(
    launch: PlayedLaunch,
    times: Sequence[float],
    paths: Sequence[Sequence[int]],
    alone: Callable[[Sequence[Sequence[int]]], Played],
) -> float:
    """Return how much longer a block lives that does what no other one does: the last one, once all are done.

    That all of its warps meet there tells it from what a warp of each block does.
    """
    blocks = launch.code.blocks
    own = {
        number: count / launch.warps
        for number, count in enumerate(usual_times(launch))
        if 0 < count <= launch.warps < launch.blocks * launch.warps
    }
    if not any(
        one.name == "BAR" and one.operands == "0x0" for each in own for one in blocks[each].instructions
    ):
        return 0.0
    ways = paths_of(launch, [own.get(number, count) for number, count in enumerate(times)], 0.0)
    return max(0.0, alone(ways).ends[0] - alone(paths).ends[0])


def _handing_on(launch: PlayedLaunch, played: Played, times: Sequence[float], rates: SmSurroundings) -> float:
    """Return how long blocks wait for each other, one after the other, beyond what each does by itself.

    What the first of them waits for was written early. Each of those that follow does what stands behind its
    wait, up to where most instructions are executed again, once the one before it has.
    """
    blocks = launch.code.blocks
    waits = {
        number
        for number, (block, (_, high)) in enumerate(zip(blocks, launch.times, strict=True))
        if math.isinf(high) and number in block.successors and _is_asked(block)
    }
    if not waits or launch.handed_on < 2:
        return 0.0
    busy = [one.body for one in loops_of(blocks).values() if hottest(blocks, times) in one.body]
    seen = waits.union(*(body for body in busy if not body & waits))
    first = [after for number in waits for after in blocks[number].successors if after not in waits]
    # One warp may wait for all.
    once = min(1.0, launch.warps * max(times[number] for number in first))
    pending, done = list(first), 0.0
    while pending:
        number = pending.pop()
        if number not in seen and times[number]:
            seen.add(number)
            passes = [each for (one, _), each in played.spent.items() if one == number]
            cycles = [taken for each in passes for _, taken in each]
            done += sum(cycles) / max(1, len(cycles)) * times[number] / once
            pending += blocks[number].successors
    return (launch.handed_on - 1) * (done + _HANDED_ON * rates.l2_latency)


def _storing_usually(
    steps: Sequence[Sequence[Step]], times: Sequence[float], paths: Sequence[Sequence[int]]
) -> list[list[Step]]:
    """Return steps of which some ways store as much as blocks do on average: at edges of arrays less."""
    stores = [sum(step.asked.sectors for step in block if step.kind == StepKind.STORE) for block in steps]
    gone = sum(stores[number] for path in paths for number in path) / len(paths)
    share = sum(count * each for count, each in zip(times, stores, strict=True)) / (gone or 1.0)
    found = [[*map(deepcopy, block)] for block in steps]
    for block in found:
        for step in block:
            if step.kind == StepKind.STORE:
                step.asked = replace(step.asked, sectors=step.asked.sectors * share)
    return found


def _is_asked(block: Block) -> bool:
    # The result stands before the address, which may be `desc[UR4][R2.64]`.
    loaded = {
        result
        for one in block.instructions
        if "STRONG" in one.opcode or ".CAS" in one.opcode
        for result in one.operands.partition("[")[0].split(", ")[-2:-1]
    }
    return any(
        one.name == "ISETP" and loaded.intersection(one.operands.split(", ")) for one in block.instructions
    )


def _tries(blocks: Sequence[Block], times: Sequence[float]) -> float:
    """Return how often a warp tries the compare-and-swap that it tries most often, until it goes on."""
    loops = loops_of(blocks)
    tries = [1.0]
    for number, block in enumerate(blocks):
        around = [header for header, loop in loops.items() if number in loop.body]
        if around and _is_asked(block) and any(".CAS" in one.opcode for one in block.instructions):
            header = min(around, key=lambda one: len(loops[one].body))
            tries.append(passes_of(header, loops[header], times))
    return max(tries)


def _cycles(
    launch: PlayedLaunch, device: Device, constants: CardConstants
) -> tuple[float, float, Mapping[tuple[int, str], float], float, float]:
    """Return the cycles of a launch, and of its tail, and where a warp's went, by source line and reason.

    And what the part of L2 that is busiest with atomic operations takes for all of them; how many times as
    long the launch may take.
    """
    blocks = launch.code.blocks
    times = [each / (launch.blocks * launch.warps) for each in usual_times(launch)]
    if _tries(blocks, times) > _MOST_TRIES:
        raise NotModelled("It tries compare-and-swaps again: how often depends on which threads meet.")
    each = launch.most_blocks(device)
    resident = min(launch.resident, each)
    at_once = each <= launch.resident
    longer = 1.0
    if at_once and launch.handed_on < 2:  # who waits for another does much in vain
        done = sum(times)
        launch, times = _busiest(launch, times, launch.blocks / each)
        longer = launch.longest * done / sum(times)
    # Of blocks that are all there at once, the one that does most ends last.
    paths = paths_of(launch, times, 0.0 if at_once else 0.5)
    about = launch.words, launch.traffic, constants, launch.sources, launch.cluster
    steps = [
        steps_of(block.instructions if count else (), *about)
        for block, count in zip(blocks, times, strict=True)
    ]
    rates, warps = surroundings_of(device, constants, launch), launch.warps
    if not any(hottest(blocks, times) in path for path in paths):
        raise NotModelled("No usual way of a warp goes through what is executed most.")
    tiles = tiles_of(launch, paths, steps, times)

    def play(count: int, ways: Sequence[Sequence[int]], played: Sequence[Sequence[Step]]) -> Played:
        most = min(resident, count)
        found = StreamingMultiprocessor(played, ways, warps, most, rates, tiles).play(count)
        if len(found.ends) < count:
            raise NotModelled(WORKING)
        return found

    shared = _shared(steps, times, rates)
    least = each * max(rates.block_cycles, warps * max(rates.warp_cycles, *shared.values()))
    lengths = [len(block.instructions) for block in blocks]
    plays, cycles, tail = _waves(
        lambda count: play(count, paths, steps), paths, lengths, times, warps, each, resident, least
    )
    if not at_once and len({*launch.work}) > 1:
        alone = play(1, paths, deepcopy(steps)).life(times, warps)
        used = min(1.0, each * warps * max(shared["l2"], shared["dram"]) / cycles)
        more = cycles * (1 - used) * (launch.unevenly(device, cycles / each, alone) - 1)
        tail, cycles = tail + more, cycles + more
    later = _of_one_block(launch, times, paths, lambda ways: play(1, ways, deepcopy(steps)))
    if longer > 1 and not (tiles or launch.left_out):
        # The warp that goes round loops most often, in which it waits for no other, does so alone in the end.
        last = StreamingMultiprocessor(deepcopy(steps), [max(paths, key=len)], 1, 1, rates).play(1)
        inside = _inside(blocks, meeting=False)
        again = [count if number in inside else 0.0 for number, count in enumerate(times)]
        later += (longer - 1) * last.life(again, 1)
    tail, cycles = tail + later, cycles + later
    if launch.handed_on > 1:
        # Of each chain of blocks one goes on at a time, and L2 takes what these few write.
        rates = surroundings_of(
            device, constants, replace(launch, blocks=math.ceil(launch.blocks / launch.handed_on))
        )
        one = play(1, paths, _storing_usually(steps, times, paths))
        cycles += _handing_on(launch, one, times, rates)
    return (
        cycles,
        tail,
        _spent(steps, times, plays),
        each * warps * shared["crowd"],
        _BROUGHT if tiles and not tiles.copies else 1.0,
    )


def _waves(
    play: Callable[[int], Played],
    paths: Sequence[Sequence[int]],
    lengths: Sequence[int],
    times: Sequence[float],
    warps: int,
    each: int,
    resident: int,
    least: float,
) -> tuple[list[Played], float, float]:
    """Play some of an SM's blocks; return what was played, the cycles of all blocks, and of the tail.

    Args:
        play: Plays so many.
        paths: Of their warps.
        lengths: Of the blocks of machine code.
        times: How often a warp executes each of these.
        warps: Of a block.
        each: Blocks of the SM.
        resident: That it has at once.
        least: Cycles that all take at least, where paths are cut short.
    """
    whole = sum(count * length for count, length in zip(times, lengths, strict=True))
    gone = sum(lengths[number] for path in paths for number in path) / len(paths)
    if gone > _MOST_MADE_UP * whole:
        raise NotModelled("No usual way of a warp is as long as what warps execute.")
    full, rest = divmod(each, resident)
    if gone >= (1 - _LEFT_OUT) * whole:
        waves = max(1, min(_MOST_WAVES, int(_BUDGET / (resident * warps * max(1.0, whole)))))
        played = play(min(each, waves * resident))
        ends = played.ends
        tail = ends[-1] - ends[-2] if full and rest and len(ends) > 1 else 0.0
        return [played], played.last_end(each, resident), tail
    plays = [play(count) for count in (resident, rest) if count]
    tail = plays[1].life(times, rest * warps) if rest else 0.0
    return plays, max(least, full * plays[0].life(times, resident * warps) + tail), tail


def _busiest(launch: PlayedLaunch, times: list[float], active: float) -> tuple[PlayedLaunch, list[float]]:
    """Return a launch, and how often a warp executes each block of it, on the SM that does most.

    So many SMs have all of its blocks at once. Whole warps that end at once are those of the last ones, where
    the others have fewer lanes.
    """
    more = active * launch.busiest[0]
    if more <= 1:
        return launch, times
    blocks = launch.code.blocks
    inside = _inside(blocks)
    for number, block in enumerate(blocks):
        behind = reached(block.successors, lambda one: blocks[one].successors)
        once = max((times[one] for one in behind - inside), default=0.0)
        if may_end(block) and once:
            warps = max(1.0, min(more, times[number] / once))
            lanes = max(1.0, active * launch.busiest[1] / more)
            traffic = {
                address: replace(asked, passes=asked.passes * lanes, sectors=asked.sectors * lanes)
                for address, asked in launch.traffic.items()
            }
            times = [count * warps if one in behind else count for one, count in enumerate(times)]
            launch, more = replace(launch, traffic=traffic), more / warps
            break
    repeated = sum(times[number] for number in inside)
    if more > 1 and repeated > sum(times) / 2:
        longer = 1 + (more - 1) * sum(times) / repeated
        times = [count * longer if number in inside else count for number, count in enumerate(times)]
    return launch, times


def _inside(blocks: Sequence[Block], *, meeting: bool = True) -> set[int]:
    """Return the blocks that loops repeat, or those in which warps do not wait for each other."""
    loops = [loop.body for loop in loops_of(blocks).values() if meeting or not is_met_in(loop, blocks)]
    return set[int]().union(*loops)


def _shared(
    steps: Sequence[Sequence[Step]], times: Sequence[float], rates: SmSurroundings
) -> Mapping[str, float]:
    """Return the cycles that a warp takes of what all share: data path, L2 and its busiest part, DRAM."""
    of = dict.fromkeys(("crowd", "data", "l2", "dram"), 0.0)
    writes = rates.l2_write_cycles or rates.l2_cycles
    for block, count in zip(steps, times, strict=True):
        for step in block:
            stored = step.kind in (StepKind.STORE, StepKind.BULK_STORE)
            each = writes if stored else rates.l2_cycles
            sectors = count * step.asked.sectors
            of["crowd"] += count * step.crowded * rates.crowd_cycles
            of["data"] += count * step.asked.passes
            of["l2"] += sectors * step.effort * each
            of["dram"] += sectors * step.asked.distant * step.scattered * rates.dram_cycles
    return of


def _spent(
    steps: Sequence[Sequence[Step]], times: Sequence[float], plays: Sequence[Played]
) -> Mapping[tuple[int, str], float]:
    """Return what the passes of all blocks take, by source line and reason, from those that were played."""
    found: defaultdict[tuple[int, str], float] = defaultdict(float)
    passed = Counter(one for played in plays for (one, _), each in played.spent.items() for _ in each)
    for number, block in enumerate(steps):
        if passes := passed[number]:
            stalled = 0.0
            for step in block:
                for name, cycles in zip(REASONS, step.spent, strict=True):
                    if cycles:
                        found[step.line, name] += cycles * times[number] / passes
                # What waits for tensor cores waits for the end of others.
                slot = "dependency" if step.kind == StepKind.PRODUCT else "issue"
                found[step.line, slot] += times[number]
                found[step.line, "dependency"] += times[number] * stalled
                stalled = step.stall - 1
    return found
