# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What modelled times need of a card: constants that small kernels measured there, kept in `constants/`.

`gpuprof devices --measure --json` measures them on any GPU. A card that nobody measured has those of the
measured card nearest to it, scaled by what both are known to have.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.devices.measured import reached
from gpuprof.records import replace

#: Measured by the clock of results, in microseconds: much the same on every card of today.
_MEASURED_CAPABILITY = (9, 0)
_OF_HOST = "_us"
_COPIED_MIB = 64
#: Bytes of a row that blocks access each, where they begin in other rows one after the other.
DRAM_RUNS = (64, 128, 256, 1024)
_OF_SM = ("fma_latency_cycles", "shared_latency_cycles", "l1_latency_cycles")


class CardConstants(Struct, frozen=True):
    """Constants of a card.

    Args:
        values: All others, by the names that `gpuprof devices --measure` shows.
        unwritten_bytes: Of a copy's results, those that L2 holds at its end and DRAM does not.
        near: `card` if they are this card's own, `architecture` if another's of its kind, else `other`.
    """

    rates: Mapping[str, float]
    values: Mapping[str, float]
    near: str
    unwritten_bytes: float
    reached: Mapping[str, float]


def constants_of(device: Device) -> CardConstants:
    """Return a card's constants: its own rates, where it has been measured, come first."""
    kept = min(_measured(), key=lambda one: _distance(one, device))
    own = device.name.startswith(kept["name"])
    near = "card" if own else "architecture" if device.capability == _MEASURED_CAPABILITY else "other"
    rates, values = kept["measured_rates"], kept["constants"]
    if not own:
        rates, values = _scaled(kept, device)
    unwritten = _unwritten_bytes(kept) * device.l2_bytes / kept["card"]["l2_bytes"]
    rates = {**rates, **device.measured_rates}
    shares = reached(replace(device, measured_rates=rates))
    return CardConstants(rates, values, near, unwritten, shares)


def _unwritten_bytes(kept: Mapping[str, Any]) -> float:
    """By how much a copy ends sooner than DRAM could have taken all of it."""
    rates = kept["measured_rates"]
    us: float = kept["constants"][f"copy_{_COPIED_MIB}_mib_cold_us"] - rates["launch_floor_us"]
    unwritten: float = 2 * (_COPIED_MIB << 20) - us * 1e3 * rates["dram_copy_gbps"]
    return max(0.0, unwritten)


@cache
def _measured() -> tuple[dict[str, Any], ...]:
    folder = resources.files("gpuprof.devices").joinpath("constants")
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".json")), key=lambda one: one.name)
    return tuple(json.loads(one.read_text(encoding="utf-8")) for one in files)


def _distance(kept: Mapping[str, Any], device: Device) -> tuple[bool, float]:
    """How far a measured card is from another: by its name, then by the bandwidth of an SM."""
    per_sm = (device.peak_bandwidth_gbps or 0.0) / device.sm_count
    facts = kept["card"]
    return not device.name.startswith(kept["name"]), abs(facts["bandwidth"] / facts["sms"] - per_sm)


def _scaled(kept: Mapping[str, Any], device: Device) -> tuple[dict[str, float], dict[str, float]]:
    """Rates by SMs and clock, those of DRAM by bandwidth; latencies beyond the SM take as long as there."""
    facts = kept["card"]
    clock: float = device.sm_clock_mhz / facts["clock_mhz"] if device.sm_clock_mhz else 1.0
    inside: float = device.sm_count / facts["sms"] * clock
    beyond: float = (device.peak_bandwidth_gbps or facts["bandwidth"]) / facts["bandwidth"]

    def scale(name: str) -> float:
        if name.endswith(_OF_HOST) or name.endswith("_mhz") or name in _OF_SM:
            return 1.0
        if name.endswith("_cycles"):
            far = name.startswith(("dram", "l2", "code", "first", "fetch_add", "block"))
            return clock if far else 1.0
        return beyond if "dram" in name else inside

    return tuple(  # type: ignore[return-value]
        {name: value * scale(name) for name, value in kept[part].items()}
        for part in ("measured_rates", "constants")
    )
