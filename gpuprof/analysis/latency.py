# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What to do in the source where no part of the GPU is busy: launches, empty SMs, and what warps wait for.

How much must be under way on an SM to keep a part busy is told by Little's law.
"""

from collections.abc import Iterator, Mapping
from math import ceil, prod

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.action_facts import WIDEST, Action, CaseFacts
from gpuprof.analysis.limiter import launch_overhead
from gpuprof.analysis.speed import speed_of, tensor_source
from gpuprof.analysis.status import blocks_of, waves
from gpuprof.bounds.parts import DRAM, L2, LAUNCH, PARTS, WARP_LANES
from gpuprof.devices.card_constants import constants_of
from gpuprof.devices.device import Device
from gpuprof.devices.measured import latencies
from gpuprof.devices.occupancy import occupancy_limits
from gpuprof.devices.rates import sm_rates
from gpuprof.results import Measurement
from gpuprof.text import listed

#: A grid whose last wave is emptier than this leaves SMs idle at its end.
_FULL_WAVES = 0.9
_STALLED_PCT = 20.0
_LOW_EFFICIENCY_PCT = 50.0
#: Unused bytes of one kind of access, as a share of the bytes of all sectors.
_MUCH_WASTE = 0.1
#: How near a number of sectors must come to a whole one to count as one.
_WHOLE = 0.005
_MANY_ATOMICS = 0.3
_MOSTLY_LAUNCH_PCT = 50.0
#: Barriers that each warp waits at.
_MANY_BARRIERS = 4
#: What the executor has no count of where bulk copies load; nothing else hides both.
_OF_BULK_LOADS = ("global_load_requests", "shared_store_requests")
COALESCE = "coalesce global accesses (neighbouring lanes, neighbouring addresses)"


def launch_less(facts: CaseFacts) -> Iterator[Action]:
    """Fewer launches, where they are what takes time."""
    overhead = launch_overhead(facts.run, facts.case)
    floor = facts.floor if facts.floor and facts.floor.key == LAUNCH.key else None
    do = "put more work in each launch (batch problems, fuse with the kernel before or after)"
    if overhead is not None and overhead.of_us > overhead.launch_us:
        rest = overhead.of_us - overhead.launch_us
        yield Action(do, overhead.text, rest, "without launch overhead", overhead.of_us / rest, digits=2)
    elif overhead is not None:
        yield Action(do, overhead.text)
    elif floor is not None:
        yield Action(do, f"the launch alone takes {numbers.time_us(floor.bound.least_us)}")


def launch_first(facts: CaseFacts) -> Iterator[Action]:
    """The launch before all else where it is most of the time: then the kernel can gain less than that."""
    overhead = launch_overhead(facts.run, facts.case)
    if overhead is not None and overhead.share_pct >= _MOSTLY_LAUNCH_PCT:
        yield from launch_less(facts)


def more_of_the_grid(facts: CaseFacts) -> Iterator[Action]:
    """More blocks, where there are fewer than SMs."""
    why = f"{numbers.plural(blocks_of(facts.case) or 0, 'block')} for {facts.device.sm_count} SMs"
    is_product = facts.work[1] == "FMA" or tensor_source(facts.case)
    how = "smaller tiles, split-K" if is_product else "smaller tiles, fewer threads"
    do = f"launch more, smaller blocks ({how})"
    if facts.limits is None or facts.now_us is None:
        yield Action(do, why)
        return
    spread = {floor: floor.bound.even_us or floor.bound.least_us for floor in facts.limits.floors}
    most = max(spread, key=spread.__getitem__)
    lowers = facts.limits.measured_us is None and facts.limits.modelled_us is not None
    yield Action(do, why, spread[most], most.short, facts.now_us / spread[most], lowers)


def fill_waves(facts: CaseFacts) -> Iterator[Action]:
    """A last wave of blocks that does not fill the device."""
    filled = waves(facts.run, facts.case)
    if filled is None or filled <= 1 or filled / ceil(filled) >= _FULL_WAVES or facts.now_us is None:
        return
    us = facts.now_us * filled / ceil(filled)
    why = f"{numbers.significant(filled)} waves of blocks: the last leaves SMs idle"
    do = "choose tiles that fill whole waves, or a persistent grid (stream-K)"
    yield Action(do, why, us, "all waves full", ceil(filled) / filled)


def keep_registers(facts: CaseFacts) -> Iterator[Action]:
    """Registers that go through local memory."""
    held = facts.case.resources
    if held is not None and held.spill_bytes:
        do = "keep registers from spilling (smaller register tiles, fewer variables alive, a higher limit)"
        why = f"{numbers.size(held.spill_bytes)} a thread go through local memory"
        yield facts.to_the_bound(do, why)


def coalesce(facts: CaseFacts) -> Iterator[Action]:
    """Sectors that are fetched or written for few of their bytes."""
    if found := list(wasted_sectors(facts.case)):
        yield facts.to_the_bound(COALESCE, "; ".join(found))


def wasted_sectors(case: Measurement) -> Iterator[str]:
    """Sectors that warps request and hardly use, the larger number of them first."""
    found = []
    every = counts.total(case, *counts.GLOBAL_SECTORS) or 0.0
    for kind in ("load", "store"):
        efficiency = counts.value(case, f"global_{kind}_efficiency_pct")
        if efficiency is None or efficiency >= _LOW_EFFICIENCY_PCT:
            continue
        requests = counts.value(case, f"global_{kind}_requests")
        sectors = counts.value(case, f"global_{kind}_sectors")
        if not requests or not sectors:
            found.append((0.0, f"{kind} efficiency only {numbers.percent(efficiency)}"))
            continue
        unused = sectors * (1 - efficiency / 100)
        if unused < _MUCH_WASTE * every:
            continue
        touched = sectors / requests
        needed = touched * efficiency / 100
        # A fraction of a sector cannot be fetched: then the mean over different instructions has no ideal.
        whole = round(needed) >= 1 and abs(needed - round(needed)) <= _WHOLE * needed
        enough = (
            f"{round(needed)} would suffice"
            if whole
            else f"{numbers.percent(efficiency)} of their bytes {'used' if kind == 'load' else 'written'}"
        )
        text = f"each warp {kind} touches {numbers.brief(touched)} sectors, {enough}"
        found.append((unused, text))
    for _, text in sorted(found, key=lambda item: -item[0]):
        yield text


def _combine_atomics(facts: CaseFacts) -> Iterator[Action]:
    rate = constants_of(facts.device).rates["atomics_together_gops"]
    done, model = facts.count("global_atomic_requests"), facts.case.model
    now = model.median_us if model and speed_of(facts.run, facts.case) is None else facts.now_us
    if not now:
        return
    # The rate is of integers, which a warp adds up first; of others each lane asks for a sector.
    us = max(done, facts.count("global_atomic_sectors")) * WARP_LANES / rate / 1e3
    if not _MANY_ATOMICS <= us / now <= 1 / _MANY_ATOMICS:  # few, or not in one word
        return
    why = (
        f"{numbers.count(done)} requests would take up to {numbers.time_us(us)}, if all lanes met in one word"
    )
    yield facts.to_the_bound("combine within a warp or block before each atomic", why)


#: What warps wait for that stall for this reason longest, and what helps against it.
_AGAINST_STALL = {
    "long_scoreboard": (
        "global memory",
        "load earlier, and more at once (prefetch the next tile while this one is used)",
    ),
    "short_scoreboard": (
        "shared memory",
        "go to shared memory less often (wider accesses, larger register tiles)",
    ),
    "barrier": (
        "barriers",
        "wait less at barriers (double-buffer, more work for each barrier, more blocks an SM)",
    ),
    "mio_throttle": (
        "the shared-memory queue",
        "issue fewer shared-memory instructions (16-byte accesses, larger register tiles)",
    ),
    "lg_throttle": (
        "the global-memory queue",
        "issue fewer global-memory instructions (16-byte accesses)",
    ),
    "wait": (
        "fixed latencies",
        "put independent instructions between dependent ones (unroll, more accumulators)",
    ),
    "gmma": ("matrix products", "wait for products later (start the next ones first, a warpgroup more)"),
    "no_instruction": ("instruction fetches", "keep the loop in the instruction cache (unroll less)"),
    "branch_resolving": ("branch resolving", "unroll the inner loop"),
    "drain": ("stores before exit", "end with fewer, wider stores"),
    "membar": ("membar", "use fewer memory fences"),
    "imc_miss": ("imc miss", "read constants in order, or keep them in registers"),
}


def against_stalls(facts: CaseFacts) -> Iterator[Action]:
    """What Nsight Compute saw warps wait for."""
    for name, share in counts.stalls(facts.case):
        if share < _STALLED_PCT:
            return
        if known := _AGAINST_STALL.get(name.removeprefix("stall_")):
            cause, do = known
            yield facts.to_the_bound(do, f"warps stall {numbers.percent(share)} of their cycles on {cause}")
            return


def _needed_in_flight(case: Measurement, device: Device, part: str) -> float | None:
    """What must be under way on each SM to keep a part busy with a case's work; None if that is not known.

    By Little's law its highest rate per cycle and SM, times the cycles from the start of a piece of work
    until its result can be used.
    """
    cycles, rate = _cycles(case, device, part), sm_rates(device).get("l2_bytes" if part == L2.key else part)
    per_cycle = rate.per_cycle if rate else None
    if part == DRAM.key and device.peak_bandwidth_gbps and device.sm_clock_mhz:
        per_cycle = device.peak_bandwidth_gbps * 1e3 / device.sm_clock_mhz / device.sm_count
    return per_cycle * cycles if per_cycle and cycles else None


def _cycles(case: Measurement, device: Device, part: str) -> float | None:
    """Latency of a part's work, on average."""
    known = latencies(device)
    if part != "l1":
        return known.get(f"{part}_latency_cycles") if part in ("fma", "l2", "dram") else None
    shared, cached = known.get("shared_latency_cycles"), known.get("l1_latency_cycles")
    if shared is None or cached is None:
        return None
    passes = counts.value(case, "l1_passes")
    here = counts.known(case, *counts.SHARED_PASSES)
    if not passes or here >= passes:
        return shared
    return (here * shared + (passes - here) * cached) / passes


def _resident(case: Measurement, device: Device) -> tuple[float, str] | None:
    """The warps that the busiest SM holds at a time, and why no more; None where its occupancy is unknown."""
    held = case.occupancy
    if held is None:
        return None
    blocks, warps = blocks_of(case), held.theoretical_pct / 100 * device.max_threads_per_sm / WARP_LANES
    per_block = ceil(prod(case.block) / WARP_LANES)
    launched = warps if blocks is None else ceil(blocks / device.sm_count) * per_block
    return (launched, "no more are launched") if launched < warps else (warps, held.limiter)


def keep_in_flight(facts: CaseFacts) -> Iterator[Action]:
    """More independent work on its way, where what is resident cannot keep the busiest part busy."""
    if facts.limits is None:
        return
    held = _resident(facts.case, facts.device)
    busiest = next((floor.key for floor in facts.limits.floors if floor.key != LAUNCH.key), "")
    part = facts.limiter.key if facts.limiter and facts.limiter.key in PARTS else busiest
    needed = _needed_in_flight(facts.case, facts.device, part)
    if needed is None or held is None or not held[0]:
        return
    label, unit, each = PARTS[part].label, PARTS[part].unit, needed / held[0]
    need = "need" if " and " in label else "needs"
    warps = f"{numbers.brief(held[0])} warps are resident ({held[1]})"
    if unit != "bytes":
        if each > 1:
            do = f"keep {ceil(each)} {unit} of each warp in flight (unroll, more accumulators)"
            what = f"{numbers.significant(needed)} {unit}"
            yield facts.to_the_bound(do, f"{label} {need} {what} in flight on each SM, {warps}")
        return
    why = f"{label} {need} {numbers.size(round(needed))} in flight on each SM, {warps}"
    loads, useful = facts.count("global_load_requests"), facts.count("global_load_useful_bytes")
    if not loads or not useful:
        yield facts.to_the_bound("have more copies in flight (more stages, larger tiles)", why)
        return
    brought = useful / loads
    if each <= brought:
        return
    wide = f", or {ceil(each / WIDEST)} of 16 bytes" if brought < WIDEST / 2 else ""
    loads_each = ceil(each / brought)
    do = f"keep {loads_each} loads of each thread in flight{wide} (unroll or prefetch: load first, use later)"
    yield facts.to_the_bound(do, f"{why}, and a load of a warp brings {numbers.size(round(brought))}")


def _fetched_ahead(facts: CaseFacts) -> bool:
    """Whether the copy engine fetches: ncu saw its bytes, or the executor's counts leave them out."""
    hidden = [counts.find(facts.case, name) for name in _OF_BULK_LOADS]
    left_out = all(one is not None and one.source == "sim" and one.value is None for one in hidden)
    return left_out or facts.count("bulk_load_bytes") > 0


def let_more_reside(facts: CaseFacts) -> Iterator[Action]:
    """What of a block's registers or shared memory must go so that one more fits on an SM."""
    held, occupancy, threads = facts.case.resources, facts.case.occupancy, prod(facts.case.block)
    if held is None or occupancy is None or occupancy.theoretical_pct >= 50 or not occupancy.blocks_per_sm:
        return
    if _fetched_ahead(facts):  # however few warps are resident
        return
    wanted = occupancy.blocks_per_sm + 1
    blocks_launched = blocks_of(facts.case)
    if blocks_launched is not None and blocks_launched <= occupancy.blocks_per_sm * facts.device.sm_count:
        return

    def blocks(registers: int, shared: int) -> Mapping[str, int | None]:
        limits = occupancy_limits(
            facts.device,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_bytes_per_block=shared,
        )
        return {limit.name: limit.blocks for limit in limits}

    asks = []
    for name, most in blocks(held.registers_per_thread, held.shared_bytes).items():
        if most is None or most >= wanted:
            continue
        if name == "registers":
            fewer = range(held.registers_per_thread, 15, -1)
            fits = next((count for count in fewer if (blocks(count, 0)[name] or wanted) >= wanted), None)
            if fits is None:
                return
            asks.append(f"{fits} registers a thread (now {held.registers_per_thread})")
        elif name == "shared memory":
            fits = facts.device.shared_bytes_per_sm // wanted - facts.device.reserved_shared_bytes_per_block
            size = numbers.size(fits // 1024 * 1024)
            asks.append(f"{size} of shared memory (now {numbers.size(held.shared_bytes)})")
        else:
            return
    if not asks:
        return
    do = f"fit {wanted} blocks on an SM: at most {' and '.join(asks)}"
    why = (
        f"{numbers.percent(occupancy.theoretical_pct)} occupancy hides little, limited by {occupancy.limiter}"
    )
    yield facts.to_the_bound(do, why)


def overlap_steps(facts: CaseFacts) -> Iterator[Action]:
    """Enough warps, and none of the above: each waits for steps of its own, one after the other."""
    if facts.limits is None:
        return
    held, blocks = _resident(facts.case, facts.device), blocks_of(facts.case) or 0
    warps = blocks * ceil(prod(facts.case.block) / WARP_LANES)
    loads = facts.count("global_load_requests", "async_copy_requests") / warps if warps else 0.0
    barriers = facts.count("barriers") / warps if warps else 0.0
    if barriers >= _MANY_BARRIERS:
        do = "wait less at barriers (shuffles within a warp, double-buffer, more work for each barrier)"
    else:
        do = "overlap dependent steps (several elements of a thread at once, next loads before this use)"
    why = [f"{numbers.brief(held[0])} warps are resident on an SM"] if held else []
    if _fetched_ahead(facts):
        do = "overlap the work of several tiles (more stages, producer warps, persistent blocks)"
        yield facts.to_the_bound(do, "; ".join([*why, "the copy engine fetches ahead of them"]))
        return
    counted = ((round(loads), "global load"), (round(barriers), "barrier"))
    if sum(count for count, _ in counted) > 1:
        steps = [numbers.plural(count, word) for count, word in counted if count]
        why.append(f"each goes through {listed(steps)} in turn")
    yield facts.to_the_bound(do, "; ".join(why) or "no part of the GPU is busy")


#: What helps against latency, in the order in which it tells.
LATENCY = (
    launch_first,
    keep_registers,
    _combine_atomics,
    coalesce,
    against_stalls,
    keep_in_flight,
    let_more_reside,
    overlap_steps,
    launch_less,
)
