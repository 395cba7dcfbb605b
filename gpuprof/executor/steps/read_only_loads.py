# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`ld.global.nc` and `ldu`: loads through a cache that nobody tells of stores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.faults import FaultKind
from gpuprof.executor.lanes.masks import WARP, Mask, first_true
from gpuprof.executor.memory.global_memory import Buffer
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.spaces import GlobalSpace


@dataclass
class ReadOnlySpace(GlobalSpace):
    """Global memory that must stay as it is while the kernel runs."""

    def _judge_read(self, batch: Batch, buffer: Buffer, index: NDArray[np.intp], mask: Mask) -> None:
        super()._judge_read(batch, buffer, index, mask)
        if not buffer.written_count():
            return
        start = np.broadcast_to(index * self.request.size, (batch.blocks, batch.warps, WARP))
        parts = np.arange(0, self.request.size, buffer.item_bytes)
        written = buffer.written_now(start[..., None] + parts).any(axis=-1) & mask.lanes
        if written.any():
            position = first_true(written)
            where, address = buffer.place(int(start[position]))
            text = f"reads {where} as what does not change (ld.global.nc), but this launch has stored there:"
            text += " it may get the old value"
            batch.fault(FaultKind.STALE, text, self.request.line, position, address)
