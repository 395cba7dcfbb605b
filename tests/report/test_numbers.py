# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Figures in human units: exact cases, and properties over every magnitude."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.analysis import numbers

PREFIXES = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}
LETTERS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
#: What each way to write a figure makes of values.
WRITTEN = {
    "significant": ((0, "0"), (31.94, "31.9"), (9.996, "10.0"), (0.012345, "0.0123"), (123456, "123,000")),
    "time_us": ((0.5, "500 ns"), (7.904, "7.90 µs"), (999.96, "1.00 ms"), (1_437_100, "1.44 s")),
    "gflops": ((0.5, "500 MFLOP/s"), (247.4, "247 GFLOP/s"), (66_908.2, "66.9 TFLOP/s")),
    # A bandwidth stays in gigabytes up to ten terabytes.
    "gbps": ((0.25, "250 MB/s"), (814.1, "814 GB/s"), (4916.7, "4,917 GB/s"), (12_000, "12.0 TB/s")),
    "count": ((0, "0"), (65_536, "65,536"), (131_072, "131 k"), (999_999, "1.00 M"), (2.5, "2.50")),
    "size": ((0, "0 B"), (1023, "1,023 B"), (32_768, "32 KiB"), (1_048_576, "1 MiB"), (1536, "1.50 KiB")),
    "brief": ((32.0, "32"), (8.5, "8.5"), (2.066, "2.07"), (1.0, "1"), (1234.5, "1,234")),
}
UNITS = (
    (82.5, "%", "82.5 %"),
    (155.74, "GB/s", "156 GB/s"),
    (524_288, "sectors", "524 k"),
    (8_414_211_328, "B", "7.84 GiB"),
    (4096, "bytes", "4 KiB"),
    (21_984.6, "us", "22.0 ms"),
)


@pytest.mark.parametrize("way", WRITTEN)
def test_what_is_written(way: str) -> None:
    for value, text in WRITTEN[way]:
        assert getattr(numbers, way)(value) == text


def test_digits_and_units() -> None:
    assert [numbers.significant(*given) for given in ((-2.5, 2), (1000, 4))] == ["-2.5", "1,000"]
    for value, unit, text in UNITS:
        assert numbers.in_unit(value, unit) == text


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_a_time_reads_back_and_is_never_a_thousand_of_a_unit_that_has_a_larger_one(us: float) -> None:
    figure, unit = numbers.time_us(us).split()
    value = float(figure.replace(",", ""))
    assert value * PREFIXES[unit] == pytest.approx(us, rel=0.005)
    assert unit == "s" or value < 1000


@given(st.integers(0, 10**18))
def test_counts_are_exact_or_right_to_three_digits(value: int) -> None:
    figure, _, letter = numbers.count(value).partition(" ")
    counted = float(figure.replace(",", "")) * LETTERS[letter]
    assert counted == pytest.approx(value, rel=0 if not letter else 0.005)


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_what_is_not_zero_never_reads_as_zero(value: float) -> None:
    assert numbers.significant(value) != "0"
    assert float(numbers.percent(value).split()[0].replace(",", "").lstrip("<")) > 0
