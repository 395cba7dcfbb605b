# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a program over a grid, or a sample of it, in batches of blocks."""

import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.decode import Program
from gpuprof.executor.divergence.warp_turns import WarpTurns
from gpuprof.executor.faults import FaultKind, Index, KernelFault, LaunchRefused, UnsupportedInstruction
from gpuprof.executor.interleaving import Openness, Order, by_signals, run_by_turns
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import uniform
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.lanes.undefined import ABSENT_LANE
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.global_races import GlobalRace, GlobalRaces
from gpuprof.executor.memory.heap import leak, pieces_of
from gpuprof.executor.memory.open_meetings import OpenMeetings
from gpuprof.executor.memory.printed import Printed
from gpuprof.executor.memory.texture_objects import surfaces_of
from gpuprof.executor.memory.windows import RANK_SHIFT
from gpuprof.executor.memory.witness import Witness
from gpuprof.executor.program.ptx import Variable
from gpuprof.executor.program.slots import CONSTANT_WINDOW, GRID_WORKSPACE
from gpuprof.executor.refusals import check_shape, cluster_of
from gpuprof.executor.sampling import BlockList, Sample, every_block
from gpuprof.executor.scheduler import Help, Scheduler
from gpuprof.executor.steps.batch import Batch, EndOfSample, Geometry, Guide
from gpuprof.executor.steps.special_registers import (
    Surroundings,
    block_register,
    launch_register,
    remark_on,
)
from gpuprof.executor.totals import LineCounters, Number, Totals, efficiencies

#: Lanes of a batch: enough that NumPy's cost per call does not matter, few enough to stay in cache.
_BATCH_LANES = 65536
#: How much larger a batch without values may be, if it then is the only one: a small second one would take
#: as many steps.
_STRETCHED = 1.5
#: Shared and local memory of a batch, in bytes.
_BATCH_BYTES = 128 << 20
#: Batches that may wait for blocks of later ones: more than any card holds at once.
_MOST_WAITING = 16
#: Instructions that one batch may take, each for all of its lanes.
DEFAULT_BUDGET = 20_000_000
#: Of an H200.
_MULTIPROCESSORS = 132

#: Of the memory that a cooperative launch gives its grid.
_WORKSPACE_WORDS = 8

_HIDDEN = "no counter sees what the kernel's bulk copies move"
_UNKNOWN = "how a card counts {} has not been measured"
#: As an H200 answered: wavefronts of plain accesses to a block that is not the own are in none of them.
_LEAVES_OUT = "this counter of the card leaves out {}"
_REMOTE = "accesses to other blocks' shared memory"
_HIDDEN_IN_VIEWS = "this counter leaves out what goes through the kernel's textures or surfaces"

#: What a kernel parameter may be given: a number, a buffer for a pointer, or the bytes of a struct.
Argument = int | float | Buffer | np.generic | bytes


@dataclass(frozen=True)
class Stored:
    """Bytes that the blocks of a sample stored to one buffer.

    Attributes:
        by_sample: Of the blocks that ran.
        by_grid: Of those that they stand for, too.
    """

    by_sample: float = 0
    by_grid: float = 0

    def __add__(self, other: "Stored") -> "Stored":
        """Return what two batches stored."""
        return Stored(self.by_sample + other.by_sample, self.by_grid + other.by_grid)


@dataclass(frozen=True)
class LaunchResult:
    """What one launch counted.

    Attributes:
        counters: Counters of the whole grid by name; an efficiency is None when there was nothing to measure.
        hidden: Counters that would leave out what bulk copies, textures and surfaces move, or that may count
            otherwise what goes to the shared memory of other blocks, by name, with the reason.
        lines: The same by line of the kernel's source file.
        busiest: The least that the busiest multiprocessor does of some of them, by name.
        sampled_blocks: Thread blocks that ran.
        total_blocks: Thread blocks of the grid.
        exact_sample: False when blocks that stand for the same part of the grid differ in their counts, so
            that the counters are estimates.
        lane_instructions: PTX instructions executed, summed over lanes, of the blocks that ran.
        stored: Of a sample of the grid, what stores did to each buffer, by its name; of a whole grid nothing.
        block_warps: How often warps ran each basic block of the program, with at least one lane, over the
            whole grid: shape (basic blocks,); of several launches together nothing.
        block_threads: How often threads did, likewise.
        block_parted: How often lanes of a warp parted at the end of each, likewise.
        loop_turns: Of the loops that were to be watched, how often warps entered one and made so many turns,
            by its basic block and by turns; of several launches together nothing.
        remarks: What the kernel did that CUDA leaves undefined, where nothing it left behind depends on that,
            and memory of its heap that it did not free.
        printed: What it printed, of its first calls of `printf`.
        print_calls: How many calls there were.
        steps: PTX instructions, each counted once for all lanes of a batch that ran it together.
        openness: Whether another order of its warps may leave something else behind.
    """

    counters: dict[str, Number | None]
    hidden: dict[str, str]
    lines: dict[int, LineCounters]
    busiest: dict[str, float]
    sampled_blocks: int
    total_blocks: int
    exact_sample: bool
    lane_instructions: int
    stored: dict[str, Stored]
    block_warps: NDArray[np.float64]
    block_threads: NDArray[np.float64]
    block_parted: NDArray[np.float64]
    loop_turns: dict[int, dict[int, float]]
    remarks: tuple[str, ...] = ()
    printed: str = ""
    print_calls: int = 0
    steps: int = 0
    openness: Openness = Openness.NONE


def launch(
    program: Program,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Argument],
    memory: GlobalMemory,
    dynamic_shared_bytes: int = 0,
    blocks: Literal["all"] | Sample = "all",
    progress: Callable[[int, int], None] | None = None,
    per_line: bool = True,
    instruction_budget: int = DEFAULT_BUDGET,
    cooperative: bool = False,
    multiprocessors: int = _MULTIPROCESSORS,
    witness: Witness | None = None,
    watched_loops: Iterable[int] = (),
    guide: Guide | None = None,
    merged_atomics: Collection[int] = (),
    order: Order | None = None,
) -> LaunchResult:
    """Run a kernel to its end.

    Memory keeps what the kernel wrote, also when it ends in a fault; module variables live there too, from
    one launch to the next.

    Args:
        program: The decoded kernel.
        grid: Blocks in x, y, z.
        block: Threads of a block in x, y, z.
        args: One argument per parameter: numbers, buffers (passed as pointers), or the bytes of a struct.
        memory: Where the buffers live.
        dynamic_shared_bytes: Bytes of `extern __shared__` memory per block.
        blocks: "all", or the sample of this grid to run.
        progress: Called with (blocks done, blocks to run) after each batch.
        per_line: Whether to fill `LaunchResult.lines`.
        instruction_budget: Instructions a batch may take before its loop counts as endless.
        cooperative: Whether all blocks are there at once, and may wait for each other (`grid.sync()`).
        multiprocessors: Of the card, for kernels that ask.
        witness: Remembers who writes what of the buffers that it watches.
        watched_loops: Basic blocks of `program.loops`, whose turns are to be counted.
        guide: Decides how batches run, of a program with a skeleton.
        merged_atomics: Lines of the PTX text whose atomic operation one lane does for its warp, in machine
            code.
        order: In which other order warps and blocks run; told whether they came to their end. Reading shared
            memory that nobody has written is no fault by itself then.

    Raises:
        KernelFault: The kernel broke a rule of CUDA.
        LaunchRefused: The arguments or the launch shape do not fit the kernel, or what CUDA allows.
    """
    geometry = Geometry(grid, block)
    check_shape(program, geometry, len(args))
    sample = every_block(grid) if blocks == "all" else blocks
    sample = sample.in_clusters(grid, cluster_of(program))
    template = _Template(program, geometry, args, memory, dynamic_shared_bytes, cooperative, multiprocessors)
    template.merged_atomics = merged_atomics
    template.loops = {number: program.loops[number].entries for number in watched_loops}
    owned = pieces_of(memory.heap)
    # Neither a witness nor a guide can forget what it saw of a run that is begun again.
    forgets = witness is None and guide is None
    ordered = program.orders_shared and not forgets
    # What is signalled through global memory may order accesses to shared memory, too.
    in_order = program.orders_shared or (by_signals(program, memory) and not program.phased)
    if order is not None:
        run = _Run(
            template, sample, instruction_budget, progress, witness, order=order, order_shared=in_order
        )
        run.by_turns(order)
    else:
        restore = memory.snapshot() if in_order and forgets else None
        try:
            run = _Run(template, sample, instruction_budget, progress, witness, guide, order_shared=ordered)
            run.to_the_end()
        except KernelFault as fault:
            if restore is None or not fault.is_race:
                raise
            restore()
            run = _Run(template, sample, instruction_budget, progress, order_shared=True)
            run.to_the_end()
    totals = run.totals
    machine = remark_on(program.slots.specials.keys() | program.clocks)
    return LaunchResult(
        counters=totals.counters(),
        hidden=dict.fromkeys(totals.names_of(run.remote), _LEAVES_OUT.format(_REMOTE))
        | dict.fromkeys(totals.names_of(program.uncounted), _HIDDEN_IN_VIEWS if memory.objects else _HIDDEN)
        | _hidden_of_tensor_cores(program),
        lines=totals.lines() if per_line else {},
        busiest=totals.busiest(multiprocessors),
        sampled_blocks=sample.count * template.layout.blocks,
        total_blocks=sample.total * template.layout.blocks,
        exact_sample=totals.exact,
        lane_instructions=run.executed,
        stored=run.stored,
        block_warps=totals.block_warps,
        block_threads=totals.block_threads,
        block_parted=totals.block_parted,
        loop_turns={number: dict(turns) for number, turns in totals.loop_turns.items()},
        remarks=tuple(text for text in (run.remark, machine, leak(pieces_of(memory.heap), owned)) if text),
        printed=run.printed.text,
        print_calls=run.printed.calls,
        steps=run.steps,
        openness=run.openness,
    )


class _Run:
    """One launch's batches, in turn; those that wait for blocks of other batches stay until these have come.

    Attributes:
        totals: What the batches counted that have ended.
        executed: PTX instructions, summed over their lanes.
        steps: PTX instructions, each for all lanes that ran it together.
        stored: What they stored, as in the launch's result.
        remark: What the first of them did that CUDA leaves undefined.
        printed: What they print.
        remote: Families of accesses that went to other blocks' shared memory.
    """

    def __init__(
        self,
        template: "_Template",
        sample: Sample,
        budget: int,
        progress: Callable[[int, int], None] | None,
        witness: Witness | None = None,
        guide: Guide | None = None,
        *,
        order: Order | None = None,
        order_shared: bool = False,
    ) -> None:
        self.template = template
        self.guide = guide
        self.order_shared = order_shared
        self.sample = sample
        self.budget = budget
        self.progress = progress
        self.totals = Totals(template.program, sample, template.merged_atomics)
        self.executed = 0
        self.steps = 0
        self.stored: dict[str, Stored] = {}
        self.remark = ""
        self.printed = Printed()
        self.remote: set[str] = set()
        self.meetings = order.meetings if order is not None else OpenMeetings()

        def named(thread: int) -> tuple[Index, Index]:
            return template.named(sample, thread)

        self.meetings.begin(named, template.program.polled)
        self._races = template.races(sample, self.meetings)
        if witness is not None:
            witness.attend(self._races, named)
        self._waiting: list[tuple[Scheduler, BlockList]] = []
        self._done = 0

    def to_the_end(self) -> None:
        """Run all blocks of the sample, or as far as the guide wants."""
        count, per_batch = self.sample.count, self.template.blocks_per_batch()
        if self.guide is not None and not self.guide.moves_values and count <= per_batch * _STRETCHED:
            per_batch = count
        first = 0
        while first < count:
            most = self.guide.most_together(first) if self.guide is not None else None
            last = min(first + min(per_batch, most or per_batch), count)
            self._waiting.append(self._begun(first, last))
            self._go_round(Help.OTHERS if last - first < count else Help.NOBODY)
            self._until_few_wait(_MOST_WAITING)
            first = last
        self._until_few_wait(0)
        self._races.finish()

    @property
    def openness(self) -> Openness:
        """What other orders may change: nothing of a sample, or of more batches than can take turns."""
        batches = -(-self.sample.count // self.template.blocks_per_batch())
        if self.sample.count < self.sample.total or batches > _MOST_WAITING:
            return Openness.NONE
        if self.meetings.any:
            return Openness.FINDS
        releases = self._races.releases
        signals = self.template.program.takes or (releases is not None and releases.used)
        return Openness.SIGNALS if signals else Openness.NONE

    def by_turns(self, order: Order) -> None:
        """Run all blocks of the sample by turns, or as far as their order's instructions go.

        Raises:
            KernelFault: The kernel broke a rule.
        """
        count, layout = self.sample.count, self.template.layout
        batches = -(-count // self.template.blocks_per_batch())
        turns, parts = order.divided(count, batches, self.template.geometry.warps * layout.blocks)
        limits = [count * turn // turns for turn in range(turns + 1)]
        going: list[tuple[Scheduler, BlockList]] = []
        for first, last in pairwise(limits):
            batch, running = self._batch(first, last)
            batch.reads_unwritten = True
            warps = WarpTurns(batch, order.number, parts)
            going.append((Scheduler(self.template.program, batch, self.budget, warps), running))
        with np.errstate(all="ignore"):
            run_by_turns([scheduler for scheduler, _ in going], order)
        for scheduler, running in going:
            self._count(scheduler, running)
        self._races.finish()

    def _until_few_wait(self, most: int) -> None:
        """Let waiting batches help each other until at most so many are left."""
        while len(self._waiting) > most:
            # Lanes part from those of their warp only where no other block is of any help.
            _ = self._go_round(Help.OTHERS) or self._go_round(Help.OWN_WARP) or self._go_round(Help.NOBODY)

    def _begun(self, first: int, last: int) -> tuple[Scheduler, BlockList]:
        batch, running = self._batch(first, last)
        return Scheduler(self.template.program, batch, self.budget), running

    def _batch(self, first: int, last: int) -> tuple[Batch, BlockList]:
        template, program = self.template, self.template.program
        running = self.sample.blocks(first, last)
        tally = Tally(len(program.sites), len(program.blocks), last - first, template.loops)
        batch = template.batch(running.indices, tally)
        batch.stored = {} if self.sample.count < self.sample.total else None
        batch.join(self._races, first, order_shared=self.order_shared, polled=program.polled)
        batch.printed = self.printed
        if self.guide is not None:
            self.guide.begin(batch, first, self.template.stored())
        return batch, running

    def _go_round(self, help_from: Help) -> bool:
        """Let every batch go on that has not ended; return whether any got further."""
        further = False
        for scheduler, running in reversed(self._waiting.copy()):
            before = scheduler.progress
            try:
                with np.errstate(all="ignore"):
                    ended = scheduler.run(help_from)
            except EndOfSample:
                ended = True
                scheduler.batch.races.barrier()
            if ended:
                self._waiting.remove((scheduler, running))
                self._count(scheduler, running)
            further |= scheduler.progress > before
        return further

    def _count(self, scheduler: Scheduler, running: BlockList) -> None:
        batch = scheduler.batch
        self.executed += scheduler.lane_instructions
        self.steps += scheduler.steps
        batch.settle()
        self.totals.add(batch.tally, running)
        for name, per_block in (batch.stored or {}).items():
            every = Stored(float(per_block.sum()), float(per_block @ running.weights))
            self.stored[name] = self.stored.get(name, Stored()) + every
        self.remark = self.remark or _remark(batch) or self._remark_on_luck(batch)
        if batch.remote is not None:
            self.remote |= {self.template.program.sites[site].family for site in batch.remote.sites}
        of_cluster = batch.layout.blocks
        self._done += batch.blocks * of_cluster
        batch.close()
        if self.progress is not None:
            self.progress(self._done, self.sample.count * of_cluster)

    def _remark_on_luck(self, batch: Batch) -> str:
        """Say where lanes of a warp find what the card's order of them decides; empty where they do not."""
        lucky = batch.shared_order and batch.shared_order.lucky
        if not lucky:
            return ""
        thread, block = self.template.named(self.sample, lucky.thread)
        return (
            f"undefined: line {lucky.line} reads as volatile what another lane of its warp stores in line"
            f" {lucky.store_line} (thread {thread} of block {block}), and no __syncwarp orders the two"
        )


def _remark(batch: Batch) -> str:
    """Say where a batch read what nobody had written; empty where it did not."""
    read = batch.followed and batch.followed.first_read
    if not read:
        return ""
    thread, block = batch.names(read.position)
    where = f"thread {thread} of block {block}"
    if read.byte == ABSENT_LANE:
        what = f"a lane that takes no part in the exchange ({where})"
    else:
        what = f"byte {read.byte} of shared memory, which was never written ({where})"
    return f"Line {read.line} reads {what}; no result depends on it"


def combined(results: Sequence[LaunchResult]) -> LaunchResult:
    """Return what several launches counted together, an efficiency from the bytes and sectors of all."""
    lines: dict[int, LineCounters] = {}
    for result in results:
        for number, counted in result.lines.items():
            lines[number] = lines.get(number, LineCounters()) + counted
    counters: dict[str, Number | None] = {
        name: sum(result.counters[name] or 0 for result in results) for name in results[0].counters
    }
    return LaunchResult(
        counters=counters | efficiencies(counters),
        hidden={name: why for result in results for name, why in result.hidden.items()},
        lines=dict(sorted(lines.items())),
        busiest={name: sum(result.busiest[name] for result in results) for name in results[0].busiest},
        sampled_blocks=sum(result.sampled_blocks for result in results),
        total_blocks=sum(result.total_blocks for result in results),
        exact_sample=all(result.exact_sample for result in results),
        lane_instructions=sum(result.lane_instructions for result in results),
        stored=results[0].stored if len(results) == 1 else {},
        block_warps=results[0].block_warps if len(results) == 1 else np.zeros(0),
        block_threads=results[0].block_threads if len(results) == 1 else np.zeros(0),
        block_parted=results[0].block_parted if len(results) == 1 else np.zeros(0),
        loop_turns=results[0].loop_turns if len(results) == 1 else {},
        remarks=tuple(dict.fromkeys(remark for result in results for remark in result.remarks)),
        printed="".join(result.printed for result in results),
        print_calls=sum(result.print_calls for result in results),
        steps=sum(result.steps for result in results),
        openness=max(result.openness for result in results),
    )


class _Template:
    """What all batches of one launch have in common."""

    def __init__(
        self,
        program: Program,
        geometry: Geometry,
        args: Sequence[Argument],
        memory: GlobalMemory,
        dynamic_shared_bytes: int,
        cooperative: bool,
        multiprocessors: int,
    ) -> None:
        self.program = program
        self.geometry = geometry
        self.memory = memory
        shared_bytes = program.shared.static_bytes
        if dynamic_shared_bytes:
            shared_bytes = program.shared.dynamic_offset + dynamic_shared_bytes
        cluster = cluster_of(program)
        self.layout = ClusterLayout(cluster, geometry.warps, shared_bytes, program.shared_start)
        self.surroundings = Surroundings(
            geometry,
            program.limits.get("reqnctapercluster"),
            program.architecture,
            program.shared.allotted_bytes + dynamic_shared_bytes,
            dynamic_shared_bytes,
            multiprocessors,
        )
        #: Loops whose turns are counted, each with the basic blocks before it.
        self.loops: dict[int, tuple[int, ...]] = {}
        self.merged_atomics: Collection[int] = ()
        self.registers = list(program.slots.initial)
        self.content = _parameter_block(program, args)
        self._fill_parameters(self.content)
        self._fill_specials()
        if cooperative and not GRID_WORKSPACE.isdisjoint(program.slots.specials):
            self._fill_workspace()

    def blocks_per_batch(self) -> int:
        """Return how many thread blocks run together; of clusters, how many of these."""
        lanes = self.geometry.warps * WARP * self.layout.blocks
        bytes_each = self.layout.all_bytes + lanes * self.program.local_bytes
        return max(1, min(_BATCH_LANES // lanes, _BATCH_BYTES // max(1, bytes_each)))

    def batch(self, indices: NDArray[np.int64], tally: Tally) -> Batch:
        """Return a batch of the given blocks, ready to run."""
        slots, follows = self.program.slots, self.program.follows_undefined
        batch = Batch(
            self.program.kernel,
            self.geometry,
            indices,
            self.memory,
            self.layout,
            self.program.shared_granule,
            self.program.local_bytes,
            tally,
            self.program.phased,
            self.program.partial,
            followed={slot: slots.kept[slot] for slot in self.program.unwritten} if follows else None,
            fences=self.program.fences,
        )
        batch.assume_written(self.program.reserved_bytes)
        batch.registers = list(self.registers)
        values = self.surroundings.of_blocks(self.layout.indices_of(indices))
        for name, slot in slots.specials.items():
            if name in values:
                batch.registers[slot] = block_register(values[name], self.layout)
        if self.layout.several:
            for slot in slots.in_shared:
                batch.registers[slot] = batch.registers[slot] + (self.layout.rank_of_warp << RANK_SHIFT)
        return batch

    def races(self, sample: Sample, meetings: OpenMeetings) -> GlobalRaces:
        """Return what looks for races on the buffers that kernels may write."""
        # What is given out of a heap, freed, and given to another thread is in nobody's order.
        buffers = [b for b in self.stored() if not b.read_only and b.allotted is None]

        def report(race: GlobalRace) -> NoReturn:
            thread, block = self.named(sample, race.thread)
            other, other_block = self.named(sample, race.other)
            who = f"thread {other} of block {other_block}"
            if race.thread == race.other:
                who = f"another thread of block {other_block}"
            raise KernelFault(
                FaultKind.SHARED_RACE if race.shared else FaultKind.GLOBAL_RACE,
                race.detail.format(who, race.other_line),
                kernel=self.program.kernel,
                source_line=race.line,
                block=block,
                thread=thread,
                address=race.address,
                other_block=other_block,
            )

        return GlobalRaces(buffers, releases=self.program.fences, report=report, meetings=meetings)

    def stored(self) -> list[Buffer]:
        """Return the buffers that the kernel may write: all where its pointers do not tell."""
        stored, memory = self.program.stored, self.memory
        if stored is None:
            return memory.buffers
        found: dict[int, Buffer] = {}
        for variable, offset in self.program.parameters:
            if variable.name not in stored:
                continue
            words = np.frombuffer(self.content[offset : offset + variable.size // 8 * 8], dtype=np.int64)
            for address in words.tolist():
                buffer = memory.holding(address, address + 1)
                if buffer is None and (nearest := memory.nearest(address)) is not None:
                    if address >= nearest.address:  # a pointer beside its array
                        return memory.buffers
                elif buffer is not None:
                    found[buffer.address] = buffer
        for variable in self.program.variables:
            if variable.name in stored:
                buffer = self._variable(variable)
                found[buffer.address] = buffer
        found |= {buffer.address: buffer for buffer in surfaces_of(memory)}
        return list(found.values())

    def named(self, sample: Sample, thread: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return threadIdx and blockIdx of a thread, by its number among those that run."""
        number, inside = divmod(thread, self.geometry.warps * WARP)
        cluster, rank = divmod(number, self.layout.blocks)
        x, y, z = sample.blocks(cluster, cluster + 1).indices[0].tolist()
        return self.geometry.thread_index(*divmod(inside, WARP)), self.layout.index_of((x, y, z), rank)

    def _fill_parameters(self, content: bytes) -> None:
        slots = self.program.slots
        for start, dtype, slot in slots.parameters:
            value = np.frombuffer(content, dtype=dtype, count=1, offset=start)
            self.registers[slot] = value.reshape(1, 1, 1)
        placed = {variable.name: offset for variable, offset in self.program.parameters}
        variables = {variable.name: variable for variable in self.program.variables}
        block: Buffer | None = None
        for key, slot in slots.symbols.items():
            name, _, offset = key.partition("+")
            if name in placed:
                if block is None:
                    whole = np.frombuffer(content, dtype=np.uint8)
                    block = self.memory.allocate(whole, "the parameters", read_only=True)
                address = block.address + placed[name]
            elif key == CONSTANT_WINDOW:
                address = self.memory.constant_window(self.program.module)
            elif name in self.program.constants:
                self._variable(variables[name])
                address = self.program.constants[name]
            else:
                address = self._variable(variables[name]).address
            self.registers[slot] = uniform(address + int(offset), np.dtype(np.int64))

    def _variable(self, variable: Variable) -> Buffer:
        """Return the memory of a module variable, which keeps its content from launch to launch.

        All kernels of a module share it.
        """
        key = (self.program.module, variable.name)
        if key not in self.memory.variables:
            content = np.frombuffer((variable.data or b"").ljust(variable.size, b"\0"), dtype=np.uint8)
            place = self.program.constants.get(variable.name)
            address = None if place is None else self.memory.constant_window(self.program.module) + place
            buffer = self.memory.allocate(
                content, variable.name, read_only=place is not None, address=address
            )
            self.memory.variables[key] = buffer
            self._fill_references(variable, buffer)
        return self.memory.variables[key]

    def _fill_workspace(self) -> None:
        """Give the grid the memory in which it counts who came to its barrier."""
        workspace = self.memory.allocate(np.zeros(_WORKSPACE_WORDS, np.uint32), "the workspace of the grid")
        halves = {"%envreg1": workspace.address >> 32, "%envreg2": workspace.address & 0xFFFF_FFFF}
        for name, value in halves.items():
            if name in self.program.slots.specials:
                slot = self.program.slots.specials[name]
                self.registers[slot] = uniform(np.uint32(value).astype(np.int32), np.dtype(np.int32))

    def _fill_references(self, variable: Variable, buffer: Buffer) -> None:
        """Write the addresses that a module variable starts with."""
        variables = {v.name: v for v in self.program.variables}
        for place in variable.references:
            if place.symbol in self.program.constants and not place.generic:
                address = self.program.constants[place.symbol]
            elif place.symbol in variables:
                address = self._variable(variables[place.symbol]).address
            elif place.symbol in self.program.functions:
                address = self.program.functions[place.symbol]
            else:
                raise UnsupportedInstruction(f"initialiser {place.symbol}", 0)
            content = np.frombuffer(place.content(address), dtype=np.uint8)
            buffer.changeable(1)[place.offset : place.offset + place.size] = content

    def _fill_specials(self) -> None:
        values = self.surroundings.of_launch()
        for name, slot in self.program.slots.specials.items():
            if name in values:
                self.registers[slot] = launch_register(values[name])


def _parameter_block(program: Program, args: Sequence[Argument]) -> bytes:
    content = bytearray()
    for (variable, offset), argument in zip(program.parameters, args, strict=True):
        content = content.ljust(offset, b"\0")
        content += _packed(variable, argument)
    return bytes(content).ljust(16, b"\0")


def _packed(variable: Variable, argument: Argument) -> bytes:
    if isinstance(argument, Buffer):
        argument = argument.address
    if isinstance(argument, np.generic):
        argument = argument.tobytes()
    if isinstance(argument, bytes):
        if len(argument) != variable.size:
            raise LaunchRefused(
                f"{variable.name} takes {variable.size} bytes, but {len(argument)} were given."
            )
        return argument
    if isinstance(argument, float):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[variable.size], argument)
    return (int(argument) & ((1 << 8 * variable.size) - 1)).to_bytes(variable.size, "little")


def _hidden_of_tensor_cores(program: Program) -> dict[str, str]:
    """Return the counters that a kernel's tensor instructions would be among, with the reason."""
    families = {site.family for site in program.sites}
    hidden: dict[str, str] = {}
    for family in families:
        how, _, kind = family.partition("_")
        if how == "wgmma":
            hidden |= dict.fromkeys(("hmma_instructions", "imma_instructions"), _UNKNOWN.format("wgmma"))
        elif how == "sparse":
            hidden[f"tensor_{kind}_operations"] = _UNKNOWN.format("sparse products")
    if "tensor_b1" in families:
        hidden["imma_instructions"] = _UNKNOWN.format("products of bits")
    return hidden
