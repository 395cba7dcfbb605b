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
    """Cases in the order of the plan, for several workers; one that lost its place gives its case back.

    A worker keeps what it decoded of a kernel, for the kernel's other sizes, and what it found, for kernels
    that choose this one.
    """

    def __init__(self, cases: Iterable[Case], device: Device) -> None:
        plan = list(cases)
        self._codes = {index: _code(case, device) for index, case in enumerate(plan)}
        self._problems = [case.problem for case in plan]
        self._left = dict(self._codes)
        self._taken_by: dict[_Code, object] = {}
        self._under_way: set[int] = set()
        self._lock = threading.Lock()

    def take(self, worker: object) -> int | None:
        """Take the first case whose kernel no other worker has, or else the first.

        Of cases with the same code and problem one is under way at a time: its worker then knows the others.

        Returns:
            Its index in the plan; None if there is none to take at present.
        """
        with self._lock:
            own = (i for i, code in self._left.items() if self._taken_by.get(code, worker) is worker)
            running = [(self._codes[i], self._problems[i]) for i in self._under_way]
            free = (i for i, code in self._left.items() if (code, self._problems[i]) not in running)
            index = next(own, next(free, None))
            if index is not None:
                self._taken_by.setdefault(self._left.pop(index), worker)
                self._under_way.add(index)
            return index

    def done(self, index: int) -> None:
        """A case that was taken has ended."""
        with self._lock:
            self._under_way.discard(index)

    def give_back(self, index: int) -> None:
        """Leave a case that was taken to any other worker."""
        with self._lock:
            code = self._codes[index]
            self._taken_by.pop(code, None)
            self._under_way.discard(index)
            self._left = {index: code, **self._left}

    def settled(self) -> bool:
        """Whether no case is left, and none under way that might be given back."""
        with self._lock:
            return not self._left and not self._under_way

    def left(self) -> list[int]:
        """Cases that nobody has."""
        with self._lock:
            return sorted(self._left)


def _code(case: Case, device: Device) -> _Code:
    if not case.is_reference:
        with suppress(CaseSkipped):  # it is told when the case's turn comes
            case, _ = resolve(case, device)
    return case.name, case.block, tuple(sorted(case.params.items()))
