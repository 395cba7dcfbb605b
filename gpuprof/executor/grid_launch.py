# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a program over a grid, or a sample of it, in batches of blocks."""

from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from msgspec import Struct, field, structs
from numpy.typing import NDArray

from gpuprof.executor.decode import Program
from gpuprof.executor.divergence.warp_turns import WarpTurns
from gpuprof.executor.faults import Index
from gpuprof.executor.interleaving import Openness, Order, run_interleaved
from gpuprof.executor.lanes.masks import Bools, Counts
from gpuprof.executor.lanes.tally import Iterations, Site, Tally
from gpuprof.executor.launch_template import Argument, LaunchTemplate, check_shape, cluster_of
from gpuprof.executor.memory.global_accesses import Cache, LocalLanes, Observer
from gpuprof.executor.memory.global_memory import GlobalMemory
from gpuprof.executor.memory.heap import leak, pieces_of
from gpuprof.executor.memory.shared_memory import SharedBlocks
from gpuprof.executor.observers.open_meetings import OpenMeetings
from gpuprof.executor.observers.store_trace import StaleReads, StoredBytes, ValuelessElements
from gpuprof.executor.sampling import BlockList, Sample, every_block
from gpuprof.executor.scheduler import Help, Scheduler
from gpuprof.executor.steps.batch import Geometry
from gpuprof.executor.steps.launch_state import Printed, SliceRun
from gpuprof.executor.steps.special_registers import remark_on
from gpuprof.executor.steps.wgmma_steps import COUNTED_AS_HMMA
from gpuprof.executor.totals import CountedTotals, Stored, Totals, names_of

#: How much larger a batch of control slices may be, if it then is the only one: a small second one would take
#: as many steps.
_STRETCHED = 1.5
#: Batches that may wait for blocks of later ones: more than any card holds at once.
_MOST_WAITING = 16
#: Instructions that one batch may take, each for all of its lanes.
DEFAULT_BUDGET = 20_000_000
#: Of a launch that is limited otherwise.
_NO_BUDGET = 1 << 60
#: Of an H200.
_MULTIPROCESSORS = 132

#: What each batch has of its own, as observers see it.
_OWN = {"shared": SharedBlocks.address, "local": LocalLanes.address}

_HIDDEN = "no counter sees what the kernel's bulk copies move"
_UNKNOWN = "how a card counts {} has not been measured"
#: As an H200 answered: wavefronts of plain accesses to a block that is not the own are in none of them.
_LEAVES_OUT = "this counter of the card leaves out {}"
_REMOTE = "accesses to other blocks' shared memory"
_HIDDEN_IN_VIEWS = "this counter leaves out what goes through the kernel's textures or surfaces"


class LaunchResult(Struct, frozen=True):
    """What one launch counted.

    Attributes:
        counters: Counters of the whole grid; there is no efficiency when there was nothing to measure.
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
        came: Which warps of any block, or cluster, ran each basic block that any did: shapes (warps or
            1,); of several launches together nothing.
        block_parted: How often lanes of a warp parted at the end of each, likewise.
        loop_iterations: How often warps entered a loop and made so many iterations, by its basic block and by
            these; of several launches together nothing.
        remarks: What the kernel did that CUDA leaves undefined, where nothing it left behind depends on that,
            and memory of its heap that it did not free.
        printed: What it printed, of its first calls of `printf`.
        print_calls: How many calls there were.
        least: Whether a card may count more accesses, as `Tally` says.
        middling: Lines of the PTX text whose divisions and roots had operands that no machine code takes a
            slow way for; of several launches together none.
        steps: PTX instructions, each counted once for all lanes of a batch that ran it together.
        openness: Whether another order of its warps may leave something else behind.
        sites: Instructions that are counted by themselves, in the order of their numbers, with what was
            counted there over the whole grid, by event; of several launches together nothing.
        sample: The blocks that ran; of several launches together none.
        of_kinds: Of a sample, tells what was counted if its blocks, in the order of `Stored.each`, are of
            these kinds, by number, and the grid has so many of each.
        block_work: How often warps of each block ran basic blocks, in the order in which blocks begin: none
            where not all ran, of clusters, and of several launches together.
        longest: How often the warp that ran basic blocks most often did; 0 of several launches together.
    """

    counters: CountedTotals
    hidden: dict[str, str]
    lines: dict[int, CountedTotals]
    busiest: dict[str, float]
    sampled_blocks: int
    total_blocks: int
    exact_sample: bool
    lane_instructions: int
    stored: dict[str, Stored] = field(default_factory=dict)
    block_warps: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    block_threads: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    came: dict[int, Bools] = field(default_factory=dict)
    block_parted: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    loop_iterations: dict[int, dict[Iterations, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    printed: str = ""
    print_calls: int = 0
    least: bool = False
    middling: frozenset[int] = frozenset()
    steps: int = 0
    openness: Openness = Openness.NONE
    sites: tuple[tuple[Site, CountedTotals], ...] = ()
    sample: Sample | None = None
    of_kinds: "Callable[[NDArray[np.intp], NDArray[np.float64]], LaunchResult] | None" = None
    block_work: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    longest: int = 0


def launch(
    program: Program,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Argument],
    memory: GlobalMemory,
    dynamic_shared_bytes: int = 0,
    blocks: Literal["all"] | Sample = "all",
    instruction_budget: int = DEFAULT_BUDGET,
    cooperative: bool = False,
    multiprocessors: int = _MULTIPROCESSORS,
    observers: Sequence[Observer] = (),
    sliced: SliceRun | None = None,
    merged_atomics: Callable[[], Container[int]] = frozenset,
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
        instruction_budget: Instructions a batch may take before its loop counts as endless.
        cooperative: Whether all blocks are there at once, and may wait for each other (`grid.sync()`).
        multiprocessors: Of the card, for kernels that ask.
        observers: Who is told of what threads do to memory, and listeners of what orders them.
        sliced: Run the control slice alone, of a program that has one: it counts the same, and moves no value
            that decides nothing. Launches that follow each other share one.
        merged_atomics: Tells when blocks have ended the lines of the PTX text whose atomic operation one lane
            does for its warp, in machine code.
        order: In which other order warps and blocks run; told whether they came to their end. Reading shared
            memory that nobody has written is no fault by itself then.

    Raises:
        KernelFault: The kernel broke a rule of CUDA.
        LaunchRefused: The arguments or the launch shape do not fit the kernel, or what CUDA allows.
        TooMuchWork: A control slice takes more steps.
        ValueNeeded: What it does depends on numbers that the kernel computes.
    """
    if sliced is not None:
        program.find_slice()  # with registers and counting sites of its own
    geometry = Geometry(grid, block)
    check_shape(program, geometry, len(args))
    sample = every_block(grid) if blocks == "all" else blocks
    # Without values many blocks take little longer than few, and tell more.
    sample = sample.in_clusters(grid, cluster_of(program), as_many=sliced is not None)
    template = LaunchTemplate(
        program, geometry, args, memory, dynamic_shared_bytes, cooperative, multiprocessors
    )
    owned = pieces_of(memory.heap)
    if sliced is not None:
        instruction_budget = _NO_BUDGET
        observers = [*observers, sliced.valueless]
    totals = Totals(program, sample, merged_atomics)
    run = _Run(template, sample, totals, instruction_budget, observers, sliced, order)
    if order is not None:
        run.interleaved(order)
    else:
        run.to_the_end()
    machine = remark_on(program.slots.specials.keys() | program.clocks)
    remarks = tuple(text for text in (run.remark, machine, leak(pieces_of(memory.heap), owned)) if text)
    hidden = dict.fromkeys(names_of(run.remote), _LEAVES_OUT.format(_REMOTE))
    hidden |= dict.fromkeys(names_of(program.uncounted), _HIDDEN_IN_VIEWS if memory.objects else _HIDDEN)

    def result(totals: Totals) -> LaunchResult:
        return LaunchResult(
            counters=totals.counters(),
            hidden=hidden | _hidden_of_tensor_cores(program),
            lines=totals.lines(),
            busiest=totals.busiest(multiprocessors),
            sampled_blocks=sample.count * template.layout.blocks,
            total_blocks=sample.total * template.layout.blocks,
            exact_sample=totals.exact,
            lane_instructions=run.executed,
            stored=totals.stored,
            block_warps=totals.block_warps,
            block_threads=totals.block_threads,
            came=totals.came,
            block_parted=totals.block_parted,
            block_work=totals.block_work(),
            longest=totals.longest,
            loop_iterations={number: dict(times) for number, times in totals.loop_iterations.items()},
            remarks=remarks,
            printed=run.printed.text,
            print_calls=run.printed.calls,
            least=run.least,
            middling=frozenset(line for line, held in run.middling.items() if held and sliced is None),
            steps=run.steps,
            openness=run.openness,
            sites=tuple(zip(program.sites, totals.sites, strict=True)),
            sample=sample,
            of_kinds=of_kinds if run.counted else None,
        )

    def of_kinds(kinds: NDArray[np.intp], sizes: NDArray[np.float64]) -> LaunchResult:
        totals, weights = Totals(program, sample, merged_atomics), (sizes / np.bincount(kinds))[kinds]
        begin = 0
        for tally, blocks, stored in run.counted:
            part = slice(begin, begin := begin + len(blocks.weights))
            alike = structs.replace(blocks, strata=kinds[part], weights=weights[part])
            totals.add(tally, alike, stored)
        return result(totals)

    return result(totals)


class _Running(Struct, frozen=True, eq=False):
    """Blocks that run together, and what watches them if it is asked for."""

    scheduler: Scheduler
    blocks: BlockList
    stored: StoredBytes | None


class _Run:
    """One launch's batches, one by one; those that wait for blocks of others stay until these have come.

    Attributes:
        remote: Families of accesses that went to other blocks' shared memory.
    """

    def __init__(
        self,
        template: LaunchTemplate,
        sample: Sample,
        totals: Totals,
        budget: int,
        observers: Sequence[Observer],
        sliced: SliceRun | None,
        order: Order | None,
    ) -> None:
        self.template, self.sample, self.totals, self.budget = template, sample, totals, budget
        self.sliced = sliced
        self.executed = self.steps = 0
        #: Of a sample, what its batches counted, and stored to each buffer, by its name.
        self.counted: list[tuple[Tally, BlockList, dict[str, Counts]]] = []
        self.remark = ""
        self.printed = Printed()
        self.remote: set[str] = set()
        self.least = False
        self.middling: dict[int, bool] = {}
        self.meetings = order.meetings if order is not None else OpenMeetings()

        def named(thread: int) -> tuple[Index, Index]:
            return template.named(sample, thread)

        self.meetings.begin(named, template.program.means.polled)
        self._races = template.races(sample, self.meetings)
        self._observers = observers
        for observer in observers:
            observer.begin(named)
        self._waiting: list[_Running] = []
        self._order = order

    def to_the_end(self) -> None:
        """Run all blocks of the sample."""
        count, per_batch = self.sample.count, self.template.blocks_per_batch()
        if self.sliced is not None and count <= per_batch * _STRETCHED:
            per_batch = count
        first = 0
        while first < count:
            last = min(first + per_batch, count)
            self._waiting.append(self._begun(first, last))
            self._go_round(Help.OTHERS if last - first < count else Help.NOBODY)
            self._until_few_wait(_MOST_WAITING)
            first = last
        self._until_few_wait(0)
        self._races.finish()

    @property
    def openness(self) -> Openness:
        """What other orders may change: nothing of a sample, or of more batches than can be interleaved."""
        batches = -(-self.sample.count // self.template.blocks_per_batch())
        if self.sample.count < self.sample.total or batches > _MOST_WAITING:
            return Openness.NONE
        if self.meetings.any:
            return Openness.FINDS
        releases = self._races.releases
        signals = self.template.program.means.takes or (releases is not None and releases.used)
        return Openness.SIGNALS if signals else Openness.NONE

    def interleaved(self, order: Order) -> None:
        """Run all blocks of the sample interleaved, as far as their order's instructions go."""
        count, layout = self.sample.count, self.template.layout
        batches = -(-count // self.template.blocks_per_batch())
        pieces, parts = order.divided(count, batches, self.template.geometry.warps * layout.blocks)
        limits = [count * piece // pieces for piece in range(pieces + 1)]
        going = [self._begun(first, last, parts) for first, last in pairwise(limits)]
        with np.errstate(all="ignore"):
            run_interleaved([running.scheduler for running in going], order)
        for running in going:
            self._count(running)
        self._races.finish()

    def _until_few_wait(self, most: int) -> None:
        """Let waiting batches help each other until at most so many are left."""
        while len(self._waiting) > most:
            # Lanes part from those of their warp only where no other block is of any help.
            _ = self._go_round(Help.OTHERS) or self._go_round(Help.OWN_WARP) or self._go_round(Help.NOBODY)

    def _begun(self, first: int, last: int, parts: int = 0) -> _Running:
        """Begin blocks, in another order their warps in so many parts."""
        template, program = self.template, self.template.program
        running = self.sample.blocks(first, last)
        tally = Tally(len(program.sites), len(program.blocks), last - first, template.loops)
        batch = template.batch(running.indices, tally)
        batch.printed = self.printed
        stored = StoredBytes() if self.sample.count < self.sample.total else None
        observers = [*self._observers, *([stored] if stored else [])]
        if self.sliced is not None:
            batch.control_slice = self.sliced
            decide = [_OWN[space] for space in _OWN.keys() & (program.deciding or ())]
            valueless = ValuelessElements(decide)
            stale = StaleReads(Cache.READ_ONLY, batch.fault)
            batch.events.observe([*observers, valueless, stale], template.memory.buffers)
        else:
            template.watch(
                *(batch, first, self._races, observers),
                reads_poison=self._order is not None,
            )
        warps = WarpTurns(batch, self._order.number, parts) if self._order is not None else None
        return _Running(Scheduler(program, batch, self.budget, warps), running, stored)

    def _go_round(self, help_from: Help) -> bool:
        """Let every batch go on that has not ended; return whether any got further."""
        further = False
        for running in reversed(self._waiting.copy()):
            scheduler = running.scheduler
            before = scheduler.progress
            with np.errstate(all="ignore"):
                ended = scheduler.run(help_from)
            if ended:
                self._waiting.remove(running)
                self._count(running)
            further |= scheduler.progress > before
        return further

    def _count(self, running: _Running) -> None:
        scheduler, blocks = running.scheduler, running.blocks
        batch = scheduler.batch
        self.executed += scheduler.lane_instructions
        self.steps += scheduler.steps
        batch.settle()
        stored = running.stored.by_name if running.stored else {}
        self.totals.add(batch.tally, blocks, stored)
        if running.stored is not None:
            self.counted.append((batch.tally, blocks, stored))
        found = batch.shadow.remark if batch.shadow is not None else ""
        self.remark = self.remark or found or self.meetings.luck
        self.least |= batch.tally.least
        for line, held in batch.tally.middling.items():
            self.middling[line] = held and self.middling.get(line, True)
        self.remote |= {self.template.program.sites[site].family for site in batch.tally.remote}
        batch.close()


def combined(results: Sequence[LaunchResult]) -> LaunchResult:
    """Return what several launches counted together, an efficiency from the bytes and sectors of all."""
    if len(results) == 1:
        return results[0]
    lines: defaultdict[int, CountedTotals] = defaultdict(CountedTotals)
    counters = CountedTotals()
    for result in results:
        counters.add(result.counters)
        for number, counted in result.lines.items():
            lines[number].add(counted)
    return LaunchResult(
        counters=counters.with_efficiencies(),
        hidden={name: why for result in results for name, why in result.hidden.items()},
        lines={number: lines[number].with_efficiencies() for number in sorted(lines)},
        busiest={name: sum(result.busiest[name] for result in results) for name in results[0].busiest},
        sampled_blocks=sum(result.sampled_blocks for result in results),
        total_blocks=sum(result.total_blocks for result in results),
        exact_sample=all(result.exact_sample for result in results),
        lane_instructions=sum(result.lane_instructions for result in results),
        remarks=tuple(dict.fromkeys(remark for result in results for remark in result.remarks)),
        printed="".join(result.printed for result in results),
        print_calls=sum(result.print_calls for result in results),
        least=any(result.least for result in results),
        steps=sum(result.steps for result in results),
        openness=max(result.openness for result in results),
        stored={
            name: sum((result.stored.get(name, Stored()) for result in results), Stored())
            for name in dict.fromkeys(name for result in results for name in result.stored)
        },
    )


def _hidden_of_tensor_cores(program: Program) -> dict[str, str]:
    """Return the counters that a kernel's tensor instructions would be among, with the reason."""
    families = {site.family for site in program.sites}
    hidden: dict[str, str] = {}
    for family in families:
        how, _, kind = family.partition("_")
        if how == "wgmma" and kind not in COUNTED_AS_HMMA:
            hidden |= dict.fromkeys(("hmma_instructions", "imma_instructions"), _UNKNOWN.format("wgmma"))
        elif how == "sparse":
            hidden[f"tensor_{kind}_operations"] = _UNKNOWN.format("sparse products")
    if "tensor_b1" in families:
        hidden["imma_instructions"] = _UNKNOWN.format("products of bits")
    return hidden
