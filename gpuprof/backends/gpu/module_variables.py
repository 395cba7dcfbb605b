# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Variables in global memory that a kernel's module brings along, which outlast a launch."""

import ctypes
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, LoadedModule, copy_on_device
from gpuprof.backends.gpu.device_code import DeviceCode

#: Their declarations in PTX: outside functions, where each begins a line.
_DECLARED = re.compile(
    r"^(?:\.(?:visible|weak|common)\s+)*\.global\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+\d+\s+)?"
    r"(?:\.v[24]\s+)?\.[busf]\d+\s+([\w$%.]+)",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w$%.]+")
#: What the device function `restore` takes of each: where it lies, its bytes, and where its content is kept.
_PIECE_WORDS = 3
#: Copies are as wide as a thread's widest access.
_ALIGNED = 16


class ModuleVariables:
    """Those of one loaded module, as they are when it is loaded.

    However many there are, one command restores them, from one copy of their contents.
    """

    def __init__(self, module: LoadedModule, names: Iterable[str]) -> None:
        found = [place for place in map(module.variable, names) if place is not None and place[1]]
        self._kept: DeviceBuffer | None = None
        self._restore = Arguments([])
        if not found:
            return
        sizes = [-(-nbytes // _ALIGNED) * _ALIGNED for _, nbytes in found]
        table_bytes = -(-len(found) * _PIECE_WORDS * 8 // _ALIGNED) * _ALIGNED
        self._kept = DeviceBuffer(table_bytes + sum(sizes))
        try:
            starts = self._kept.address + table_bytes + np.cumsum([0, *sizes[:-1]])
            table = [(*place, int(start)) for place, start in zip(found, starts, strict=True)]
            self._kept.upload(np.array(table, dtype=np.uint64))
            for address, nbytes, start in table:
                copy_on_device(start, address, nbytes)
        except BaseException:
            self.free()
            raise
        self._restore = Arguments([ctypes.c_int(len(found)), ctypes.c_void_p(self._kept.address)])

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self._kept is not None

    def queue_restore(self, code: DeviceCode) -> None:
        """Queue that they hold what they held at first."""
        if self._kept is not None:
            code.queue("restore", self._restore)

    def free(self) -> None:
        """Give the copy back."""
        if self._kept is not None:
            self._kept.free()
            self._kept = None


def used_variables(ptx: str) -> tuple[str, ...]:
    """Names of the variables in global memory that a module declares and names again, strings included.

    One that stands nowhere else is out of reach for code: it holds for ever what it held at first. Headers of
    the toolkit bring a thousand such.
    """
    mentioned = Counter(_NAME.findall(ptx))
    return tuple(name for name in dict.fromkeys(_DECLARED.findall(ptx)) if mentioned[name] > 1)
