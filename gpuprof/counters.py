# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The one table of counters: gpuprof's name, unit, words for a reader, and who counts it under which name.

Nsight Compute's metrics are named as it names them. Where architectures name the same event differently, the
names stand in order of preference, and the one that a report holds is kept beside the value.
"""

from functools import partial
from typing import Any, Literal

from msgspec import Struct

#: What a kernel may use that has counters of its own: copies that pass those of loads and stores by, and
#: tensor cores.
Trait = Literal["async", "bulk", "tensor"]

#: Instances of this metric are executed warp instructions by opcode.
OPCODES = "sass__inst_executed_per_opcode"
OCCUPANCY = "achieved_occupancy_pct"
_DURATION = "ncu_duration_us"
#: What a launch is given, not what it does.
_OF_THE_LARGEST = (OCCUPANCY, "registers_per_thread")


class CounterInfo(Struct, frozen=True):
    """One counter.

    Args:
        name: gpuprof's name, in results files and headers.
        short: Name for sentences, and for a narrow column unless `column` is one.
        metrics: Nsight Compute's names; the first that a report holds is read. Empty where it has none.
        executor: Whether the executor counts it, under this name.
        only_with: Collected only for kernels that use this.
        over: A counter that must not be 0 for this ratio to exist.
        opcode: The instance of the metric that is the counter.
    """

    name: str
    unit: str
    label: str
    short: str
    meaning: str
    metrics: tuple[str, ...] = ()
    executor: bool = False
    only_with: Trait | None = None
    over: str | None = None
    opcode: str | None = None
    column: str = ""

    @property
    def over_launches(self) -> str:
        """How the values of several launches come to one.

        `sum`; `largest`, that of the launch with the most threads; `none`; or the name of the counter by
        which their mean is weighted.
        """
        if self.name in _OF_THE_LARGEST:
            return "largest"
        if self.name.endswith("_hit_rate_pct"):
            return "none"
        if self.unit == "cycles/instruction":
            return "warp_instructions"
        if self.over or self.unit not in ("%", "GB/s"):
            return self.over or "sum"
        return _DURATION


#: Units by the last word of a name, where it is not that word itself.
_UNITS = {"pct": "%", "gbps": "GB/s"}


def _row(
    name: str,
    meaning: str,
    *,
    unit: str = "",
    label: str = "",
    short: str = "",
    metrics: str = "",
    **more: Any,
) -> CounterInfo:
    """A row; its unit is the last word of its name, its label the others too, unless they are given.

    A name in capitals stays so.
    """
    last = name.rpartition("_")[2]
    unit = unit or _UNITS.get(last, last)
    words = (name.removesuffix(f"_{last}") if last in _UNITS else name).replace("_", " ")
    label = label or words[:1].upper() + words[1:]
    abbreviated = label[1:2].isupper() or label[1:2].isdigit()
    return CounterInfo(
        *(name, unit, label),
        short or (label if abbreviated else label[:1].lower() + label[1:]),
        *(meaning, tuple(metrics.split())),
        **more,
    )


#: A row of what the executor counts too.
_executed = partial(_row, executor=True)
_ASYNC_METRICS = "smsp__sass_l1tex_{}_pipe_lsu_{}_op_ldgsts.sum"
#: The pipes of an SM by Nsight Compute's names, and what each executes.
PIPES: dict[str, str] = {
    "alu": "additions, comparisons and logic of integers, minima, moves, votes",
    "fma": "single-precision multiplications and additions, and multiplications of integers",
    "fp16": "half-precision arithmetic",
    "fp64": "double-precision arithmetic",
    "xu": "special functions, and conversions between integers and floats",
    "lsu": "loads, stores and atomics of all memory, and shuffles",
    "tex": "textures",
    "adu": "barriers, constants that are loaded, and special registers",
    "cbu": "reconvergence and exit",
    "uniform": "what is the same for all lanes of a warp",
    "tensor": "products of matrices, and half-precision multiply-adds of the form HFMA2.MMA",
}
_ROWS = (
    *(
        row
        for kind, op, used, sent in (("load", "ld", "used", "served to"), ("store", "st", "wrote", "sent by"))
        for row in (
            _executed(
                f"global_{kind}_requests",
                f"Warp-level {kind} instructions sent to the L1 cache.",
                short=f"{kind} requests",
                metrics=f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum",
            ),
            _executed(
                f"global_{kind}_sectors",
                "32-byte sectors that those requests touched.",
                short=f"{kind} sectors",
                # From the instructions' own addresses, hence exact in any number of passes; the L1 cache's
                # count of stores is up to 0.2 % off when it shares its pass with many others.
                metrics=f"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{op}.sum"
                f" l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum",
            ),
            _executed(
                f"global_{kind}_efficiency_pct",
                f"Distinct bytes that lanes {used}, as a share of the bytes of the sectors touched.",
                short=f"{kind} efficiency",
                metrics=f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct",
                over=f"global_{kind}_sectors",
                column=f"{kind.capitalize()} eff.",
            ),
            _row(
                f"global_{kind}_throughput_gbps",
                f"Bytes per second {sent} {kind}s at the L1 cache, over Nsight Compute's own duration; it is"
                " not device-memory traffic.",
                short=f"{kind} throughput",
                metrics=f"l1tex__t_bytes_pipe_lsu_mem_global_op_{op}.sum.per_second",
            ),
        )
    ),
    *(
        _executed(
            f"shared_{kind}_wavefronts",
            f"Passes through shared memory that {kind}s took; hardware adds those lost to arbitration.",
            metrics=f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
        )
        for kind, op in (("load", "ld"), ("store", "st"))
    ),
    *(
        _executed(
            f"shared_{kind}_bank_conflicts",
            f"Extra passes because lanes of a warp {wanted} different words of one bank.",
            unit="wavefronts",
            short=f"{kind} bank conflicts",
            metrics=f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
        )
        for kind, op, wanted in (("load", "ld", "wanted"), ("store", "st", "wrote"))
    ),
    _executed(
        "ffma_thread_instructions",
        "Single-precision fused multiply-adds over all threads; each is two floating-point operations.",
        unit="thread instructions",
        label="FFMA thread-instructions",
        short="FFMAs",
        metrics="smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    ),
    _executed(
        "dfma_thread_instructions",
        "Double-precision fused multiply-adds over all threads.",
        unit="thread instructions",
        label="DFMA thread-instructions",
        short="DFMAs",
        metrics="smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    ),
    _executed(
        "barriers",
        "Times a warp reached a block-wide barrier.",
        unit="warps",
        metrics=OPCODES,
        opcode="BAR",
    ),
    _executed(
        "branch_divergent_warps",
        "Branches at which lanes of one warp diverged.",
        label="Divergent branches",
        metrics="smsp__sass_branch_targets_threads_divergent.sum",
    ),
    _executed(
        "async_copy_requests",
        "Warp-level cp.async instructions (LDGSTS), from global to shared memory.",
        short="async copies",
        metrics=_ASYNC_METRICS.format("t_requests", "mem_global"),
        only_with="async",
    ),
    _executed(
        "async_copy_sectors",
        "32-byte sectors of global memory that those copies touched.",
        metrics=_ASYNC_METRICS.format("t_sectors", "mem_global"),
        only_with="async",
    ),
    _executed("async_copy_useful_bytes", "Distinct bytes that those copies moved.", short="async copy bytes"),
    _executed(
        "async_copy_shared_wavefronts",
        "Passes through shared memory that those copies took to write.",
        short="async copy wavefronts",
        metrics="smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
        only_with="async",
    ),
    _executed(
        "async_copy_shared_bank_conflicts",
        "Extra passes among them.",
        unit="wavefronts",
        label="Async copy bank conflicts",
        short="async copy conflicts",
        metrics="l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        only_with="async",
    ),
    *(
        _executed(
            f"{pipe}_instructions",
            f"Warp-level tensor-core instructions that multiply {what}.",
            unit="warp instructions",
            label=f"{pipe.upper()} instructions",
            short=f"{pipe.upper()}s",
            metrics=f"smsp__inst_executed_pipe_tensor_op_{pipe}.sum",
            only_with="tensor",
        )
        for pipe, what in (
            ("hmma", "f16, bf16 and tf32, and by sm_90 8-bit floats"),
            ("imma", "integers"),
            ("dmma", "f64"),
        )
    ),
    *(
        _executed(
            f"tensor_{kind}_operations",
            f"Multiplications and additions that tensor cores make of {kind} operands, two for each product"
            f"{added}.",
            label=f"Tensor operations on {kind}",
            metrics=f"sm__ops_path_tensor_src_{metric}.sum",
            only_with="tensor",
        )
        for kind, metric, added in (
            ("f16", "fp16", "; sm_90 makes 8-bit floats of `mma.sync` into such operands"),
            ("bf16", "bf16_dst_fp32", ""),
            ("tf32", "tf32_dst_fp32", ""),
            ("e4m3", "fp8", "; e5m2 ones are counted here too"),
            ("f64", "fp64", ""),
            ("i8", "int8", ""),
        )
    ),
    _executed("shared_load_requests", "Warp-level loads from shared memory."),
    _executed("shared_store_requests", "Warp-level stores to shared memory."),
    _executed(
        "shared_atomic_requests", "Warp-level atomic operations on shared memory.", label="Shared atomics"
    ),
    _executed(
        "global_atomic_requests", "Warp-level atomic operations on global memory.", label="Global atomics"
    ),
    _executed(
        "global_atomic_sectors",
        "Sectors that those operations passed on: each as often as its busiest address had lanes of a warp.",
        short="atomic sectors",
    ),
    _executed(
        "local_load_requests", "Loads of spilled registers and thread-local arrays.", short="local loads"
    ),
    _executed(
        "local_store_requests", "Stores of spilled registers and thread-local arrays.", short="local stores"
    ),
    _executed(
        "l1_passes",
        "Passes through an SM's L1 data path at least: the wavefronts of shared memory, one for every four"
        " sectors of a global request, and one for any other. Copies to shared memory are left out.",
        label="L1 data-path passes",
    ),
    _executed("global_load_useful_bytes", "Distinct bytes that lanes used.", short="useful bytes loaded"),
    _executed("global_store_useful_bytes", "Distinct bytes that lanes wrote.", short="useful bytes stored"),
    _row(
        "warp_instructions",
        "All that warps executed.",
        unit="warp instructions",
        metrics="smsp__inst_executed.sum",
    ),
    *(
        _row(
            f"pipe_{pipe}_instructions",
            f"Warp instructions of the pipe {pipe.upper()}: {what}.",
            unit="warp instructions",
            label=f"{pipe.upper()} pipe instructions",
            short=f"{pipe.upper()} instructions",
            metrics=f"smsp__inst_executed_pipe_{pipe}.sum sm__inst_executed_pipe_{pipe}.sum",
        )
        for pipe, what in PIPES.items()
    ),
    _row(
        "bulk_load_bytes",
        "Bytes that bulk copies brought from L2.",
        label="Bulk bytes loaded",
        metrics="l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
        only_with="bulk",
    ),
    _row(
        "bulk_store_bytes",
        "Bytes that bulk copies sent to L2.",
        label="Bulk bytes stored",
        metrics="l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
        only_with="bulk",
    ),
    _row(
        "dram_read_bytes",
        "Bytes read from device memory, by all.",
        label="DRAM bytes read",
        metrics="dram__bytes_read.sum dram__bytes_op_read.sum",
    ),
    _row(
        "dram_write_bytes",
        "Bytes written to device memory, by all.",
        label="DRAM bytes written",
        metrics="dram__bytes_write.sum dram__bytes_op_write.sum",
    ),
    _row(
        "dram_throughput_gbps",
        "Device-memory bytes per second, over Nsight Compute's own duration.",
        label="DRAM throughput",
        metrics="dram__bytes.sum.per_second",
    ),
    _row(
        "l1_hit_rate_pct",
        "Sectors found in the L1 cache.",
        metrics="l1tex__t_sector_hit_rate.pct",
    ),
    _row(
        "l2_hit_rate_pct",
        "Sectors found in the L2 cache.",
        metrics="lts__t_sector_hit_rate.pct",
    ),
    *(
        _row(
            f"sol_{name}_pct",
            f"{label} use as a share of its peak.",
            label=f"{label} speed of light",
            metrics=metric,
        )
        for name, label, metric in (
            ("compute", "SM", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("memory", "Memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("l1", "L1", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
            ("l2", "L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("dram", "DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
        )
    ),
    _row(
        OCCUPANCY,
        "Active warps as a share of the SM's limit, averaged while it was active.",
        unit="%",
        label="Achieved occupancy",
        metrics="sm__warps_active.avg.pct_of_peak_sustained_active",
    ),
    _row(
        "registers_per_thread",
        "Allocated per thread.",
        unit="registers",
        label="Registers",
        metrics="launch__registers_per_thread",
    ),
    _row(
        _DURATION,
        "The launch under Nsight Compute, caches flushed, by the GPU's clock.",
        unit="us",
        label="Nsight Compute's duration",
        short="Nsight Compute's duration",
        metrics="gpu__time_duration.sum",
    ),
    *(
        _row(
            f"stall_{name}",
            f"Cycles per issued instruction that a warp spent {text}.",
            unit="cycles/instruction",
            label=f"Stall: {name.replace('_', ' ')}",
            metrics=f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio",
        )
        for name, text in {
            "long_scoreboard": "waiting for global or local memory",
            "short_scoreboard": "waiting for shared memory or special functions",
            "barrier": "waiting at a block-wide barrier",
            "mio_throttle": "waiting for room in the shared-memory and special-function queue",
            "lg_throttle": "waiting for room in the global-memory queue",
            "tex_throttle": "waiting for room in the texture queue",
            "math_pipe_throttle": "waiting for a busy arithmetic pipe",
            "gmma": "waiting for a matrix product of its warpgroup",
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
        }.items()
    ),
)

#: By name, in the order shown.
COUNTERS: dict[str, CounterInfo] = {row.name: row for row in _ROWS}
#: Those that Nsight Compute collects, and those that the executor counts.
OF_NCU = tuple(row for row in COUNTERS.values() if row.metrics)
OF_EXECUTOR = {row.name: row for row in COUNTERS.values() if row.executor}


def describe(name: str) -> CounterInfo:
    """What is known of a counter; a foreign one is shown by its own name."""
    foreign = CounterInfo(name, "", name, name, "A counter that gpuprof does not describe.")
    return COUNTERS.get(name, foreign)
