# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What all batches of one launch begin with: parameters, variables, special registers and races."""

import math
import struct
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.decode import Program
from gpuprof.executor.faults import (
    FaultKind,
    LaunchRefused,
    UnsupportedInstruction,
)
from gpuprof.executor.lanes.cluster_layout import ClusterLayout
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import uniform
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.global_accesses import Cache, Observer
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.shared_memory import SharedBlocks
from gpuprof.executor.memory.windows import RANK_SHIFT
from gpuprof.executor.observers.global_races import GlobalRaces, Shadow
from gpuprof.executor.observers.open_meetings import OpenMeetings
from gpuprof.executor.observers.phased_races import PhasedInterval
from gpuprof.executor.observers.race_detector import RaceDetector
from gpuprof.executor.observers.races import Interval
from gpuprof.executor.observers.store_trace import StaleReads
from gpuprof.executor.program.ptx import Variable
from gpuprof.executor.program.slots import CONSTANT_WINDOW, GRID_WORKSPACE, PARAMETER_WINDOW
from gpuprof.executor.sampling import Sample
from gpuprof.executor.steps.batch import Batch, Geometry
from gpuprof.executor.steps.special_registers import Surroundings, block_register, launch_register

#: Lanes of a batch: enough that NumPy's cost per call does not matter, few enough to stay in cache.
_BATCH_LANES = 65536
#: Shared and local memory of a batch, in bytes.
_BATCH_BYTES = 128 << 20
#: Of the memory that a cooperative launch gives its grid.
_WORKSPACE_WORDS = 8

#: What a kernel parameter may be given: a number, a buffer for a pointer, or the bytes of a struct.
Argument = int | float | Buffer | np.generic | bytes


#: CUDA's limits of every architecture: blocks of a grid, and threads of a block, along x, y and z.
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS = (1024, 1024, 64)
_MOST_LOCAL_BYTES = 512 << 10
#: More need the consent of the kernel, by an attribute that nothing here sets.
_MOST_CLUSTER_BLOCKS = 8


def cluster_of(program: Program) -> tuple[int, int, int]:
    """Return the blocks of a cluster along x, y and z: one where the kernel says nothing of clusters."""
    return program.interface.limits.get("reqnctapercluster", (1, 1, 1))


def check_shape(program: Program, geometry: Geometry, arguments: int) -> None:
    """Refuse a launch that does not fit the kernel, or that CUDA does not allow."""
    expected = len(program.interface.parameters)
    if arguments != expected:
        raise LaunchRefused(f"{program.kernel} takes {expected} arguments, but {arguments} were given.")
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
    if program.own.local_bytes > _MOST_LOCAL_BYTES:
        raise LaunchRefused(
            f"{program.kernel} needs {program.own.local_bytes:,} bytes of local memory for each thread;"
            f" CUDA allows {_MOST_LOCAL_BYTES:,}.",
            fix="Put its arrays into global memory.",
        )
    limits, block, grid = program.interface.limits, geometry.block, geometry.grid
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
    cluster = cluster_of(program)
    if math.prod(cluster) > _MOST_CLUSTER_BLOCKS:
        raise LaunchRefused(
            f"{program.kernel}: clusters of {cluster} blocks cannot be launched: a cluster has at most"
            f" {_MOST_CLUSTER_BLOCKS}, and the driver refuses more with CUDA_ERROR_INVALID_CLUSTER_SIZE.",
            fix="Use smaller clusters.",
        )
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        raise LaunchRefused(
            f"{program.kernel}: grid {grid} cannot be launched: its clusters are of {cluster} blocks,"
            " which do not divide it.",
            fix="Round the grid up to whole clusters.",
        )


class LaunchTemplate:
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
        self.program, self.interface = program, program.interface
        self.geometry = geometry
        self.memory = memory
        shared_bytes = program.own.shared.static_bytes
        if dynamic_shared_bytes:
            shared_bytes = program.own.shared.dynamic_offset + dynamic_shared_bytes
        cluster = cluster_of(program)
        self.layout = ClusterLayout(cluster, geometry.warps, shared_bytes, program.own.start)
        self.surroundings = Surroundings(
            geometry,
            program.interface.limits.get("reqnctapercluster"),
            program.interface.architecture,
            program.own.shared.allotted_bytes + dynamic_shared_bytes,
            dynamic_shared_bytes,
            multiprocessors,
        )
        #: Loops whose turns are counted, each with the basic blocks before it.
        self.loops = {number: loop.entries for number, loop in program.listing.loops.items()}
        self.registers = list(program.slots.initial)
        self.content = _parameter_block(program, args)
        self._fill_parameters(self.content)
        values = self.surroundings.of_launch()
        for name in values.keys() & program.slots.specials.keys():
            self.registers[program.slots.specials[name]] = launch_register(values[name])
        self.trap = "executes a trap"
        if not GRID_WORKSPACE.isdisjoint(program.slots.specials):
            if cooperative:
                self._fill_workspace()
            else:
                self.trap += ", as grid.sync() does where its [launch] does not say `cooperative = true`"

    def blocks_per_batch(self) -> int:
        """Return how many thread blocks run together; of clusters, how many of these."""
        lanes = self.geometry.warps * WARP * self.layout.blocks
        bytes_each = self.layout.all_bytes + lanes * self.program.own.local_bytes
        return max(1, min(_BATCH_LANES // lanes, _BATCH_BYTES // max(1, bytes_each)))

    def batch(self, indices: NDArray[np.int64], tally: Tally) -> Batch:
        """Return a batch of the given blocks, ready to run."""
        program, slots = self.program, self.program.slots
        batch = Batch(
            program.kernel,
            self.geometry,
            indices,
            self.memory,
            self.layout,
            program.own,
            program.means,
            tally,
        )
        if program.observer is not None:
            program.observer.begin(batch, program.own, {slot: slots.kept[slot] for slot in program.unwritten})
        batch.registers, batch.trap = list(self.registers), self.trap
        values = self.surroundings.of_blocks(self.layout.indices_of(indices))
        for name, slot in slots.specials.items():
            if name in values:
                batch.registers[slot] = block_register(values[name], self.layout)
        if self.layout.several:
            for slot in slots.in_shared:
                batch.registers[slot] = batch.registers[slot] + (self.layout.rank_of_warp << RANK_SHIFT)
        return batch

    def watch(
        self,
        batch: Batch,
        first: int,
        races: GlobalRaces,
        observers: Sequence[Observer],
        *,
        reads_poison: bool,
    ) -> None:
        """Let a batch, whose first block is number `first` of the launch, tell those that watch it.

        Its races are looked for. To read what nobody wrote is no fault by itself if that `reads_poison`.
        """
        layout, program, events = self.layout, self.program, batch.events
        means = program.means
        # What is signalled through global memory may order accesses to shared memory, too.
        in_order = means.in_shared or (means.fences and not means.phased)
        shared = [Shadow(SharedBlocks(batch.shared, layout), races)] if in_order else []
        passed_on = {FaultKind.UNINITIALISED_SHARED} if reads_poison else set()
        passed_on |= {FaultKind.SHARED_RACE} if in_order else set()

        def report(kind: FaultKind, *found: Any) -> None:
            if kind not in passed_on and not batch.passes_on(kind):
                batch.fault(kind, *found)

        about = batch.shared, program.own.granule, report, layout, batch.names
        interval = Interval(*about)
        if means.phased or means.partial or layout.several:
            interval = PhasedInterval(*about, strict=not means.fences)
        detector = RaceDetector(batch.shared, interval, batch.fault)
        for part in program.own.reserved(layout):
            detector.assume_written(part)
        events.order = races.order(first * layout.blocks, batch.blocks, batch.warps, layout)
        events.listeners[:0] = [events.order, detector]
        # Of a load that races and is stale too, the race is told; a texture's cache is always to blame.
        textures, loads = (StaleReads(cache, batch.fault) for cache in (Cache.TEXTURE, Cache.READ_ONLY))
        watching = [textures, *races.shadows.values(), loads, *shared, *observers]
        events.observe(watching, self.memory.buffers)

    def races(self, sample: Sample, meetings: OpenMeetings) -> GlobalRaces:
        """Return what looks for races on the buffers that kernels may write."""
        # What is given out of a heap, freed, and given to another thread is in nobody's order.
        buffers = [one for one in self.memory.buffers if not one.read_only and one.allotted is None]
        for buffer in self.memory.buffers:
            buffer.begin_launch()

        means = self.program.means
        return GlobalRaces(
            buffers,
            self.program.kernel,
            partial(self.named, sample),
            releases=means.fences,
            meetings=meetings,
            by_warps=means.partial or means.phased,
            idle=means.idle,
        )

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
        placed = {variable.name: offset for variable, offset in self.interface.parameters}
        variables = {variable.name: variable for variable in self.interface.variables}
        block: Buffer | None = None
        for key, slot in slots.symbols.items():
            name, _, offset = key.partition("+")
            if name in placed or key == PARAMETER_WINDOW:
                if block is None:
                    whole = np.frombuffer(content, dtype=np.uint8)
                    block = self.memory.allocate(whole, "the parameters", read_only=True)
                address = block.address + placed.get(name, 0)
            elif key == CONSTANT_WINDOW:
                address = self.memory.constant_window(self.interface.module)
            elif name in self.interface.constants:
                self._variable(variables[name])
                address = self.interface.constants[name]
            else:
                address = self._variable(variables[name]).address
            self.registers[slot] = uniform(address + int(offset), np.dtype(np.int64))

    def _variable(self, variable: Variable) -> Buffer:
        """Return the memory of a module variable, which keeps its content from launch to launch.

        All kernels of a module share it.
        """
        key = (self.interface.module, variable.name)
        if key not in self.memory.variables:
            content = np.frombuffer((variable.data or b"").ljust(variable.size, b"\0"), dtype=np.uint8)
            place = self.interface.constants.get(variable.name)
            address = None if place is None else self.memory.constant_window(self.interface.module) + place
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
        variables = {v.name: v for v in self.interface.variables}
        for place in variable.references:
            if place.symbol in self.interface.constants and not place.generic:
                address = self.interface.constants[place.symbol]
            elif place.symbol in variables:
                address = self._variable(variables[place.symbol]).address
            elif place.symbol in self.interface.functions:
                address = self.interface.functions[place.symbol]
            else:
                raise UnsupportedInstruction(f"initialiser {place.symbol}", 0)
            content = np.frombuffer(place.content(address), dtype=np.uint8)
            buffer.changeable(1)[place.offset : place.offset + place.size] = content


def _parameter_block(program: Program, args: Sequence[Argument]) -> bytes:
    content = bytearray()
    for (variable, offset), argument in zip(program.interface.parameters, args, strict=True):
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
