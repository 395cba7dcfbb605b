# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Programs of kernels, of PTX that the executor knows, and their machine code: kept from case to case."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from gpuprof import timeline
from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.instructions import Links
from gpuprof.backends.sim.launching import FindLink
from gpuprof.devices.device import Device, parse_arch
from gpuprof.executor import Definedness, Kept, Program, load_program
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.toolchain.nvrtc import architecture_of

#: Newest architecture whose PTX is executed: above it the compiler uses register classes and opcodes that add
#: nothing to what is counted.
_NEWEST_PTX = "sm_90"
#: Characters of PTX whose programs are kept: all of a ladder. A program takes some forty times that memory.
_KEPT_CHARACTERS = 4 << 20


class Programs:
    """Programs, kept from one case to the next."""

    def __init__(self) -> None:
        self._kept: Kept[Program] = Kept(_KEPT_CHARACTERS, lambda program: len(program.interface.module))

    def load(self, ptx: str, entry: str, *, follow_undefined: bool, with_slice: bool = False) -> Program:
        """Return the program of one kernel of a PTX text; see `load_program`."""

        def load() -> Program:
            observer = Definedness() if follow_undefined else None
            return load_program(ptx, entry, observer=observer, with_slice=with_slice)

        return self._kept.of((ptx, entry, follow_undefined, with_slice), load)


@dataclass(frozen=True)
class DecodedKernels:
    """What a card executes of kernels; cards may share what is kept."""

    device: Device
    kept: Programs = field(default_factory=Programs)
    links: Links = field(default_factory=Links)

    @property
    def arch(self) -> str:
        """Of the PTX that is executed."""
        return self.device.arch if self.device.capability <= parse_arch(_NEWEST_PTX) else _NEWEST_PTX

    def programs(
        self,
        case: ConfiguredCase,
        compiled: Functions,
        *,
        follow_undefined: bool = False,
        with_slice: bool = False,
    ) -> dict[str, Program]:
        """Decode what is executed. What goes wrong is told by the name in the header, not the mangled one."""
        executed = compiled if self._is_executed(case, compiled) else compile_kernel(case, self.arch)
        return {
            entry: replace(
                self.kept.load(
                    function.ptx,
                    function.entry,
                    follow_undefined=follow_undefined,
                    with_slice=with_slice,
                ),
                kernel=entry,
            )
            for entry, function in executed.items()
        }

    def begun(self, case: ConfiguredCase, compiled: Functions, **how: bool) -> dict[str, Program]:
        """As `programs`, of what is linked next: meanwhile its machine code is disassembled."""
        if self._is_executed(case, compiled):
            self.links.begin(compiled.values())
        with timeline.span("decode", case.kernel.id):
            return self.programs(case, compiled, **how)

    def find_links(
        self, case: ConfiguredCase, compiled: Functions, programs: Mapping[str, Program]
    ) -> list[FindLink]:
        """What finds the link of the machine code and the program of each launch."""
        return [partial(self.links.of, compiled[one.entry], programs[one.entry]) for one in case.launches]

    def _is_executed(self, case: ConfiguredCase, compiled: Functions) -> bool:
        """Whether the compiled functions are of an architecture that the executor knows."""
        return architecture_of(compiled[case.launches[0].entry].arch) == self.arch
