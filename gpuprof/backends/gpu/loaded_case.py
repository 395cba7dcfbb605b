# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A case on the device: its module, its functions and their arguments, ready to be launched."""

import ctypes
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from gpuprof.backends.arguments import bind_arguments
from gpuprof.backends.base import Functions
from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.context import (
    Arguments,
    DeviceBuffer,
    DeviceCode,
    LoadedModule,
    copy_on_device,
    queue_copy,
    upload,
)
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.symbols import ModuleSymbol, float_variables, variable_named

#: PTX that may ask the L2 cache to hold lines longer than others.
_L2_HINTS = re.compile(r"L2::(?:evict_last|cache_hint|evict_unchanged)\b")

#: What relocatable code calls to start grids or graphs, from the device runtime.
_STARTS_GRIDS = re.compile(r"\.extern\s+\.func\b[^;]*?\b(?:__cudaCDP2|cuda)(?:LaunchDevice|GraphLaunch)")

#: Declarations in PTX of variables in global memory: outside functions, where each begins a line.
_DECLARED = re.compile(
    r"^(?:\.(?:visible|weak|common)\s+)*\.global\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+\d+\s+)?"
    r"(?:\.v[24]\s+)?\.[busf]\d+\s+([\w$%.]+)",
    re.MULTILINE,
)
#: The same, and those in constant memory.
_VARIABLES = re.compile(_DECLARED.pattern.replace(r"\.global", r"\.(?:global|const)"), re.MULTILINE)
_NAME = re.compile(r"[\w$%.]+")
#: What the device function `restore` takes of each: where it lies, its bytes, and where its content is kept.
_PIECE_WORDS = 3
#: Copies are as wide as a thread's widest access.
_ALIGNED = 16


class ModuleVariables:
    """Variables in global memory that a module brings along, which outlast a launch, as they are at first.

    However many there are, one command restores them, from one copy of their contents.
    """

    def __init__(self, module: LoadedModule, names: Iterable[str]) -> None:
        found = [place for place in map(module.variable, names) if place is not None and place[1]]
        self._kept: DeviceBuffer | None = None
        self._table: list[tuple[int, int, int]] = []
        self._restore = Arguments([])
        if not found:
            return
        sizes = [-(-nbytes // _ALIGNED) * _ALIGNED for _, nbytes in found]
        table_bytes = -(-len(found) * _PIECE_WORDS * 8 // _ALIGNED) * _ALIGNED
        self._kept = DeviceBuffer(table_bytes + sum(sizes))
        try:
            starts = self._kept.address + table_bytes + np.cumsum([0, *sizes[:-1]])
            self._table = [(*place, int(start)) for place, start in zip(found, starts, strict=True)]
            self._kept.upload(np.array(self._table, dtype=np.uint64))
            self.keep({address for address, _, _ in self._table})
        except BaseException:
            self.free()
            raise
        self._restore = Arguments([ctypes.c_int(len(found)), self._kept])

    def __bool__(self) -> bool:
        return self._kept is not None

    def keep(self, addresses: Collection[int]) -> None:
        """Take what variables hold now, by their addresses, for what they hold at first."""
        for address, nbytes, start in self._table:
            if address in addresses:
                copy_on_device(start, address, nbytes)

    def queue_restore(self, code: DeviceCode) -> None:
        """Queue that they hold what they held at first."""
        if self._kept is not None:
            code.queue("restore", self._restore)

    def free(self) -> None:
        if self._kept is not None:
            self._kept.free()
            self._kept = None


def used_variables(ptx: str) -> tuple[str, ...]:
    """Names of the variables in global memory that a module declares and names again, strings included.

    One that stands nowhere else is out of reach for code: it holds for ever what it held at first. Headers of
    the toolkit bring a thousand such.
    """
    declared = dict.fromkeys(_DECLARED.findall(ptx))
    mentioned = Counter(_NAME.findall(ptx)) if declared else {}
    return tuple(name for name in declared if mentioned[name] > 1)


class LoadedCase:
    """The launches of a case, in order."""

    def __init__(
        self,
        case: ConfiguredCase,
        compiled: Functions,
        arrays: ProblemArrays,
        device: Device,
        stream: Any,
    ) -> None:
        kernel = case.kernel
        bound = [bind_arguments(case, one, compiled[one.entry]) for one in case.launches]
        self._arrays = arrays
        self._stream = stream
        first = compiled[case.launches[0].entry]
        #: Whether it has shared memory, which its last launch may have left something in.
        self.uses_shared = any(
            one.dynamic_shared_bytes or compiled[one.entry].static_shared_bytes for one in case.launches
        )
        #: Whether it tells the L2 cache what to hold.
        self.hints_l2 = bool(_L2_HINTS.search(first.ptx))
        refuse_grids_of_its_own(kernel.id, first.ptx)
        self._module = LoadedModule(first.cubin, kernel.id)
        self.variables: ModuleVariables | None = None
        try:
            arrays.make_workspace(case.workspace)
            self._symbols = list(self._found_symbols(case.launches[0].symbols, first.ptx))
            self._set_symbols()
            self.variables = ModuleVariables(self._module, used_variables(first.ptx))
            arrays.follow_inputs(self._set_symbols if self._symbols else None)
            functions = {entry: self._module.function(function.entry) for entry, function in compiled.items()}
            for one in case.launches:
                functions[one.entry].reserve_shared(
                    max(other.dynamic_shared_bytes for other in case.launches if other.entry == one.entry),
                    compiled[one.entry].static_shared_bytes,
                    device.shared_bytes_per_block_optin,
                )
            arrays.make_textures(case.textures)
            self._launches = [
                (one, functions[one.entry], arrays.arguments(values))
                for one, values in zip(case.launches, bound, strict=True)
            ]
        except BaseException:
            self.close()
            raise

    def _found_symbols(
        self, symbols: Iterable[ModuleSymbol], ptx: str
    ) -> Iterator[tuple[ModuleSymbol, bool, int, int]]:
        """Those that machine code has: whether the variable is a float or double, its address and bytes."""
        names, floats = _VARIABLES.findall(ptx), float_variables(ptx)
        for symbol in symbols:
            name = variable_named(symbol.name, names)
            place = self._module.variable(name) if name else None
            if place is not None:
                yield symbol, name in floats, *place

    def _set_symbols(self) -> None:
        """Set variables of the module as the host would: to arrays as they are now, addresses and numbers."""
        for symbol, is_float, address, nbytes in self._symbols:
            content = symbol.content(nbytes, is_float, self._arrays.content, self._arrays.address)
            upload(address, np.frombuffer(content, np.uint8))
        if self.variables is not None:
            self.variables.keep({address for *_, address, _ in self._symbols})

    @property
    def delivered(self) -> frozenset[str]:
        """Arrays that it writes, and for which variables of the module stand."""
        return frozenset(symbol.array for symbol, *_ in self._symbols if symbol.is_output)

    def deliver(self) -> None:
        """Queue that they hold what these variables do."""
        for symbol, _, address, nbytes in self._symbols:
            if symbol.is_output:
                queue_copy(self._arrays.address(symbol.array), address, nbytes, self._stream)

    def __len__(self) -> int:
        return len(self._launches)

    def queue(self) -> None:
        for index in range(len(self._launches)):
            self.queue_one(index)

    def queue_one(self, index: int) -> None:
        one, function, arguments = self._launches[index]
        function.launch(
            one.grid,
            one.block,
            one.dynamic_shared_bytes,
            self._stream,
            arguments,
            cooperative=one.cooperative,
        )

    def close(self) -> None:
        """Give everything back without hiding the error of a kernel that destroyed the context."""
        try:
            self._arrays.follow_inputs(None)
            self._arrays.make_textures(())
            self._arrays.make_workspace(())
            if self.variables is not None:
                self.variables.free()
            self._module.unload()
        except CaseFailure as error:
            if not error.fatal:
                raise


def refuse_grids_of_its_own(name: str, ptx: str) -> None:
    """Refuse a kernel that starts grids, of which the clock would not know when they end."""
    if _STARTS_GRIDS.search(ptx):
        raise CaseFailure(
            f"{name} launches grids itself, which is not supported: they may end after the clock.",
            fix="List them in the header's launches.",
        )
