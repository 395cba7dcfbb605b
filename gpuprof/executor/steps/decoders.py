# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What makes a step of which instruction."""

from collections.abc import Callable
from functools import cache

from gpuprof.executor.arithmetic.instruction_table import TABLE
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

#: What only hints: there is nothing to do.
_HINTS = ("setmaxnreg", "prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "griddepcontrol")
#: What decodes instructions, by how their opcodes begin: the longest beginning counts.
_DECODERS: dict[str, Callable[[Coder, Instruction], Step | None]] = {
    **dict.fromkeys(TABLE, arithmetic_steps.arithmetic),
    "bar.warp": warp_steps.sync_warp,
    "barrier.cluster": cluster_steps.arrive,
    "cp.async": memory_steps.async_copy,
    **dict.fromkeys(
        ("cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"),
        lambda coder, item: group_step(coder, item, lambda batch: batch.copies),
    ),
    "cp.async.mbarrier": mbarrier_steps.arrive_after_copies,
    **dict.fromkeys(("cp.async.bulk", "cp.reduce"), bulk_steps.bulk_copy),
    **dict.fromkeys(("st.async", "red.async"), bulk_steps.send_async),
    # Also what orders products of warp groups, whose sums are there at once.
    **dict.fromkeys((*_HINTS, "pmevent", "wgmma.fence"), lambda coder, item: None),
    **dict.fromkeys(("ld", "ldu"), memory_steps.load),
    "st": memory_steps.store,
    **dict.fromkeys(("atom", "red"), memory_steps.atomic),
    "mov": arithmetic_steps.move,
    "cvta": distributed_shared.convert_address,
    "isspacep": distributed_shared.is_in_space,
    "mapa": distributed_shared.map_address,
    "getctarank": distributed_shared.rank_of_address,
    "shfl": warp_steps.shuffle,
    "vote": warp_steps.vote,
    "match": warp_steps.match,
    "activemask": warp_steps.active_mask,
    "redux": warp_steps.reduce,
    "elect": warp_steps.elect,
    "mma": mma_steps.multiply,
    "mma.sp": mma_steps.multiply_sparse,
    "wmma.load": wmma_steps.load,
    "wmma.mma": wmma_steps.multiply,
    "wmma.store": wmma_steps.store,
    "wgmma.mma_async": wgmma_steps.multiply,
    **dict.fromkeys(
        ("wgmma.commit_group", "wgmma.wait_group"),
        lambda coder, item: group_step(coder, item, lambda batch: batch.products),
    ),
    "ldmatrix": matrix_steps.load_matrix,
    "stmatrix": matrix_steps.store_matrix,
    "movmatrix": matrix_steps.move_matrix,
    **{f"mbarrier.{name}": decode for name, decode in mbarrier_steps.OPERATIONS.items()},
    **dict.fromkeys(("membar", "fence"), cluster_steps.fence),
    "createpolicy": arithmetic_steps.cache_policy,
    "save_frame": call_steps.save_frame,
    "restore_frame": call_steps.restore_frame,
    "no_target": call_steps.no_target,
    "alloca": call_steps.allocate_on_stack,
    "stacksave": call_steps.save_stack,
    "stackrestore": call_steps.restore_stack,
    "vprintf": system_calls.print_formatted,
    "__assertfail": system_calls.assertion_fails,
    "malloc": system_calls.allocate,
    "free": system_calls.free,
    "tex": texture_steps.sample,
    "tld4": texture_steps.sample,
    "txq": texture_steps.query,
    "suq": texture_steps.query,
    "suld": texture_steps.load_surface,
    "sust": texture_steps.store_surface,
    "sured": texture_steps.update_surface,
}


@cache
def decoder_of(beginning: tuple[str, ...]) -> Callable[[Coder, Instruction], Step | None] | None:
    """Return what decodes instructions whose opcodes begin so."""
    names = (".".join(beginning[:count]) for count in (3, 2, 1))
    return next((_DECODERS[name] for name in names if name in _DECODERS), None)
