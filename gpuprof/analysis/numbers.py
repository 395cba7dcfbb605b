# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How figures are written: significant digits, SI and binary units. Every report formats through here."""

import re
from functools import lru_cache

#: Units of one figure, each with its size in the unit that results are stored in, ascending.
Units = tuple[tuple[float, str], ...]
TIME_UNITS: Units = ((1e-3, "ns"), (1.0, "µs"), (1e3, "ms"), (1e6, "s"))
COMPUTE_UNITS: Units = ((1e-3, "MFLOP/s"), (1.0, "GFLOP/s"), (1e3, "TFLOP/s"), (1e6, "PFLOP/s"))
BANDWIDTH_UNITS: Units = ((1e-3, "MB/s"), (1.0, "GB/s"), (1e3, "TB/s"))

#: The space before a unit or an SI letter.
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTPE]|%|[KMGT]iB|B|[nµm]?s|[MGT]B/s|[MGTP]FLOP/s|SMs)(?![\w-]))")
_SI = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_LARGEST_EXACT_COUNT = 99_999
_DIGITS_TO_COMPARE = 5
_LEAST_PCT = 0.01


# Sizes, counts of blocks and resources recur in every row of a ladder.
@lru_cache(8192)
def significant(value: float, digits: int = 3, decimals: int | None = None) -> str:
    """A number with so many significant digits, in fixed notation with thousands separated.

    At most so many decimals, where they are limited.

    Zero is written as it is: it has no significant digits.
    """
    if value == 0:
        return "0"
    if abs(value) == float("inf"):  # of a file that anybody may have written
        return "∞" if value > 0 else "-∞"
    rounded = f"{value:.{digits - 1}e}"
    exponent = int(rounded[rounded.index("e") + 1 :])
    shown = max(0, digits - 1 - exponent)
    return f"{float(rounded):,.{shown if decimals is None else min(shown, decimals)}f}"


def time_us(microseconds: float, digits: int = 3) -> str:
    """A duration in ns, µs, ms or s."""
    return _scaled(microseconds, TIME_UNITS, digits)


def gflops(rate: float, digits: int = 3) -> str:
    """An arithmetic rate given in GFLOP/s."""
    return _scaled(rate, COMPUTE_UNITS, digits)


def gbps(rate: float, digits: int = 3) -> str:
    """A bandwidth given in GB/s, kept in GB/s up to 10 TB/s because that is how cards are compared."""
    if 1 <= rate < 10_000:
        return f"{significant(rate, max(digits, 4) if rate >= 1000 else digits)} GB/s"
    return _scaled(rate, BANDWIDTH_UNITS, digits)


def part_of(part_us: float, whole_us: float) -> str:
    """A part of a duration in the whole's unit, for example `2.2 of 3.9 µs`."""
    factor, name = unit_for(float(f"{whole_us:.1e}"), TIME_UNITS)
    return f"{significant(part_us / factor, 2)} of {significant(whole_us / factor, 2)} {name}"


def percent(share: float, digits: int = 3) -> str:
    """A share already in percent, to a hundredth of a percent at most."""
    if 0 < abs(share) < _LEAST_PCT:
        return f"{'<' if share > 0 else '>-'}{_LEAST_PCT} %"
    return f"{significant(share, digits, decimals=2)} %"


def ratio(factor: float, digits: int = 3) -> str:
    """A factor, for example a gain: `2.31×`."""
    return f"{significant(factor, digits)}×"


def speedup(factor: float, digits: int = 3) -> str:
    """How many times as fast, below 1 to two decimals: `2.46×`, `0.98×`."""
    return f"{factor:.2f}×" if 0.1 <= factor < 1 else ratio(factor, digits if factor >= 1 else 2)


def brief(value: float) -> str:
    """A small figure within a sentence: at most three digits, and no zeros behind the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def count(value: float) -> str:
    """An event count: exact while short, then with an SI letter."""
    if abs(value) <= _LARGEST_EXACT_COUNT:
        return f"{value:,.0f}" if float(value).is_integer() else significant(value)
    rounded = float(f"{value:.2e}")
    step = min((len(f"{abs(rounded):.0f}") - 1) // 3, len(_SI) - 1)
    return f"{significant(rounded / 1000**step)} {_SI[step]}"


def exact(value: float) -> str:
    """An event count in full; what is no whole number has as many digits as a reader can compare."""
    return f"{value:,.0f}" if float(value).is_integer() else significant(value, _DIGITS_TO_COMPARE)


def size(byte_count: float) -> str:
    """Bytes in binary units; whole multiples without decimals."""
    step = 0
    while step < len(_BINARY) - 1 and abs(byte_count) >= 1024 ** (step + 1):
        step += 1
    scaled = byte_count / 1024**step
    text = f"{scaled:,.0f}" if scaled.is_integer() else significant(scaled)
    return f"{text} {_BINARY[step]}"


#: Units that change how a figure is written; all others name what was counted.
_WRITTEN = ("%", "±%", "GB/s", "GFLOP/s", "bytes", "B", "us", "×", "number", "error", "text")


def is_count(unit: str) -> bool:
    """True for a count of events."""
    return unit not in _WRITTEN


def in_unit(value: float, unit: str, digits: int = 3) -> str:
    """A figure by its unit; counts of events carry none, because the label names the event."""
    match unit:
        case "%":
            return percent(value, digits)
        case "±%":
            return f"±{percent(value, 2)}"
        case "GB/s":
            return gbps(value, digits)
        case "GFLOP/s":
            return gflops(value, digits)
        case "bytes" | "B":
            return size(value)
        case "us":
            return time_us(value, digits)
        case "×":
            return ratio(value)
        case "number":
            return significant(value, digits)
        case "error":
            return "0" if value == 0 else f"{value:.1e}"
    return count(value)


@lru_cache(8192)
def _scaled(value: float, units: Units, digits: int) -> str:
    """The value in the largest unit that leaves at least 1, judged after rounding: 999.96 µs is 1.00 ms."""
    factor, name = unit_for(float(f"{value:.{digits - 1}e}"), units)
    return f"{significant(value / factor, digits)} {name}"


def unit_for(largest: float, units: Units) -> tuple[float, str]:
    """The largest unit of which a figure is at least 1: its size and its name, for a whole axis as well."""
    fitting = [unit for unit in units if abs(largest) >= unit[0]]
    return fitting[-1] if fitting else units[0]


def plural(count: float, what: str) -> str:
    """A count of something: `1 case`, `2 cases`."""
    return f"{brief(count)} {what}{'' if count == 1 else 's'}"


def bound(text: str) -> str:
    """A text with each figure kept on one line with its unit."""
    return _UNIT.sub("\u00a0", text)
