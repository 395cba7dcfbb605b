# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rates that are measured once on each GPU: their names and meanings, and the part that each is of."""

from collections.abc import Mapping

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.devices.rates import architecture_latencies, sm_rates

_LANES = 32
_PASS_BYTES = 128
_LATENCY = "_latency_cycles"
#: Floating-point operations of one multiply-add of a whole warp.
_FLOPS = 2 * _LANES


class RateInfo(Struct, frozen=True):
    """One measured rate."""

    label: str
    unit: str
    meaning: str


#: Operands of tensor cores whose rate is measured, where a card has `wgmma`.
TENSOR_TYPES_MEASURED = ("f16", "bf16", "tf32", "e4m3")
_ROWS = (
    ("fma_f32_gflops", "FMA f32", "GFLOP/s", "Chains of single-precision multiply-adds in registers."),
    ("fma_f64_gflops", "FMA f64", "GFLOP/s", "The same in double precision."),
    *(
        (f"tensor_{kind}_gflops", f"Tensor cores {kind}", "GFLOP/s", f"Products of random {kind} matrices.")
        for kind in TENSOR_TYPES_MEASURED
    ),
    ("alu_gips", "Integer and logic", "10⁹ warp instructions/s", "Chains of three-input logic."),
    ("xu_gips", "Special functions", "10⁹ warp instructions/s", "Chains of reciprocal square roots."),
    ("shared_gbps", "Shared memory", "GB/s", "Loads of 16 bytes a thread without bank conflicts."),
    ("l1_gbps", "L1", "GB/s", "Loads of 16 bytes a thread that all hit in L1."),
    ("l2_gbps", "L2", "GB/s", "Loads of 16 bytes a thread past L1, of a quarter of the L2 cache."),
    ("dram_read_gbps", "DRAM, read", "GB/s", "A large array read once."),
    ("dram_write_gbps", "DRAM, write", "GB/s", "A large array written once."),
    ("dram_copy_gbps", "DRAM, copy", "GB/s", "A large array copied: bytes read plus bytes written."),
    (
        "atomics_apart_gops",
        "Atomics, apart",
        "10⁹/s",
        "Additions in global memory, each thread its own word.",
    ),
    ("atomics_together_gops", "Atomics, together", "10⁹/s", "Additions to one word by all threads."),
    (
        "barriers_gips",
        "Barriers",
        "10⁹ warps/s",
        "Block-wide barriers, counted by the warps that reach them.",
    ),
    ("fma_latency_cycles", "FMA latency", "cycles", "One multiply-add after another."),
    ("shared_latency_cycles", "Shared latency", "cycles", "One load from shared memory after another."),
    ("l1_latency_cycles", "L1 latency", "cycles", "One global load after another that hits in L1."),
    ("l2_latency_cycles", "L2 latency", "cycles", "The same past L1, hitting in L2."),
    ("dram_latency_cycles", "DRAM latency", "cycles", "The same where L2 misses."),
    ("launch_floor_us", "Launch overhead", "µs", "An empty kernel, as cases are timed."),
)
#: By their names in `Device.measured_rates`, which end with the unit, in the order shown.
MEASURED_RATES: Mapping[str, RateInfo] = {key: RateInfo(*row) for key, *row in _ROWS}


#: The rate that says what a part of `gpuprof.devices.rates` reached, and how much of it one unit of work is.
_OF_SM_PART = {
    "fma": ("fma_f32_gflops", _FLOPS),
    "fp64": ("fma_f64_gflops", _FLOPS),
    **{f"tensor_{kind}": (f"tensor_{kind}_gflops", 2) for kind in TENSOR_TYPES_MEASURED},
    "alu": ("alu_gips", 1),
    "xu": ("xu_gips", 1),
    "barrier": ("barriers_gips", 1),
    "l1": ("shared_gbps", _PASS_BYTES),
    "l2_bytes": ("l2_gbps", 1),
}


def theoretical(device: Device) -> Mapping[str, float]:
    """The theoretical counterparts of measured rates, by the same keys and in the same units."""
    sms_per_ns = device.sm_count * device.sm_clock_mhz / 1e3
    known = sm_rates(device)
    found = {
        key: known[part].per_cycle * sms_per_ns * each
        for part, (key, each) in _OF_SM_PART.items()
        if part in known and sms_per_ns
    }
    if "shared_gbps" in found:
        found["l1_gbps"] = found["shared_gbps"]
    if device.peak_bandwidth_gbps:
        for way in ("read", "write", "copy"):
            found[f"dram_{way}_gbps"] = device.peak_bandwidth_gbps
    return found


def reached(device: Device) -> Mapping[str, float]:
    """Which share of a part's theoretical rate a kernel of ours reached on this device.

    Returns:
        By the part of `gpuprof.bounds`, 1 for all of it; a part that was not measured, or has no theoretical
        rate, is missing.
    """
    limits, measured = theoretical(device), device.measured_rates
    keys: dict[str, tuple[str, ...]] = {part: (key,) for part, (key, _) in _OF_SM_PART.items()}
    keys |= {"l2": keys.pop("l2_bytes"), "dram": ("dram_read_gbps", "dram_copy_gbps")}
    found = {}
    for part, names in keys.items():
        shares = [measured[name] / limits[name] for name in names if name in measured and name in limits]
        if shares:
            found[part] = max(shares)
    return found


def latencies(device: Device) -> Mapping[str, float]:
    """Cycles from one dependent step to the next, by the keys of `MEASURED_RATES`.

    Its own where they were measured, else those of its architecture as far as they are known.
    """
    known = architecture_latencies(device)
    own = {key: value for key, value in device.measured_rates.items() if key.endswith(_LATENCY)}
    return {**known, **own}
