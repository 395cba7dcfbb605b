# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the interpreter tells of a batch while it runs: who touches what, and what orders threads.

It knows nobody who hears of it: *observers* are told of accesses to the buffers that they want to know of,
and of shared and local memory in the same way; *listeners* of shared memory as it is accessed, by patterns,
and of what orders threads: barriers, fences, signals. One may be both.
"""

from collections.abc import Sequence
from typing import Any, Literal

from gpuprof.executor.lanes.masks import Bools
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.lanes.tally import Tally
from gpuprof.executor.memory.accesses import Access, Listener, Signals
from gpuprof.executor.memory.global_accesses import LocalLanes, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.memory.moments import Phase
from gpuprof.executor.memory.shared_memory import ChunkPattern, SharedBlocks, SharedPattern
from gpuprof.executor.memory.thread_order import ThreadOrder

#: What threads do to memory, by the name of the method of `Observer` that is told.
Event = Literal["read", "write", "update"]
#: What else listeners hear, by the name of their method.
Heard = Literal["fence", "settle"]
#: What accesses to shared memory are to observers; the others move no values of lanes.
_EVENTS: dict[Access, Event] = {
    Access.READ: "read",
    Access.EXCHANGED: "read",
    Access.WRITE: "write",
    Access.COPY: "write",
    Access.LANDED: "write",
    Access.ATOMIC: "update",
}


class Events:
    """Tells those who listen to one batch.

    Attributes:
        order: Whose the threads are, and what happens before what.
    """

    def __init__(self, order: ThreadOrder, shared: SharedBlocks, local: LocalLanes, tally: Tally) -> None:
        self.order = order
        #: Whether the present step moves no values.
        self.address_only = False
        self.listeners: list[Listener] = []
        self.signals = Signals()
        self._shared, self._local, self._tally = shared, local, tally
        #: By the address of a buffer.
        self._observers: dict[int, list[Observer]] = {}

    def observe(self, observers: Sequence[Observer], buffers: Sequence[Buffer]) -> None:
        """From now on these are told who touches what they want to know of, and listeners of all the rest."""
        # Before those that judge: what is wrong ends the launch.
        self.listeners[:0] = [one for one in observers if isinstance(one, Listener)]
        everything: list[Buffer | SharedBlocks | LocalLanes] = [*buffers, self._shared, self._local]
        for buffer in everything:
            if wanting := [one for one in observers if one.wants(buffer)]:
                self._observers.setdefault(buffer.address, []).extend(wanting)

    def is_told(self, buffer: Buffer) -> bool:
        """Whether anybody listens to accesses to a buffer."""
        return buffer.address in self._observers

    def tell(
        self, event: Event, buffer: Buffer | SharedBlocks | LocalLanes, *more: Lanes | None, **access: Any
    ) -> None:
        """Tell those who listen that threads access a buffer.

        What else an event says is `more`: the values that are stored, or the lanes whose comparison failed.
        `access` is what a `MemoryOperation` says.
        """
        observers = self._observers.get(buffer.address)
        if observers is not None:
            given = {"address_only": self.address_only, "tally": self._tally, **access}
            one = MemoryOperation(self.order, **given)
            for observer in observers:
                getattr(observer, event)(buffer, one, *more)

    def touch(
        self,
        access: Access,
        pattern: SharedPattern | ChunkPattern,
        line: int,
        values: Lanes | None = None,
        **how: Any,
    ) -> None:
        """Threads, or the copy engine for them, access shared memory.

        `values` are those that are about to be stored, of a copy also when it starts; or of an atomic
        operation, which is over, the lanes whose comparison failed.
        """
        if self._shared.address in self._observers and isinstance(pattern, SharedPattern):
            event = _EVENTS.get(access)
            if event is not None and (event != "write" or values is not None):
                more = () if event == "read" else (values,)
                where = {"index": self._shared.index(pattern), "mask": pattern.mask, "size": pattern.size}
                self.tell(event, self._shared, *more, line=line, **where, **how)
        for listener in self.listeners:
            listener.touch(access, pattern, line, values)

    def synchronise(
        self,
        access: Access,
        lanes: Bools,
        phase: Phase,
        line: int,
        copy: ChunkPattern | SharedPattern | None = None,
    ) -> None:
        """Threads arrive at a phase of a barrier, or at a fence, or go on past it: see `Signal`.

        `lanes` have shape (blocks or 1, warps or 1, 32 or 1).
        """
        if self.listeners:
            signal = self.signals.of(lanes, phase, copy)
            for listener in self.listeners:
                listener.synchronise(access, signal, line)

    def hear(self, event: Heard, *given: Any, **how: Any) -> None:
        """Tell listeners of what orders threads: see the methods of `Listener`."""
        for listener in self.listeners:
            getattr(listener, event)(*given, **how)
