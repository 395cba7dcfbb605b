# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The parts of a device that may bind a kernel, and which counts say how much each has to do."""

from collections.abc import Mapping

from msgspec import Struct

from gpuprof.devices.device import TENSOR_TYPES

WARP_LANES = 32
SECTOR_BYTES = 32
#: What an SM's L1 data path carries in one pass, in sectors.
SECTORS_PER_PASS = 4
#: A multiply-add is two of the operations that tensor cores are counted by.
_OPERATIONS = 2


class PartWork(Struct, frozen=True):
    """A way to know how much one part of an SM has to do: each unit of these counters is `each` of it."""

    counters: tuple[str, ...]
    each: float = 1.0


class Part(Struct, frozen=True):
    """A part of a device: its key in results files, which is that of its rate, and ways to know its work."""

    key: str
    label: str
    short: str
    unit: str
    meaning: str
    work: tuple[PartWork, ...] = ()


def _of(*counters: str, each: float = 1.0) -> PartWork:
    return PartWork(counters, each)


#: Parts of an SM: they work side by side, and the one that needs longest sets a floor.
SM_PARTS = (
    Part(
        "issue",
        "Issue slots",
        "issue",
        "warp instructions",
        "Every instruction of a warp takes an issue slot of one of the SM's schedulers.",
        (_of("warp_instructions"),),
    ),
    Part(
        "fma",
        "FMA f32",
        "FMA",
        "warp FMAs",
        "Single-precision arithmetic.",
        (_of("pipe_fma_instructions"), _of("ffma_thread_instructions", each=1 / WARP_LANES)),
    ),
    Part(
        "fp64",
        "FMA f64",
        "FP64",
        "warp FMAs",
        "Double-precision arithmetic.",
        (_of("pipe_fp64_instructions"), _of("dfma_thread_instructions", each=1 / WARP_LANES)),
    ),
    Part(
        "alu",
        "Integer and logic",
        "integer",
        "warp instructions",
        "Integer additions, logic, comparisons and moves.",
        (_of("pipe_alu_instructions"),),
    ),
    Part(
        "xu",
        "Special functions",
        "special function",
        "warp instructions",
        "Reciprocals, roots, exponentials, sines, and conversions.",
        (_of("pipe_xu_instructions"),),
    ),
    Part(
        "barrier",
        "Barriers",
        "barrier",
        "warps",
        "Warps that reach a barrier of their block.",
        (_of("barriers"),),
    ),
    *(
        Part(
            f"tensor_{kind}",
            f"Tensor cores {kind}",
            f"tensor {kind}",
            "multiply-adds",
            f"Matrix products of {kind} operands.",
            (_of(f"tensor_{kind}_operations", each=1 / _OPERATIONS),),
        )
        for kind in TENSOR_TYPES
    ),
    Part(
        "l1",
        "Shared memory and L1",
        "shared/L1",
        "passes",
        "The data path of an SM that shared memory and the L1 cache have in common: 128 bytes a pass.",
        (
            _of("l1_passes"),
            _of("shared_load_wavefronts", "shared_store_wavefronts", "global_load_requests"),
            _of("shared_load_wavefronts", "shared_store_wavefronts"),
        ),
    ),
)
L2 = Part("l2", "L2", "L2", "bytes", "Traffic between SMs and L2, the larger of the two directions.")
DRAM = Part("dram", "DRAM", "DRAM", "bytes", "Traffic of device memory.")
LAUNCH = Part("launch", "Launch", "launch", "us", "The time of an empty launch, by the same clock.")

#: By key, in the order shown.
PARTS: Mapping[str, Part] = {part.key: part for part in (*SM_PARTS, L2, DRAM, LAUNCH)}

READS = ("global_load_sectors", "async_copy_sectors")
WRITES = ("global_store_sectors", "global_atomic_sectors")
BULK_READS, BULK_WRITES = "bulk_load_bytes", "bulk_store_bytes"
DRAM_BYTES = ("dram_read_bytes", "dram_write_bytes")
