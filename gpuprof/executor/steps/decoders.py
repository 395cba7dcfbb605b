# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What makes a step of which instruction."""

from collections.abc import Callable
from functools import cache

from gpuprof.executor.arithmetic.atomics import ATOMICS
from gpuprof.executor.arithmetic.instruction_table import TABLE
from gpuprof.executor.lanes.scalars import ARITHMETIC
from gpuprof.executor.program.ptx import Instruction
from gpuprof.executor.steps import (
    arithmetic_steps,
    bulk_steps,
    call_steps,
    cluster_steps,
    distributed_shared,
    matrix_steps,
    mbarrier_steps,
    memory_steps,
    mma_steps,
    system_calls,
    texture_steps,
    warp_steps,
    wgmma_steps,
    wmma_steps,
)
from gpuprof.executor.steps.coding import Coder, Step, group_step

#: What only hints, or orders what is there at once: there is nothing to do.
_HINTS = (
    *("setmaxnreg", "prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "griddepcontrol"),
    *("pmevent", "wgmma.fence"),
)
Decode = Callable[[Coder, Instruction], Step | None]
#: A decoder, and the modifiers that its instructions may have; None where it checks them itself.
_Entry = tuple[Decode, frozenset[str] | None]


def _taking(decode: Decode, *modifiers: str) -> _Entry:
    return decode, frozenset(word for words in modifiers for word in words.split())


def _checking(decode: Decode) -> _Entry:
    return decode, None


def _nothing(coder: Coder, item: Instruction) -> None:
    """Decode a hint: there is nothing to do."""


_TYPES = " ".join(ARITHMETIC)
_SPACES = "global local const param entry func shared cta cluster"
_ORDER = "weak volatile mmio relaxed acquire release acq_rel cta cluster gpu sys"
#: Caching changes no value.
_CACHING = (
    "ca cg cs cv lu wb wt nc L1 L2 evict_normal evict_unchanged evict_first evict_last no_allocate"
    " cache_hint 64B 128B 256B"
)
_VECTORS = "v2 v4 v8"
_BARRIER = "shared cta cluster gpu b64"
_GROUPS = _taking(lambda coder, item: group_step(coder, item, lambda batch: batch.copies))
_ATOMIC = _taking(
    memory_steps.atomic, _TYPES, _SPACES, _ORDER, _CACHING, _VECTORS, " ".join(ATOMICS), "noftz"
)
_LOAD = _taking(memory_steps.load, _TYPES, _SPACES, _ORDER, _CACHING, _VECTORS)
_FENCE = (
    "sc acq_rel acquire release cta cluster gpu sys gl mbarrier_init"
    " proxy alias async generic tensormap global shared"
)
_WMMA = "sync aligned row col m16n16k16 m32n8k16 m8n32k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"
_OF_WMMA = f"{_WMMA} f16 bf16 tf32 f32 f64 s32 s8 u8 s4 u4 b1"
#: What decodes instructions, by how their opcodes begin: the longest beginning counts.
_DECODERS: dict[str, _Entry] = {
    **dict.fromkeys(TABLE, _checking(arithmetic_steps.arithmetic)),
    "bar.warp": _taking(warp_steps.sync_warp, "sync"),
    "barrier.cluster": _taking(cluster_steps.arrive, "arrive release relaxed aligned"),
    "cp.async": _taking(memory_steps.async_copy, "shared cta global", _CACHING),
    **dict.fromkeys(("cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"), _GROUPS),
    "cp.async.mbarrier": _taking(mbarrier_steps.arrive_after_copies, "arrive noinc shared cta b64"),
    **dict.fromkeys(("cp.async.bulk", "cp.reduce"), _checking(bulk_steps.bulk_copy)),
    **dict.fromkeys(
        ("st.async", "red.async"),
        _taking(
            bulk_steps.send_async,
            *(_TYPES, "weak relaxed cluster shared mbarrier complete_tx bytes", _VECTORS, " ".join(ATOMICS)),
        ),
    ),
    **dict.fromkeys(_HINTS, _checking(_nothing)),
    **dict.fromkeys(("ld", "ldu"), _LOAD),
    "st": _taking(memory_steps.store, _TYPES, _SPACES, _ORDER, _CACHING, _VECTORS),
    **dict.fromkeys(("atom", "red"), _ATOMIC),
    "mov": _taking(arithmetic_steps.move, _TYPES),
    "cvta": _taking(distributed_shared.convert_address, _SPACES, "to u32 u64"),
    "isspacep": _taking(distributed_shared.is_in_space, _SPACES),
    "mapa": _taking(distributed_shared.map_address, "shared cluster u32 u64"),
    "getctarank": _taking(distributed_shared.rank_of_address, "shared cluster u32 u64"),
    "shfl": _taking(warp_steps.shuffle, "sync up down bfly idx b32"),
    "vote": _taking(warp_steps.vote, "sync all any uni ballot pred b32"),
    "match": _taking(warp_steps.match, "sync any all b32 b64"),
    "activemask": _taking(warp_steps.active_mask, "b32"),
    "redux": _taking(warp_steps.reduce, "sync add min max and or xor abs NaN b32 u32 s32 f32"),
    "elect": _taking(warp_steps.elect, "sync"),
    "mma": _checking(mma_steps.multiply),
    "mma.sp": _checking(mma_steps.multiply_sparse),
    "wmma.load": _taking(wmma_steps.load, "a b c shared cta global", _OF_WMMA),
    "wmma.mma": _taking(wmma_steps.multiply, _OF_WMMA, "satfinite rn rz rm rp xor and popc"),
    "wmma.store": _taking(wmma_steps.store, "d shared cta global", _OF_WMMA),
    "wgmma.mma_async": _checking(wgmma_steps.multiply),
    **dict.fromkeys(
        ("wgmma.commit_group", "wgmma.wait_group"),
        _taking(lambda coder, item: group_step(coder, item, lambda batch: batch.products), "sync aligned"),
    ),
    "ldmatrix": _checking(matrix_steps.load_matrix),
    "stmatrix": _checking(matrix_steps.store_matrix),
    "movmatrix": _checking(matrix_steps.move_matrix),
    **{
        f"mbarrier.{name}": _taking(decode, _BARRIER, words)
        for name, (decode, words) in mbarrier_steps.OPERATIONS.items()
    },
    **dict.fromkeys(("membar", "fence"), _taking(cluster_steps.fence, _FENCE)),
    "createpolicy": _checking(arithmetic_steps.cache_policy),
    "save_frame": _checking(call_steps.save_frame),
    "restore_frame": _checking(call_steps.restore_frame),
    "no_target": _checking(call_steps.no_target),
    "alloca": _checking(call_steps.allocate_on_stack),
    "stacksave": _checking(call_steps.save_stack),
    "stackrestore": _checking(call_steps.restore_stack),
    "vprintf": _checking(system_calls.print_formatted),
    "__assertfail": _checking(system_calls.assertion_fails),
    "malloc": _checking(system_calls.allocate),
    "free": _checking(system_calls.free),
    "tex": _checking(texture_steps.sample),
    "tld4": _checking(texture_steps.sample),
    "txq": _checking(texture_steps.query),
    "suq": _checking(texture_steps.query),
    "suld": _checking(texture_steps.load_surface),
    "sust": _checking(texture_steps.store_surface),
    "sured": _checking(texture_steps.update_surface),
}


@cache
def decoder_of(opcode: tuple[str, ...]) -> Decode | None:
    """Return what decodes instructions of an opcode; None if nothing knows it, or one of its modifiers."""
    for count in (3, 2, 1):
        if entry := _DECODERS.get(".".join(opcode[:count])):
            decode, known = entry
            return decode if known is None or known.issuperset(opcode[count:]) else None
    return None
