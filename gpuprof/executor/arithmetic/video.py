# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""SIMD video instructions: two or four small integers in a register of 32 bits, each with its like.

What is computed of each pair is exact; it is kept within its lane, or brought to the nearest that the lane
holds (`.sat`), or all are added to the third operand (`.add`).
"""

import numpy as np

from gpuprof.executor.arithmetic.mnemonic import Compute, Lowered, Mnemonic, NotInTable
from gpuprof.executor.lanes.scalars import ARITHMETIC, Lanes

_U32 = ARITHMETIC["u32"]
_OPERATIONS: dict[str, Compute] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    # Of an odd sum the half away from zero.
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
NAMES = tuple(f"{name}{lanes}" for name in _OPERATIONS for lanes in (2, 4))


def lower(op: Mnemonic) -> Lowered:
    """Lower an instruction without masks and selections of lanes: `vabsdiff4.u32.u32.u32.add`."""
    kinds = [kind[0] for kind in op.types]
    if len(kinds) != 3 or any(kind not in ("u32", "s32") for kind in op.types) or op.flags not in _FLAGS:
        raise NotInTable
    operation, lanes = _OPERATIONS[op.base[:-1]], int(op.base[-1])
    bits = 32 // lanes
    signs = "i" if kinds[0] == "s" else "u"
    limits = np.iinfo(f"{signs}{bits // 8}")

    def compute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        found = operation(_spread(a, kinds[1], bits), _spread(b, kinds[2], bits))
        if op.has("sat"):
            found = np.clip(found, limits.min, limits.max)
        if op.has("add"):
            return np.asarray((found.sum(axis=-1) + c.astype(np.int64)) & 0xFFFF_FFFF).astype(_U32)
        shift = np.arange(lanes) * bits
        return np.asarray(((found & ((1 << bits) - 1)) << shift).sum(axis=-1)).astype(_U32)

    return Lowered(compute, (_U32,) * 3, _U32)


_FLAGS = ((), ("sat",), ("add",))


def _spread(value: Lanes, kind: str, bits: int) -> Lanes:
    """Return the small integers of a register, as of 64 bits each, the lowest first."""
    words = np.asarray(value.astype(np.uint32)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32))
    narrow = words.astype(f"u{bits // 8}")
    return narrow.view(f"i{bits // 8}").astype(np.int64) if kind == "s" else narrow.astype(np.int64)
