# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof list` and `devices`: the ladders that come with gpuprof, the GPUs here, and the known cards."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from gpuprof.console import hand_over
from gpuprof.devices.cards import card_names, load_card
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Kernel, Ladder
from gpuprof.kernels.shipped import shipped_names
from gpuprof.report.document import Cell, Column, Document, Row, Section, Sentence, Table
from gpuprof.report.terminal import print_document
from gpuprof.schema import to_json
from gpuprof.text import format_extent, listed

T = TypeVar("T")


def print_ladders(operation: str | None) -> None:
    """Every shipped rung in order, the names of its other shapes, and where its study was published."""
    names = [operation] if operation else shipped_names()
    sections = tuple(_ladder_section(shipped_ladder(name)) for name in names)
    print_document(Document("", content=sections), file=sys.stdout)


def print_ladders_as_json(operation: str | None) -> None:
    """The same for programs: a list of ladders, each with its kernels in rung order."""
    names = [operation] if operation else shipped_names()
    records = [
        {
            "operation": ladder.operation.name,
            "title": ladder.operation.title,
            "dimensions": list(ladder.operation.dimensions),
            "default_sizes": ladder.operation.default_sizes,
            "kernels": [_kernel_record(kernel) for kernel in ladder.kernels],
        }
        for ladder in map(shipped_ladder, names)
    ]
    hand_over(json.dumps(records, indent=1) + "\n")


def _kernel_record(kernel: Kernel) -> dict[str, Any]:
    chooses = bool(kernel.choices)
    return {
        "id": kernel.id,
        "title": kernel.title,
        "idea": kernel.idea,
        "published_as": list(kernel.aliases),
        "study": kernel.study.name or None,
        "citation": kernel.study.citation or None,
        "url": kernel.study.url or None,
        "block": None if chooses else list(kernel.block),
        "any_block": kernel.any_block,
        "parameters": dict(kernel.parameters),
        "shape_of": kernel.shape_of or None,
        "dtypes": list(kernel.dtypes),
        "file": kernel.file_name,
    }


def _ladder_section(ladder: Ladder) -> Section:
    """A line a kernel, with the first of its other names, and where the studies were published."""
    said = [one for one in _OF_KERNELS if any(one[1](kernel) != "-" for kernel in ladder.kernels)]
    table = _table(said, ladder.kernels)
    notes = []
    for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
        ids = [kernel.id for kernel in ladder.kernels if kernel.study == study]
        which = f"{ids[0]} to {ids[-1]}" if len(ids) > 2 else listed(ids)
        text = f"Study {study.name}, {which}: {study.citation} {study.url}".strip()
        notes.append(Sentence(text, tone="muted"))
    return Section(f"gpuprof {ladder.operation.name}", (table, *notes))


def _table(columns: Sequence[tuple[Column, Callable[[T], str]]], things: Iterable[T]) -> Table:
    """A row for each thing, which each column writes its cell of."""
    rows = (Row(tuple(Cell(write(thing)) for _, write in columns)) for thing in things)
    return Table(tuple(column for column, _ in columns), tuple(rows))


def _block(kernel: Kernel) -> str:
    block = format_extent(kernel.block) + (" or any" if kernel.any_block else "")
    return "varies" if kernel.choices else block


_OF_KERNELS: tuple[tuple[Column, Callable[[Kernel], str]], ...] = (
    (Column("kernel", right=False), lambda kernel: kernel.id),
    (Column("published as", right=False, rank=3), lambda kernel: next(iter(kernel.aliases), "-")),
    (Column("block", right=False, rank=1), _block),
    (Column("types", right=False, rank=2), lambda kernel: "/".join(kernel.dtypes) or "varies"),
    (Column("title", right=False, folds=42), lambda kernel: kernel.title),
)


def print_devices() -> None:
    """The GPUs that the driver shows, then the cards of the bundled table."""
    found, reason = _devices_here()
    numbered = {str(number): device for number, device in enumerate(found)}
    table = _table(_OF_DEVICES, numbered.items())
    here = Section("GPUs here", (table,)) if found else Sentence(f"GPUs here: none. {reason}")
    title = "Known cards, executed on the CPU: theoretical peaks"
    known = Section(title, (_table(_OF_DEVICES, _cards().items()),))
    print_document(Document("", content=(here, known)), file=sys.stdout)


def print_measured_rates() -> None:
    """What small kernels reach on each GPU here, beside its theoretical rates."""
    sections = tuple(
        _rates(f"{number}  {device.name}", device, constants, reasons)
        for number, (device, constants, reasons) in enumerate(_measured_devices())
    )
    print_document(Document("", content=sections), file=sys.stdout)


def print_devices_as_json(*, measure: bool) -> None:
    """The same for programs: what `--device` takes, and all that is known of the device behind it."""
    if measure:
        reason = ""
        gpus = [
            {**_record(str(number), device), "model_constants": constants, "not_measured": reasons}
            for number, (device, constants, reasons) in enumerate(_measured_devices())
        ]
    else:
        found, reason = _devices_here()
        gpus = [_record(str(number), device) for number, device in enumerate(found)]
    document = {
        "gpus": gpus,
        "gpus_reason": reason or None,
        "cards": [_record(selector, card) for selector, card in _cards().items()],
    }
    hand_over(json.dumps(document, indent=1) + "\n")


def _record(selector: str, device: Device) -> dict[str, Any]:
    return {"device": selector, **to_json(device)}


def _devices_here() -> tuple[tuple[Device, ...], str]:
    """The GPUs here, and why there are none."""
    from gpuprof.backends.gpu.driver import device_count, query_device

    try:
        found = tuple(query_device(ordinal) for ordinal in range(device_count()))
    except BackendUnavailable as error:
        return (), error.what
    return found, "" if found else "The driver shows none."


def _measured_devices() -> Iterator[tuple[Device, dict[str, float], list[str]]]:
    """The GPUs here with their rates, what modelled times need beside, and what of that was not measured."""
    from gpuprof.backends.gpu.backend import GpuBackend
    from gpuprof.backends.gpu.driver import device_count
    from gpuprof.statistics import SamplingBudget

    for ordinal in range(device_count()):
        backend = GpuBackend(ordinal, 0, SamplingBudget())
        constants: dict[str, float] = {}
        reasons = []
        device = backend.measured_device()
        if device.measured_rates:
            for group, found, reason in backend.model_constants():
                constants |= found
                reasons += [f"Not measured, {group}: {reason}"] if reason else []
        yield device, constants, reasons


def _cards() -> dict[str, Device]:
    """The known cards by what `--device` takes."""
    return {f"sim:{name}": load_card(name) for name in card_names()}


def _rates(title: str, device: Device, constants: Mapping[str, float], reasons: Sequence[str]) -> Section:
    from gpuprof.report.device_facts import rates_table

    reasons = [*filter(None, [device.measured_rates_reason]), *reasons]
    rows = tuple(Row((Cell(key), Cell(f"{value:.4g}"))) for key, value in constants.items())
    more = (Table((Column("What modelled times need", right=False), Column("Measured")), rows),)
    tables = (rates_table(device), *(more if rows else ()))
    return Section(title, (*tables, *map(Sentence, reasons)))


def _known(value: float | None, unit: float, digits: int) -> str:
    return "unknown" if value is None else f"{value / unit:.{digits}f}"


#: Of a device under what `--device` takes.
_OF_DEVICES: tuple[tuple[Column, Callable[[tuple[str, Device]], str]], ...] = (
    (Column("--device", right=False), lambda one: one[0]),
    (Column("name", right=False, folds=11), lambda one: one[1].name),
    (Column("arch", right=False, rank=4), lambda one: one[1].arch),
    (Column("SMs", rank=2), lambda one: str(one[1].sm_count)),
    (Column("memory", rank=3), lambda one: f"{one[1].memory_bytes / 2**30:.0f} GiB"),
    (Column("GB/s"), lambda one: _known(one[1].peak_bandwidth_gbps, 1.0, 0)),
    (Column("FP32 TFLOP/s", rank=1), lambda one: _known(one[1].peak_fp32_gflops, 1e3, 1)),
)
