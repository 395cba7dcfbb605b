# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What to ask of Nsight Compute: the metrics of the table of counters, and what a kernel hides from."""

import re
from collections.abc import Mapping

from msgspec import Struct, field

from gpuprof.counters import OF_NCU, OPCODES, Trait
from gpuprof.kernels.kernel import Kernel


def requested(*, opcodes: bool = True) -> str:
    """The value of ncu's --metrics that collects the table.

    Nsight Compute changes the code to count instructions by opcode, and then counts fewer sectors and
    wavefronts of a cp.async whose bytes a predicate decides.
    """
    names = dict.fromkeys(name for row in OF_NCU for name in row.metrics)
    return ",".join(name for name in names if opcodes or name != OPCODES)


_ASYNC = re.compile(r"\bcp\.async\.c[ag]\b|__pipeline_memcpy_async|\bmemcpy_async\b")
_BULK_LOAD = re.compile(r"\bcp\.async\.bulk\.(?:tensor\.\dd\.)?shared::\w+\.global\b")
_BULK_STORE = re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.(?:tensor\.\dd\.)?global\.shared::")
#: Textures and surfaces, in PTX and in CUDA C++.
_READ_OTHERWISE = re.compile(
    r"\b(?:tex|tld4|suld)\.\w|\btex(?:1D|2D|3D|Cubemap)\w*\s*[<(]|\bsurf(?:1D|2D|3D|Cubemap)\w*read\b"
)
_WRITTEN_OTHERWISE = re.compile(r"\bsust\.\w|\bsurf(?:1D|2D|3D|Cubemap)\w*write\b")
_TENSOR = re.compile(r"\bmma\.sync\b|\bwmma\b|\bwgmma\b")
_GLOBAL_PARTS = ("requests", "sectors", "efficiency_pct", "throughput_gbps")
_SHARED_PARTS = ("wavefronts", "bank_conflicts")


def has_async_copies(kernel: Kernel) -> bool:
    """Whether the text of a kernel, or of a header of its own, copies with cp.async."""
    return any(map(_ASYNC.search, (kernel.source, *kernel.headers.values())))


class CopyMetrics(Struct, frozen=True):
    """What a kernel uses that has counters of its own, and what it moves past those of loads and stores."""

    kinds: tuple[Trait, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)


def copies_in(code: str) -> CopyMetrics:
    """Which counters cannot see all that a kernel does.

    cp.async (LDGSTS) and bulk copies move data past the counters of global and shared accesses, textures and
    surfaces past those of global ones, whose values would look complete and are not.
    """
    kinds: list[Trait] = []
    hidden: dict[str, str] = {}
    inward = [f"global_load_{part}" for part in _GLOBAL_PARTS]
    inward += [f"shared_store_{part}" for part in _SHARED_PARTS]
    outward = [f"global_store_{part}" for part in _GLOBAL_PARTS]
    outward += [f"shared_load_{part}" for part in _SHARED_PARTS]
    if _ASYNC.search(code):
        kinds.append("async")
        why = "this counter leaves out the kernel's cp.async: see the asynchronous copy counters"
        hidden |= dict.fromkeys(inward, why)
    loads, stores = _BULK_LOAD.search(code), _BULK_STORE.search(code)
    if loads or stores:
        kinds.append("bulk")
        why = "this counter cannot see the kernel's bulk copies: see the bulk byte counters"
        hidden |= dict.fromkeys(inward if loads else [], why) | dict.fromkeys(outward if stores else [], why)
    why = "this counter leaves out what goes through the kernel's textures or surfaces"
    for found, kind in ((_READ_OTHERWISE, "load"), (_WRITTEN_OTHERWISE, "store")):
        if found.search(code):
            hidden |= dict.fromkeys((f"global_{kind}_{part}" for part in _GLOBAL_PARTS), why)
    if _TENSOR.search(code):
        kinds.append("tensor")
    return CopyMetrics(tuple(kinds), hidden)
