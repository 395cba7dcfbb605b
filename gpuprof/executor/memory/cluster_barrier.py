# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The barrier of each cluster: who has arrived, and for which phase each thread has yet to wait."""

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools

#: Stands for the phase of a thread that has waited for all at which it arrived.
_NONE = -1


class ClusterBarrier:
    """The barriers of the clusters of one batch."""

    def __init__(self, clusters: int, warps: int) -> None:
        shape = (clusters, warps, WARP)
        #: Phases that are over, of each cluster; and whether an arrival released nothing by itself, at the
        #: current phase or the one before.
        self.phase: NDArray[np.int64] = np.zeros(clusters, dtype=np.int64)
        self.relaxed: Bools = np.zeros(clusters, dtype=np.bool_)
        self._arrived: Bools = np.zeros(shape, dtype=np.bool_)
        self._due: NDArray[np.int64] = np.full(shape, _NONE, dtype=np.int64)
        #: How many accesses had been logged when the first thread arrived at the current phase.
        self._logged: NDArray[np.int64] = np.zeros(clusters, dtype=np.int64)

    @property
    def pending(self) -> Bools:
        """The threads that have arrived and not waited: shape (clusters, warps, 32)."""
        return np.asarray(self._due != _NONE)

    @property
    def over(self) -> Bools:
        """The threads that arrived in a phase that is over: their wait would succeed."""
        return np.asarray(self.pending & (self._due < self.phase[:, None, None]))

    def parity(self, number: int) -> Bools:
        """Return the threads whose phase has this parity."""
        return np.asarray(self.pending & ((self._due & 1) == number))

    def arrive(self, lanes: Bools, logged: int, *, relaxed: bool) -> None:
        """Threads arrive, when so many accesses have been logged."""
        here = lanes.any(axis=(1, 2))
        first = here & ~self._arrived.any(axis=(1, 2))
        self._logged = np.where(first, logged, self._logged)
        self.relaxed = np.where(first, relaxed, self.relaxed | (here & relaxed))
        self._arrived |= lanes
        self._due = np.where(lanes, self.phase[:, None, None], self._due)

    def complete(self, live: Bools) -> Bools:
        """End the phases at which all have arrived that have not ended; return in which clusters."""
        complete = (self._arrived | ~live).all(axis=(1, 2)) & self._arrived.any(axis=(1, 2))
        self._arrived[complete] = False
        self.phase = self.phase + complete
        return np.asarray(complete)

    def wait(self, lanes: Bools) -> None:
        """Threads have waited."""
        self._due = np.where(lanes, _NONE, self._due)

    def quiet(self, lanes: Bools, live: Bools, logged: int) -> Bools:
        """Return the clusters that go on as one, with nothing done by anybody since the first arrival.

        `lanes` go on, all at once; `logged` accesses have been logged by now.
        """
        whole = (lanes | ~live).all(axis=(1, 2)) & lanes.any(axis=(1, 2))
        return np.asarray(whole & ~self.relaxed & (self._logged == logged))
