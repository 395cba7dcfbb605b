# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The cases that nobody has taken yet: shared out so that workers decode as few kernels as they can."""

import threading
from collections.abc import Iterable
from contextlib import suppress

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.measure.case import Case, resolve

#: What decides a kernel's code.
_Code = tuple[object, ...]


class Pending:
    """Cases in the order of the plan, for several workers.

    A worker keeps what it decoded of a kernel, for the kernel's other sizes, and what it found, for kernels
    that choose this one.

    Args:
        cases: The plan.
        device: What they run on.
    """

    def __init__(self, cases: Iterable[Case], device: Device) -> None:
        self._left = {index: _code(case, device) for index, case in enumerate(cases)}
        self._taken_by: dict[_Code, object] = {}
        self._lock = threading.Lock()

    def take(self, worker: object) -> int | None:
        """Take the first case whose kernel no other worker has, or else the first; None if none is left.

        Args:
            worker: Who takes it.

        Returns:
            Its index in the plan.
        """
        with self._lock:
            own = (i for i, code in self._left.items() if self._taken_by.get(code, worker) is worker)
            index = next(own, next(iter(self._left), None))
            if index is not None:
                self._taken_by.setdefault(self._left.pop(index), worker)
            return index


def _code(case: Case, device: Device) -> _Code:
    if not case.is_reference:
        with suppress(CaseSkipped):  # it is told when the case's turn comes
            case, _ = resolve(case, device)
    return case.name, case.block, tuple(sorted(case.params.items()))
