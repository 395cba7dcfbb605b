# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values wait in the frames of functions that call themselves."""

import numpy as np

from gpuprof.executor.definedness.operands import Place, targets_of
from gpuprof.executor.lanes.undefined import Undefined, bits_dtype
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps.batch import Batch
from gpuprof.executor.steps.call_steps import frame_slots
from gpuprof.executor.steps.coding import Coder, Step

_NONE = np.zeros((1, 1, 1), dtype=np.int64)


def save_frame(coder: Coder, item: Instruction, step: Step) -> Step:
    """Undefined bits are kept with their registers."""
    slots = frame_slots(coder, item)
    places = [Place(slot, coder.slots.kept[slot]) for slot in slots]

    def following(batch: Batch) -> None:
        frames = batch.frames
        for place in places:
            found, keys = place.undefined(batch), _keys(place)
            if found is None and not frames.holds(keys[0]):
                continue
            bits = found.bits if found is not None else np.zeros((1, 1, 1), bits_dtype(place.kept))
            frames.keep(keys[0], bits, batch.mask)
            frames.keep(keys[1], found.origin if found is not None else _NONE, batch.mask)
        step(batch)

    return following


def restore_frame(coder: Coder, item: Instruction, step: Step) -> Step:
    """Undefined bits come back with their registers."""
    targets = targets_of(coder, item)

    def following(batch: Batch) -> None:
        step(batch)
        for target in targets:
            bits, origin = _keys(target.place)
            found = None
            if batch.frames.holds(bits):
                found = Undefined(batch.frames.kept(bits), batch.frames.kept(origin))
            target.put(batch, found, batch.mask)

    return following


def _keys(place: Place) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("bits", place.slot), ("origin", place.slot)
