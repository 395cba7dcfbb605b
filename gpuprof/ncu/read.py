# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read a report with ncu itself: its raw page as CSV, in base units.

Values are found by the names of their columns only, and a cell that does not have the documented form is an
error, never a guess.
"""

import csv
import io
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from gpuprof.counters import OPCODES
from gpuprof.ncu.metrics import requested
from gpuprof.ncu.tool import Ncu, NcuReadError, diagnose, first_error, run_to_end
from gpuprof.text import Extent

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)(?:\(.*\))?\Z", re.IGNORECASE)
_EXTENT = re.compile(r"\((\d{1,10}), (\d{1,10}), (\d{1,10})\)\Z")
#: What ncu writes where a metric was not collected.
_ABSENT = {"", "n/a", "(!) n/a", "no data", "N/A"}
_KEYS = ("ID", "Kernel Name", "Block Size", "Grid Size")
_TIMEOUT_S = 600.0


class MetricCell(Struct, frozen=True):
    """One metric of one launch.

    In base units; `parts` are the metric's instances by name, where they were read.
    """

    value: float | int | None
    unit: str = ""
    why: str | None = None
    parts: Mapping[str, float | int] | None = None


class ProfiledLaunch(Struct, frozen=True):
    """One launch of a report, in the report's order."""

    kernel: str
    block: Extent
    grid: Extent
    compute_capability: str | None
    cells: Mapping[str, MetricCell] = {}


def read_report(path: Path, ncu: Ncu) -> list[ProfiledLaunch]:
    """Every launch of a report, in order.

    Raises:
        NcuReadError: The report is damaged, or of a newer Nsight Compute.
    """
    return parse_raw_csv(raw_csv(path, ncu))


def raw_csv(path: Path, ncu: Ncu) -> str:
    """The raw page of a report, with the metrics of gpuprof's table, as ncu prints it."""
    command = [ncu.path, "--import", str(path), "--page", "raw", "--csv", "--print-units", "base"]
    command += ["--print-kernel-base", "function", "--print-metric-instances", "details"]
    command += ["--metrics", requested()]
    try:
        done = run_to_end(command, _TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NcuReadError(f"Nsight Compute cannot read {path.name}: {error}.") from error
    if done.returncode or '"ID"' not in done.stdout:
        output = f"{done.stdout}\n{done.stderr}"
        why = first_error(output) or f"it ended with status {done.returncode} and no table"
        known = diagnose(output)
        raise NcuReadError(
            f"Nsight Compute cannot read {path.name}: {why.rstrip('.')}.",
            fix=known.fix
            if known
            else "A report is read by the Nsight Compute that wrote it, or a newer one.",
        )
    return done.stdout


def parse_raw_csv(text: str) -> list[ProfiledLaunch]:
    """The launches of a raw page in CSV.

    Raises:
        NcuReadError: The table is cut off, or not in the documented form.
    """
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("==") and line.strip()]
    rows = csv.reader(io.StringIO("".join(lines)), strict=True)
    try:
        return list(_launches(rows))
    except csv.Error as error:
        raise NcuReadError(f"Nsight Compute's table is cut off in line {rows.line_num}: {error}.") from error


def _launches(rows: Iterator[list[str]]) -> Iterator[ProfiledLaunch]:
    header = next(rows, None)
    if header is None or any(header.count(key) != 1 for key in _KEYS):
        raise NcuReadError(f"Nsight Compute's table does not have one column each of {', '.join(_KEYS)}.")
    units = next(rows, None)
    if units is None or len(units) != len(header) or units[header.index("ID")]:
        raise NcuReadError("Nsight Compute's table has no row of units.")
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise NcuReadError(
                f"Nsight Compute's table is cut off: launch {number} has {len(row)} of {len(header)} columns."
            )
        named = dict(zip(header, row, strict=True))
        if not named["ID"].isdecimal():
            raise NcuReadError(f"Nsight Compute's table has a launch without a number: {named['ID']!r}.")
        yield ProfiledLaunch(
            kernel=named["Kernel Name"],
            block=_extent(named["Block Size"]),
            grid=_extent(named["Grid Size"]),
            compute_capability=named.get("CC") or None,
            cells={
                name: _cell(name, text, unit)
                for name, text, unit in zip(header, row, units, strict=True)
                if "__" in name
            },
        )


def _extent(text: str) -> Extent:
    match = _EXTENT.match(text)
    if match is None:
        raise NcuReadError(f"Nsight Compute's table gives {text!r} as a size.")
    return int(match[1]), int(match[2]), int(match[3])


def _cell(name: str, text: str, unit: str) -> MetricCell:
    total, bracket, rest = text.strip().partition(" (") if name == OPCODES else (text.strip(), "", "")
    cell = _number(total, unit)
    if not bracket or cell.value is None:
        return cell
    parts: dict[str, float | int] = {}
    for item in rest.removesuffix(")").split("; "):
        key, _, count = item.rpartition(": ")
        value = _number(count, "").value
        if not key or value is None or key in parts:
            raise NcuReadError(f"Nsight Compute's table lists the instances of {name} as {text[:80]!r}.")
        parts[key] = value
    if sum(parts.values()) != cell.value:
        raise NcuReadError(f"The instances of {name} do not add up to its total.")
    return MetricCell(cell.value, unit, parts=parts)


def _number(text: str, unit: str) -> MetricCell:
    if text in _ABSENT:
        return MetricCell(None, unit, "Nsight Compute did not collect it on this GPU")
    if _NOT_FINITE.match(text):
        why = "nothing was counted, or its version does not match this driver and GPU"
        return MetricCell(None, unit, f"Nsight Compute reports {text.strip()}: {why}")
    if not _NUMBER.match(text):
        # The instances of a metric follow its value; a text is no number at all.
        total, bracket, _ = text.partition(" (")
        if bracket and _NUMBER.match(total):
            return _number(total, unit)
        return MetricCell(None, unit, f"Nsight Compute gives {text[:40]!r}, which is not a number")
    plain = text.replace(",", "")
    value = float(plain)
    return MetricCell(int(value) if value.is_integer() and "." not in plain else value, unit)
