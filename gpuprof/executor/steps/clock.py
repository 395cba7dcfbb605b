# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The registers that tell the time: the executor counts instructions.

Time only moves on, and does so the faster the more often it is read, so that loops which wait for a time to
come end soon.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuprof.executor.lanes.scalars import Lanes

#: Registers that tell the time, and which bits of it.
CLOCKS: dict[str, tuple[int, np.dtype[Any]]] = {
    "%clock": (0, np.dtype(np.uint32)),
    "%clock_hi": (32, np.dtype(np.uint32)),
    "%clock64": (0, np.dtype(np.int64)),
    "%globaltimer": (0, np.dtype(np.int64)),
    "%globaltimer_lo": (0, np.dtype(np.uint32)),
    "%globaltimer_hi": (32, np.dtype(np.uint32)),
}
#: Cycles that an instruction takes, whatever it is.
_CYCLES = 4


@dataclass
class Clock:
    """Counts time for the registers that tell it.

    Attributes:
        executed: Instructions so far.
    """

    executed: int = 0
    _reads: int = 0
    _ahead: int = 0

    def read(self, name: str) -> Lanes:
        """Return a register's value, later than all that were read before."""
        self._reads += 1
        self._ahead += self._reads
        shift, dtype = CLOCKS[name]
        now = _CYCLES * self.executed + self._ahead
        return np.array(now >> shift, dtype=np.int64).astype(dtype).reshape(1, 1, 1)
