# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A figure of a case as a table cell: human text, the raw value it sorts by, or why it is missing."""

from gpuprof.analysis import counts
from gpuprof.analysis.banners import is_noisy
from gpuprof.analysis.figure import Figure, Subject
from gpuprof.report.document import Cell
from gpuprof.results import Measurement
from gpuprof.text import format_extent

#: Times and rates stand in tables beside others of their kind: a digit more tells them apart.
_MORE_DIGITS = {"us": 4, "GFLOP/s": 4, "GB/s": 4}


def missing(reason: str | None) -> Cell:
    """A cell that was not measured."""
    return Cell(None, None, reason or "no reason was recorded")


def cell_of(figure: Figure, subject: Subject, *, fine: bool = False) -> Cell:
    """A figure as a cell.

    Args:
        figure: The figure.
        subject: Of what.
        fine: Whether times and rates have a digit more.
    """
    reading = figure.read(subject)
    if reading.value is None:
        return missing(reading.reason)
    if isinstance(reading.value, str):
        return Cell(reading.value, reading.value)
    digits = _MORE_DIGITS.get(figure.unit, 3) if fine else 3
    noisy = " ~" if figure.key == "median_us" and is_noisy(subject.case) else ""
    counter = counts.find(subject.case, figure.key)
    least = "≥ " if counter and counter.is_least and counter.value == reading.value else ""
    return Cell(least + figure.write(reading.value, digits) + noisy, reading.value)


def format_block(case: Measurement, *, brief: bool = False) -> str:
    """Block and tile parameters, for example `16x16 unroll_m=2`; a library tells none.

    Args:
        case: The case. A kernel that was chosen for it is named first, for example `→ splitk_8x32 256x1`.
        brief: Whether to leave out a chosen kernel's parameters, which are always those of its header.
    """
    if not case.has_launch:
        return "–"
    chosen = [f"→ {case.chosen}"] if case.chosen else []
    params = [f"{name}={value}" for name, value in case.params.items()] if not (chosen and brief) else []
    return " ".join([*chosen, format_extent(case.block), *params])


def block_phrase(case: Measurement) -> str:
    """The same for a place without a heading: behind the word block, or behind an arrow."""
    return format_block(case) if case.chosen else f"block {format_block(case)}"
