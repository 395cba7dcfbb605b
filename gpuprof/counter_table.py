# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The counters of the results contract in plain words; kernel headers name them, and reports label them."""

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """One counter for the reader.

    Args:
        label: Full name.
        short: Name for a narrow column and for sentences.
        better: Which direction is good for the same work.
        meaning: One sentence.
    """

    label: str
    short: str
    better: Better
    meaning: str


#: In the order shown.
COUNTERS: dict[str, CounterInfo] = {
    "global_load_requests": CounterInfo(
        "Global load requests", "load requests", "lower", "Warp-level load instructions sent to memory."
    ),
    "global_load_sectors": CounterInfo(
        "Global load sectors", "load sectors", "lower", "32-byte sectors that those requests touched."
    ),
    "global_load_efficiency_pct": CounterInfo(
        "Global load efficiency",
        "load efficiency",
        "higher",
        "Distinct bytes that lanes used, as a share of the bytes of the sectors touched.",
    ),
    "global_load_throughput_gbps": CounterInfo(
        "Global load throughput",
        "load throughput",
        "neither",
        "Bytes per second served to loads, mostly by the caches; it is not device-memory traffic.",
    ),
    "global_store_requests": CounterInfo(
        "Global store requests", "store requests", "lower", "Warp-level store instructions sent to memory."
    ),
    "global_store_sectors": CounterInfo(
        "Global store sectors", "store sectors", "lower", "32-byte sectors that those requests touched."
    ),
    "global_store_efficiency_pct": CounterInfo(
        "Global store efficiency",
        "store efficiency",
        "higher",
        "Distinct bytes that lanes wrote, as a share of the bytes of the sectors touched.",
    ),
    "global_store_throughput_gbps": CounterInfo(
        "Global store throughput", "store throughput", "neither", "Bytes per second that stores sent."
    ),
    "shared_load_wavefronts": CounterInfo(
        "Shared load wavefronts",
        "shared load wavefronts",
        "lower",
        "Passes through shared memory that loads took.",
    ),
    "shared_store_wavefronts": CounterInfo(
        "Shared store wavefronts",
        "shared store wavefronts",
        "lower",
        "Passes through shared memory that stores took.",
    ),
    "shared_load_bank_conflicts": CounterInfo(
        "Shared load bank conflicts",
        "load bank conflicts",
        "lower",
        "Extra passes because lanes of a warp wanted different words of one bank.",
    ),
    "shared_store_bank_conflicts": CounterInfo(
        "Shared store bank conflicts",
        "store bank conflicts",
        "lower",
        "Extra passes because lanes of a warp wrote different words of one bank.",
    ),
    "ffma_thread_instructions": CounterInfo(
        "FFMA thread-instructions",
        "FFMAs",
        "neither",
        "Fused multiply-adds over all threads; each is two floating-point operations.",
    ),
    "dfma_thread_instructions": CounterInfo(
        "DFMA thread-instructions", "DFMAs", "neither", "Fused multiply-adds in double precision."
    ),
    "barriers": CounterInfo("Barriers", "barriers", "lower", "Times a warp reached a block-wide barrier."),
    "branch_divergent_warps": CounterInfo(
        "Divergent branches", "divergent branches", "lower", "Branches at which lanes of one warp parted."
    ),
    "async_copy_requests": CounterInfo(
        "Async copy requests", "async copies", "lower", "Warp-level copies from global to shared memory."
    ),
    "async_copy_sectors": CounterInfo(
        "Async copy sectors", "async copy sectors", "lower", "Global sectors that those copies touched."
    ),
    "async_copy_useful_bytes": CounterInfo(
        "Async copy useful bytes", "async copy bytes", "neither", "Distinct bytes that those copies moved."
    ),
    "async_copy_shared_wavefronts": CounterInfo(
        "Async copy shared wavefronts",
        "async copy wavefronts",
        "lower",
        "Passes through shared memory that those copies took.",
    ),
    "async_copy_shared_bank_conflicts": CounterInfo(
        "Async copy bank conflicts",
        "async copy conflicts",
        "lower",
        "Extra passes among them.",
    ),
    "shared_load_requests": CounterInfo(
        "Shared load requests", "shared load requests", "lower", "Warp-level loads from shared memory."
    ),
    "shared_store_requests": CounterInfo(
        "Shared store requests", "shared store requests", "lower", "Warp-level stores to shared memory."
    ),
    "shared_atomic_requests": CounterInfo(
        "Shared atomics", "shared atomics", "lower", "Warp-level atomic operations on shared memory."
    ),
    "global_atomic_requests": CounterInfo(
        "Global atomics", "global atomics", "lower", "Warp-level atomic operations on global memory."
    ),
    "global_atomic_sectors": CounterInfo(
        "Global atomic sectors", "atomic sectors", "lower", "Sectors that those operations touched."
    ),
    "local_load_requests": CounterInfo(
        "Local load requests", "local loads", "lower", "Loads of spilled registers and thread-local arrays."
    ),
    "local_store_requests": CounterInfo(
        "Local store requests",
        "local stores",
        "lower",
        "Stores of spilled registers and thread-local arrays.",
    ),
    "global_load_useful_bytes": CounterInfo(
        "Global load useful bytes", "useful bytes loaded", "neither", "Distinct bytes that lanes used."
    ),
    "global_store_useful_bytes": CounterInfo(
        "Global store useful bytes", "useful bytes stored", "neither", "Distinct bytes that lanes wrote."
    ),
}
