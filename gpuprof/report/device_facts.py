# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report says of the device: limits and peaks, with where they come from."""

from collections import Counter
from collections.abc import Callable

from gpuprof.analysis import numbers
from gpuprof.devices.device import TENSOR_TYPES, Device
from gpuprof.devices.measured import MEASURED_RATES, theoretical
from gpuprof.report.document import Cell, Column, Row, Table
from gpuprof.results import Run
from gpuprof.text import listed


def names_text(run: Run, *, archs: bool = False) -> str:
    """The names of a run's devices, those of one name once: `2 x NVIDIA H200 and NVIDIA A100 (sm_80)`."""
    count = Counter(f"{device.name} ({device.arch})" if archs else device.name for device in run.devices)
    return listed([name if number == 1 else f"{number} x {name}" for name, number in count.items()])


def rates_table(device: Device, caption: str = "") -> Table:
    """Every rate of `MEASURED_RATES`, in its order: what was reached, and what the documents promise."""
    limits = theoretical(device)
    rows = []
    for key, info in MEASURED_RATES.items():
        reached, limit = device.measured_rates.get(key), limits.get(key)
        share = "–" if limit is None or reached is None else numbers.percent(100 * reached / limit)
        cells = (
            Cell(info.label, term=f"rate_{key}"),
            Cell(
                None if reached is None else numbers.significant(reached, 4),
                reason=device.measured_rates_reason or "no reason was recorded",
            ),
            Cell("–" if limit is None else numbers.significant(limit, 4)),
            Cell(share),
            Cell(info.unit),
        )
        rows.append(Row(cells))
    columns = (
        Column("Rate", right=False),
        *map(Column, ("Measured", "Theoretical")),
        Column("Share", rank=1),
        Column("Unit", right=False),
    )
    return Table(columns, tuple(rows), caption)


def device_facts(device: Device) -> tuple[tuple[str, str], ...]:
    """Label and value pairs; an unknown peak says so."""
    origin = "driver" if device.source == "driver" else "gpuprof's table of cards"
    copy = device.measured_copy_bandwidth_gbps
    peaks = ((kind, device.peak_tensor_gflops(kind)) for kind in TENSOR_TYPES)
    tensor = [f"{kind} {numbers.gflops(peak)}" for kind, peak in peaks if peak]
    no_copy = "no reason was recorded" if device.source == "driver" else "there was no GPU to copy on"
    return (
        ("Device figures from", origin),
        ("Compute capability", device.compute_capability),
        ("SMs", f"{device.sm_count} at up to {device.sm_clock_mhz:,.0f} MHz"),
        ("Memory", numbers.size(device.memory_bytes)),
        ("L2 cache", numbers.size(device.l2_bytes)),
        ("Shared memory per SM", numbers.size(device.shared_bytes_per_sm)),
        ("Shared memory per block, at most", numbers.size(device.shared_bytes_per_block_optin)),
        ("Theoretical bandwidth", _known(device.peak_bandwidth_gbps, numbers.gbps)),
        (
            "Measured copy bandwidth",
            numbers.gbps(copy)
            if copy
            else f"not measured: {device.measured_copy_bandwidth_reason or no_copy}",
        ),
        (
            "Theoretical peaks",
            f"f32 {_known(device.peak_fp32_gflops)}, f64 {_known(device.peak_fp64_gflops)}",
        ),
        *([("Theoretical peaks of tensor cores", ", ".join(tensor))] if tensor else []),
        *((("Measured rates", device.measured_rates_reason),) if device.measured_rates_reason else ()),
    )


def _known(value: float | None, write: Callable[[float], str] = numbers.gflops) -> str:
    return "unknown" if value is None else write(value)
