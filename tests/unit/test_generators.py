# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The first content of arrays: as named, the same for the same seed, and nothing else."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuprof.problems.dtypes import ELEMENT_TYPES, RUN_TYPES, numpy_dtype
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.generators import check_generator, generate

COUNT = 20_000
FLOATS = RUN_TYPES
INTEGERS = [name for name, kind in ELEMENT_TYPES.items() if not kind.roundoff]


def made(text, dtype="f32", count=COUNT, seed=3, stream=0):
    check_generator(text, dtype)
    values = generate(text, count, dtype, seed, stream)
    assert values.shape == (count,)
    assert values.dtype == numpy_dtype(dtype)
    return values


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_fills_its_range(dtype):
    values = made("uniform(-1, 3)", dtype).astype(float)
    assert -1 <= values.min() < -0.9
    assert 2.9 < values.max() <= 3
    assert values.mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_has_its_mean_and_deviation(dtype):
    values = made("normal(2, 0.5)", dtype).astype(float)
    assert values.mean() == pytest.approx(2, abs=0.05)
    assert values.std() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_integers_are_all_there_but_the_upper_bound(dtype):
    assert set(made("integers(3, 7)", dtype).tolist()) == {3, 4, 5, 6}


def test_integers_of_64_bits_reach_the_end_of_their_range():
    assert made("integers(0, 2**64)", "u64").max() > 2**63
    assert made("integers(-2**63, 2**63)", "i64").max() > 2**62
    assert set(made("integers(2**64 - 2, 2**64)", "u64").tolist()) == {2**64 - 2, 2**64 - 1}
    assert set(made("constant(2**64 - 1)", "u64").tolist()) == {2**64 - 1}


@pytest.mark.parametrize("dtype", ["i32", "u64", "f64"])
def test_permutation_holds_each_index_once_in_no_order(dtype):
    values = made("permutation", dtype)
    assert not np.array_equal(values, np.arange(COUNT))
    assert np.array_equal(np.sort(values), np.arange(COUNT))


@each(dtype=[*INTEGERS, *FLOATS], case=[("zeros", 0), ("ones", 1), ("constant(7)", 7), (" zeros ", 0)])
def test_constants_are_everywhere(dtype, case):
    text, value = case
    assert set(made(text, dtype).tolist()) == {value}


@each(
    text=[
        *("", " ", "random", "uniform", "uniform()", "uniform(1)", "uniform(1, 2, 3)", "zeros(1)"),
        *("constant()", "uniform(1, 1)", "uniform(2, 1)", "integers(5, 5)", "integers(0.5, 2)"),
        *("integers(0, 1.5)", "uniform(a, b)", "uniform('0', 1)", "uniform(0, True)"),
        *("uniform(0, None)", "uniform(low=0, high=1)", "uniform(*x)", "uniform(0, 1).T", "uniform(0, 1)(2)"),
        *("np.zeros", "zeros()[0]", "normal(0, 1j)", "constant(1e999)", f"constant({2**63})"),
        *("__import__('os')", "lambda: 0", "uniform(0,", "zeros; ones", "zeros ones", "'zeros'", "0", "None"),
        *("\0", "uniform" * 100, "constant(" + "9" * 450 + ")"),
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ExpressionError):
        check_generator(text, "real")


TOO_LARGE = {
    "u8": ("constant(256)", "integers(0, 300)", "normal(0, 1)"),
    "i8": ("constant(128)", "constant(-129)", "integers(-129, 0)"),
    "u16": ("uniform(-1, 1)", "uniform(0, 65537)"),
    "i32": ("constant(0.5)", "normal(0, 1)"),
    "u32": ("constant(-1)",),
    "u64": ("integers(-1, 5)",),
}


@pytest.mark.parametrize(
    ("dtype", "text"), [(dtype, text) for dtype in TOO_LARGE for text in TOO_LARGE[dtype]]
)
def test_numbers_that_a_type_does_not_hold_are_refused(text, dtype):
    with pytest.raises(ExpressionError, match=f"has numbers that {dtype} does not hold"):
        check_generator(text, dtype)
    check_generator(text, "real")


DIMENSIONS = {"rows": 100, "columns": 50, "nnz": 1500}


def of_size(text, count, dtype="i32", **arrays):
    check_generator(text, dtype, DIMENSIONS, arrays)
    return generate(text, count, dtype, 1, 2, DIMENSIONS, arrays.__getitem__)


def test_csr_has_ascending_columns_in_every_row():
    offsets = of_size("csr_offsets(nnz)", 101)
    assert (offsets[0], offsets[-1]) == (0, 1500)
    assert len(set(np.diff(offsets))) > 5
    columns = of_size("csr_columns(offsets, columns)", 1500, offsets=offsets)
    for begin, end in pairwise(offsets):
        assert (np.diff(columns[begin:end]) > 0).all()
    assert 0 <= columns.min() < columns.max() < 50
    assert len({tuple(columns[begin : begin + 3]) for begin in offsets[:-1]}) > 50
    with pytest.raises(ExpressionError, match="a row has 15 elements, and there are 7 columns"):
        of_size("csr_columns(offsets, 7)", 1500, offsets=np.arange(101) * 15)
    with pytest.raises(ExpressionError, match="do not end at the 1400 elements"):
        of_size("csr_columns(offsets, columns)", 1400, offsets=offsets)


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("constant(-inf)", "f32", [-np.inf] * 4),
        ("constant(inf)", "f16", [np.inf] * 4),
        ("constant(1e30)", "f32", [np.float32(1e30)] * 4),
        ("constant(rows // 3)", "i32", [33] * 4),
        ("arange(nnz // 4)", "i32", [0, 375, 750, 1125]),
        ("mask(1)", "u8", [1] * 4),
        ("mask(0)", "f32", [0] * 4),
        ("constant(-0.25)", "f32", [-0.25] * 4),
        ("constant(65504)", "f16", [65504.0] * 4),
        ("integers(-3, -2)", "i8", [-3] * 4),
        ("integers(rows, rows + 1)", "i64", [100] * 4),
    ],
)
def test_contents_may_be_infinite_large_or_follow_the_size(text, dtype, expected):
    assert of_size(text, 4, dtype).tolist() == expected


def test_sorted_numbers_ascend_and_masks_have_their_share():
    for dtype in ("i32", "f32"):
        values = of_size("sorted(-20, rows)", 1000, dtype)
        assert (np.diff(values) >= 0).all()
        assert -20 <= values[0] < -10 < 90 < values[-1] <= 100
    assert of_size("mask(0.25)", 10_000, "u8").mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("integers(0, width)", "uses 'width', which is no dimension"),
        ("csr_columns(other, columns)", "an array that is declared before it: offsets"),
        ("csr_offsets(inf)", "not a number"),
        ("mask(1.5)", "between 0 and 1"),
        ("constant(inf)", "has numbers that i32 does not hold"),
        ("sorted(3, 3)", "nothing between its bounds"),
    ],
)
def test_contents_that_make_no_sense_are_refused_when_they_are_read(text, why):
    with pytest.raises(ExpressionError, match=why):
        check_generator(text, "i32", DIMENSIONS, ["offsets"])


def test_a_size_that_makes_no_sense_of_a_content_is_refused_when_it_is_made():
    with pytest.raises(ExpressionError, match="nothing between its bounds"):
        of_size("integers(0, rows - 100)", 4)


CALLS = st.builds(
    "{}({})".format,
    st.sampled_from(["uniform", "normal", "integers", "permutation", "zeros", "constant"]),
    st.lists(
        st.one_of(st.integers(-300, 300), st.sampled_from([-(2.0**62), 2.0**62, 0.5, -1e-3])).map(str),
        max_size=2,
    ).map(", ".join),
)


#: What surely fits into a narrow type.
FITS = {"f16": 65000, "e4m3": 440, "e5m2": 57000}


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=30), CALLS), st.sampled_from([*ELEMENT_TYPES, "real"]))
def test_what_is_accepted_can_be_made(text, dtype):
    try:
        check_generator(text, dtype)
    except ExpressionError:
        return
    for kind in FLOATS if dtype == "real" else (dtype,):
        with warnings.catch_warnings():
            warnings.simplefilter("error" if kind not in FLOATS else "ignore")
            if kind in FITS and np.abs(generate(text, 50, "f32", 0, 0)).max() > FITS[kind]:
                continue  # which may or may not fit
            values = generate(text, 50, kind, 0, 0)
        assert (values.shape, values.dtype) == ((50,), numpy_dtype(kind))


@pytest.mark.parametrize(
    ("text", "dtype", "count"),
    [
        ("permutation", "i8", 129),
        ("permutation", "u16", 65537),
        ("permutation", "f16", 70_000),
        ("uniform(0, 1e6)", "f16", 100),
        ("constant(70000)", "f16", 1),
    ],
)
def test_numbers_that_a_type_does_not_hold_are_said_and_not_wrapped(text, dtype, count):
    with pytest.raises(ExpressionError, match=f"has numbers that {dtype} does not hold"):
        generate(text, count, dtype, 0, 0)
    assert set(generate("permutation", 128, "i8", 0, 0).tolist()) == set(range(128))
