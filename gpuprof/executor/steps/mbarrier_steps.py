# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decode the operations on mbarriers to steps."""

from collections.abc import Callable

import numpy as np

from gpuprof.executor.faults import FaultKind, SharedByte, UnsupportedInstruction
from gpuprof.executor.lanes.masks import Bools, Mask, first_true
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes
from gpuprof.executor.memory.accesses import Access
from gpuprof.executor.memory.bulk_copies import TrackedArrival
from gpuprof.executor.memory.global_accesses import MemoryRequest
from gpuprof.executor.memory.mbarriers import COUNT_LIMIT, MBARRIER_BYTES, STATE_SHIFT, Columns, Stall
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.executor.memory.windows import SHARED_WINDOW
from gpuprof.executor.program.ptx import Instruction, Mem, Operand, Reg
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.coding import Coder, Step, computing, where_active
from gpuprof.executor.steps.distributed_shared import in_block, names_cluster
from gpuprof.executor.steps.memory_steps import address_reader, memory_operand
from gpuprof.executor.steps.spaces import SharedSpace

_U32, _I64 = ARITHMETIC["u32"], ARITHMETIC["s64"]


class BarrierOperand:
    """The operand of an instruction that is the address of an mbarrier."""

    def __init__(self, coder: Coder, item: Instruction, operand: Operand) -> None:
        coder.phased = True
        coder.shared_granule = min(coder.shared_granule, MBARRIER_BYTES)
        memory: Mem = memory_operand(operand, item)
        # A generic address goes through the window of shared memory.
        window = 0 if "shared" in item.opcode else SHARED_WINDOW
        site = coder.site("mbarrier", item)
        self.line = item.line
        offset = memory.offset - window - coder.shared_start
        remote = names_cluster(item)
        self._space = SharedSpace(MemoryRequest(site, item.line, MBARRIER_BYTES, offset, remote=remote))
        #: What instructions have alike that access the same barriers by the same address.
        self._place = "mbarrier", offset, remote
        self._address = address_reader(coder, item, memory)

    def pattern(self, batch: Batch, mask: Mask, rank: int | None = None) -> SharedPattern:
        """Return where the barriers of the lanes in `mask` lie: as their address says, or so in a rank."""
        address = mask.joined(self._address(batch))
        if rank is not None:
            address = in_block(address, rank)
        known = batch.memo.patterns[self._place]
        return known.of((address,), mask, lambda: self._space.checked(batch, address, mask, load=False))

    def use(
        self, batch: Batch, mask: Mask, rank: int | None = None, access: Access = Access.MBARRIER
    ) -> Columns:
        """Lanes use their barriers, perhaps a rank's, set up in order before: return their numbers."""
        pattern = self.pattern(batch, mask, rank)
        columns = self.numbers(batch, mask, pattern)
        batch.events.touch(access, pattern, self.line)
        return columns

    def numbers(self, batch: Batch, mask: Mask, pattern: SharedPattern) -> Columns:
        """Return the number of each lane's barrier; one that was never initialised is a fault."""
        return batch.mbarriers.present_at.of(pattern.serial, lambda: self._present(batch, mask, pattern))

    def _present(self, batch: Batch, mask: Mask, pattern: SharedPattern) -> Columns:
        columns = batch.mbarriers.columns(pattern)
        absent = batch.mbarriers.at(batch.mbarriers.present, columns) == 0
        if absent.any() and (wrong := absent & mask.lanes).any():
            position = first_true(wrong)
            start = int(np.broadcast_to(pattern.address, wrong.shape)[position])
            where, start = batch.layout.byte(start)
            detail = f"uses an mbarrier at {where}, where none was initialised"
            batch.fault(FaultKind.MBARRIER, detail, self.line, position, SharedByte(start))
        return columns


def _set_up(coder: Coder, item: Instruction) -> Step:
    place = BarrierOperand(coder, item, item.operands[0])
    count = coder.reader(item.operands[1], _U32, item) if "init" in item.opcode else None

    def run(batch: Batch, mask: Mask) -> None:
        pattern, counts = place.pattern(batch, mask), np.zeros((1, 1, 1), dtype=np.int64)
        if count is None:
            place.numbers(batch, mask, pattern)
        else:
            counts = count(batch)
            _check_count(batch, mask, counts, item.line, least=1, what="initialises an mbarrier with count")
        batch.events.touch(Access.WRITE, pattern, item.line)
        batch.mbarriers.initialise(pattern, counts)

    return where_active(coder, item, run)


def _arrive(coder: Coder, item: Instruction) -> Step:
    if len(item.operands) < 2:
        raise UnsupportedInstruction(item.name, item.line)
    write, place = coder.target(item.operands[0], item), BarrierOperand(coder, item, item.operands[1])
    amount = coder.reader(item.operands[2], _U32, item) if len(item.operands) > 2 else None
    announces, relaxed, drops = (word in item.opcode for word in ("expect_tx", "relaxed", "arrive_drop"))
    access = Access.MBARRIER if relaxed else Access.ARRIVED
    one = np.ones((1, 1, 1), dtype=np.int64)
    wanted, at = isinstance(item.operands[0], Reg), (item.line, item.ptx_line)

    def run(batch: Batch, mask: Mask) -> None:
        barriers = batch.mbarriers
        columns = place.use(batch, mask, access=access)
        complete = barriers.at(barriers.pending, columns) == 0
        if complete.any() and (early := complete & mask.lanes).any():
            # The phase waits for bytes alone: they may come in time for this arrival.
            batch.bulk.deliver(columns, early)
        given = one if amount is None else mask.joined(amount(batch))
        counts = one if announces else given
        if announces:
            _announce(batch, mask, columns, given, item.line)
        else:
            _check_count(batch, mask, counts, item.line, least=1, what="arrives at an mbarrier with count")
        arrivals = barriers.summed(columns, mask, counts)
        phases, beyond = barriers.phases(columns, mask, counts, arrivals)
        text = (
            "arrives at an mbarrier, with its warp, more often than the phase still expects: cards stop there"
        )
        batch.refuse(FaultKind.MBARRIER, mask, beyond, item.line, text)
        if not relaxed:
            batch.bulk.arrived(columns, mask, phases, item.line)
        states = barriers.states(columns, mask, counts, phases) if wanted else None
        barriers.arrivals.append((at, columns, mask.lanes, phases))
        barriers.arrive(arrivals, drops=drops)
        if states is not None:
            write(batch, states, mask)

    return where_active(coder, item, run)


def _pending_count(coder: Coder, item: Instruction) -> Step:
    state = coder.reader(item.operands[1], _I64, item)
    return computing(coder, item, lambda batch: state(batch) & COUNT_LIMIT)


def _bytes(coder: Coder, item: Instruction) -> Step:
    place = BarrierOperand(coder, item, item.operands[0])
    amount, announces = coder.reader(item.operands[1], _U32, item), "expect_tx" in item.opcode

    def run(batch: Batch, mask: Mask) -> None:
        columns, count = place.use(batch, mask), mask.joined(amount(batch))
        if announces:
            _announce(batch, mask, columns, count, item.line)
        else:
            _check_count(batch, mask, count, item.line, least=0, what="completes bytes of an mbarrier:")
            batch.mbarriers.receive(batch.mbarriers.summed(columns, mask, count))

    return where_active(coder, item, run)


def arrive_after_copies(coder: Coder, item: Instruction) -> Step:
    """`cp.async.mbarrier.arrive`: arrive when the `cp.async` that the thread started so far have landed."""
    place = BarrierOperand(coder, item, item.operands[0])
    expected = "noinc" in item.opcode

    def run(batch: Batch, mask: Mask) -> None:
        columns = place.use(batch, mask)
        if not expected:
            batch.mbarriers.await_more(columns, mask)
        batch.bulk.tracked.append(TrackedArrival(columns, mask, batch.copies.landing(mask), item.line))

    return where_active(coder, item, run)


def _announce(batch: Batch, mask: Mask, columns: Columns, transfer_bytes: Lanes, line: int) -> None:
    _check_count(batch, mask, transfer_bytes, line, least=0, what="makes an mbarrier expect bytes:")
    batch.mbarriers.announce(columns, mask, transfer_bytes)


def _wait(coder: Coder, item: Instruction) -> Step:
    write, place = coder.target(item.operands[0], item), BarrierOperand(coder, item, item.operands[1])
    relaxed = "relaxed" in item.opcode
    # With a parity the phase of that parity must be over, else that of the state that an arrival returned, of
    # which cards look at the parity too.
    by_parity = "parity" in item.opcode
    awaited = coder.reader(item.operands[2], _U32 if by_parity else _I64, item)

    def run(batch: Batch, mask: Mask) -> None:
        barriers, pattern = batch.mbarriers, place.pattern(batch, mask)
        columns = place.numbers(batch, mask, pattern)
        phase = mask.joined(awaited(batch))

        def over() -> Bools:
            current = barriers.at(barriers.phase, columns)
            return np.asarray((current & 1) != ((phase if by_parity else phase >> STATE_SHIFT) & 1))

        done = over()
        write(batch, done, mask)
        passed = done & mask.lanes
        if passed.any():
            batch.events.touch(Access.MBARRIER, pattern, item.line)
            if not relaxed:
                batch.bulk.observe(columns, mask, passed, batch.live.lanes, item.line)
        if not done.all() and (failed := ~done & mask.lanes).any():
            batch.bulk.deliver(columns, failed)
            still = failed & ~over()
            if still.any():
                watched = np.unique(batch.spread(columns)[batch.spread(still)])
                batch.stall = Stall(
                    still, columns, (item.line, item.ptx_line), watched, barriers.phase[:, watched]
                )

    return where_active(coder, item, run)


def _check_count(batch: Batch, mask: Mask, counts: Lanes, line: int, *, least: int, what: str) -> None:
    text = f"{what} {{:,}}, which is not between {least} and {COUNT_LIMIT:,}"
    outside = np.asarray((counts < least) | (counts > COUNT_LIMIT))
    batch.refuse(FaultKind.MBARRIER, mask, outside, line, text, counts)


_ARRIVING = "expect_tx noComplete release relaxed"
_WAITING = "parity acquire relaxed"
#: Setting up, arriving, announcing bytes, waiting, and asking what is pending; with what each may say.
OPERATIONS: dict[str, tuple[Callable[[Coder, Instruction], Step], str]] = {
    "init": (_set_up, ""),
    "inval": (_set_up, ""),
    "arrive": (_arrive, _ARRIVING),
    "arrive_drop": (_arrive, _ARRIVING),
    "pending_count": (_pending_count, ""),
    "expect_tx": (_bytes, "relaxed"),
    "complete_tx": (_bytes, "relaxed"),
    "try_wait": (_wait, _WAITING),
    "test_wait": (_wait, _WAITING),
}
