# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The mbarriers of a batch: for each its phase, and the arrivals and bytes that it still waits for.

A phase ends when nobody is pending and all bytes that were announced have arrived; the next one then starts
with the count that the barrier was initialised with. The state is kept beside shared memory, not in it: CUDA
leaves open what the 8 bytes hold.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import WARP, Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes, uniform_blocks
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.shared_memory import SharedPattern

#: Bytes of an mbarrier, and its alignment.
MBARRIER_BYTES = 8
#: The most that an mbarrier counts of arrivals, and of bytes to come.
COUNT_LIMIT = (1 << 20) - 1
#: Arrivals that are remembered.
_REMEMBERED = 512
#: Numbers of barriers that are remembered by patterns.
_REMEMBERED_COLUMNS = 1 << 18
#: Bits of the state that an arrival returns that hold the pending count; the phase stands above them.
STATE_SHIFT = 20

#: One figure of every barrier: shape (blocks, barriers).
Table = NDArray[np.int64]
#: For each lane the number of the barrier that it means; 0 where there is none.
Columns = NDArray[np.intp]


class Stall(Struct, eq=False):
    """Lanes whose wait for an mbarrier failed, and what must change before it can succeed.

    `at` is the line of the source and of the PTX.
    `watched` are the different ones of their barriers, the `columns`, and `phases` what their phases were.
    """

    lanes: Bools
    columns: Columns
    at: tuple[int, int]
    watched: Columns
    phases: Table


class Mbarriers:
    """All mbarriers of a batch, by number: `offsets` says where each lies. Number 0 is none.

    Of each block's it is kept how many phases are over, the arrivals that are still pending and those that a
    phase expects, whether it is present, and the bytes of announced transfers that have not arrived.
    `version` grows whenever anything changes. `arrivals` are the last, for who asks why a phase does not end:
    lines of source and PTX, barriers, lanes, and the phases that they arrived at.
    """

    def __init__(self, blocks: int, shared_bytes: int) -> None:
        self.blocks = blocks
        self.offsets = [-1]
        self.phase, self.pending, self.expected, self.present, self.transfer = (
            np.zeros((blocks, 1), dtype=np.int64) for _ in range(5)
        )
        self.version = 0
        #: Of patterns, by their serial numbers, that name barriers which are all present: which they are.
        self.present_at: Kept[Columns] = Kept(_REMEMBERED_COLUMNS, np.size)
        self.arrivals: deque[tuple[tuple[int, int], Columns, Bools, Table]] = deque(maxlen=_REMEMBERED)
        self._column_at = np.zeros(shared_bytes // MBARRIER_BYTES + 1, dtype=np.intp)
        self._rows = np.arange(blocks)[:, None, None]

    def columns(self, pattern: SharedPattern) -> Columns:
        """Return the barrier that each lane means."""
        return self._column_at[_used_addresses(pattern) // MBARRIER_BYTES]

    def at(self, table: Table, columns: Columns) -> Table:
        """Return a figure of each lane's barrier: shape (blocks or 1, warps or 1, 32 or 1)."""
        return uniform_blocks(table[self._rows, columns])

    def initialise(self, pattern: SharedPattern, counts: Lanes) -> None:
        """Make barriers that take `counts` arrivals a phase; 0 ends their use."""
        self.present_at = Kept(_REMEMBERED_COLUMNS, np.size)
        shape = (self.blocks, pattern.mask.warps, 32)
        lanes = np.broadcast_to(pattern.mask.lanes, shape)
        for address in np.unique(np.broadcast_to(_used_addresses(pattern), shape)[lanes]):
            if not self._column_at[address // MBARRIER_BYTES]:
                self._column_at[address // MBARRIER_BYTES] = len(self.offsets)
                self.offsets.append(int(address))
        missing = len(self.offsets) - self.phase.shape[1]
        if missing:
            for name in ("phase", "pending", "expected", "present", "transfer"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, missing))))
        columns = np.broadcast_to(self.columns(pattern), shape)[lanes]
        block = np.broadcast_to(self._rows, shape)[lanes]
        given = np.broadcast_to(counts, shape)[lanes]
        self.phase[block, columns] = 0
        self.transfer[block, columns] = 0
        self.pending[block, columns] = given
        self.expected[block, columns] = given
        self.present[block, columns] = given > 0
        self.version += 1

    def arrive(self, arrivals: Table, *, drops: bool = False) -> None:
        """Count arrivals; a barrier that more threads arrive at than it expects is left below zero.

        Those that drop out are not expected in later phases.
        """
        self.pending -= arrivals
        if drops:
            self.expected -= arrivals
        self._end_phases(arrivals > 0)

    def phases(self, columns: Columns, mask: Mask, counts: Lanes, arrivals: Table) -> tuple[Table, Bools]:
        """Return the phase that each arrival counts in, and the lanes whose warps bring more than it awaits.

        Warps arrive in order, the lanes of one together: one that ends a phase leaves the next one to those
        behind it, and the card stops where it brings more.
        """
        phases, shape = self.at(self.phase, columns), (self.blocks, mask.warps, 32)
        over = arrivals > self.pending
        if not over.any():
            return phases, np.zeros((1, 1, 1), dtype=np.bool_)
        beyond: Bools = np.zeros(shape, dtype=np.bool_)
        lanes, which, given = (np.broadcast_to(part, shape) for part in (mask.lanes, columns, counts))
        for column in np.flatnonzero(over.any(axis=0)).tolist():
            same = lanes & (which == column)
            ended = np.zeros(self.blocks, dtype=np.int64)
            pending = self.pending[:, column].copy()
            phases = np.broadcast_to(phases, shape).copy()
            for warp in np.flatnonzero(same.any(axis=(0, 2))).tolist():
                arriving = np.where(same[:, warp], given[:, warp], 0).sum(axis=1, dtype=np.int64)
                phases[:, warp] += np.where(same[:, warp], ended[:, None], 0)
                beyond[:, warp] |= same[:, warp] & (arriving > pending)[:, None]
                pending -= arriving
                ends = (pending <= 0) & (arriving > 0) & (self.transfer[:, column] == 0)
                ended += ends
                pending[ends] = self.expected[ends, column]
        return phases, beyond

    def states(self, columns: Columns, mask: Mask, counts: Lanes, phases: Table) -> Table:
        """Return the state that each arrival finds: warps arrive in order, the lanes of one together."""
        pending = self.at(self.pending, columns)
        if int(np.max(mask.thread_count)) > 1:
            blocks = max(len(part) for part in (mask.lanes, columns, counts))
            shape = (blocks, mask.warps, 32)
            lanes, which, given = (np.broadcast_to(part, shape) for part in (mask.lanes, columns, counts))
            for column in np.unique(which[lanes]).tolist():
                same = lanes & (which == column)
                arriving = np.where(same, given, 0).sum(axis=2, keepdims=True, dtype=np.int64)
                earlier = np.cumsum(arriving, axis=1) - arriving
                pending = np.where(same, pending - earlier, pending)
        return np.asarray((phases << STATE_SHIFT) | np.maximum(pending, 0))

    def await_more(self, columns: Columns, mask: Mask) -> None:
        """Let the current phase wait for one more arrival of each lane."""
        self.pending += self.summed(columns, mask, np.ones((1, 1, 1), dtype=np.int64))
        self.version += 1

    def announce(self, columns: Columns, mask: Mask, transfer_bytes: Lanes) -> None:
        """Let the current phase wait for more bytes."""
        self.transfer += self.summed(columns, mask, transfer_bytes)
        self.version += 1

    def receive(self, transfer_bytes: Table) -> None:
        """Bytes have arrived: how many of each block, for each of its barriers."""
        self.transfer -= transfer_bytes
        self._end_phases(transfer_bytes > 0)

    def _end_phases(self, touched: Bools) -> None:
        ended = touched & (self.pending <= 0) & (self.transfer == 0)
        if ended.any():
            surplus, expected = -self.pending[ended], self.expected[ended]
            # Where all have dropped out, nobody is expected, and nobody can arrive.
            rounds = np.maximum(expected, 1)
            self.phase[ended] += 1 + surplus // rounds
            self.pending[ended] = expected - surplus % rounds
        self.version += 1

    def summed(self, columns: Columns, mask: Mask, amounts: Lanes) -> Table:
        """Add up what the lanes in `mask` bring to each barrier."""
        total = np.zeros_like(self.phase)
        if columns.shape[1:] == amounts.shape[1:] == (1, 1):
            brought = mask.thread_count * amounts[:, 0, 0].astype(np.int64)
            total[self._rows[:, 0, 0], columns[:, 0, 0]] = brought
            return total
        np.add.at(total, (mask.places[0], mask.held(columns)), mask.held(amounts).astype(np.int64))
        return total

    def describe(self, block: int, column: int) -> str:
        missing, bytes_missing = int(self.pending[block, column]), int(self.transfer[block, column])
        parts = []
        if missing:
            parts.append(f"{missing} of {int(self.expected[block, column])} arrivals are missing")
        if bytes_missing > 0:
            parts.append(f"{bytes_missing} announced bytes are missing")
        elif bytes_missing < 0:
            parts.append(f"{-bytes_missing} bytes arrived that were not announced")
        return " and ".join(parts)


def _used_addresses(pattern: SharedPattern) -> NDArray[np.int64]:
    return pattern.address if pattern.used is None else np.where(pattern.used, pattern.address, 0)


def by_parity(lanes: Bools, phases: Table) -> Iterator[tuple[int, Bools]]:
    """Divide lanes by the parity of the phase that each is in, or its block."""
    for parity in (0, 1):
        if (part := np.asarray(lanes & (phases & 1 == parity))).any():
            yield parity, part


#: Stands for the phase of a thread that has waited for all at which it arrived.
_NONE = -1


class ClusterBarrier:
    """The barriers of the clusters of one batch."""

    def __init__(self, clusters: int, warps: int) -> None:
        shape = (clusters, warps, WARP)
        #: Phases that are over, of each cluster.
        self.phase: NDArray[np.int64] = np.zeros(clusters, dtype=np.int64)
        self._arrived: Bools = np.zeros(shape, dtype=np.bool_)
        #: The phase that each thread arrived in, if it has not waited.
        self.due: NDArray[np.int64] = np.full(shape, _NONE, dtype=np.int64)

    @property
    def pending(self) -> Bools:
        """The threads that have arrived and not waited: shape (clusters, warps, 32)."""
        return np.asarray(self.due != _NONE)

    @property
    def over(self) -> Bools:
        """The threads that arrived in a phase that is over: their wait would succeed."""
        return np.asarray(self.pending & (self.due < self.phase[:, None, None]))

    def arrive(self, lanes: Bools) -> None:
        self._arrived |= lanes
        self.due = np.where(lanes, self.phase[:, None, None], self.due)

    def complete(self, live: Bools) -> Bools:
        """End the phases at which all have arrived that have not ended; return in which clusters."""
        complete = (self._arrived | ~live).all(axis=(1, 2)) & self._arrived.any(axis=(1, 2))
        self._arrived[complete] = False
        self.phase = self.phase + complete
        return np.asarray(complete)

    def wait(self, lanes: Bools) -> None:
        """Threads have waited."""
        self.due = np.where(lanes, _NONE, self.due)
