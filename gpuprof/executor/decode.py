# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode a kernel once: from PTX to basic blocks of steps that run a whole batch each."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from math import prod
from typing import NamedTuple

from msgspec import Struct

from gpuprof.executor.faults import UnsupportedInstruction
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.lanes.tally import Site
from gpuprof.executor.memory.windows import shared_start
from gpuprof.executor.program.calls import CallGraph, inline_calls
from gpuprof.executor.program.contraction import contract_products
from gpuprof.executor.program.flow import (
    BasicBlock,
    End,
    basic_blocks,
    passing,
    read_before_written,
    reads_and_writes,
)
from gpuprof.executor.program.guesses import checked_guesses, exchanged_loads, idle_loads
from gpuprof.executor.program.loops import Loop, loops_of, only_waiting, waiting_loops
from gpuprof.executor.program.means import STRONG, OrderingMeans, in_lone_blocks, means_of
from gpuprof.executor.program.merge import SharedPlace, merge_shared_accesses
from gpuprof.executor.program.narrowing import narrow_vector_loads
from gpuprof.executor.program.origins import ArrayUses, uses_of
from gpuprof.executor.program.parsing import parse
from gpuprof.executor.program.ptx import Function, Instruction, Module, Reg, Variable
from gpuprof.executor.program.reconvergence import meet_sooner
from gpuprof.executor.program.shared_layout import laid_out, shared_layout
from gpuprof.executor.program.slicing import (
    Accesses,
    NoSlice,
    Role,
    SliceItem,
    can_be_followed,
    control_slice,
)
from gpuprof.executor.program.slots import Slots, names_reserved
from gpuprof.executor.steps.arithmetic_steps import fused_multiply_adds
from gpuprof.executor.steps.barrier_steps import Reduction, barrier_operands
from gpuprof.executor.steps.batch import Batch, OwnMemory
from gpuprof.executor.steps.bulk_steps import makes_maps, with_maps_as_stores
from gpuprof.executor.steps.coding import Coder, Step, StepObserver, refusal
from gpuprof.executor.steps.decoders import decoder_of
from gpuprof.executor.steps.fusion import PURE, fused_step, gathered, read_outside
from gpuprof.executor.steps.memory_steps import address_only, shared_accesses
from gpuprof.executor.steps.special_registers import ANSWERED

#: Bytes behind a constant variable that belong to nobody.
_CONSTANT_GAP = 4096


class BackEdge(Struct, frozen=True):
    """How control goes back to the header of a loop that may be there to wait.

    `found` are slots of what an iteration reads, `given` of where it reads and of what it writes where. If
    `near`, only threads of its own block can change what it reads.
    """

    header: int
    found: tuple[int, ...]
    given: tuple[int, ...]
    near: bool


@dataclass
class RunnableBlock(BasicBlock):
    """A decoded basic block.

    Attributes:
        length: How many PTX instructions it has, including the one that ends it.
        fused: Scalar fused multiply-adds by (family, source line), run once per pass by every lane.
        value: The slot of the register by whose value a switch goes.
        barrier: Returns the operands of a barrier: none, its number, or also how many threads it takes.
        back_edges: Where it goes back to the header of a loop that may be there to wait, by that header.
        meets: How many of its steps are done after each access that may meet others without order.
    """

    steps: list[Step] = field(default_factory=list)
    length: int = 0
    line: int = 0
    fused: Counter[tuple[str, int]] = field(default_factory=Counter)
    predicate: int = -1
    value: int = -1
    calls: bool = False
    negated: bool = False
    site: int = -1
    arrives_only: bool = False
    aligned: bool = True
    back_edges: dict[int, BackEdge] = field(default_factory=dict)
    sliced: list[Step] = field(default_factory=list)
    barrier: Callable[[Batch], list[Lanes]] = field(default=lambda batch: [])
    reduction: Reduction | None = None
    meets: frozenset[int] = frozenset()
    ptx_line: int = 0


@dataclass
class Interface:
    """What a launch gives a kernel.

    Attributes:
        module: The PTX text that it came from; kernels of one text share its variables.
        entry: Its name there.
        parameters: Its parameters, with their byte offsets.
    """

    module: str
    entry: str
    parameters: list[tuple[Variable, int]]
    variables: list[Variable]
    constants: dict[str, int]
    functions: dict[str, int]
    limits: dict[str, tuple[int, int, int]]
    architecture: int


class PtxListing(NamedTuple):
    """What of the text tells which machine code is whose.

    Attributes:
        places: For each basic block where its instructions stand, in their order: the line of the PTX text,
            0 for one that is in no text, and the source line.
        waits: Basic blocks of loops that wait and do nothing else.
    """

    places: tuple[tuple[tuple[int, int], ...], ...]
    loops: dict[int, Loop]
    waits: frozenset[int]


@dataclass(frozen=True)
class Program:
    """A decoded kernel, ready to be launched any number of times.

    Attributes:
        uncounted: Families of accesses that also go another way, past their counters.
        unmodelled: What it holds that the executor does not model, with the source line. It can be launched;
            a thread that reaches one of them stops the run.
        unwritten: Slots of registers that may be read before anything is written to them.
        find_slice: Decodes its control slice when first asked; returns what `deciding` is.
    """

    kernel: str
    blocks: list[RunnableBlock]
    slots: Slots
    sites: list[Site]
    own: OwnMemory
    means: OrderingMeans
    interface: Interface
    listing: PtxListing
    uncounted: frozenset[str]
    clocks: frozenset[str]
    unmodelled: tuple[tuple[str, int], ...]
    unwritten: frozenset[int]
    observer: StepObserver | None
    find_slice: Callable[[], frozenset[str] | None]

    @property
    def deciding(self) -> frozenset[str] | None:
        """The spaces, of "global", "shared" and "local", whose content decides what its control slice does.

        None where it has no slice: see `program.slicing`.
        """
        return self.find_slice()

    @property
    def sums(self) -> frozenset[str]:
        """The types of matrices that it multiplies, whose sums are made bit for bit."""
        families = (site.family.partition("_") for site in self.sites)
        return frozenset(kind for how, _, kind in families if how in ("tensor", "wgmma", "sparse"))


def load_program(
    ptx: str, entry: str, *, observer: StepObserver | None = None, where_unwritten: bool = False
) -> Program:
    """Parse and decode one kernel of a PTX text.

    Args:
        ptx: The text, as NVRTC prints it for `compute_90` or lower; with `-lineinfo` counts and faults name
            source lines.
        entry: Name of the kernel.
        observer: Who sees each of its instructions in every launch. Launches do and count the same, and take
            longer.
        where_unwritten: Without the observer where no register can be read before anything is written to it.

    Raises:
        UnsupportedInstruction: The kernel is not there, or its text cannot be read.
    """
    decoder = _Decoder(ptx, _module(ptx), _kernel(ptx, entry), observer)
    if where_unwritten and not decoder.unwritten:
        decoder.observer = None
    return decoder.program()


def flow_of(program: Program) -> list[BasicBlock]:
    """Return a kernel's basic blocks as its text has them, numbered as those that run."""
    return _flow(_kernel(program.interface.module, program.interface.entry))


def array_uses(ptx: str, entry: str) -> ArrayUses | None:
    """Return what a kernel does with arrays; None if nothing tells where it writes."""
    kernel = _kernel(ptx, entry)
    return uses_of([variable.name for variable in kernel.params], _flow(kernel))


def _kernel(ptx: str, entry: str) -> Function:
    """Return a kernel with what it calls in the place of the calls."""
    module = _module(ptx)
    if entry not in module.functions:
        raise UnsupportedInstruction(f"entry {entry}, which the PTX does not define", 0)
    return inline_calls(module.functions[entry], module)


def _flow(function: Function) -> list[BasicBlock]:
    alone = prod(function.limits.get("reqnctapercluster", ())) == 1
    body = with_maps_as_stores(function)
    blocks = basic_blocks(in_lone_blocks(body) if alone else body)
    meet_sooner(blocks)
    return blocks


@lru_cache(maxsize=1)
def _module(ptx: str) -> Module:
    """Return what a text defines, as ptxas rounds it; its kernels are often asked for one after the other."""
    module = parse(ptx)
    for function in module.functions.values():
        contract_products(function, PURE)
    return module


class _Decoder:
    def __init__(self, text: str, module: Module, function: Function, observer: StepObserver | None) -> None:
        self.function = function
        self.observer = observer
        self.shared = shared_layout(module, function)
        #: Bytes of the system's shared memory: all, if the kernel uses any.
        self.reserved_bytes = shared_start(module.architecture) if names_reserved(function) else 0
        if self.reserved_bytes:
            self.shared = self.shared.behind(self.reserved_bytes)
        shared = [v for v in (*module.variables, *function.variables) if v.name in self.shared.offsets]
        self.offsets = dict(self.shared.offsets)
        start = shared_start(module.architecture) - self.reserved_bytes
        self.unmet_alignments = {
            v.name: (v.align, start + self.offsets[v.name])
            for v in shared
            if (start + self.offsets[v.name]) % v.align
        }
        local, self.local_bytes = laid_out([v for v in function.variables if v.space == "local"])
        self.offsets.update(local)
        placed, _ = laid_out(function.params)
        variables = [v for v in module.variables if v.space in ("global", "const")]
        # The first starts the space, as on a card; gaps between them show accesses that leave their array.
        constants = [v for v in variables if v.space == "const"]
        self.interface = Interface(
            module=text,
            entry=function.name,
            parameters=[(v, placed[v.name]) for v in function.params],
            variables=variables,
            constants=laid_out(replace(v, size=v.size + _CONSTANT_GAP) for v in constants)[0],
            functions=CallGraph(module).addresses,
            limits=function.limits,
            architecture=module.architecture,
        )
        flow = _flow(function)
        narrow_vector_loads(flow)
        # What is merged below still stands where it stood.
        self.places = tuple(tuple((item.ptx_line, item.line) for item in block.items) for block in flow)
        # Where dynamic memory starts is for the launch to say, as far as ptxas knows.
        places = {
            v.name: SharedPlace(v.align) if v.extern else SharedPlace.at(self.offsets[v.name], v.align)
            for v in shared
        }
        merge_shared_accesses(flow, places)
        addresses = self.offsets | {v.name: start + self.offsets[v.name] for v in shared}
        addresses |= self.interface.functions
        known = {v.name for v in variables} | set(placed)
        slots = Slots(function, addresses, known, ANSWERED, self.shared.offsets.keys())
        items = [item for block in flow for item in block.items]
        idle = idle_loads(items, PURE)
        exchanged = exchanged_loads(flow, PURE)
        self.coder = Coder(slots, placed, passing(flow), start, checked_guesses(items), idle, exchanged)
        if makes_maps(function):
            self.coder.uncounted |= {"global_store", "shared_load", "shared_store"}
        self.flow = flow
        self.loops, self.waiting = loops_of(flow), waiting_loops(flow)
        self.unwritten = frozenset(self._slots_of(read_before_written(flow)))

    def program(self) -> Program:
        """Decode every block of the kernel."""
        coder = self.coder
        blocks = [self._block(block) for block in self.flow]
        for last, loops in self.waiting.items():
            blocks[last].back_edges = {
                loop.header: BackEdge(
                    loop.header, self._slots_of(loop.found), self._slots_of(loop.given), loop.near
                )
                for loop in loops
            }
        own = OwnMemory(
            self.shared,
            coder.shared_granule,
            shared_start(self.interface.architecture),
            self.local_bytes,
            self.reserved_bytes,
            self.unmet_alignments,
        )
        return Program(
            kernel=self.function.name,
            blocks=blocks,
            slots=coder.slots,
            sites=coder.sites,
            own=own,
            means=means_of(self.flow, coder.idle, phased=coder.phased, fences=coder.fences),
            interface=self.interface,
            listing=PtxListing(self.places, self.loops, only_waiting(self.flow, self.loops, self.waiting)),
            uncounted=frozenset(coder.uncounted),
            clocks=frozenset(coder.clocks),
            unmodelled=tuple(coder.unmodelled),
            unwritten=self.unwritten,
            observer=self.observer,
            find_slice=cache(partial(self._slice, blocks)),
        )

    def _slice(self, blocks: list[RunnableBlock]) -> frozenset[str] | None:
        """Decode the control slice, where there is one."""
        if not can_be_followed(self.flow):
            return None
        try:
            kept, deciding = control_slice(self.flow, PURE)
        except NoSlice:
            return None
        for block, items in zip(blocks, kept, strict=True):
            block.sliced = [step for item in items if (step := self._sliced(item)) is not None]
        return deciding

    def _slots_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the slots of registers, of those of modelled types."""
        types = self.function.registers
        return tuple(self.coder.slots.register(name, 0) for name in names if types[name] in ARITHMETIC)

    def _block(self, block: BasicBlock) -> RunnableBlock:
        steps: list[Step] = []
        meets: set[int] = set()
        readers = Counter(name for item in block.items for name in {*reads_and_writes(item)[0]})
        for item in block.body if self.observer else gathered(block.body):
            if isinstance(item, list):
                steps += fused_step(self.coder, item, read_outside(item, readers))
            elif (step := self._step(item)) is not None:
                steps.append(step)
                if item.opcode[0] in ("atom", "red") or (
                    item.opcode[0] in ("ld", "st") and STRONG & set(item.opcode)
                ):
                    meets.add(len(steps))
        fused: Counter[tuple[str, int]] = Counter()
        for item in block.body:
            for family, times in () if item.guard else fused_multiply_adds(item):
                fused[family, item.line] += times
        last = block.last
        if self.observer and last is not None and (before := self.observer.before_end(self.coder, last)):
            steps.append(before)
        line = last.line if last else (block.body[-1].line if block.body else 0)
        result = RunnableBlock(
            **vars(block),
            steps=steps,
            length=len(block.items),
            line=line,
            fused=fused,
            meets=frozenset(meets),
            ptx_line=last.ptx_line if last else 0,
        )
        if last is not None and block.end is End.BRANCH and last.guard is not None:
            result.predicate = self.coder.slots.register(last.guard, last.line)
            result.negated = last.negated
            result.site = self.coder.site("branch", last)
        elif last is not None and block.end is End.SWITCH:
            register = last.operands[0]
            assert isinstance(register, Reg)
            result.value = self.coder.slots.register(register.name, last.line)
            result.site = self.coder.site("branch", last)
            result.calls = "call" in last.opcode
        elif last is not None and block.end is End.BARRIER:
            result.barrier = barrier_operands(self.coder, last)
            result.reduction = Reduction.of(self.coder, last)
            result.arrives_only = "arrive" in last.opcode
            result.aligned = last.opcode[0] == "bar" or "aligned" in last.opcode
        return result

    def _sliced(self, kept: SliceItem) -> Step | None:
        """Decode what a control slice makes of an instruction, or of several accesses."""
        if isinstance(kept, Accesses):
            return shared_accesses(self.coder, kept)
        item, role = kept
        step = self._step(item)
        return address_only(step) if step is not None and role is Role.ADDRESS_ONLY else step

    def _step(self, item: Instruction) -> Step | None:
        """Decode an instruction; one that is not modelled must not matter where no thread reaches it."""
        try:
            step = self._modelled(item)
            return self.observer.around(self.coder, item, step) if step and self.observer else step
        except UnsupportedInstruction as why:
            return refusal(self.coder, item, why.name)

    def _modelled(self, item: Instruction) -> Step | None:
        if "cache_hint" in item.opcode:  # the policy that comes last changes nothing here
            item = replace(item, operands=item.operands[:-1])
        decode = decoder_of(item.opcode)
        if decode is None:
            raise UnsupportedInstruction(item.name, item.line)
        return decode(self.coder, item)
