# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Rates of one case, recomputed from its times and its problem's work.

Shares are of *theoretical* peaks unless a name says otherwise, and bytes are the fewest the problem can move,
not the traffic that a kernel really caused.
"""

from msgspec import Struct

from gpuprof.analysis.counts import has_any, value
from gpuprof.analysis.memo import remembered
from gpuprof.analysis.status import on_host
from gpuprof.devices.device import CUDA_CORE_TYPES, TENSOR_TYPES, Device
from gpuprof.results import Measurement, ProblemRecord, Run, Throughput, Timing

#: Half width of the median's 95 % confidence interval, relative to the median, above which a time is noisy.
NOISE_LIMIT = 0.005


class Limit(Struct, frozen=True):
    """The highest rate that a device's theoretical peaks allow for a problem, and which peak binds."""

    gflops: float | None
    gbps: float
    name: str


class Speed(Struct, frozen=True):
    """How fast a correct case ran; the L2-cold median is the headline."""

    timing: Timing
    warm_us: float | None
    gflops: float | None
    gbps: float
    pct_of_peak_compute: float | None
    pct_of_peak_bandwidth: float | None
    pct_of_copy_bandwidth: float | None
    pct_of_limit: float | None
    limit: Limit | None
    pct_of_measured_limit: float | None = None

    @property
    def median_us(self) -> float:
        return self.timing.median_us


def tensor_source(case: Measurement) -> str | None:
    """The type of the operands that a case's tensor cores multiply most; None where none were counted."""
    counted = {source: value(case, f"tensor_{source}_operations") or 0 for source in TENSOR_TYPES}
    most = max(counted, key=counted.__getitem__)
    return most if counted[most] else None


def peak_compute(problem: ProblemRecord, device: Device, source: str | None) -> float | None:
    """The theoretical arithmetic peak that a case is held against: of tensor cores where it used them.

    A run in a type of tensor cores is held against the peak of that type, whatever they multiplied.
    """
    kind = _multiplied(problem, device, source)
    return device.peak_gflops(problem.dtype) if kind is None else device.peak_tensor_gflops(kind)


def _multiplied(problem: ProblemRecord, device: Device, source: str | None) -> str | None:
    """The operands whose tensor-core rate counts; None where that of CUDA cores does."""
    if problem.dtype in CUDA_CORE_TYPES:
        return source
    return problem.dtype if source or device.peak_tensor_gflops(problem.dtype) else None


def limit_of(problem: ProblemRecord, device: Device, source: str | None = None) -> Limit | None:
    """The roof over a problem: memory or arithmetic, whichever takes longer at its theoretical peak.

    `source` is what tensor cores multiply for it. None where the peaks are unknown.
    """
    compute = peak_compute(problem, device, source) if problem.flops else None
    kind = _multiplied(problem, device, source)
    peak = f"tensor {kind}" if kind else "compute"
    return _roof(problem, compute, device.peak_bandwidth_gbps, (peak, "bandwidth"))


def measured_limit_of(problem: ProblemRecord, device: Device, source: str | None = None) -> Limit | None:
    """The same roof of the rates that small kernels reached on this device."""
    rates = device.measured_rates
    kind = _multiplied(problem, device, source)
    part = f"tensor_{kind}" if kind else "fma_f64" if problem.dtype == "f64" else "fma_f32"
    compute = rates.get(f"{part}_gflops") if problem.flops else None
    memory = [rates[key] for key in ("dram_read_gbps", "dram_copy_gbps") if key in rates]
    names = ("compute", "bandwidth")
    return _roof(problem, compute, max(memory, default=None), names)


def _roof(
    problem: ProblemRecord, compute: float | None, bandwidth: float | None, names: tuple[str, str]
) -> Limit | None:
    """What takes longer, arithmetic or memory; None where either rate is unknown but needed."""
    if bandwidth is None or (problem.flops and compute is None):
        return None
    memory_s = problem.min_bytes / (bandwidth * 1e9)
    compute_s = problem.flops / (compute * 1e9) if compute else 0.0
    seconds = max(memory_s, compute_s)
    return Limit(
        gflops=problem.flops / seconds / 1e9 if problem.flops else None,
        gbps=problem.min_bytes / seconds / 1e9,
        name=names[0] if compute_s > memory_s else names[1],
    )


@remembered
def speed_of(run: Run, case: Measurement) -> Speed | None:
    """A case's rates, or None where it has none.

    Only a correct case of a GPU's run has a speed: nothing executed without one is ever a time. A reference
    that ran on the CPU has no share of the GPU's peaks.
    """
    if run.backend != "gpu" or case.outcome != "ok" or case.timing is None or case.timing.cold is None:
        return None
    device, problem, cold = run.devices[case.device], case.problem, case.timing.cold
    rates = Throughput.of(problem, device, cold.median_us)
    if on_host(run, case):
        return Speed(cold, None, rates.gflops, rates.gbps, None, None, None, None, None)
    source = tensor_source(case)
    if not has_any(case) and device.peak_tensor_gflops(problem.dtype):
        source = problem.dtype  # what nobody counted may have used tensor cores, as cuBLAS does for FP64
    limit = limit_of(problem, device, source)
    reached = measured_limit_of(problem, device, source)
    of_peak = rates.pct_of_peak_compute
    if source is not None:
        of_peak = _share(rates.gflops, peak_compute(problem, device, source))
    return Speed(
        timing=cold,
        warm_us=case.timing.warm.median_us if case.timing.warm else None,
        gflops=rates.gflops,
        gbps=rates.gbps,
        pct_of_peak_compute=of_peak,
        pct_of_peak_bandwidth=rates.pct_of_peak_bandwidth,
        pct_of_copy_bandwidth=_share(rates.gbps, device.measured_copy_bandwidth_gbps),
        pct_of_limit=_share(rates.gbps, limit.gbps) if limit else None,
        limit=limit,
        pct_of_measured_limit=_share(rates.gbps, reached.gbps) if reached else None,
    )


def why_no_speed(run: Run, case: Measurement) -> str:
    """Why `speed_of` is None, for the reader."""
    if run.backend == "sim":
        return "executed without a GPU: not timed"
    if run.backend == "none":
        return "compiled only: nothing ran"
    if case.outcome != "ok":
        return f"{case.outcome}: a case gets a speed only when its result is correct"
    return case.timing_reason or case.throughput_reason or "not timed"


def differ(first: Speed | None, second: Speed | None) -> bool:
    """Whether two times differ by more than their intervals and the noise threshold allow by chance.

    Identical code must not look faster or slower.
    """
    if first is None or second is None:
        return False
    # Half the interval around each time, relative; the threshold where that is unknown.
    widths = (speed.timing.ci95_rel for speed in (first, second))
    allowed = sum(max(NOISE_LIMIT if width is None else width, NOISE_LIMIT / 2) for width in widths)
    return abs(first.median_us / second.median_us - 1.0) > allowed


def is_noisy(case: Measurement) -> bool:
    """Whether a case's cold median is known to be less certain than the threshold."""
    cold = case.timing.cold if case.timing else None
    return cold is not None and cold.ci95_rel is not None and cold.ci95_rel > NOISE_LIMIT


def rate(speed: Speed, flops: bool) -> float:
    """The headline rate: GFLOP/s where `flops`, else GB/s."""
    return speed.gflops if flops and speed.gflops is not None else speed.gbps


def rate_at(problem: ProblemRecord, time_us: float, flops: bool) -> float:
    """The headline rate at another time of the same case, for the ends of an error bar."""
    return (problem.flops if flops else problem.min_bytes) / time_us / 1e3


def _share(value: float | None, whole: float | None) -> float | None:
    return 100.0 * value / whole if value is not None and whole else None
