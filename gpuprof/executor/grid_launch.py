# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launch a program over a grid, or a sample of it, in batches of blocks."""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.decode import Program
from gpuprof.executor.faults import FaultKind, KernelFault, LaunchRefused, UnsupportedInstruction
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import Lanes, uniform
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.lanes.undefined import ABSENT_LANE
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.global_races import GlobalRace, GlobalRaces
from gpuprof.executor.memory.heap import Heap
from gpuprof.executor.memory.printed import Printed
from gpuprof.executor.program.ptx import Variable
from gpuprof.executor.program.slots import GRID_WORKSPACE
from gpuprof.executor.sampling import Sample, every_block
from gpuprof.executor.scheduler import Scheduler
from gpuprof.executor.steps.batch import Batch, Geometry
from gpuprof.executor.totals import LineCounters, Number, Totals, efficiencies

#: Lanes of a batch: enough that NumPy's cost per call does not matter, few enough to stay in cache.
_BATCH_LANES = 65536
#: Shared and local memory of a batch, in bytes.
_BATCH_BYTES = 128 << 20
#: Instructions that one batch may take, each for all of its lanes.
DEFAULT_BUDGET = 20_000_000

#: CUDA's limits of every architecture: blocks of a grid, and threads of a block, along x, y and z.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
_MOST_LOCAL_BYTES = 512 << 10
#: Of the memory that a cooperative launch gives its grid.
_WORKSPACE_WORDS = 8

_HIDDEN = "no counter sees what the kernel's bulk copies move"

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
        hidden: Counters that would leave out what bulk copies move, by name, with the reason.
        lines: The same by line of the kernel's source file.
        sampled_blocks: Thread blocks that ran.
        total_blocks: Thread blocks of the grid.
        exact_sample: False when blocks that stand for the same part of the grid differ in their counts, so
            that the counters are estimates.
        lane_instructions: PTX instructions executed, summed over lanes, of the blocks that ran.
        stored: Of a sample of the grid, what stores did to each buffer, by its name; of a whole grid nothing.
        remarks: What the kernel did that CUDA leaves undefined, where nothing it left behind depends on that,
            and memory of its heap that it did not free.
        printed: What it printed, of its first calls of `printf`.
        print_calls: How many calls there were.
    """

    counters: dict[str, Number | None]
    hidden: dict[str, str]
    lines: dict[int, LineCounters]
    sampled_blocks: int
    total_blocks: int
    exact_sample: bool
    lane_instructions: int
    stored: dict[str, Stored]
    remarks: tuple[str, ...] = ()
    printed: str = ""
    print_calls: int = 0


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

    Raises:
        KernelFault: The kernel broke a rule of CUDA.
        LaunchRefused: The arguments or the launch shape do not fit the kernel, or what CUDA allows.
    """
    geometry = Geometry(grid, block)
    _check(program, geometry, args)
    sample = every_block(grid) if blocks == "all" else blocks
    template = _Template(program, geometry, args, memory, dynamic_shared_bytes, cooperative)
    totals = Totals(program, sample)
    races = template.races(sample)
    count, executed = sample.count, 0
    stored: dict[str, Stored] = {}
    remark, printed, owned = "", Printed(), _heap_pieces(memory)
    per_batch = template.blocks_per_batch()
    for first in range(0, count, per_batch):
        last = min(first + per_batch, count)
        running = sample.blocks(first, last)
        tally = Tally(len(program.sites), len(program.blocks), last - first)
        batch = template.batch(running.indices, tally)
        batch.stored = {} if count < sample.total else None
        batch.join(races, first)
        batch.printed = printed
        scheduler = Scheduler(program, batch, instruction_budget)
        with np.errstate(all="ignore"):
            scheduler.run()
        executed += scheduler.lane_instructions
        totals.add(tally, running)
        for name, per_block in (batch.stored or {}).items():
            every = Stored(float(per_block.sum()), float(per_block @ running.weights))
            stored[name] = stored.get(name, Stored()) + every
        remark = remark or _remark(batch)
        if progress is not None:
            progress(last, count)
    races.finish()
    return LaunchResult(
        counters=totals.counters(),
        hidden=dict.fromkeys(totals.names_of(program.uncounted), _HIDDEN),
        lines=totals.lines() if per_line else {},
        sampled_blocks=count,
        total_blocks=sample.total,
        exact_sample=totals.exact,
        lane_instructions=executed,
        stored=stored,
        remarks=tuple(text for text in (remark, _leak(_heap_pieces(memory), owned)) if text),
        printed=printed.text,
        print_calls=printed.calls,
    )


def _heap_pieces(memory: GlobalMemory) -> dict[int, int]:
    """Return what of the heap is given out: bytes by address."""
    return dict(memory.heap.pieces) if isinstance(memory.heap, Heap) else {}


def _leak(pieces: dict[int, int], before: dict[int, int]) -> str:
    """Say what a launch took from the heap and did not free; empty where it freed all."""
    kept = [size for address, size in pieces.items() if address not in before]
    if not kept:
        return ""
    return f"Of what malloc gave out, {sum(kept):,} bytes in {len(kept):,} pieces are not freed"


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
        what = f"byte {read.byte} of shared memory, which nobody had written ({where})"
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
        sampled_blocks=sum(result.sampled_blocks for result in results),
        total_blocks=sum(result.total_blocks for result in results),
        exact_sample=all(result.exact_sample for result in results),
        lane_instructions=sum(result.lane_instructions for result in results),
        stored=results[0].stored if len(results) == 1 else {},
        remarks=tuple(dict.fromkeys(remark for result in results for remark in result.remarks)),
        printed="".join(result.printed for result in results),
        print_calls=sum(result.print_calls for result in results),
    )


def _check(program: Program, geometry: Geometry, args: Sequence[Argument]) -> None:
    if len(args) != len(program.parameters):
        expected = len(program.parameters)
        raise LaunchRefused(f"{program.kernel} takes {expected} arguments, but {len(args)} were given.")
    extents = (*geometry.grid, *geometry.block)
    allowed = all(
        1 <= extent <= most for extent, most in zip(extents, _MOST_BLOCKS + _MOST_THREADS, strict=True)
    )
    if not allowed or geometry.threads > _MOST_THREADS[0]:
        raise LaunchRefused(
            f"{program.kernel}: grid {geometry.grid} with block {geometry.block} cannot be launched.",
            fix="A block has 1 to 1024 threads, at most 64 along z; a grid has 1 to 2^31-1 blocks along x,"
            " and to 65535 along y and z.",
        )
    _check_limits(program, geometry)


def _check_limits(program: Program, geometry: Geometry) -> None:
    """Refuse what the kernel itself rules out: by its stack, `__launch_bounds__` or `__cluster_dims__`."""
    if program.local_bytes > _MOST_LOCAL_BYTES:
        raise LaunchRefused(
            f"{program.kernel} needs {program.local_bytes:,} bytes of local memory for each thread;"
            f" CUDA allows {_MOST_LOCAL_BYTES:,}.",
            fix="Put its arrays into global memory.",
        )
    limits, block, grid = program.limits, geometry.block, geometry.grid
    most = math.prod(limits.get("maxntid", _MOST_THREADS[:1]))
    if geometry.threads > most:
        raise LaunchRefused(
            f"{program.kernel}: a block of {geometry.threads} threads cannot be launched:"
            f" its __launch_bounds__ allow {most}.",
            fix="Use a smaller block, or larger __launch_bounds__.",
        )
    if block != limits.get("reqntid", block):
        raise LaunchRefused(
            f"{program.kernel}: block {block} cannot be launched: it asks for {limits['reqntid']}."
        )
    cluster = limits.get("reqnctapercluster", (1, 1, 1))
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        raise LaunchRefused(
            f"{program.kernel}: grid {grid} cannot be launched: its clusters are of {cluster} blocks,"
            " which do not divide it.",
            fix="Round the grid up to whole clusters.",
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
    ) -> None:
        self.program = program
        self.geometry = geometry
        self.memory = memory
        self.dynamic_shared_bytes = dynamic_shared_bytes
        self.shared_bytes = program.static_shared_bytes
        if dynamic_shared_bytes:
            self.shared_bytes = program.dynamic_offset + dynamic_shared_bytes
        self.registers = list(program.slots.initial)
        self.content = _parameter_block(program, args)
        self._fill_parameters(self.content)
        self._fill_specials()
        #: Whether blocks wait for each other at a barrier of the grid.
        self.waits_for_grid = cooperative and not GRID_WORKSPACE.isdisjoint(program.slots.specials)
        if self.waits_for_grid:
            self._fill_workspace()

    def blocks_per_batch(self) -> int:
        """Return how many thread blocks run together."""
        lanes = self.geometry.warps * WARP
        if self.waits_for_grid:
            return math.prod(self.geometry.grid)
        bytes_each = self.shared_bytes + lanes * self.program.local_bytes
        return max(1, min(_BATCH_LANES // lanes, _BATCH_BYTES // max(1, bytes_each)))

    def batch(self, indices: NDArray[np.int64], tally: Tally) -> Batch:
        """Return a batch of the given blocks, ready to run."""
        slots, follows = self.program.slots, self.program.follows_undefined
        batch = Batch(
            self.program.kernel,
            self.geometry,
            indices,
            self.memory,
            self.shared_bytes,
            self.program.shared_granule,
            self.program.local_bytes,
            tally,
            self.program.phased,
            self.program.partial,
            followed={slot: slots.kept[slot] for slot in self.program.unwritten} if follows else None,
        )
        batch.registers = list(self.registers)
        for axis, name in enumerate("xyz"):
            slot = self.program.slots.specials.get(f"%ctaid.{name}")
            if slot is not None:
                values = indices[:, axis].astype(np.int32)
                same = (values == values[0]).all()
                batch.registers[slot] = (values[:1] if same else values).reshape(-1, 1, 1)
        return batch

    def races(self, sample: Sample) -> GlobalRaces:
        """Return what looks for races on the buffers that kernels may write."""
        # What is given out of a heap, freed, and given to another thread is in nobody's order.
        buffers = [b for b in self._stored() if not b.read_only and b.allotted is None]

        def report(race: GlobalRace) -> NoReturn:
            thread, block = self._named(sample, race.thread)
            other, other_block = self._named(sample, race.other)
            who = f"thread {other} of block {other_block}"
            if race.thread == race.other:
                who = f"another thread of block {other_block}"
            raise KernelFault(
                FaultKind.GLOBAL_RACE,
                race.detail.format(who, race.other_line),
                kernel=self.program.kernel,
                source_line=race.line,
                block=block,
                thread=thread,
                address=race.address,
            )

        return GlobalRaces(buffers, releases=self.program.fences, report=report)

    def _stored(self) -> list[Buffer]:
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
        return list(found.values())

    def _named(self, sample: Sample, thread: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return threadIdx and blockIdx of a thread, by its number among those that run."""
        rank, inside = divmod(thread, self.geometry.warps * WARP)
        x, y, z = sample.blocks(rank, rank + 1).indices[0].tolist()
        return self.geometry.thread_index(*divmod(inside, WARP)), (x, y, z)

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
            is_constant = variable.space == "const"
            buffer = self.memory.allocate(content, variable.name, read_only=is_constant)
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
            if place.symbol in variables:
                address = self._variable(variables[place.symbol]).address
            elif place.symbol in self.program.functions:
                address = self.program.functions[place.symbol]
            else:
                raise UnsupportedInstruction(f"initialiser {place.symbol}", 0)
            content = np.frombuffer(place.content(address), dtype=np.uint8)
            buffer.view(1)[place.offset : place.offset + place.size] = content

    def _fill_specials(self) -> None:
        geometry = self.geometry
        x, y, _ = geometry.block
        thread = np.arange(geometry.warps * WARP).reshape(1, geometry.warps, WARP)
        lane = np.arange(WARP).reshape(1, 1, WARP)
        warp = np.arange(geometry.warps).reshape(1, -1, 1)
        bit = np.left_shift(np.uint64(1), lane.astype(np.uint64))
        masks = {"eq": bit, "lt": bit - 1, "le": 2 * bit - 1, "ge": 2**32 - bit, "gt": 2**32 - 2 * bit}
        values: dict[str, Any] = {
            **{
                f"%tid.{a}": v
                for a, v in zip("xyz", (thread % x, thread // x % y, thread // (x * y)), strict=True)
            },
            **{f"%ntid.{a}": v for a, v in zip("xyz", geometry.block, strict=True)},
            **{f"%nctaid.{a}": v for a, v in zip("xyz", geometry.grid, strict=True)},
            "%laneid": lane,
            "%warpid": warp,
            "%nwarpid": geometry.warps,
            "%dynamic_smem_size": self.dynamic_shared_bytes,
            "%total_smem_size": self.shared_bytes,
            **{f"%lanemask_{kind}": mask for kind, mask in masks.items()},
        }
        for name, slot in self.program.slots.specials.items():
            if name in values:
                self.registers[slot] = _squeezed(np.asarray(values[name]).astype(np.uint32).view(np.int32))


def _squeezed(value: Lanes) -> Lanes:
    """Return a batch value with size 1 on every axis along which it does not change."""
    value = value.reshape((1,) * (3 - value.ndim) + value.shape)
    for axis in (1, 2):
        first = np.take(value, [0], axis=axis)
        if (value == first).all():
            value = first
    return value


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
