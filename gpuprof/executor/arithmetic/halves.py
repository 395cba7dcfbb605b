# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on half-precision values: f16, bf16, and two of either packed in a word."""

import numpy as np

from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.convert import from_bf16, to_bf16
from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import Lanes

TYPES = ("f16", "bf16", "f16x2", "bf16x2")

# float32 holds the sum or product of two halves to more than twice their bits plus two, so that rounding
# once more, to half, is as good as rounding once; float64 does the same for bfloat16.
_COMPUTE: dict[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": exact.extreme(np.fmin),
    "max": exact.extreme(np.fmax),
    "neg": np.negative,
    "abs": np.abs,
}


def lower(op: Mnemonic, count: int) -> Lowered:
    """Lower one arithmetic instruction of a half type with `count` operands."""
    if set(op.flags) - {"rn"}:
        raise NotInTable
    scalar = _bf16(op.base) if op.type.startswith("bf16") else _f16(op.base)
    if op.type.endswith("x2"):
        return Lowered(_packed(scalar), (op.dtype,) * count, op.dtype)
    word = np.dtype(np.uint16)
    return Lowered(scalar, (word,) * count, word)


def _f16(name: str) -> Compute:
    compute = exact.fma16 if name == "fma" else _COMPUTE[name]
    return lambda *bits: compute(*(b.view(np.float16) for b in bits)).view(np.uint16)


def _bf16(name: str) -> Compute:
    def compute(*bits: Lanes) -> Lanes:
        values = [from_bf16(b).astype(np.float64) for b in bits]
        if name == "fma":
            return to_bf16(exact.to_odd(*exact.two_sum(values[0] * values[1], values[2])))
        return to_bf16(_COMPUTE[name](*values))

    return compute


def _packed(scalar: Compute) -> Compute:
    def compute(*words: Lanes) -> Lanes:
        low = scalar(*(word.astype(np.uint16) for word in words))
        high = scalar(*((word >> np.uint32(16)).astype(np.uint16) for word in words))
        both: Lanes = (high.astype(np.uint32) << np.uint32(16)) | low
        return both

    return compute
