# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bundled table of cards, for use where there is no GPU: `cards.toml` as `Device` values."""

import difflib
import re
from functools import cache, partial
from typing import Any

from msgspec import Struct

from gpuprof.devices.device import (
    Device,
    fma_per_cycle,
    parse_arch,
    theoretical_bandwidth_gbps,
    theoretical_gflops,
)
from gpuprof.errors import InputError
from gpuprof.schema import from_json
from gpuprof.tables import bundled


class Granularity(Struct, frozen=True):
    """Units in which an SM hands out its resources.

    Args:
        registers_per_warp: A warp's registers are rounded up to a multiple of this.
        sub_partitions: Equal parts of an SM, each with its own share of the registers.
        shared_bytes_per_block: A block's shared memory is rounded up to a multiple of this many bytes.
    """

    registers_per_warp: int
    sub_partitions: int
    shared_bytes_per_block: int


def card_names() -> tuple[str, ...]:
    """Short names of the bundled cards, as `load_card` takes them, in the table's order."""
    return tuple(_cards())


def cards() -> tuple[Device, ...]:
    """Every bundled card, in the order of `card_names`."""
    return tuple(_cards().values())


def load_card(name: str) -> Device:
    """A bundled card by its short name, an alias or the name that a driver gives it.

    Case, spaces, hyphens and the words NVIDIA and GeForce do not matter: `rtx4090`, `RTX 4090` and
    `NVIDIA GeForce RTX 4090` are one card. A name that covers variants means the usual one: `a100` is the
    80 GB card and `h100` the SXM module.
    """
    spellings = _spellings()
    wanted = _plain(name)
    if wanted in spellings:
        return _cards()[spellings[wanted]]
    near = difflib.get_close_matches(wanted, spellings, n=5, cutoff=0.5)
    nearest = tuple(dict.fromkeys(spellings[spelling] for spelling in near))
    names = ", ".join(nearest or card_names())
    raise InputError(
        f"gpuprof's table has no card {name!r}.",
        fix=f"The nearest: {names}." if nearest else f"The cards are {names}.",
    )


def device_for_arch(arch: str) -> Device:
    """The card that stands for an architecture where only that is named."""
    major, minor = parse_arch(arch)
    limits = _document()["limits"]
    if f"{major}.{minor}" not in limits:
        known = ", ".join(f"sm_{capability.replace('.', '')}" for capability in limits)
        raise InputError(f"gpuprof's table has no card of {arch}.", fix=f"The architectures are {known}.")
    return _cards()[limits[f"{major}.{minor}"]["representative"]]


def granularity(capability: tuple[int, int]) -> Granularity:
    """Allocation units of an architecture.

    An architecture between or beyond those of the table has the units of the newest one before it, and one
    older than all of them those of the oldest: the units have changed once since compute capability 7.0.
    """
    known = sorted((parse_arch(text), text) for text in _document()["limits"])
    nearest = [text for version, text in known if version <= capability][-1:] or [known[0][1]]
    return Granularity(**_document()["limits"][nearest[0]]["granularity"])


def _plain(name: str) -> str:
    """A card's name without case, separators and brands."""
    return re.sub("[^a-z0-9]|nvidia|geforce|tesla", "", name.lower())


_document = partial(bundled, "gpuprof.devices", "cards.toml")


@cache
def _cards() -> dict[str, Device]:
    return {name: _device(card) for name, card in _document()["cards"].items()}


@cache
def _spellings() -> dict[str, str]:
    return {
        _plain(spelling): name
        for name, card in _document()["cards"].items()
        for spelling in (name, card["name"], *card["aliases"])
    }


def _device(card: dict[str, Any]) -> Device:
    document = _document()
    rates, sms, clock = (
        fma_per_cycle(parse_arch(card["compute_capability"])),
        card["sm_count"],
        card["sm_clock_mhz"],
    )
    peaks = [theoretical_gflops(each, sms, clock) for each in rates] if rates else (None, None)
    bandwidth = theoretical_bandwidth_gbps(card["memory_clock_mhz"], card["memory_bus_width_bits"])
    return from_json(
        Device,
        {
            **document["common"],
            **document["limits"][card["compute_capability"]],
            **card,
            "peak_bandwidth_gbps": bandwidth,
            "peak_fp32_gflops": peaks[0],
            "peak_fp64_gflops": peaks[1],
            "source": "table",
        },
    )
