# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof list` and `gpuprof devices`."""

import sys
from typing import Any

from gpuprof.devices.device import Device
from gpuprof.kernels.catalog import ladder
from gpuprof.kernels.header import Kernel
from gpuprof.kernels.launch import format_extent
from gpuprof.problems import OPERATIONS


def print_ladders(op: str | None) -> None:
    """Every shipped kernel in rung order: id, published alias, block and idea."""
    from rich.table import Table

    for name in [op] if op else OPERATIONS:
        table = Table(
            title=f"gpuprof {name}", title_justify="left", box=None, pad_edge=False, title_style="bold"
        )
        for column in ("kernel", "published as", "block", "types", "idea"):
            table.add_column(
                column, overflow="fold" if column == "idea" else "ellipsis", no_wrap=column != "idea"
            )
        for kernel in ladder(name):
            table.add_row(
                kernel.id,
                ", ".join(kernel.aliases) or "-",
                _block(kernel),
                "/".join(kernel.dtypes) or "varies",
                kernel.idea or kernel.title,
            )
        console = _console()
        console.print(table)
        console.print("* any block with --block", style="dim")
        console.print()


def _block(kernel: Kernel) -> str:
    if kernel.choices:
        return "varies"
    return format_extent(kernel.launch.block) + (" *" if kernel.launch.any_block else "")


def print_devices() -> None:
    """The GPUs that the driver shows, then the cards of the bundled table."""
    from gpuprof.backends.gpu.driver import driver
    from gpuprof.backends.gpu.query import query_devices
    from gpuprof.devices.table import cards
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
        console.print(f"No GPU here: {error.what}", markup=False)
    console.print()
    console.print(_device_table("Known cards", cards(), numbered=False))


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
        table.add_row(*row)
    return table


def _console() -> Any:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 110
    return Console(width=width, highlight=False)
