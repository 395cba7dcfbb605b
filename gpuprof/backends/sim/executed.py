# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What executing one case left and counted, its modelled time, and whether a sample of it tells enough."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.backends.base import Findings, Functions
from gpuprof.backends.compiling import occupancy_of
from gpuprof.backends.sim.instructions import (
    NoLink,
    Weighed,
    instruction_counters,
    weighed,
    whole,
)
from gpuprof.backends.sim.launching import Launches
from gpuprof.backends.sim.unrolled import as_unrolled
from gpuprof.backends.sim.watching import CacheWatch
from gpuprof.backends.verification import Proof, sentence_of
from gpuprof.counters import OF_EXECUTOR
from gpuprof.cuda_source.functions import kernel_functions
from gpuprof.devices.card_constants import constants_of
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    WARP,
    Buffer,
    GlobalMemory,
    LaunchResult,
    Program,
    Stored,
    combined,
    source_name,
)
from gpuprof.kernels.entries import function_name
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine_code.instruction_counts import MachineCounts, count
from gpuprof.machine_code.linking import Link
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.records import replace
from gpuprof.results import Counter, Model, ModelLine, SourceLine, Verification
from gpuprof.sm_model import Modelled, NotModelled, Place, PlayedLaunch, TrafficSites, modelled, traffic_of
from gpuprof.sm_model.control_words import control_words
from gpuprof.sm_model.traffic import SECTOR_BYTES

#: Share of an output by which sums of weights may be off, which are ratios.
_COVERAGE_SLACK = 1e-9
RUN_WHOLE = "Choose a smaller --sizes, or --sim-blocks all, which takes longer."
ESTIMATES = (
    "extrapolated from {} sampled blocks of {}, which differ from the others; --sim-blocks all counts all"
)
NO_TIME = "the executor counts; it measures no time"
#: Of what a kernel prints: lines that are shown, and characters of each.
_SHOWN_LINES, _LONGEST_LINE = 8, 120
#: The architecture whose tensor cores were measured, and what to say on any other.
_MEASURED_TENSOR_CORES = (9, 0)
_SUMS_AS_MEASURED = (
    "Sums of tensor cores are ordered and rounded as sm_90 does it: last bits may differ from this card's"
)
#: Products of matrices whose rounding depends on the architecture.
_ROUNDED_IN_TENSOR_CORES = {
    f"{how}_{kind}" for how in ("tensor", "wgmma") for kind in ("f16", "bf16", "tf32", "e4m3")
}
_NO_ACCESS = "there was no such access"
_LEAST = (
    "a card counts accesses of printf and malloc, those that atomics on single halves repeat, and one by one"
    " those of lanes that part at a call through a pointer"
)
#: Of counters that grow with such accesses.
_UNITS_OF_ACCESSES = {"requests", "sectors", "wavefronts", "passes", "%"}
_ELSEWHERE = "the kernel stands in an included file, and lines are counted of the kernel file only"


class ExecutedCase(Struct, frozen=True):
    """What executing one case left and counted.

    Args:
        result: Of all launches, as one.
        caveat: Why the counts are estimates; None where they are not.
        lines: Counts by line of the kernel file; None where its functions stand in files that it includes.
        unread: What arrays held that it must not read, as for `device_memory`.
        model: Models its time, or tells why not.
    """

    launches: Launches
    result: LaunchResult
    memory: GlobalMemory
    buffers: Mapping[str, Buffer]
    counters: Mapping[str, Counter]
    caveat: str | None
    lines: tuple[SourceLine, ...] | None
    remarks: tuple[str, ...]
    unread: float | None
    model: Callable[[], tuple[Model | None, str | None]] = lambda: (None, "it was not counted")

    @property
    def lines_reason(self) -> str | None:
        return _ELSEWHERE if self.lines is None else None

    @property
    def expected_instructions(self) -> float:
        """What the whole grid would execute, summed over lanes, as far as a sample tells."""
        return self.result.lane_instructions * self.result.total_blocks / self.result.sampled_blocks


class SampleFallsShort(CaseSkipped):
    """What a sample's blocks stored is not what its part of the outputs has."""

    def __init__(self, sentence: str, expected_instructions: float) -> None:
        super().__init__(sentence, fix=RUN_WHOLE)
        self.expected_instructions = expected_instructions


class BlocksBuildOnEachOther(CaseSkipped):
    """Single blocks of a grid tell nothing: what they do depends on others that do not run."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, fix=RUN_WHOLE)


def findings_of(proof: Proof | None, executed: ExecutedCase) -> Findings:
    """What a case is told to be, right or wrong, with what it counted; no proof where others verify it."""
    wrong = proof is not None and not proof.verification.passed
    model, why = (None, "its result is wrong") if wrong else executed.model()
    return Findings(
        "incorrect" if wrong else "ok",
        reason=sentence_of(proof.verification, later=False) if proof and wrong else None,
        remarks=(*(proof.remarks if proof else ()), *executed.remarks),
        verification=proof.verification if proof else None,
        timing_reason=NO_TIME,
        event_floor_reason=NO_TIME,
        clocks_reason=NO_TIME,
        counters=executed.counters,
        counters_reason=executed.caveat,
        lines=executed.lines,
        lines_reason=executed.lines_reason,
        model=model,
        model_reason=why,
    )


def check_verdict(verification: Verification, executed: ExecutedCase) -> None:
    """Withhold the verdict of a sample where blocks that did not run may have had a part in the result."""
    atomics = executed.counters["global_atomic_requests"].value
    if verification.checked_elements and not atomics:
        return
    how = "depend on each other through atomic operations" if atomics else "that ran wrote no result"
    raise BlocksBuildOnEachOther(
        f"Its blocks {how}, so that the executor would have to run the whole grid to verify it."
    )


def mistaken_shares(
    problem: Problem, buffers: Mapping[str, Buffer], stored: Mapping[str, Stored]
) -> Iterator[tuple[ArraySpec, float]]:
    """The outputs of which the grid would write another share than all, as its sample tells, in bytes.

    Then blocks that ran stand for others that do something else, as where tiles are numbered in another order
    than the grid's. A kernel may store an element several times: each block is taken to do so equally often.
    """
    for spec in problem.outputs:
        buffer, seen = buffers[spec.name], stored.get(spec.name, Stored())
        if buffer.combined or not seen.by_sample:
            continue
        covered = seen.by_grid * buffer.written_bytes / seen.by_sample
        if abs(covered - spec.nbytes) > _COVERAGE_SLACK * spec.nbytes:
            yield spec, covered


def check_coverage(problem: Problem, executed: ExecutedCase) -> None:
    """Hold what the grid would write, as its sample tells, against the outputs: nothing may be left out."""
    for spec, covered in mistaken_shares(problem, executed.buffers, executed.result.stored):
        if spec.is_read:
            continue
        item = spec.nbytes // spec.elements
        raise SampleFallsShort(
            f"The sampled blocks stand for {covered / item:,.0f} of the {spec.elements:,} elements of"
            f" {spec.name}: whether the others are written, only the whole grid shows.",
            executed.expected_instructions,
        )


def _unmet_alignments(programs: Iterable[Program]) -> tuple[str, ...]:
    """What to say of shared variables whose alignment the card does not give."""
    remarks = {
        f"Shared memory of a block starts at {program.own.start:#x} on the card, whatever alignment is"
        f" asked for: {source_name(name)} lies at {address:#x}, which is not a multiple of {alignment:,}"
        for program in programs
        for name, (alignment, address) in program.own.unmet_alignments.items()
    }
    return tuple(sorted(remarks))


def atomics_remark(links: Sequence[Link | NoLink], result: LaunchResult) -> tuple[str, ...]:
    """Say that nobody knows which atomics one lane does for its warp; nothing where that is known."""
    unknown = next((one.reason for one in links if isinstance(one, NoLink)), None)
    if unknown is None or not result.counters["global_atomic_sectors"]:
        return ()
    return (
        f"global_atomic_sectors: counted lane by lane, though ptxas may merge those of a warp. {unknown}",
    )


def printed_remark(result: LaunchResult) -> tuple[str, ...]:
    """What to say of a kernel that prints: its first lines."""
    if not result.print_calls:
        return ()
    lines = result.printed.splitlines()
    shown = " | ".join(line[:_LONGEST_LINE] for line in lines[:_SHOWN_LINES])
    more = " | …" if len(lines) > _SHOWN_LINES else ""
    calls = "one call" if result.print_calls == 1 else f"{result.print_calls:,} calls"
    return (f"It prints, by {calls} of printf: {shown}{more}",)


def counters_of(
    result: LaunchResult, others: Set[str] = frozenset(), *, exact: bool = True
) -> dict[str, Counter]:
    """A launch's counts as the contract keeps them; those of tensor cores where it used any."""
    accesses = [
        name
        for name, row in OF_EXECUTOR.items()
        if (result.least or name in others) and row.unit in _UNITS_OF_ACCESSES
    ]
    hidden = dict.fromkeys((name for name in accesses if OF_EXECUTOR[name].over), _LEAST) | result.hidden
    return {
        name: Counter(
            value=None if name in hidden else result.counters.get(name, None if row.over else 0),
            unit=row.unit,
            source="sim",
            reason=hidden.get(name, _NO_ACCESS if row.over and name not in result.counters else None),
            sampled_blocks=result.sampled_blocks,
            total_blocks=result.total_blocks,
            busiest_sm=result.busiest.get(name),
            is_least=name in accesses and name not in hidden,
            is_estimate=not exact or not others.isdisjoint((name, row.over)),
        )
        for name, row in OF_EXECUTOR.items()
        if result.counters[name] or row.only_with != "tensor"
    }


def stands_elsewhere(case: ConfiguredCase) -> bool:
    """Whether a function of the case stands in an included file, whose lines are not the kernel file's."""
    wanted = set(map(function_name, case.entries))

    def found_in(text: str) -> set[str]:
        return wanted & {function_name(function.name) for function in kernel_functions(text)}

    return bool(set().union(*map(found_in, case.kernel.headers.values())) - found_in(case.kernel.source))


def lines_of(
    result: LaunchResult, instructions: MachineCounts | NoLink | None = None
) -> tuple[SourceLine, ...]:
    """Counts by source line; a line keeps only the events it has."""
    executed = instructions.lines if isinstance(instructions, MachineCounts) else {}
    found: dict[int, dict[str, float | int]] = {
        line: {name: counters[name] for name in OF_EXECUTOR if counters[name]}
        for line, counters in result.lines.items()
        if line
    }
    for line, times in executed.items():
        if times.low:
            found.setdefault(line, {})["warp_instructions"] = whole(times.low)
    return tuple(SourceLine(line, counters) for line, counters in sorted(found.items()))


def remarks_of(launched: Sequence[Program], device: Device) -> tuple[str, ...]:
    """What to say of programs, whatever they do."""
    remarks = _unmet_alignments(launched)
    families = {site.family for program in launched for site in program.sites}
    if device.capability != _MEASURED_TENSOR_CORES and families & _ROUNDED_IN_TENSOR_CORES:
        return (*remarks, _SUMS_AS_MEASURED)
    return remarks


#: Shares of a modelled time that are worth keeping, by reason and of a line.
_LEAST_SHARE, _LEAST_LINE = 0.001, 0.005
#: Neighbouring bytes that one part of L2 holds.
_L2_PART = 512


def executed_case(
    launches: Launches,
    results: Sequence[LaunchResult],
    memory: GlobalMemory,
    buffers: Mapping[str, Buffer],
    watch: CacheWatch | None,
    unread: float | None = None,
) -> ExecutedCase:
    """What launches counted; their time is modelled where something watched the device's L1."""
    result, device, case = combined(results), launches.device, launches.case
    major, minor = device.capability
    links = [link() for link in launches.links]
    weights = weighed(links, results)
    instructions = weights if isinstance(weights, NoLink) else count(weights, 10 * major + minor)
    mistaken = launches.sampled and any(mistaken_shares(case.problem, buffers, result.stored))
    exact = result.exact_sample and not mistaken
    result, others = as_unrolled(result, weights, results)
    executed = ExecutedCase(
        *(launches, result, memory, buffers),
        {
            **counters_of(result, others, exact=exact),
            **instruction_counters(instructions, result, exact=exact),
        },
        None if exact else ESTIMATES.format(result.sampled_blocks, result.total_blocks),
        None if stands_elsewhere(case) else lines_of(result, instructions),
        (
            *remarks_of([launches.programs[one.entry] for one in case.launches], device),
            *result.remarks,
            *atomics_remark(links, result),
            *printed_remark(result),
        ),
        unread,
    )
    if watch is None:
        return executed
    return replace(executed, model=partial(_model_of, launches, weights, results, watch))


def _model_of(
    launches: Launches, weights: Weighed | NoLink, results: Sequence[LaunchResult], watch: CacheWatch
) -> tuple[Model | None, str | None]:
    """The modelled time of a case, or the reason why there is none: no verdict depends on it."""
    try:
        found = played(launches.device, launches.case, launches.compiled, weights, results, watch)
    except NotModelled as why:
        return None, str(why)
    except (ArithmeticError, LookupError, ValueError) as error:
        return None, f"the model could not play it: {type(error).__name__}: {error}"
    reasons = defaultdict(float, tail=found.tail, launch=found.launch)
    lines: dict[int, dict[str, float]] = defaultdict(dict)
    for (line, name), share in found.lines.items():
        reasons[name] += share
        if share >= _LEAST_SHARE:
            lines[line][name] = round(share, 4)
    return Model(
        found.us,
        found.low_us,
        found.high_us,
        {name: round(share, 4) for name, share in reasons.items() if share >= _LEAST_SHARE},
        tuple(
            ModelLine(line, round(share, 4), parts)
            for line, parts in sorted(lines.items())
            if line and (share := sum(parts.values())) >= _LEAST_LINE
        ),
    ), None


def played(
    device: Device,
    case: ConfiguredCase,
    compiled: Functions,
    weights: Weighed | NoLink,
    results: Sequence[LaunchResult],
    watch: CacheWatch,
) -> Modelled:
    """Play a case on a device.

    Raises:
        NotModelled: Something of it is not modelled, or not known for certain.
    """
    if isinstance(weights, NoLink):
        raise NotModelled(weights.reason)
    sites, every = [], []
    for number, (one, (link, times), result) in enumerate(zip(case.launches, weights, results, strict=True)):
        site = TrafficSites(
            link.code,
            [low for low, _ in times],
            link.sources,
            *_requests_of(result, watch, number),
            one.grid,
            device.sm_count * occupancy_of(device, one, compiled[one.entry]).blocks_per_sm,
        )
        least = site.told_by_requests([high for _, high in times])
        sites.append(replace(site, times=least))
        every.append(
            [(now, now if now > low else high) for now, (low, high) in zip(least, times, strict=True)]
        )
    written = sum(spec.nbytes for spec in case.problem.outputs)
    unwritten = constants_of(device).unwritten_bytes
    traffic = traffic_of(sites, case.problem.min_bytes - written, written, device.l2_bytes, unwritten)
    elsewhere, played = stands_elsewhere(case), []
    for number, (one, (link, _), times, asked, result) in enumerate(
        zip(case.launches, weights, every, traffic, results, strict=True)
    ):
        function, warps_each = compiled[one.entry], -(-math.prod(one.block) // WARP)
        words = control_words(function.cubin, function.entry)
        resident = occupancy_of(device, one, function).blocks_per_sm
        blocks = math.prod(one.grid)
        played.append(
            PlayedLaunch(
                *(link.code, words, times, asked, blocks, warps_each, resident),
                sources={} if elsewhere else link.sources,
                handed_on=watch.handed_on[number],
                shared_bytes=function.static_shared_bytes + one.dynamic_shared_bytes,
                cluster=math.prod(function.block_limits.cluster),
                busiest=(
                    result.busiest.get("block_warps", 0.0) / max(1.0, float(result.block_warps.sum())),
                    result.busiest.get("l1_passes", 0.0) / max(1.0, result.counters["l1_passes"]),
                ),
                left_out=left_out(link, result, warps_each),
                work=result.block_work.tolist(),
                longest=result.longest * blocks * warps_each / max(1.0, float(result.block_warps.sum())),
            )
        )
    return modelled(played, device)


def left_out(link: Link, result: LaunchResult, warps: int) -> Sequence[frozenset[int]]:
    """Return for each warp of a block the blocks of machine code that it comes to in none of the grid."""
    left: list[set[int]] = [set() for _ in range(warps)]
    for number, anchors in enumerate(link.anchors):
        homes = [home for line in anchors.fixed or anchors.loads for home in link.homes[line]]
        if found := [result.came[home] for home in homes if home in result.came]:
            # Of a cluster, those of its blocks follow each other.
            came = np.logical_or.reduce(np.broadcast_arrays(*found))
            came = np.broadcast_to(came.reshape(-1, min(len(came), warps)).any(axis=0), warps)
            for warp in np.flatnonzero(~came).tolist():
                left[warp].add(number)
    return [*map(frozenset, left)] if any(left) else ()


def _requests_of(
    result: LaunchResult, watch: CacheWatch, launch: int
) -> tuple[Mapping[Place, Mapping[str, float]], Mapping[Place, tuple[int, ...] | None]]:
    """What was counted and seen of a launch's requests, and how blocks move, by place."""
    found: dict[Place, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    moving: dict[Place, tuple[int, ...] | None] = {}
    crowds: dict[Place, Sequence[Any]] = {}
    for site, counted in result.sites:
        for name, times in counted.items():
            found[site.ptx_line, site.family][name] += times
    for (number, where, reads), seen in watch.seen.items():
        if number == launch:
            place = where, "bulk_load" if reads else "bulk_store"
            if not seen["copies"]:
                site = result.sites[where][0]
                place = site.ptx_line, site.family
            for name, times in seen.items():
                found[place][f"seen_{name}"] += times
            moving[place] = watch.moving.get((number, where, reads))
            if turns := watch.turns.get((number, where, reads)):
                crowds[place] = turns
    _crowd(crowds, found)
    return found, moving


def _crowd(turns: Mapping[Place, Sequence[Any]], found: Mapping[Place, dict[str, float]]) -> None:
    """Note of atomic operations which share of their turns is that of the busiest sector, and part of L2."""
    if not turns:
        return
    each = [[np.concatenate(column) for column in zip(*noted, strict=True)] for noted in turns.values()]
    sectors, passes = (np.concatenate(column) for column in zip(*each, strict=True))
    of = np.repeat(np.arange(len(each)), [len(those) for those, _ in each])
    total = np.bincount(of, passes)
    asked = np.array([found[place]["sectors"] for place in turns])
    for name, nbytes in (("sector", SECTOR_BYTES), ("part", _L2_PART)):
        which = np.unique(sectors * SECTOR_BYTES // nbytes, return_inverse=True)[1]
        busiest = which == np.bincount(which, passes * (asked / total)[of]).argmax()
        shares = np.bincount(of[busiest], passes[busiest], len(each)) / total
        for place, share in zip(turns, shares.tolist(), strict=True):
            found[place][f"seen_busiest_{name}"] = share
