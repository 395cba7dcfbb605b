# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What to do in the source about what limits a case, computed from its counts.

`_ACTIONS` maps every limiter to what helps against it. Each entry looks at the case's own counts and says
what to change, how many events that takes away, and the bound that would be left.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, prod

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.in_flight import flight, resident
from gpuprof.analysis.limiter import Limiter, launch_overhead, limiter_of
from gpuprof.analysis.limits import Floor, Limits, limits_of
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import speed_of
from gpuprof.analysis.status import blocks_of, is_reference, status_of, waves
from gpuprof.analysis.why import is_of_fmas, stalls, wasted_sectors
from gpuprof.bounds.parts import DRAM, DRAM_BYTES, LAUNCH, PARTS, SECTOR_BYTES, SECTORS_PER_PASS, WARP_LANES
from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import occupancy_limits
from gpuprof.results import Measurement, Run

#: What allows less than this is not worth the work.
_WORTHWHILE = 1.02
#: What allows less than this is named only where nothing allows more.
_TELLING = 1.1
#: A part this busy is at its roof: what is left is noise, tails and clocks.
_AT_ROOF_PCT = 92.0
#: A grid whose last wave is emptier than this leaves SMs idle at its end.
_FULL_WAVES = 0.9
_PASS_BYTES = SECTORS_PER_PASS * SECTOR_BYTES
#: The widest access of a warp: 16 bytes a lane.
_WIDEST = 16 * WARP_LANES
_STALLED_PCT = 20.0
_MANY_ATOMICS = 0.3
_MOSTLY_LAUNCH_PCT = 40.0
#: Barriers that each warp waits at.
_MANY_BARRIERS = 4


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, why, and what it would allow at best.

    `least_us` is the bound that is left, set by the part `left`; None where no count tells. `factor` says how
    many times as fast as now that is, or how many times lower the bound, where the case has a time, measured
    or modelled, and it is the bound that changes and not how near this comes.
    """

    do: str
    why: str
    least_us: float | None = None
    left: str = ""
    factor: float | None = None
    lowers_bound: bool = False

    @property
    def text(self) -> str:
        """For example `pad the tile: 8 of 9 passes conflict; would allow 94.0 ns at best (L2), 6.00×`."""
        said = f"{self.do}: {self.why}"
        if self.least_us is None or self.factor is None:
            return said
        left = f" ({self.left})" if self.left else ""
        least = numbers.time_us(self.least_us)
        would = f"lower the bound to {least}" if self.lowers_bound else f"allow {least} at best"
        return f"{said}; would {would}{left}, {numbers.ratio(self.factor)}"


class _Facts:
    """A case with what its actions are computed from."""

    def __init__(self, run: Run, case: Measurement, limiter: Limiter | None) -> None:
        self.run, self.case, self.limiter = run, case, limiter
        self.limits: Limits | None = limits_of(run, case)
        self.device: Device = run.devices[case.device]

    @cached_property
    def now_us(self) -> float | None:
        """The time; without one the bound."""
        speed = speed_of(self.run, self.case)
        return speed.median_us if speed else self.limits.least_us if self.limits else None

    @cached_property
    def floor(self) -> Floor | None:
        """Of the part that limits, where it is one."""
        held = self.limits.floors if self.limits else ()
        return next((floor for floor in held if self.limiter and floor.key == self.limiter.key), None)

    def count(self, *names: str) -> float:
        return counts.known(self.case, *names)

    @cached_property
    def work(self) -> tuple[float, str]:
        """Warp-wide steps that the problem needs, and what one of them is."""
        problem = self.case.problem
        steps = counts.useful_warp_steps(self.case)
        if not problem.flops:
            return steps, "element moved"
        return (steps, "FMA") if is_of_fmas(self.case, steps) else (2 * steps, "operation")

    def allowing(self, do: str, why: str, us: float, part: Floor) -> Iterator[Action]:
        """The action where it leaves `us` of a part: a bound that some other part may exceed."""
        assert self.limits is not None
        others = [floor for floor in self.limits.floors if floor.key != part.key]
        most = max(others, key=lambda floor: floor.bound.least_us, default=None)
        least, left = us, part
        if most is not None and most.bound.least_us >= us:
            least, left = most.bound.least_us, most
        factor = self.limits.least_us / least if least else 0.0
        if factor >= _WORTHWHILE:
            has_time = bool(self.limits.measured_us or self.limits.modelled_us)
            yield Action(do, why, least, left.short, factor, has_time)

    def fewer(self, do: str, said: str, work: float, needed: float) -> Iterator[Action]:
        """The action that takes away what of the limiting part's work no result needs, told as `{gone}`."""
        if self.floor is None or self.limits is None or not work:
            return
        second = max((f.bound.least_us for f in self.limits.floors if f is not self.floor), default=0.0)
        least = max(second, self.floor.bound.least_us * min(1.0, needed / work))
        gone = work * (1 - least / self.floor.bound.least_us)
        yield from self.allowing(do, said.format(gone=numbers.count(gone)), least, self.floor)

    def to_the_bound(self, do: str, why: str) -> Action:
        """An action against what no bound holds: at best the highest bound is left."""
        if self.limits is None or self.now_us is None:
            return Action(do, why)
        least, left = self.limits.least_us, self.limits.binding.short
        if self.limiter and self.limiter.share_pct and self.now_us * self.limiter.share_pct / 100 > least:
            # The bytes and the arithmetic of the problem itself, where a bound leaves some to the caches.
            least, left = self.now_us * self.limiter.share_pct / 100, self.limiter.name
        ratio = self.now_us / least
        return Action(do, why, least, left, ratio) if ratio >= _WORTHWHILE else Action(do, why)


@remembered
def actions_of(run: Run, case: Measurement) -> tuple[Action, ...]:
    """What to do about what limits a case, the most telling first; empty for a library's kernel."""
    if is_reference(run, case) or not status_of(run, case).usable or run.backend == "none":
        return ()
    limiter = limiter_of(run, case)
    facts = _Facts(run, case, limiter)
    ways = _ACTIONS.get(limiter.key if limiter else "", ())
    found = [action for way in ways for action in way(facts)]
    if facts.limits is None:
        found += _uncounted(facts)
    elif all(map(_is_slight, found)):
        found += _chain(facts)
    return tuple(sorted(found, key=_is_slight))


def _is_slight(action: Action) -> bool:
    return action.factor is not None and action.factor < _TELLING


def _wastes(facts: _Facts) -> Iterator[Action]:
    """Work of the path of shared memory and L1 that no result needs, the most telling first."""
    binding = facts.limits.binding if facts.limits else None
    if binding is None or binding.key != "l1":
        return
    passes = facts.count(*binding.bound.counters)
    if not passes:
        return
    bound_us = binding.bound.least_us
    found: list[Action] = []
    conflicts = facts.count(*counts.BANK_CONFLICTS)
    if conflicts:
        why = f"{numbers.count(conflicts)} of {numbers.count(passes)} passes are bank conflicts"
        do = "make shared memory free of conflicts (pad or swizzle the tile)"
        found += facts.allowing(do, why, bound_us * (1 - conflicts / passes), binding)
    for kind in ("load", "store"):
        extra = _scattered_passes(facts, kind)
        if extra:
            why = f"{numbers.count(extra)} of {numbers.count(passes)} passes are of scattered lanes"
            do = f"coalesce global {kind}s (neighbouring lanes, neighbouring addresses)"
            found += facts.allowing(do, why, bound_us * (1 - extra / passes), binding)
    yield from sorted(found, key=lambda action: action.least_us or 0.0)


def _scattered_passes(facts: _Facts, kind: str) -> float:
    """Passes of global accesses beyond those that their bytes, or one for each request, would take."""
    sectors, requests = facts.count(f"global_{kind}_sectors"), facts.count(f"global_{kind}_requests")
    useful = facts.count(f"global_{kind}_useful_bytes")
    return max(0.0, sectors / SECTORS_PER_PASS - max(requests, useful / _PASS_BYTES))


def _uneven(facts: _Facts) -> Iterator[Action]:
    """SMs that idle while the busiest works."""
    binding = facts.limits.binding if facts.limits else None
    if binding is None or binding.bound.even_us is None:
        return
    blocks, sm_count = blocks_of(facts.case) or 0, facts.device.sm_count
    share = numbers.percent(100 * binding.bound.even_us / binding.bound.least_us)
    few = f"{numbers.plural(blocks, 'block')} for {sm_count} SMs"
    why = f"{few}, so that an SM has {share} of the busiest one's work"
    do = "spread the work evenly (tile sizes that divide it among the SMs, stream-K, split-K)"
    yield from facts.allowing(do, why, binding.bound.even_us, binding)


def _instructions(facts: _Facts) -> Iterator[Action]:
    issued = facts.count("warp_instructions")
    steps, unit = facts.work
    arithmetic = min(steps, facts.count("pipe_fma_instructions", "pipe_fp64_instructions"))
    needed = (arithmetic if unit == "FMA" else 0.0) + facts.case.problem.min_bytes / _WIDEST
    index = facts.count("pipe_alu_instructions", "pipe_uniform_instructions")
    index += max(0.0, facts.count("pipe_fma_instructions") - arithmetic)
    classes = {
        "memory accesses": facts.count("pipe_lsu_instructions", "pipe_tex_instructions"),
        "integer and logic": index,
        "branches": facts.count("pipe_cbu_instructions"),
        "special functions": facts.count("pipe_xu_instructions"),
    }
    most = max(classes, key=classes.__getitem__)
    do = {
        "memory accesses": "use larger register tiles and 16-byte accesses"
        if unit == "FMA"
        else "use 16-byte accesses",
        "integer and logic": "unroll, and take index arithmetic out of the inner loop",
        "branches": "unroll the inner loop",
        "special functions": "use fewer divisions, roots and exponentials",
    }[most]
    share = f", {numbers.percent(100 * classes[most] / issued)} of them {most}" if classes[most] else ""
    said = f"{numbers.brief(issued / steps)} instructions are issued for each {unit}{share}; {{gone}} of"
    yield from facts.fewer(do, f"{said} {numbers.count(issued)} could go", issued, needed)


def _passes(facts: _Facts) -> Iterator[Action]:
    """Fewer passes by reuse in registers, or wider ones."""
    passes = facts.count(*facts.floor.bound.counters) if facts.floor else 0.0
    steps, unit = facts.work
    shared = bool(facts.limiter and facts.limiter.name == "shared memory")
    what = "shared-memory" if shared else "L1"
    do = (
        "use 16-byte accesses"
        if unit != "FMA"
        else "use larger register tiles (each value read, used more often)"
    )
    if not shared and unit == "FMA":
        do = "reuse what is loaded, through a tile in shared memory or in registers"
    said = f"{numbers.brief(passes / steps)} {what} passes for each {unit}; {{gone}} of"
    needed = facts.case.problem.min_bytes / _PASS_BYTES
    yield from facts.fewer(do, f"{said} {numbers.count(passes)} could go", passes, needed)


def _of_pipe(do: str, facts: _Facts) -> Iterator[Action]:
    """Fewer instructions of the pipe that limits."""
    if facts.floor is None:
        return
    work = facts.count(*facts.floor.bound.counters)
    steps, unit = facts.work
    what = f"{PARTS[facts.floor.key].unit} ({facts.floor.short})"
    said = f"{numbers.brief(work / steps)} {what} for each {unit}; {{gone}} of {numbers.count(work)} could go"
    yield from facts.fewer(do, said, work, 0.0)


def _surplus_arithmetic(facts: _Facts) -> Iterator[Action]:
    """Multiply-adds that the problem does not need."""
    needed, unit = facts.work
    name = "pipe_fp64_instructions" if facts.floor and facts.floor.key == "fp64" else "pipe_fma_instructions"
    done = facts.count(name)
    if facts.floor is None or unit != "FMA" or done <= _WORTHWHILE * needed:
        return
    extra = f"{numbers.count(done - needed)} of {numbers.count(done)}"
    why = f"{extra} do not compute the result (padding, index arithmetic, recomputation)"
    us = facts.floor.bound.least_us * needed / done
    yield from facts.allowing("do only the problem's own multiply-adds", why, us, facts.floor)


def _at_roof(instead: str, facts: _Facts) -> Iterator[Action]:
    """That a part is as busy as it can be, and what is left then."""
    if facts.limiter is None:
        return
    limiter, speed = facts.limiter, speed_of(facts.run, facts.case)
    if limiter.share_pct is None:
        yield Action(instead, f"no work of {limiter.name} is wasted, as far as it is counted")
        return
    measured = speed.pct_of_measured_limit if speed and limiter.key in (DRAM.key, "compute", "fma") else None
    share, of = max((limiter.share_pct, "theoretical"), (measured or 0.0, "measured"))
    if share >= _AT_ROOF_PCT:
        yield Action(instead, f"{limiter.name} is at its roof, {numbers.percent(share)} of {of} peak")


def _traffic(facts: _Facts) -> Iterator[Action]:
    """Bytes that cross the pins of device memory more than once, where they were measured."""
    moved, needed = facts.count(*DRAM_BYTES), float(facts.case.problem.min_bytes)
    if facts.floor is None or moved <= 1.1 * needed:
        return
    said = f"{numbers.size(moved)} cross DRAM, {numbers.size(needed)} must"
    yield from facts.fewer(
        "reuse what L2 holds (neighbouring blocks, neighbouring tiles)", said, moved, needed
    )


def _launch(facts: _Facts) -> Iterator[Action]:
    overhead = launch_overhead(facts.run, facts.case)
    floor = facts.floor if facts.floor and facts.floor.key == LAUNCH.key else None
    do = "launch less often: batch or fuse, or do more in a launch"
    if overhead is not None and overhead.of_us > overhead.launch_us:
        rest = overhead.of_us - overhead.launch_us
        yield Action(do, overhead.text, rest, "without it", overhead.of_us / rest)
    elif overhead is not None:
        yield Action(do, overhead.text)
    elif floor is not None:
        yield Action(do, f"the launch alone takes {numbers.time_us(floor.bound.least_us)}")


def _grid(facts: _Facts) -> Iterator[Action]:
    blocks, sm_count = blocks_of(facts.case), facts.device.sm_count
    if blocks is None or blocks >= sm_count:
        return
    why = f"{numbers.plural(blocks, 'block')} for {sm_count} SMs"
    how = "smaller tiles, split-K" if facts.work[1] == "FMA" else "smaller tiles, fewer threads"
    do = f"launch more, smaller blocks ({how})"
    if facts.limits is None or facts.now_us is None:
        yield Action(do, why)
        return
    spread = {floor: floor.bound.even_us or floor.bound.least_us for floor in facts.limits.floors}
    most = max(spread, key=spread.__getitem__)
    lowers = facts.limits.measured_us is None and facts.limits.modelled_us is not None
    yield Action(do, why, spread[most], most.short, facts.now_us / spread[most], lowers)


def _tail(facts: _Facts) -> Iterator[Action]:
    """A last wave of blocks that does not fill the device."""
    filled = waves(facts.run, facts.case)
    if filled is None or filled <= 1 or filled / ceil(filled) >= _FULL_WAVES or facts.now_us is None:
        return
    us = facts.now_us * filled / ceil(filled)
    why = f"{numbers.significant(filled)} waves of blocks: the last leaves SMs idle"
    do = "choose tiles that fill whole waves, or a persistent grid (stream-K)"
    yield Action(do, why, us, "all waves full", ceil(filled) / filled)


def _spills(facts: _Facts) -> Iterator[Action]:
    held = facts.case.resources
    if held is not None and held.spill_bytes:
        do = "keep registers from spilling (smaller register tiles, fewer variables alive, a higher limit)"
        why = f"{numbers.size(held.spill_bytes)} a thread go through local memory"
        yield facts.to_the_bound(do, why)


def _scattered(facts: _Facts) -> Iterator[Action]:
    """Sectors that are fetched or written for few of their bytes."""
    for text in wasted_sectors(facts.case):
        yield facts.to_the_bound(
            "coalesce global accesses (neighbouring lanes, neighbouring addresses)", text
        )


def _atomics(facts: _Facts) -> Iterator[Action]:
    rate = facts.device.measured_rates.get("atomics_together_gops")
    done = facts.count("global_atomic_requests") * WARP_LANES
    if not rate or not facts.now_us or done / rate / 1e3 < _MANY_ATOMICS * facts.now_us:
        return
    why = (
        f"{numbers.count(done)} atomics take {numbers.time_us(done / rate / 1e3)} where they meet in one word"
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
    "no_instruction": ("instruction fetches", "keep the loop in the instruction cache (unroll less)"),
    "branch_resolving": ("branch resolving", "unroll the inner loop"),
    "drain": ("stores before exit", "end with fewer, wider stores"),
    "membar": ("membar", "use fewer memory fences"),
    "imc_miss": ("imc miss", "read constants in order, or keep them in registers"),
}


def _stalled(facts: _Facts) -> Iterator[Action]:
    """What Nsight Compute saw warps wait for."""
    for name, share in stalls(facts.case):
        if share < _STALLED_PCT:
            return
        if known := _AGAINST_STALL.get(name.removeprefix("stall_")):
            cause, do = known
            yield facts.to_the_bound(do, f"warps stall {numbers.percent(share)} of their cycles on {cause}")
            return


def _in_flight(facts: _Facts) -> Iterator[Action]:
    """More independent work on its way, where what is resident cannot keep the busiest part busy."""
    if facts.limits is None:
        return
    held = resident(facts.case, facts.device)
    busiest = next((floor.key for floor in facts.limits.floors if floor.key != LAUNCH.key), "")
    part = facts.limiter.key if facts.limiter and facts.limiter.key in PARTS else busiest
    needs = flight(facts.case, facts.device, part)
    if needs is None or held is None or not held.warps:
        return
    each = needs.needed / held.warps
    warps = f"{numbers.brief(held.warps)} warps are resident ({held.because})"
    if needs.unit != "bytes":
        if each > 1:
            do = f"keep {ceil(each)} {needs.unit} of each warp in flight (unroll, more accumulators)"
            needed = f"{numbers.significant(needs.needed)} {needs.unit}"
            yield facts.to_the_bound(do, f"{needs.label} needs {needed} in flight on each SM, {warps}")
        return
    why = f"{needs.label} needs {numbers.size(round(needs.needed))} in flight on each SM, {warps}"
    loads, useful = facts.count("global_load_requests"), facts.count("global_load_useful_bytes")
    if not loads or not useful:
        yield facts.to_the_bound("have more copies in flight (more stages, larger tiles)", why)
        return
    brought = useful / loads
    several = max(2, ceil(each / brought))
    wide = ", 16 bytes each" if brought < _WIDEST / 2 else ""
    do = f"keep {several} loads of each thread in flight{wide} (unroll or prefetch: load first, use later)"
    yield facts.to_the_bound(do, f"{why}, and a load of a warp brings {numbers.size(round(brought))}")


def _more_blocks(facts: _Facts) -> Iterator[Action]:
    """What of a block's registers or shared memory must go so that one more fits on an SM."""
    held, occupancy, threads = facts.case.resources, facts.case.occupancy, prod(facts.case.block)
    if held is None or occupancy is None or occupancy.theoretical_pct >= 50 or not occupancy.blocks_per_sm:
        return
    if facts.count("bulk_load_bytes"):  # the copy engine fetches ahead, however few warps are resident
        return
    wanted = occupancy.blocks_per_sm + 1

    def blocks(registers: int, shared: int) -> Mapping[str, int | None]:
        limits = occupancy_limits(
            facts.device,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_bytes_per_block=shared,
        )
        return {limit.name: limit.blocks for limit in limits}

    now = blocks(held.registers_per_thread, held.shared_bytes)
    if min(now["threads"] or 0, now["blocks"] or 0) < wanted:
        return
    asks = []
    if (now["registers"] or wanted) < wanted:
        fits = next(
            (
                count
                for count in range(held.registers_per_thread, 15, -1)
                if (blocks(count, 0)["registers"] or wanted) >= wanted
            ),
            None,
        )
        if fits is None:
            return
        asks.append(f"{fits} registers a thread, not {held.registers_per_thread}")
    if (now["shared memory"] or wanted) < wanted:
        spare = facts.device.reserved_shared_bytes_per_block
        fits = facts.device.shared_bytes_per_sm // wanted - spare
        asks.append(
            f"{numbers.size(fits // 1024 * 1024)} of shared memory, not {numbers.size(held.shared_bytes)}"
        )
    if not asks:
        return
    do = f"let {wanted} blocks reside on an SM: at most {' and '.join(asks)}"
    why = (
        f"{numbers.percent(occupancy.theoretical_pct)} occupancy hides little, limited by {occupancy.limiter}"
    )
    yield facts.to_the_bound(do, why)


def _chain(facts: _Facts) -> Iterator[Action]:
    """Enough warps, and none of the above: each waits for steps of its own, one after the other."""
    held, warps = resident(facts.case, facts.device), _warps(facts.case)
    loads = facts.count("global_load_requests", "async_copy_requests") / warps if warps else 0.0
    barriers = facts.count("barriers") / warps if warps else 0.0
    if barriers >= _MANY_BARRIERS:
        do = "wait less at barriers (shuffles within a warp, double-buffer, more work for each barrier)"
    else:
        do = "overlap dependent steps (several elements of a thread at once, next loads before this use)"
    with_warps = f"{numbers.brief(held.warps)} warps are resident on an SM; " if held else ""
    if facts.count("bulk_load_bytes"):
        do = "overlap the work of several tiles (more stages, producer warps, persistent blocks)"
        yield facts.to_the_bound(do, f"{with_warps}the copy engine fetches ahead of them")
        return
    what = f"{numbers.plural(loads, 'global load')} and {numbers.plural(barriers, 'barrier')}"
    yield facts.to_the_bound(do, f"{with_warps}each goes through {what} in turn")


def _uncounted(facts: _Facts) -> Iterator[Action]:
    """What can be said of a case that has a time and no counts."""
    for way in (_spills, _tail):
        yield from way(facts)
    limiter = facts.limiter
    known = f"{limiter.name} at {numbers.percent(limiter.share_pct)}" if limiter and limiter.share_pct else ""
    why = f"{known or 'its limiter is not known'} without counts"
    yield Action("count what it does (without --no-lines, or with --ncu)", why)


def _warps(case: Measurement) -> int:
    return (blocks_of(case) or 0) * ceil(prod(case.block) / WARP_LANES)


def _launch_first(facts: _Facts) -> Iterator[Action]:
    """The launch before all else where it is nearly half of the time."""
    overhead = launch_overhead(facts.run, facts.case)
    if overhead is not None and overhead.share_pct >= _MOSTLY_LAUNCH_PCT:
        yield from _launch(facts)


_LATENCY = (_wastes, _launch, _spills, _atomics, _scattered, _stalled, _in_flight, _more_blocks, _chain)
_LESS_DATA = "move less data (a narrower type, or fuse it with the kernel before or after)"
_LESS_WORK = "do less arithmetic (tensor cores, a narrower type, another algorithm)"
_TENSOR = partial(_at_roof, "do less arithmetic (a narrower type, sparsity, another algorithm)")

#: What helps against each limiter, by its key, the most telling first.
_ACTIONS: Mapping[str, tuple[Callable[[_Facts], Iterator[Action]], ...]] = {
    "issue": (_instructions, _uneven, partial(_at_roof, _LESS_WORK), _stalled),
    "fma": (_surplus_arithmetic, _uneven, partial(_at_roof, _LESS_WORK), _in_flight, _more_blocks),
    "fp64": (_surplus_arithmetic, _uneven, partial(_at_roof, _LESS_WORK), _in_flight, _more_blocks),
    "alu": (
        partial(_of_pipe, "take index arithmetic out of the inner loop (unroll, shifts for divisions)"),
        _in_flight,
    ),
    "xu": (partial(_of_pipe, "use fewer divisions, roots and exponentials"), _in_flight),
    "barrier": (
        partial(_of_pipe, "use fewer barriers (more work for each, shuffles within a warp)"),
        _in_flight,
    ),
    **{key: (_uneven, _TENSOR, _in_flight, _more_blocks) for key in PARTS if key.startswith("tensor_")},
    "l1": (_wastes, _uneven, _passes, partial(_at_roof, "keep more in registers (larger register tiles)")),
    "l2": (_scattered, partial(_at_roof, _LESS_DATA), _in_flight),
    "dram": (_traffic, partial(_at_roof, _LESS_DATA), _stalled, _in_flight),
    "launch": (_launch,),
    "grid": (_launch_first, _grid, *_LATENCY),
    "latency": _LATENCY,
    "compute": (_uneven, partial(_at_roof, _LESS_WORK), _stalled, _in_flight),
}
