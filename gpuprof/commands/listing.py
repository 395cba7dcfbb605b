# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof list` and `gpuprof devices`."""

import sys
from typing import Any

from gpuprof.devices.device import Device
from gpuprof.kernels.catalog import Ladder, shipped_ladder, shipped_names
from gpuprof.kernels.kernel import Kernel
from gpuprof.text import format_extent, one_line


def print_ladders(operation: str | None) -> None:
    """Every shipped kernel in rung order, and where the studies that they come from were published.

    Args:
        operation: One ladder only; None for all.

    Raises:
        InputError: There is no such operation.
    """
    for name in [operation] if operation else shipped_names():
        _print_ladder(shipped_ladder(name))


def _print_ladder(ladder: Ladder) -> None:
    from rich.table import Table

    title = f"gpuprof {ladder.operation.name}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in ("kernel", "published as", "study", "block", "types", "idea"):
        table.add_column(
            column, overflow="fold" if column == "idea" else "ellipsis", no_wrap=column != "idea"
        )
    for kernel in ladder.kernels:
        _add_row(
            table,
            kernel.id,
            ", ".join(kernel.aliases) or "-",
            kernel.study.name or "-",
            _block(kernel),
            "/".join(kernel.dtypes) or "varies",
            kernel.idea or kernel.title,
        )
    console = _console()
    console.print(table)
    console.print("* any block with --block", style="dim")
    for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
        cited = f"Study {study.name}: {study.citation} {study.url}".strip()
        console.print(one_line(cited), style="dim", markup=False)
    console.print()


def _block(kernel: Kernel) -> str:
    if kernel.choices:
        return "varies"
    return format_extent(kernel.launch.block) + (" *" if kernel.launch.any_block else "")


def print_devices() -> None:
    """The GPUs that the driver shows, then the cards of the bundled table."""
    from gpuprof.backends.gpu.driver import driver
    from gpuprof.backends.gpu.query import query_devices
    from gpuprof.devices.cards import cards
    from gpuprof.errors import BackendUnavailable

    console = _console()
    try:
        driver()
        found = query_devices()
        if found:
            console.print(_device_table("GPUs here (--device NUMBER)", found, numbered=True))
        else:
            console.print("The driver shows no GPU here.")
    except BackendUnavailable as error:
        console.print(one_line(f"No GPU here: {error.what}"), markup=False)
    console.print()
    console.print(_device_table("Known cards", cards(), numbered=False))


def print_measured_rates() -> None:
    """What small kernels reach on each GPU here, beside its theoretical rates.

    Raises:
        BackendUnavailable: There is no GPU.
    """
    from gpuprof.backends.gpu.backend import GpuBackend
    from gpuprof.backends.gpu.query import device_count
    from gpuprof.statistics import Budget

    console = _console()
    for ordinal in range(device_count()):
        device = GpuBackend(ordinal, 0, Budget(0.1)).device
        console.print(_rate_table(f"{ordinal}  {device.name}", device))
        if device.measured_rates_reason:
            console.print(one_line(device.measured_rates_reason), markup=False)


def _rate_table(title: str, device: Device) -> object:
    from rich.table import Table

    from gpuprof.report.device_facts import rate_rows

    table = Table(title=one_line(title), title_justify="left", box=None, pad_edge=False, title_style="bold")
    table.add_column("rate", no_wrap=True)
    for column in ("measured", "theoretical", "of it"):
        table.add_column(column, justify="right")
    table.add_column("unit", no_wrap=True)
    for row in rate_rows(device):
        _add_row(table, row.label, row.measured or "not measured", row.theoretical, row.share, row.unit)
    return table


def _device_table(title: str, devices: tuple[Device, ...], *, numbered: bool) -> object:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in (["#"] if numbered else []) + ["name", "arch"]:
        table.add_column(column, no_wrap=True)
    for column in ("SMs", "memory", "peak GB/s", "peak FP32 TFLOP/s"):
        table.add_column(column, justify="right")
    for number, device in enumerate(devices):
        row = [str(number)] if numbered else []
        row += [
            device.name,
            device.arch,
            str(device.sm_count),
            f"{device.memory_bytes / 2**30:.0f} GiB",
            "unknown" if device.peak_bandwidth_gbps is None else f"{device.peak_bandwidth_gbps:.0f}",
            "unknown" if device.peak_fp32_gflops is None else f"{device.peak_fp32_gflops / 1e3:.1f}",
        ]
        _add_row(table, *row)
    return table


def _add_row(table: Any, *cells: str) -> None:
    """Cells that show what they hold: a bracket is no markup of Rich's, an escape steers nothing."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell)) for cell in cells))


def _console() -> Any:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 110
    return Console(width=width, highlight=False)
