# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What each part of a device can do per second at most: `rates.toml` and the peaks, times SMs and clock."""

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from gpuprof.devices.device import Device, fma_per_cycle, tensor_fma_per_cycle
from gpuprof.tables import bundled

_GUIDE = "CUDA C++ Programming Guide, throughput of arithmetic instructions"
_TENSOR = "architecture whitepaper, dense tensor-core rate"
_LANES = 32
_table = partial(bundled, "gpuprof.devices", "rates.toml")


class SmRate(Struct, frozen=True):
    """The highest rate of one part of an SM."""

    per_cycle: float
    source: str


def sm_rates(device: Device) -> Mapping[str, SmRate]:
    """The rates of an SM's parts that are published.

    Returns:
        By the part: those of `rates.toml`, and multiply-adds of warps for `fma`, `fp64` and `tensor_f16`, …;
        a part whose rate nobody publishes is missing.
    """
    known = dict(_table().get(device.compute_capability, {}))
    source = known.pop("source", "")
    own = known.pop("sources", {})
    known.pop("latencies", None)
    rates = {part: SmRate(float(per_cycle), own.get(part, source)) for part, per_cycle in known.items()}
    fma = fma_per_cycle(device.capability)
    if fma:
        rates["fma"], rates["fp64"] = (SmRate(lanes / _LANES, _GUIDE) for lanes in fma)
    for kind, per_cycle in tensor_fma_per_cycle(device.capability).items():
        rates[f"tensor_{kind}"] = SmRate(float(per_cycle), _TENSOR)
    return rates


def architecture_latencies(device: Device) -> Mapping[str, float]:
    """Latencies of an architecture in cycles, as a card of it was measured; empty where none was."""
    known = _table().get(device.compute_capability, {}).get("latencies", {})
    return {f"{part}_latency_cycles": float(cycles) for part, cycles in known.items()}
