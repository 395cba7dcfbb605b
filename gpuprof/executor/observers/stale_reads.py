# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reads through a cache that does not see what the same launch has stored, whoever stored it."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.memory.global_accesses import Cache, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer


class StaleReads(Observer):
    """Looks for those through one cache in a batch, whose `fault` raises what is wrong."""

    def __init__(self, cache: Cache, fault: Callable[..., NoReturn]) -> None:
        self._cache = cache
        self._fault = fault

    def wants(self, buffer: Any) -> bool:
        return isinstance(buffer, Buffer) and not buffer.read_only

    def read(self, buffer: Buffer, one: MemoryOperation) -> None:
        if one.cache is not self._cache:
            return
        elements, each = buffer.elements_at(one.place, one.size)
        stale = np.flatnonzero(buffer.written_now(elements))
        if not stale.size:
            return
        number = int(stale[0]) // each
        start = int(one.place[number]) * one.size
        if self._cache is Cache.TEXTURE:
            kind, text = FaultKind.GLOBAL_RACE, f"reads texel {start // one.size} of {buffer.name} through a"
            text += " texture, whose cache does not see what this launch has written there"
        else:
            kind, text = FaultKind.STALE, f"reads {buffer.place(start)[0]} as what does not change"
            text += " (ld.global.nc), but this launch has stored there: it may get the old value"
        self._fault(kind, text, one.line, one.order.position(int(one.who[number])), buffer.address + start)
