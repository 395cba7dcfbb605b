# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What to do in the source about what limits a case, computed from its counts.

`_ACTIONS` maps every limiter to what helps against it. Each entry looks at the case's own counts and says
what to change, how many events that takes away, and the bound that would be left.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from gpuprof.analysis import counts, latency, numbers
from gpuprof.analysis.action_facts import WIDEST, WORTHWHILE, Action, CaseFacts
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.speed import speed_of
from gpuprof.analysis.status import blocks_of, is_reference, status_of
from gpuprof.bounds.floors import NO_COUNTS
from gpuprof.bounds.parts import DRAM, DRAM_BYTES, PARTS, SECTOR_BYTES, SECTORS_PER_PASS
from gpuprof.results import Measurement, Run
from gpuprof.text import listed

#: What allows less than this is named only where nothing allows more.
_TELLING = 1.1
#: A part this busy is at its roof: what is left is noise, tails and clocks.
_AT_ROOF_PCT = 92.0
_PASS_BYTES = SECTORS_PER_PASS * SECTOR_BYTES


@remembered
def actions_of(run: Run, case: Measurement) -> tuple[Action, ...]:
    """What to do about what limits a case, the most telling first; empty for a library's kernel."""
    if is_reference(run, case) or not status_of(run, case).usable or run.backend == "none":
        return ()
    limiter = limiter_of(run, case)
    facts = CaseFacts(run, case, limiter)
    ways = _ACTIONS.get(limiter.key if limiter else "", ())
    found = [action for way in ways for action in way(facts)]
    if facts.limits is None:
        found += _uncounted(facts)
    elif all(map(_is_slight, found)):
        found += latency.overlap_steps(facts)
    once: dict[str, Action] = {}
    for action in sorted(found, key=_is_slight):
        once.setdefault(action.do, action)
    return tuple(once.values())


def _is_slight(action: Action) -> bool:
    return action.factor is not None and action.factor < _TELLING


def _wastes(facts: CaseFacts) -> Iterator[Action]:
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
    scattered = {f"{kind}s": extra for kind in ("load", "store") if (extra := _scattered_passes(facts, kind))}
    if extra := sum(scattered.values()):
        kinds = listed([*scattered])
        why = f"{numbers.count(extra)} of {numbers.count(passes)} passes are of scattered {kinds}"
        found += facts.allowing(latency.COALESCE, why, bound_us * (1 - extra / passes), binding)
    yield from sorted(found, key=lambda action: action.least_us or 0.0)


def _scattered_passes(facts: CaseFacts, kind: str) -> float:
    """Passes of global accesses beyond those that their bytes, or one for each request, would take."""
    sectors, requests = facts.count(f"global_{kind}_sectors"), facts.count(f"global_{kind}_requests")
    useful = facts.count(f"global_{kind}_useful_bytes")
    return max(0.0, sectors / SECTORS_PER_PASS - max(requests, useful / _PASS_BYTES))


def _uneven(facts: CaseFacts) -> Iterator[Action]:
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


def _instructions(facts: CaseFacts) -> Iterator[Action]:
    issued = facts.count("warp_instructions")
    steps, unit = facts.work
    arithmetic = min(steps, facts.count("pipe_fma_instructions", "pipe_fp64_instructions"))
    needed = (arithmetic if unit == "FMA" else 0.0) + facts.case.problem.min_bytes / WIDEST
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


def _passes(facts: CaseFacts) -> Iterator[Action]:
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


def _of_pipe(do: str, facts: CaseFacts) -> Iterator[Action]:
    """Fewer instructions of the pipe that limits."""
    if facts.floor is None:
        return
    work = facts.count(*facts.floor.bound.counters)
    steps, unit = facts.work
    what = f"{PARTS[facts.floor.key].unit} ({facts.floor.short})"
    said = f"{numbers.brief(work / steps)} {what} for each {unit}; {{gone}} of {numbers.count(work)} could go"
    yield from facts.fewer(do, said, work, 0.0)


def _surplus_arithmetic(facts: CaseFacts) -> Iterator[Action]:
    """Multiply-adds that the problem does not need."""
    needed, unit = facts.work
    name = "pipe_fp64_instructions" if facts.floor and facts.floor.key == "fp64" else "pipe_fma_instructions"
    done = facts.count(name)
    if facts.floor is None or unit != "FMA" or done <= WORTHWHILE * needed:
        return
    extra = f"{numbers.count(done - needed)} of {numbers.count(done)}"
    do = "do fewer multiply-adds (tiles that divide the sizes, less index arithmetic)"
    us = facts.floor.bound.least_us * needed / done
    yield from facts.allowing(do, f"{extra} compute no element of the result", us, facts.floor)


def _at_roof(instead: str, facts: CaseFacts) -> Iterator[Action]:
    """That a part is as busy as it can be, and what is left then."""
    if facts.limiter is None:
        return
    limiter, speed = facts.limiter, speed_of(facts.run, facts.case)
    if limiter.share_pct is None:
        held = facts.limits
        share = 100 * held.least_us / held.modelled_us if held and held.modelled_us else None
        if share is None:
            yield Action(instead, "nothing that was counted is wasted")
        elif share >= _AT_ROOF_PCT:
            yield Action(instead, f"{limiter.name} is at its roof, {numbers.percent(share)} of modelled time")
        return
    measured = speed.pct_of_measured_limit if speed and limiter.key in (DRAM.key, "compute", "fma") else None
    share, of = max((limiter.share_pct, "theoretical"), (measured or 0.0, "measured"))
    if share >= _AT_ROOF_PCT:
        yield Action(instead, f"{limiter.name} is at its roof, {numbers.percent(share)} of {of} peak")


def _traffic(facts: CaseFacts) -> Iterator[Action]:
    """Bytes that cross the pins of device memory more than once, where they were measured."""
    moved, needed = facts.count(*DRAM_BYTES), float(facts.case.problem.min_bytes)
    if facts.floor is None or moved <= 1.1 * needed:
        return
    said = f"{numbers.size(moved)} cross DRAM, {numbers.size(needed)} must"
    yield from facts.fewer(
        "reuse what L2 holds (neighbouring blocks, neighbouring tiles)", said, moved, needed
    )


def _uncounted(facts: CaseFacts) -> Iterator[Action]:
    """What can be said of a case that has a time and no counts."""
    for way in (latency.keep_registers, latency.coalesce, latency.fill_waves):
        yield from way(facts)
    if (reason := facts.case.bounds_reason) and reason != NO_COUNTS:
        yield Action("count it with --ncu", reason.removesuffix("."))
        return
    of_it = "could be gained" if facts.limiter else "limits it"
    yield Action("count it (leave out --no-lines, or add --ncu)", f"only counts say what {of_it}")


_WAITING = (_wastes, *latency.LATENCY)
_MORE_AT_ONCE = (latency.keep_in_flight, latency.let_more_reside)
_LESS_DATA = partial(_at_roof, "move less data (a narrower type, or fuse it with the kernel before or after)")
_LESS_WORK = partial(_at_roof, "do less arithmetic (tensor cores, a narrower type, another algorithm)")
_LESS_ARITHMETIC = partial(_at_roof, "do less arithmetic (a narrower type, another algorithm)")
_IN_REGISTERS = partial(_at_roof, "keep more in registers (larger register tiles)")
#: What takes instructions off a pipe of its own.
_OFF_THE_PIPE = {
    "alu": "take index arithmetic out of the inner loop (unroll, shifts for divisions)",
    "xu": "use fewer divisions, roots and exponentials",
    "barrier": "use fewer barriers (more work for each, shuffles within a warp)",
}

#: What helps against each limiter, by its key, the most telling first.
_ACTIONS: Mapping[str, tuple[Callable[[CaseFacts], Iterator[Action]], ...]] = {
    "issue": (_instructions, _uneven, _LESS_WORK, latency.against_stalls),
    **dict.fromkeys(("fma", "fp64"), (_surplus_arithmetic, _uneven, _LESS_WORK, *_MORE_AT_ONCE)),
    **{key: (partial(_of_pipe, do), latency.keep_in_flight) for key, do in _OFF_THE_PIPE.items()},
    **{key: (_uneven, _LESS_ARITHMETIC, *_MORE_AT_ONCE) for key in PARTS if key.startswith("tensor_")},
    "l1": (_wastes, _uneven, _passes, _IN_REGISTERS),
    "l2": (latency.coalesce, _LESS_DATA, latency.keep_in_flight),
    "dram": (_traffic, _LESS_DATA, latency.against_stalls, latency.keep_in_flight),
    "launch": (latency.launch_less,),
    "grid": (latency.launch_first, latency.more_of_the_grid, *_WAITING),
    "latency": _WAITING,
    "compute": (_uneven, _LESS_ARITHMETIC, latency.against_stalls, latency.keep_in_flight),
}
