# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Counters on each line of a kernel's source, and which line costs most."""

from functools import cache

from gpuprof.results import Measurement


class LineCounts:
    """What each line of a source did, by sums of counters; lines that only issued are left out."""

    def __init__(self, case: Measurement | None) -> None:
        held = case.lines or () if case else ()
        # Every line that became machine code has instructions; only what else it did tells lines apart here.
        self.lines = {
            line.line: line.counters for line in held if line.counters.keys() - {"warp_instructions"}
        }
        bound = case.bounds.get(case.bound_by or "") if case else None
        #: Counters of the work of the part that binds the case.
        self.binding = bound.counters if bound else ()
        self._whole = cache(lambda names: sum(self.of(line, *names) for line in self.lines))
        self._most = cache(lambda names: max((self.of(line, *names) for line in self.lines), default=0.0))

    def of(self, line: int, *names: str) -> float:
        return sum(self.lines[line].get(name, 0) for name in names)

    def share_pct(self, line: int, *names: str) -> float | None:
        """That as a share of all lines; None where it is nothing."""
        counted = self.of(line, *names)
        return 100.0 * counted / self._whole(names) if counted else None

    def is_most(self, line: int, *names: str) -> bool:
        """Whether no line counted more."""
        counted = self.of(line, *names)
        return bool(counted) and counted == self._most(names)
