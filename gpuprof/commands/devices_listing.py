# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof devices`: the GPUs here, and the cards that the executor can stand in for."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuprof.commands.tables_shown import add_row, fit, open_console, show
from gpuprof.console import hand_over
from gpuprof.devices.cards import card_names, load_card
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable
from gpuprof.schema import to_json
from gpuprof.text import one_line


def print_devices() -> None:
    """The GPUs that the driver shows, then the cards of the bundled table."""
    console = open_console()
    found, reason = _devices_here()
    numbered = {str(number): device for number, device in enumerate(found)}
    if found:
        _show_devices(console, "GPUs here", numbered)
    else:
        console.print(one_line(f"No GPU here: {reason}"), markup=False)
    console.print()
    _show_devices(console, "Known cards, executed on the CPU: theoretical peaks", _cards())


def print_measured_rates() -> None:
    """What small kernels reach on each GPU here, beside its theoretical rates.

    Raises:
        BackendUnavailable: There is no GPU.
    """
    console = open_console()
    for number, device in enumerate(_measured_devices()):
        show(console, _rate_table(f"{number}  {device.name}", device))
        if device.measured_rates_reason:
            console.print(one_line(device.measured_rates_reason), markup=False)


def print_devices_as_json(*, measure: bool) -> None:
    """The same for programs: what `--device` takes, and all that is known of the device behind it.

    Args:
        measure: Whether to measure first what each GPU here reaches.

    Raises:
        BackendUnavailable: There is no GPU to measure.
    """
    found, reason = (tuple(_measured_devices()), "") if measure else _devices_here()
    document = {
        "gpus": [_record(str(number), device) for number, device in enumerate(found)],
        "gpus_reason": reason or None,
        "cards": [_record(selector, card) for selector, card in _cards().items()],
    }
    hand_over(json.dumps(document, indent=1) + "\n")


def _record(selector: str, device: Device) -> dict[str, Any]:
    return {"device": selector, **to_json(device)}


def _devices_here() -> tuple[tuple[Device, ...], str]:
    """The GPUs here, and why there are none."""
    from gpuprof.backends.gpu.driver import driver
    from gpuprof.backends.gpu.query import query_devices

    try:
        driver()
        found = query_devices()
    except BackendUnavailable as error:
        return (), error.what
    return found, "" if found else "The driver shows none."


def _measured_devices() -> Iterator[Device]:
    """The GPUs here, each with the rates that small kernels reach on it."""
    from gpuprof.backends.gpu.backend import GpuBackend
    from gpuprof.backends.gpu.query import device_count
    from gpuprof.statistics import Budget

    for ordinal in range(device_count()):
        yield GpuBackend(ordinal, 0, Budget(0.1)).device


def _cards() -> dict[str, Device]:
    """The known cards by what `--device` takes."""
    return {f"sim:{name}": load_card(name) for name in card_names()}


def _rate_table(title: str, device: Device) -> object:
    from rich.table import Table

    from gpuprof.report.device_facts import rate_rows

    table = Table(title=one_line(title), title_justify="left", box=None, pad_edge=False, title_style="bold")
    table.add_column("rate", no_wrap=True)
    for column in ("measured", "theoretical", "of it"):
        table.add_column(column, justify="right")
    table.add_column("unit", no_wrap=True)
    for row in rate_rows(device):
        add_row(table, row.label, row.measured or "not measured", row.theoretical, row.share, row.unit)
    return table


def _show_devices(console: Any, title: str, devices: Mapping[str, Device]) -> None:
    from rich.table import Table

    rows = [
        {"--device": selector, **{name: write(device) for name, write in _COLUMNS.items()}}
        for selector, device in devices.items()
    ]
    fitted = fit(console.width, rows, _DISPENSABLE, {"name": _NARROWEST_NAME})
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for name in fitted.columns:
        folds = name == "name"
        left = name in ("--device", "name", "arch")
        table.add_column(
            name,
            justify="left" if left else "right",
            no_wrap=not folds,
            overflow="fold" if folds else "ellipsis",
            min_width=_NARROWEST_NAME if folds else None,
        )
    for row in rows:
        add_row(table, *(row[name] for name in fitted.columns))
    show(console, table)
    if remark := fitted.remark():
        console.print(remark, style="dim", markup=False)


def _known(value: float | None, digits: int) -> str:
    return "unknown" if value is None else f"{value:.{digits}f}"


_COLUMNS: dict[str, Callable[[Device], str]] = {
    "name": lambda device: device.name,
    "arch": lambda device: device.arch,
    "SMs": lambda device: str(device.sm_count),
    "memory": lambda device: f"{device.memory_bytes / 2**30:.0f} GiB",
    "GB/s": lambda device: _known(device.peak_bandwidth_gbps, 0),
    "FP32 TFLOP/s": lambda device: _known(device.peak_fp32_gflops and device.peak_fp32_gflops / 1e3, 1),
}
#: What narrow terminals leave out, first that which goes first.
_DISPENSABLE = ("arch", "memory", "SMs", "FP32 TFLOP/s", "name")
#: Columns of a terminal in which a name can still be read.
_NARROWEST_NAME = 11
