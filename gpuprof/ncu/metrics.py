# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The one table of counters: gpuprof's name, Nsight Compute's metric, unit, label and meaning.

Every metric is named as Nsight Compute names it. Where architectures name the same event differently, the
names stand in order of preference and the one that the report holds is kept beside the value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Instances of this metric are executed warp instructions by opcode.
OPCODES = "sass__inst_executed_per_opcode"
OCCUPANCY = "achieved_occupancy_pct"


@dataclass(frozen=True, slots=True)
class Metric:
    """One counter.

    Args:
        name: gpuprof's name.
        metrics: Nsight Compute's names; the first that a report holds is read.
        unit: The unit shown.
        label: Full name for a reader.
        meaning: One sentence.
        only_with: Shown only for kernels with this kind of copy: `async` or `bulk`.
        over: A counter that must not be 0 for this ratio to exist.
        opcode: The instance of the metric that is the counter.
    """

    name: str
    metrics: tuple[str, ...]
    unit: str
    label: str
    meaning: str
    only_with: str | None = None
    over: str | None = None
    opcode: str | None = None


def _m(name: str, metrics: str, unit: str, label: str, meaning: str, **more: str) -> Metric:
    return Metric(name, tuple(metrics.split()), unit, label, meaning, **more)


_GLOBAL = tuple(
    metric
    for kind, op, verb in (("load", "ld", "read"), ("store", "st", "wrote"))
    for metric in (
        _m(
            f"global_{kind}_requests",
            f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum",
            "requests",
            f"Global {kind} requests",
            f"Warp-level {kind} instructions sent to the L1 cache.",
        ),
        _m(
            f"global_{kind}_sectors",
            # From the instructions' own addresses, hence exact in any number of passes; the L1 cache's count
            # of stores is up to 0.2 % off when it shares its pass with many others.
            f"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{op}.sum"
            f" l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum",
            "sectors",
            f"Global {kind} sectors",
            "32-byte sectors that those requests touched.",
        ),
        _m(
            f"global_{kind}_efficiency_pct",
            f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct",
            "%",
            f"Global {kind} efficiency",
            f"Distinct bytes that lanes {verb}, as a share of the bytes of the sectors touched.",
            over=f"global_{kind}_sectors",
        ),
        _m(
            f"global_{kind}_throughput_gbps",
            f"l1tex__t_bytes_pipe_lsu_mem_global_op_{op}.sum.per_second",
            "GB/s",
            f"Global {kind} throughput",
            f"Bytes per second of {kind}s at the L1 cache, over Nsight Compute's own duration.",
        ),
    )
)
_SHARED = tuple(
    metric
    for kind, op in (("load", "ld"), ("store", "st"))
    for metric in (
        _m(
            f"shared_{kind}_wavefronts",
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            "wavefronts",
            f"Shared {kind} wavefronts",
            f"Passes through shared memory that {kind}s took, arbitration included.",
        ),
        _m(
            f"shared_{kind}_bank_conflicts",
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
            "wavefronts",
            f"Shared {kind} bank conflicts",
            "Extra passes because lanes of a warp wanted different words of one bank.",
        ),
    )
)
_WORK = (
    _m(
        "ffma_thread_instructions",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "instructions",
        "FFMA thread-instructions",
        "Single-precision fused multiply-adds over all threads.",
    ),
    _m(
        "dfma_thread_instructions",
        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "instructions",
        "DFMA thread-instructions",
        "Double-precision fused multiply-adds over all threads.",
    ),
    _m("barriers", OPCODES, "warps", "Barriers", "Times a warp executed a block-wide barrier.", opcode="BAR"),
    _m(
        "branch_divergent_warps",
        "smsp__sass_branch_targets_threads_divergent.sum",
        "warps",
        "Divergent branches",
        "Branches at which lanes of one warp parted.",
    ),
    _m("warp_instructions", "smsp__inst_executed.sum", "instructions", "Warp instructions", "All of them."),
)
_MEMORY = (
    _m("dram_read_bytes", "dram__bytes_read.sum dram__bytes_op_read.sum", "B", "DRAM bytes read", "By all."),
    _m(
        "dram_write_bytes",
        "dram__bytes_write.sum dram__bytes_op_write.sum",
        "B",
        "DRAM bytes written",
        "By all.",
    ),
    _m(
        "dram_throughput_gbps",
        "dram__bytes.sum.per_second",
        "GB/s",
        "DRAM throughput",
        "Device-memory bytes per second, over Nsight Compute's own duration.",
    ),
    _m(
        "l1_hit_rate_pct",
        "l1tex__t_sector_hit_rate.pct",
        "%",
        "L1 hit rate",
        "Sectors found in the L1 cache.",
    ),
    _m("l2_hit_rate_pct", "lts__t_sector_hit_rate.pct", "%", "L2 hit rate", "Sectors found in the L2 cache."),
)
_ASYNC_METRICS = "smsp__sass_l1tex_{}_pipe_lsu_{}_op_ldgsts.sum"
_COPIES = (
    _m(
        "async_copy_requests",
        _ASYNC_METRICS.format("t_requests", "mem_global"),
        "requests",
        "Asynchronous copy requests",
        "Warp-level cp.async instructions (LDGSTS).",
        only_with="async",
    ),
    _m(
        "async_copy_sectors",
        _ASYNC_METRICS.format("t_sectors", "mem_global"),
        "sectors",
        "Asynchronous copy sectors",
        "32-byte sectors that cp.async touched.",
        only_with="async",
    ),
    _m(
        "async_copy_shared_wavefronts",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
        "wavefronts",
        "Asynchronous copy wavefronts",
        "Passes through shared memory that cp.async took to write.",
        only_with="async",
    ),
    _m(
        "async_copy_shared_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        "wavefronts",
        "Asynchronous copy bank conflicts",
        "Extra passes through shared memory that cp.async took.",
        only_with="async",
    ),
    _m(
        "bulk_load_bytes",
        "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
        "B",
        "Bulk bytes loaded",
        "Bytes that bulk copies brought from L2.",
        only_with="bulk",
    ),
    _m(
        "bulk_store_bytes",
        "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
        "B",
        "Bulk bytes stored",
        "Bytes that bulk copies sent to L2.",
        only_with="bulk",
    ),
)
_SPEED_OF_LIGHT = tuple(
    _m(f"sol_{name}_pct", metric, "%", f"{label} speed of light", f"{label} use as a share of its peak.")
    for name, label, metric in (
        ("compute", "SM", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        ("memory", "Memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        ("l1", "L1", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
        ("l2", "L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
        ("dram", "DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    )
)
_STALLS = {
    "long_scoreboard": "waiting for global or local memory",
    "short_scoreboard": "waiting for shared memory or special functions",
    "barrier": "waiting at a block-wide barrier",
    "mio_throttle": "waiting for room in the shared-memory and special-function queue",
    "lg_throttle": "waiting for room in the global-memory queue",
    "tex_throttle": "waiting for room in the texture queue",
    "math_pipe_throttle": "waiting for a busy arithmetic pipe",
    "wait": "waiting out a fixed latency",
    "not_selected": "ready, while another warp was issued",
    "selected": "issuing",
    "dispatch_stall": "held back by the dispatcher",
    "no_instruction": "waiting for an instruction fetch",
    "branch_resolving": "waiting for a branch's target",
    "drain": "waiting for stores to leave before exit",
    "membar": "waiting at a memory barrier",
    "imc_miss": "waiting for an immediate constant",
    "sleeping": "asleep",
    "misc": "stalled for another reason",
}
_STALL_METRICS = tuple(
    _m(
        f"stall_{name}",
        f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio",
        "cycles/instruction",
        f"Stall: {name.replace('_', ' ')}",
        f"Cycles per issued instruction that a warp spent {text}.",
    )
    for name, text in _STALLS.items()
)
_LAUNCH = (
    _m(
        OCCUPANCY,
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        "Achieved occupancy",
        "Active warps as a share of the SM's limit, averaged while it was active.",
    ),
    _m(
        "registers_per_thread",
        "launch__registers_per_thread",
        "registers",
        "Registers",
        "Allocated per thread.",
    ),
    _m(
        "ncu_duration_us",
        "gpu__time_duration.sum",
        "us",
        "Nsight Compute's duration",
        "The launch under Nsight Compute, caches flushed; not comparable with gpuprof's timing.",
    ),
)

#: In the order shown.
METRICS: tuple[Metric, ...] = (
    *_GLOBAL,
    *_SHARED,
    *_WORK,
    *_COPIES,
    *_MEMORY,
    *_SPEED_OF_LIGHT,
    *_LAUNCH,
    *_STALL_METRICS,
)
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}


def requested() -> str:
    """The value of ncu's --metrics that collects the table."""
    return ",".join(dict.fromkeys(name for metric in METRICS for name in metric.metrics))


_ASYNC = re.compile(r"\bcp\.async\.c[ag]\b|__pipeline_memcpy_async|\bmemcpy_async\b")
_BULK_LOAD = re.compile(r"\bcp\.async\.bulk\.(?:tensor\.\dd\.)?shared::\w+\.global\b")
_BULK_STORE = re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.(?:tensor\.\dd\.)?global\.shared::")
_GLOBAL_PARTS = ("requests", "sectors", "efficiency_pct", "throughput_gbps")
_SHARED_PARTS = ("wavefronts", "bank_conflicts")


@dataclass(frozen=True, slots=True)
class Copies:
    """What a kernel moves past the counters of loads and stores.

    Args:
        kinds: `async`, `bulk`, both or none.
        hidden: Why a counter would be incomplete, by its name.
    """

    kinds: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)


def copies_in(code: str) -> Copies:
    """Which counters cannot see all that a kernel does.

    cp.async (LDGSTS) and bulk copies move data past the counters of global and shared accesses, whose values
    would look complete and are not.

    Args:
        code: The kernel's PTX, or its source.
    """
    kinds: list[str] = []
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
    return Copies(tuple(kinds), hidden)
