# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""When accesses happen.

Every access has a *moment*: a number that grows whenever threads synchronise. A *stamp* packs who touched
something and when: (kind, thread of the launch, moment). Its kind says whether that was one thread, or stands
for several of its warp, of its block, of its cluster, or of several of these.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MOMENT_BITS = 28
_KIND_SHIFT = 60
_MOMENT = (1 << MOMENT_BITS) - 1
_THREAD = (1 << (_KIND_SHIFT - MOMENT_BITS)) - 1
#: The kinds of stamps; each stands for more than the one before.
ONE, OF_WARP, OF_BLOCK, OF_CLUSTER, OF_MANY = range(5)

#: Stamps, or numbers of threads in the launch.
Numbers = NDArray[np.int64]
Stamp = TypeVar("Stamp", int, Numbers)


def with_kind(stamps: Numbers, kind: NDArray[Any] | int) -> Numbers:
    """Return stamps of another kind."""
    bare = stamps & ((1 << _KIND_SHIFT) - 1)
    return np.asarray(bare | (np.asarray(kind, dtype=np.int64) << _KIND_SHIFT), dtype=np.int64)


def kind_of(stamps: Numbers) -> Numbers:
    """Return the kind of each stamp."""
    return stamps >> _KIND_SHIFT


def thread_of(stamps: Stamp) -> Stamp:
    """Return the number of each stamp's thread in the launch."""
    return (stamps >> MOMENT_BITS) & _THREAD


def moment_of(stamps: Stamp) -> Stamp:
    """Return the moment of each stamp."""
    return stamps & _MOMENT


class Timeline:
    """The moments of one launch, and the source line of each."""

    def __init__(self) -> None:
        self.lines = [0]
        self._present: dict[int, int] = {}

    def moment(self, line: int) -> int:
        """Return the moment of an access: the same for all that a line makes until threads synchronise."""
        if line not in self._present:
            self._present[line] = len(self.lines)
            self.lines.append(line)
        return self._present[line]

    def advance(self) -> int:
        """Threads synchronise: return the first moment of what they do from now on."""
        self._present.clear()
        return len(self.lines)


#: A barrier, and the parity of its phase; a barrier of some of a block's warps has a number below 0.
Phase = tuple[int, int]
