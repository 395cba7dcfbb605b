# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs with realistic figures, one for each situation a report must show; all but one are invented."""

import random
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from statistics import quantiles

import problem_support
from plain_runs import plain_run

from gpuprof.bounds import with_bounds
from gpuprof.devices.cards import load_card
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import (
    BackendName,
    Choice,
    Clocks,
    ClockState,
    Counter,
    KernelRecord,
    Measurement,
    Occupancy,
    ProblemRecord,
    PublishedFigure,
    Resources,
    Run,
    SourceLine,
    Timing,
    TimingPair,
    Verification,
)


def Gemm(*arguments: object, **keywords: object) -> ProblemRecord:
    """A matrix product as a results file keeps it."""
    return problem_support.Gemm(*arguments, **keywords).record()


def Transpose(*arguments: object, **keywords: object) -> ProblemRecord:
    """A transpose as a results file keeps it."""
    return problem_support.Transpose(*arguments, **keywords).record()


DEVICE = replace(
    load_card("h200"),
    memory_bus_width_bits=6144,
    memory_bytes=150_000_000_000,
    peak_bandwidth_gbps=4916.7,
    peak_fp32_gflops=66_908.2,
    peak_fp64_gflops=33_454.1,
    source="driver",
    measured_copy_bandwidth_gbps=4103.0,
)

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202eevil\u202c é 核 \x1b[31m"

NAIVE_SOURCE = """// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "One thread per element"
problem = "gemm"
*/

extern "C" __global__ void naive(int M, int N, int K, real alpha, const real *A, const real *B, real *C)
{
    // Coordinates: x walks columns.
    const int col = blockIdx.x * blockDim.x + threadIdx.x; // 0 .. N-1
    const int row = blockIdx.y * blockDim.y + threadIdx.y; // 0 .. M-1
    if (row >= M || col >= N)
        return;

    real sum = 0;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + col];

    C[(size_t)row * N + col] = alpha * sum;
}
"""


def record(kernel: str, operation: str, rung: float, study: str = "A", **fields: object) -> KernelRecord:
    """A kernel's record with plausible texts."""
    base = KernelRecord(
        id=kernel,
        operation=operation,
        title=f"The kernel {kernel}",
        rung=rung,
        idea=f"The one idea of {kernel}.",
        change="What changed from the rung before.",
        bottleneck="Load instructions.",
        study=study,
        aliases=(),
        reference="",
        source=NAIVE_SOURCE.replace("naive", kernel),
        source_hash="0" * 64,
        file_name=f"{kernel}.cu",
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def timing(median_us: float, noise: float = 0.002, count: int = 60, dropped: int = 0) -> Timing:
    """Samples scattered around a median, always the same for the same arguments."""
    spread = random.Random(repr((median_us, noise)))
    samples = tuple(round(median_us * (1 + noise * spread.gauss(0, 1)), 4) for _ in range(count))
    cuts = quantiles(samples, n=20)
    return Timing(median_us, cuts[0], cuts[-1], 1.25 * noise / count**0.5 * 2, (samples,), dropped)


CLOCKS = Clocks(
    before=ClockState(1980, 3201, 41, 310.0, ()),
    after=ClockState(1965, 3201, 48, 560.0, ("software power cap",)),
)


def counters(
    source: str = "sim", blocks: tuple[int, int] | None = None, **values: float
) -> dict[str, Counter]:
    """Counters of one source."""
    ran, total = blocks or (None, None)
    return {
        name: Counter(
            value=value,
            unit="%" if name.endswith("_pct") else name.rsplit("_", 1)[-1],
            source="ncu" if source == "ncu" else "sim",
            metric=f"smsp__{name}.sum" if source == "ncu" else None,
            sampled_blocks=ran,
            total_blocks=total,
        )
        for name, value in values.items()
    }


def gemm_case(
    kernel: str,
    problem: ProblemRecord,
    cold_us: float,
    block: tuple[int, int, int] = (32, 32, 1),
    registers: int = 40,
    shared: int = 0,
    noise: float = 0.002,
) -> Measurement:
    """A correct, timed case, of a GEMM unless the problem is another's."""
    rows, columns = list(problem.sizes.values())[:2]
    return Measurement(
        kernel=kernel,
        problem=problem,
        block=block,
        grid=(-(-columns // 32), -(-rows // 32), 1),
        params={},
        outcome="ok",
        source_hash="0" * 64,
        verification=Verification(3.1e-5, 4.2e-7, 3.07e-5, rows * columns),
        timing=TimingPair(timing(cold_us, noise), timing(cold_us * 0.94, noise)),
        resources=Resources(registers, 0, shared, 0),
        occupancy=Occupancy(100.0, "threads", 2),
        clocks=CLOCKS,
        counters_reason="Nsight Compute was not asked for",
        lines_reason="Nsight Compute was not asked for",
    )


def ended(case: Measurement, outcome: str, reason: str, **fields: object) -> Measurement:
    """The case, had it brought nothing home but what the compiler says."""
    why = dict.fromkeys(("timing_reason", "occupancy_reason", "counters_reason"), "the case ended")
    none = dict.fromkeys(("verification", "timing", "occupancy", "clocks"))
    return replace(case, outcome=outcome, reason=reason, **{**why, **none, **fields})  # type: ignore[arg-type]


def run(backend: BackendName, kernels: list[KernelRecord], cases: list[Measurement], **fields: object) -> Run:
    """A complete run."""
    environment = {"driver": "580.95.05", "nvrtc": "13.0.88", "python": "3.11.9"}
    given = {"backend": backend, "environment": environment, "devices": (DEVICE,), **fields}
    return plain_run(kernels, [with_bounds(case, DEVICE) for case in cases], **given)


def gemm_run() -> Run:
    """Study A's ladder at two sizes on a GPU, with the panel kernel over the limit at 4096."""
    small, large = Gemm(128, 128, 128), Gemm(4096, 4096, 4096)
    kernels = [
        record(
            "naive",
            "gemm",
            10,
            aliases=("gemmOnGPU2D",),
            published=(
                PublishedFigure("128", 0.028809),
                PublishedFigure("4096", 95.804932, "global load efficiency 82.5 %"),
            ),
        ),
        record("smem_panel", "gemm", 20),
        record("smem_tiled", "gemm", 30),
        record("reg_2x1", "gemm", 40, after="smem_tiled", moves={"shared_load_wavefronts": "falls"}),
        record("cublas", "gemm", 1000, study="", is_reference=True, source="", title="Vendor library"),
    ]
    cases = [
        gemm_case("naive", small, 17.0, noise=0.03),
        gemm_case("smem_panel", small, 15.2, shared=32_768, noise=0.008),
        gemm_case("smem_tiled", small, 11.3, shared=8192),
        gemm_case("reg_2x1", small, 7.9, (32, 16, 1), registers=38, shared=8192),
        gemm_case("cublas", small, 6.1),
        gemm_case("naive", large, 31_900.0),
        ended(
            gemm_case("smem_panel", large, 1.0, shared=1_048_576),
            "failed",
            "The block needs 1,048,576 bytes of shared memory; NVIDIA H200 offers 232,448"
            " (CUDA_ERROR_INVALID_VALUE).",
            over_limit=True,
        ),
        gemm_case("smem_tiled", large, 22_900.0, shared=8192),
        gemm_case("reg_2x1", large, 9910.0, (32, 16, 1), registers=38, shared=8192),
        gemm_case("cublas", large, 2650.0),
    ]
    return run("gpu", kernels, cases)


TRANSPOSES: Mapping[str, tuple[float, str]] = {
    "copy_row": (11.9, "copy"),
    "copy_col": (21.5, "copy"),
    "naive_row": (25.3, "transpose"),
    "naive_col": (17.2, "transpose"),
    "diagonal_col": (16.4, "transpose"),
}


def transpose_run() -> Run:
    """Transposes on a GPU, one of them over nine blocks and one case incorrect."""
    kernels, cases = [], []
    for rung, (kernel, (cold_us, result)) in enumerate(TRANSPOSES.items(), 1):
        kernels.append(record(kernel, "transpose", rung * 10, study="E"))
        problem = Transpose(2048, 2048, result=result)
        for x in (8, 16, 32):
            for y in (8, 16, 32):
                if kernel != "naive_col" and (x, y) != (16, 16):
                    continue
                slowness = 1 + 0.09 * abs(x - 8) / 8 + 0.05 * abs(y - 32) / 8
                case = gemm_case(kernel, problem, cold_us * slowness, (x, y, 1), registers=16)
                cases.append(
                    replace(
                        case,
                        grid=(2048 // x, 2048 // y, 1),
                        verification=Verification(0.0, 0.0, 0.0, 2048 * 2048),
                        timing=replace(case.timing, warm=timing(9.0 * slowness)),
                        occupancy=Occupancy(100.0, "threads", 8),
                        counters=counters(
                            "ncu",
                            global_load_sectors=524_288.0 * (4 if kernel.endswith("col") else 1),
                            global_load_requests=131_072.0,
                            global_load_efficiency_pct=25.0 if kernel.endswith("col") else 100.0,
                            global_store_sectors=524_288.0 * (1 if kernel == "copy_row" else 4),
                            global_store_efficiency_pct=100.0 if kernel == "copy_row" else 25.0,
                        ),
                    )
                )
    cases[3] = replace(
        cases[3],
        outcome="incorrect",
        reason="1024 of 4194304 elements are wrong.",
        verification=Verification(0.7, 0.7, 0.0, 2048 * 2048, 1024, "out[3, 5] is 0.25, expected 0.5"),
        timing=None,
        timing_reason="a wrong kernel gets no speed",
    )
    return run("gpu", kernels, cases, argv=("gpuprof", "transpose", "--all"))


def sim_run() -> Run:
    """Study A executed without a GPU, with counters, and lines for one kernel."""
    problem = Gemm(128, 128, 128)
    reason = "executed without a GPU: not timed"
    figures = {
        "naive": counters(
            blocks=(4, 16),
            global_load_requests=131_072,
            global_load_sectors=327_680,
            global_load_efficiency_pct=82.5,
            global_store_requests=512,
            global_store_sectors=2048,
            global_store_efficiency_pct=100.0,
            ffma_thread_instructions=2_097_152,
        ),
        "smem_tiled": counters(
            global_load_requests=4096,
            global_load_sectors=16_384,
            global_load_efficiency_pct=100.0,
            global_store_requests=512,
            global_store_sectors=2048,
            global_store_efficiency_pct=100.0,
            shared_load_wavefronts=131_072,
            shared_store_wavefronts=4096,
            shared_load_bank_conflicts=65_536,
            shared_store_bank_conflicts=0,
            ffma_thread_instructions=2_097_152,
            barriers=4096,
        ),
    }
    cases = [
        replace(
            gemm_case(kernel, problem, 1.0, shared=8192 if kernel == "smem_tiled" else 0),
            verification=Verification(2.0e-6, 3.0e-7, 5.6e-6, 128 * 128),
            timing=None,
            timing_reason=reason,
            throughput_reason=reason,
            clocks=None,
            clocks_reason=reason,
            counters=held,
            counters_reason=None,
            lines_reason=None if kernel == "naive" else "not recorded",
            lines=(
                SourceLine(18, {"global_load_requests": 131_072, "global_load_sectors": 327_680}),
                SourceLine(20, {"global_store_requests": 512, "global_store_sectors": 2048}),
            )
            if kernel == "naive"
            else None,
        )
        for kernel, held in figures.items()
    ]
    tiled = record(
        "smem_tiled",
        "gemm",
        30,
        after="naive",
        moves={
            "global_load_requests": "falls",
            "global_load_efficiency_pct": "rises",
            "shared_bytes": "rises",
            "registers_per_thread": "rises",
            "async_copy_requests": "stays",
        },
    )
    kernels = [record("naive", "gemm", 10), tiled]
    return run(
        "sim",
        kernels,
        cases,
        backend_reason="no CUDA driver was found",
        devices=(replace(DEVICE, source="table"),),
    )


def compiled_run() -> Run:
    """The same ladder compiled only."""
    why = "no device was asked for"
    cases = [
        replace(
            case,
            outcome="skipped",
            reason=f"Compiled, not run: {why}.",
            verification=None,
            verification_reason=why,
            counters={},
            counters_reason=why,
            lines=None,
            lines_reason=why,
            bounds={},
            bound_by=None,
            bounds_reason=why,
        )
        for case in sim_run().cases
    ]
    return replace(sim_run(), backend="none", backend_reason=why, cases=tuple(cases))


def empty_run() -> Run:
    """A run stopped before its first case."""
    return run("gpu", [], [], complete=False)


def all_failed_run() -> Run:
    """Every case ended in another way, none of them well."""
    base = gemm_case("naive", Gemm(512, 1024, 256), 50.0)
    bare = replace(base, timing=None, verification=None, resources=None, occupancy=None, clocks=None)
    cases = [
        replace(bare, kernel="naive", outcome="failed", reason="NVRTC: error: identifier x is undefined."),
        replace(bare, kernel="smem_tiled", outcome="timeout", reason="No answer within 30 s."),
        replace(bare, kernel="reg_2x1", outcome="skipped", reason="M must be a multiple of 32.", grid=None),
        replace(bare, kernel="wrong", outcome="incorrect", reason="All elements are NaN."),
    ]
    kernels = [record(case.kernel, "gemm", 10 * index) for index, case in enumerate(cases, 1)]
    return run("gpu", kernels, cases)


def hostile_run() -> Run:
    """Strings that try to break out of every place they are shown in."""
    small = Gemm(64, 64, 64)
    case = replace(gemm_case("k", small, 9.0), kernel=HOSTILE, compile_options=(HOSTILE,), log=HOSTILE)
    failed = replace(
        case, outcome="failed", reason=HOSTILE, timing=None, timing_reason=HOSTILE, params={HOSTILE: 1}
    )
    kernel = record("k", "gemm", 10, study=HOSTILE)
    kernel = replace(
        kernel,
        id=HOSTILE,
        title=HOSTILE,
        idea=HOSTILE,
        change=HOSTILE,
        bottleneck=HOSTILE,
        aliases=(HOSTILE,),
        reference=HOSTILE,
        source=f'// {HOSTILE}\n/* {HOSTILE}\n*/ "{HOSTILE}\n',
        file_name=HOSTILE,
        published=(PublishedFigure(HOSTILE, 1.0, HOSTILE),),
    )
    return run(
        "gpu",
        [kernel],
        [case, failed],
        argv=(HOSTILE,),
        environment={HOSTILE: HOSTILE},
        backend_reason=HOSTILE,
        devices=(replace(DEVICE, name=HOSTILE),),
    )


def reference_case(kernel: str, problem: ProblemRecord, cold_us: float) -> Measurement:
    """A library's correct, timed case: no launch of its own, no resources."""
    why = "a library chooses its own kernels"
    return replace(
        gemm_case(kernel, problem, cold_us, (1, 1, 1), noise=0.02),
        grid=None,
        source_hash="",
        verification=Verification(0.0, 0.0, 3.07e-5, 1024),
        timing=TimingPair(timing(cold_us, 0.02), None),
        resources=None,
        resources_reason=why,
        occupancy=None,
        occupancy_reason=why,
        clocks=None if kernel == "numpy" else CLOCKS,
        clocks_reason="it ran on the CPU" if kernel == "numpy" else None,
        counters_reason=why,
        lines_reason=why,
        is_reference=True,
    )


def reference_record(kernel: str, operation: str, title: str) -> KernelRecord:
    """A reference's record: a title that explains itself, and no source."""
    texts = {"change": "", "bottleneck": "", "source": "", "source_hash": "", "file_name": ""}
    on_host = kernel == "numpy"
    return record(
        kernel, operation, 10_000, study="", title=title, is_reference=True, on_host=on_host, **texts
    )


def referenced_run() -> Run:
    """A vendor's library, a copy and the CPU beside two ladders."""
    gemm, copied = Gemm(4096, 4096, 4096), Transpose(2048, 2048, result="copy")
    moved = Transpose(2048, 2048)
    kernels = [
        record("naive", "gemm", 10),
        record("reg_2x1", "gemm", 40),
        reference_record("cublas", "gemm", "cuBLAS GEMM"),
        reference_record("numpy", "gemm", "NumPy on the CPU"),
        record("copy_row", "transpose", 10, study="E"),
        record("naive_col", "transpose", 20, study="E"),
        reference_record("cublas_geam", "transpose", "cuBLAS geam"),
        reference_record("device_copy", "transpose", "Device-to-device copy"),
    ]
    row = gemm_case("naive_col", gemm, 17.2, (16, 16, 1), registers=12)
    cases = [
        gemm_case("naive", gemm, 23_900.0),
        gemm_case("reg_2x1", gemm, 9920.0, (32, 16, 1)),
        reference_case("cublas", gemm, 2650.0),
        reference_case("numpy", gemm, 181_000.0),
        replace(row, kernel="copy_row", problem=copied),
        replace(row, problem=moved),
        reference_case("cublas_geam", moved, 15.1),
        reference_case("device_copy", copied, 9.4),
    ]
    return run("gpu", kernels, cases)


def chosen_run() -> Run:
    """A kernel that chooses: one of the run's, one that is not in the run, and none."""
    small, large, ragged = Gemm(128, 128, 128), Gemm(4096, 4096, 4096), Gemm(4095, 4095, 4095)
    choices = (
        Choice("reg_2x1", "M * N <= 256 * sm_count"),
        Choice("float4_4x4", "N % 4 == 0", "Four elements a load."),
    )
    kernels = [
        record("naive", "gemm", 10),
        record("reg_2x1", "gemm", 40),
        record("by_size", "gemm", 700, study="", choices=choices, source=NAIVE_SOURCE.partition("extern")[0]),
        record("float4_4x4", "gemm", 70),
    ]
    other = gemm_case("by_size", large, 4420.0, (16, 16, 1), registers=52)
    none = "by_size names no kernel for this size on this device."
    cases = [
        gemm_case("naive", small, 17.0),
        gemm_case("reg_2x1", small, 7.9, (32, 16, 1), registers=38, shared=8192),
        replace(gemm_case("by_size", small, 7.91, (32, 16, 1), 38, 8192), chosen="reg_2x1"),
        gemm_case("naive", large, 31_900.0),
        replace(other, chosen="float4_4x4", params={"unroll": 2}, lines_reason="they are float4_4x4's"),
        gemm_case("naive", ragged, 31_900.0),
        ended(gemm_case("by_size", ragged, 1.0, (1, 1, 1)), "skipped", none, grid=None, source_hash=""),
    ]
    return run("gpu", kernels, cases)


@cache
def counted_run() -> Run:
    """Study A at 4096 on an H200, with Nsight Compute's counters and the executor's: a real results file."""
    held = read_run(Path(__file__).parent / "fixtures" / "gemm-counted.json")
    return replace(held, cases=tuple(with_bounds(case, held.device) for case in held.cases))


#: Cycles of all SMs in a millisecond.
CYCLES = 132 * 1980e3
#: Ten milliseconds of passes, eight of which are conflicts; one millisecond of FMAs.
CONFLICTS = {
    "l1_passes": 10 * CYCLES,
    "shared_load_bank_conflicts": 8 * CYCLES,
    "shared_load_wavefronts": 9 * CYCLES,
    "ffma_thread_instructions": 128 * CYCLES,
}


def bounded(values: Mapping[str, float], problem: ProblemRecord, **parts: object) -> Measurement:
    """A case with counts, and the bounds that follow from them."""
    held = {name: Counter(value, "", "sim") for name, value in values.items()}
    bare = Measurement("k", problem, (32, 32, 1), (1320, 1, 1), {}, "ok", "x", counters=held)
    return with_bounds(replace(bare, **parts), DEVICE)  # type: ignore[arg-type]


def at(case: Measurement, median_us: float) -> Measurement:
    """The case with one sample of that time."""
    cold = Timing(median_us, median_us, median_us, None, ((median_us,),), 1)
    return replace(case, timing=TimingPair(cold, None))


def tuned_run() -> Run:
    """Kernels with sets of parameters: three that matter at two sizes, one at one size, one wrong set."""
    cases = []
    for edge, scale in ((1024, 40.0), (4096, 2600.0)):
        problem = Gemm(edge, edge, edge)
        for index, (bm, bn, stages) in enumerate(product((64, 128), (32, 64, 128), (1, 2))):
            params = {"BM": bm, "BN": bn, "BK": 8, "STAGES": stages}
            time = scale * (1 + 0.09 * (index * 5 % 12))
            cases.append(replace(gemm_case("mine", problem, time, (256, 1, 1)), params=params))
        for unroll in (1, 2, 4, 8):
            case = gemm_case("other", problem, scale * (2 + unroll / 40), (32, 8, 1))
            cases.append(replace(case, params={"UNROLL": unroll}))
    wrong = replace(cases[3], outcome="incorrect", reason="5 of 64 elements are wrong.", timing=None)
    kernels = [
        record("mine", "gemm", 10, study="", parameters={"BM": 128, "BN": 128, "BK": 8, "STAGES": 1}),
        record("other", "gemm", 20, study="", parameters={"UNROLL": 16}),
    ]
    return run("gpu", kernels, [*cases[:3], wrong, *cases[4:]])


RUNS = {
    "gemm": gemm_run,
    "transpose": transpose_run,
    "referenced": referenced_run,
    "chosen": chosen_run,
    "counted": counted_run,
    "sim": sim_run,
    "compiled": compiled_run,
    "empty": empty_run,
    "all_failed": all_failed_run,
    "hostile": hostile_run,
    "tuned": tuned_run,
}
