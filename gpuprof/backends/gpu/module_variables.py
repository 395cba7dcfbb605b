# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Variables in global memory that a kernel's module brings along, which outlast a launch."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpuprof.backends.gpu.context import Buffer, Module, copy_on_device, queue_copy

#: Their declarations in PTX: outside functions, where each begins a line.
_DECLARED = re.compile(
    r"^(?:\.(?:visible|weak|common)\s+)*\.global\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+\d+\s+)?"
    r"(?:\.v[24]\s+)?\.[busf]\d+\s+([\w$%.]+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Variable:
    """Where one lies, and a copy of what it held when its module was loaded."""

    address: int
    nbytes: int
    initial: Buffer


class ModuleVariables:
    """Those of one loaded module, as they are when it is loaded.

    Args:
        module: The module, of which no kernel has run.
        names: Of its variables, as PTX has them.

    Raises:
        CaseFailure: There is no room for a copy.
    """

    def __init__(self, module: Module, names: Iterable[str]) -> None:
        self._variables: list[_Variable] = []
        try:
            for name in names:
                found = module.variable(name)
                if found is not None and found[1]:
                    address, nbytes = found
                    self._variables.append(_Variable(address, nbytes, Buffer(nbytes)))
                    copy_on_device(self._variables[-1].initial.address, address, nbytes)
        except BaseException:
            self.free()
            raise

    def __len__(self) -> int:
        """How many there are."""
        return len(self._variables)

    def queue_restore(self, stream: Any) -> None:
        """Queue that they hold what they held at first."""
        for variable in self._variables:
            queue_copy(variable.address, variable.initial.address, variable.nbytes, stream)

    def free(self) -> None:
        """Give the copies back."""
        while self._variables:
            self._variables.pop().initial.free()


def variable_names(ptx: str) -> tuple[str, ...]:
    """Names of the variables in global memory that a module declares, strings of its messages included."""
    return tuple(dict.fromkeys(_DECLARED.findall(ptx)))
