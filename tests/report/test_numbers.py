# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Figures in human units: exact cases, and properties over every magnitude."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.analysis import numbers

PREFIXES = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (31.94, 3, "31.9"),
        (9.996, 3, "10.0"),
        (0.012345, 3, "0.0123"),
        (123456, 3, "123,000"),
        (-2.5, 2, "-2.5"),
        (1000, 4, "1,000"),
    ],
)
def test_significant(value: float, digits: int, text: str) -> None:
    assert numbers.significant(value, digits) == text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0.5, "500 ns"), (7.904, "7.90 µs"), (999.96, "1.00 ms"), (31900, "31.9 ms"), (1_437_100, "1.44 s")],
)
def test_time(microseconds: float, text: str) -> None:
    assert numbers.time_us(microseconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.5, "500 MFLOP/s"), (247.4, "247 GFLOP/s"), (13_868, "13.9 TFLOP/s"), (66_908.2, "66.9 TFLOP/s")],
)
def test_gflops(rate: float, text: str) -> None:
    assert numbers.gflops(rate) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(0.25, "250 MB/s"), (814.1, "814 GB/s"), (4916.7, "4,917 GB/s"), (12_000, "12.0 TB/s")]
)
def test_bandwidth_stays_in_gigabytes_up_to_ten_terabytes(rate: float, text: str) -> None:
    assert numbers.gbps(rate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (65_536, "65,536"),
        (131_072, "131 k"),
        (999_999, "1.00 M"),
        (10_737_418_240, "10.7 G"),
        (2.5, "2.50"),
    ],
)
def test_count(value: float, text: str) -> None:
    assert numbers.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (32_768, "32 KiB"), (1_048_576, "1 MiB"), (1536, "1.50 KiB")],
)
def test_size(value: float, text: str) -> None:
    assert numbers.size(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(82.5, "%", "82.5 %"), (155.74, "GB/s", "156 GB/s"), (524_288, "sectors", "524 k")],
)
def test_counter(value: float, unit: str, text: str) -> None:
    assert numbers.in_unit(value, unit) == text


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_a_time_reads_back_to_within_half_a_digit(microseconds: float) -> None:
    figure, unit = numbers.time_us(microseconds).split()
    assert float(figure.replace(",", "")) * PREFIXES[unit] == pytest.approx(microseconds, rel=0.005)


@given(st.floats(min_value=1e-3, max_value=1e8))
def test_a_scaled_figure_is_never_a_thousand_of_a_unit_that_has_a_larger_one(microseconds: float) -> None:
    figure, unit = numbers.time_us(microseconds).split()
    assert unit == "s" or float(figure.replace(",", "")) < 1000


@given(st.floats(min_value=1e-6, max_value=1e15), st.integers(1, 6))
def test_significant_digits_are_as_many_as_asked(value: float, digits: int) -> None:
    shown = numbers.significant(value, digits).replace(",", "")
    assert float(shown) == float(f"{value:.{digits - 1}e}")


@given(st.integers(0, 10**18))
def test_counts_are_exact_or_right_to_three_digits(value: int) -> None:
    text = numbers.count(value)
    figure, _, letter = text.partition(" ")
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}[letter]
    assert float(figure.replace(",", "")) * scale == pytest.approx(value, rel=0 if not letter else 0.005)


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_what_is_not_zero_never_reads_as_zero(value: float) -> None:
    assert numbers.significant(value) != "0"
    assert float(numbers.percent(value).split()[0].replace(",", "")) > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sectors 10.7 G → 539 M (÷19.9)", "sectors 10.7\u00a0G → 539\u00a0M (÷19.9)"),
        ("0.128 % of bandwidth", "0.128\u00a0% of bandwidth"),
        ("block 512 Most", "block 512 Most"),
    ],
)
def test_figures_stay_with_their_units(text: str, expected: str) -> None:
    assert numbers.bound(text) == expected


@pytest.mark.parametrize(
    ("value", "text"), [(32.0, "32"), (8.5, "8.5"), (2.066, "2.07"), (1.0, "1"), (1234.5, "1,234")]
)
def test_brief(value: float, text: str) -> None:
    assert numbers.brief(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(8_414_211_328, "B", "7.84 GiB"), (4096, "bytes", "4 KiB"), (21_984.6, "us", "22.0 ms")],
)
def test_counters_that_count_no_events_keep_their_unit(value: float, unit: str, text: str) -> None:
    assert numbers.in_unit(value, unit) == text
