# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What cases execute: programs of kernels and their machine code, kept from case to case, and its counts."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from threading import Lock, Thread
from typing import ClassVar

from msgspec import Struct, field

from gpuprof import timeline
from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import compile_kernel
from gpuprof.counters import COUNTERS, PIPES
from gpuprof.devices.device import Device, parse_arch
from gpuprof.errors import BackendUnavailable
from gpuprof.executor import Definedness, Kept, LaunchResult, Program, load_program
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine_code.disassembler import listings_of
from gpuprof.machine_code.instruction_counts import Between, MachineCounts
from gpuprof.machine_code.linking import Link, link
from gpuprof.machine_code.sass import read_machine_code
from gpuprof.machine_code.weighing import Weights, weigh
from gpuprof.records import replace
from gpuprof.results import Counter
from gpuprof.toolchain.assembling import NO_PTXAS
from gpuprof.toolchain.nvrtc import CompiledKernel, architecture_of, nvrtc_version

#: Bytes of machine code whose listings are kept, and instructions whose links are: all of a ladder's.
_KEPT_BYTES, _KEPT_INSTRUCTIONS = 16 << 20, 1 << 20
#: Newest architecture whose machine code is read, and for which sources are compiled to be executed: above it
#: the compiler uses register classes and opcodes that add nothing to what is counted.
_NEWEST = "sm_90"
#: Characters of PTX whose programs are kept: all of a ladder. A program takes some forty times that memory.
_KEPT_CHARACTERS = 4 << 20


class NoLink(Struct, frozen=True):
    """Why the instructions of a launch are not counted."""

    reason: str
    merged_atomics: ClassVar[frozenset[int]] = frozenset()


#: The link of a launch's machine code and program, once it is there.
FindLink = Callable[[], Link | NoLink]
#: The link of each launch of a case, and how often its blocks were executed.
Weighed = Sequence[tuple[Link, Weights]]


class Links:
    """Links of machine code and programs, kept from one case to the next: both are the same at every size.

    With what is needed, and nobody has read yet, nvdisasm reads all that was expected by then.
    """

    def __init__(self) -> None:
        self._links: Kept[Link | NoLink] = Kept(_KEPT_INSTRUCTIONS, _instructions)
        self._expected: dict[bytes, None] = {}
        self._listings: dict[bytes, str] = {}
        self._reading = Lock()

    def expect(self, cubin: bytes) -> None:
        """Be told, from any thread, of machine code that is likely to be linked."""
        if cubin:
            self._expected[cubin] = None

    def begin(self, functions: Iterable[CompiledKernel]) -> None:
        """Have machine code that will be linked disassembled while the executor runs it."""
        cubins = [each.cubin for each in functions if (each.cubin, each.entry) not in self._links]
        if cubins:
            Thread(target=self._read_ahead, args=(cubins,), daemon=True).start()

    def of(self, function: CompiledKernel, program: Program) -> Link | NoLink:
        """Return the link of a function's machine code and the program that the executor runs for it."""
        if not function.cubin:
            return NoLink(NO_PTXAS)
        if parse_arch(function.arch) > parse_arch(_NEWEST):
            return NoLink(f"machine code of {function.arch} is not read, that of {_NEWEST} and before is")
        return self._links.of((function.cubin, function.entry), partial(self._link, function, program))

    def listing(self, cubin: bytes) -> str:
        """What nvdisasm prints of machine code."""
        with self._reading:
            if cubin not in self._listings:
                together = dict.fromkeys((cubin, *self._expected.keys() - self._listings.keys()))
                if sum(map(len, self._listings)) + sum(map(len, together)) > _KEPT_BYTES:
                    self._listings.clear()
                    self._expected.clear()
                try:
                    self._listings |= listings_of([*together])
                except BackendUnavailable:  # of any of them
                    self._expected.clear()
                    self._listings |= listings_of([cubin])
            return self._listings[cubin]

    def _read_ahead(self, cubins: Iterable[bytes]) -> None:
        """Disassemble; what goes wrong is told to who asks for it."""
        with suppress(Exception):
            for cubin in cubins:
                self.listing(cubin)

    def _link(self, function: CompiledKernel, program: Program) -> Link | NoLink:
        try:
            code = read_machine_code(self.listing(function.cubin), function.entry)
        except BackendUnavailable as error:
            return NoLink(str(error))
        except ValueError as error:
            return NoLink(f"{error}.")
        if not code.complete:
            return NoLink("Its machine code jumps to where a register says.")
        return link(code, function.ptx, *program.listing)


def _instructions(one: Link | NoLink) -> int:
    return 0 if isinstance(one, NoLink) else sum(len(block.instructions) for block in one.code.blocks)


def load_the_rest() -> None:
    """Load what is otherwise loaded when a first kernel needs it; what goes wrong is told there."""
    with suppress(Exception):
        import numpy.ma  # noqa: F401  # for `unique`

        from gpuprof.executor.arithmetic import native

        nvrtc_version()
        native.multiply_add("f32")
        native.player()


class DecodedKernels(Struct, frozen=True):
    """What a card executes of kernels; cards may share what is kept."""

    device: Device
    kept: Kept[Program] = field(
        default_factory=lambda: Kept(_KEPT_CHARACTERS, lambda program: len(program.interface.module))
    )
    links: Links = field(default_factory=Links)

    @property
    def arch(self) -> str:
        return self.device.arch if self.device.capability <= parse_arch(_NEWEST) else _NEWEST

    def programs(
        self,
        case: ConfiguredCase,
        compiled: Functions,
        *,
        follow_undefined: bool | None = None,
    ) -> dict[str, Program]:
        """Decode what is executed. What goes wrong is told by the name in the header, not the mangled one.

        Where nothing is said of that, one that may read a register before its first write is followed.
        """
        executed = compiled if self._is_executed(case, compiled) else compile_kernel(case, self.arch)
        found = {
            entry: replace(
                self.program(function.ptx, function.entry, follow_undefined=follow_undefined),
                kernel=entry,
            )
            for entry, function in executed.items()
        }
        followed = {program.observer is not None for program in found.values()}
        return found if len(followed) == 1 else self.programs(case, compiled, follow_undefined=True)

    def program(self, ptx: str, entry: str, *, follow_undefined: bool | None) -> Program:
        """Return the program of one kernel of a PTX text; see `load_program`.

        Where nothing is said of that, it is followed if it may read a register before its first write.
        """
        load = partial(load_program, ptx, entry)
        usual = self.kept.of((ptx, entry), lambda: load(observer=Definedness(), where_unwritten=True))
        if follow_undefined in (None, usual.observer is not None):
            return usual
        observer = Definedness() if follow_undefined else None
        return self.kept.of((ptx, entry, follow_undefined), lambda: load(observer=observer))

    def begun(self, case: ConfiguredCase, compiled: Functions, **how: bool | None) -> dict[str, Program]:
        """As `programs`, of what is linked next: meanwhile its machine code is disassembled."""
        if self._is_executed(case, compiled):
            self.links.begin(compiled.values())
        with timeline.span("decode", case.kernel.id):
            return self.programs(case, compiled, **how)

    def _is_executed(self, case: ConfiguredCase, compiled: Functions) -> bool:
        """Whether the executor runs PTX of these functions: what came as PTX has no other."""
        arch = architecture_of(compiled[case.launches[0].entry].arch)
        return case.kernel.built is not None or arch == self.arch


def weighed(links: Sequence[Link | NoLink], results: Sequence[LaunchResult]) -> Weighed | NoLink:
    """How often launches executed their machine code; why that is not known where it is not of one."""
    found = []
    for one, result in zip(links, results, strict=True):
        if isinstance(one, NoLink):
            return one
        found.append((one, weights := weigh(one, result)))
        ends = (block.instructions[-1] for block in one.code.blocks)
        if any(most and end.is_system_call for end, (_, most) in zip(ends, weights, strict=True)):
            return NoLink("It calls a function of the driver's, such as printf, which is not counted.")
    return found


def instruction_counters(
    counts: MachineCounts | NoLink, result: LaunchResult, *, exact: bool = True
) -> dict[str, Counter]:
    """Return the counters of instructions, in the contract's form."""
    linked = None if isinstance(counts, NoLink) else counts
    held = {"warp_instructions": linked.total if linked else None}
    for pipe in PIPES:
        held[f"pipe_{pipe}_instructions"] = linked.pipes.get(pipe, Between()) if linked else None
    return {
        name: Counter(
            value=None if found is None else whole(found.low),
            unit=COUNTERS[name].unit,
            source="sim",
            reason=counts.reason if isinstance(counts, NoLink) else None,
            sampled_blocks=result.sampled_blocks,
            total_blocks=result.total_blocks,
            is_least=found is not None and not found.exact,
            has_waits=found is not None and found.high == inf,
            is_estimate=not exact,
        )
        for name, found in held.items()
    }


def whole(value: float) -> float | int:
    """Return a count without the rounding of a sample's weights."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= 1e-6 * max(1.0, value) else value
