# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An operation made of the arguments of a call: sizes, scalars, outputs, tolerances, and what is refused."""

import sys
from types import ModuleType

import numpy as np
import pytest
from each import each

from gpuprof.errors import InputError
from gpuprof.problems import given
from gpuprof.problems.by_value import read_call
from gpuprof.problems.dtypes import ELEMENT_TYPES, numpy_dtype, smallest
from gpuprof.problems.problem import Problem

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.ones(12, np.float32)


def read(tmp_path, arguments, expected, **more):
    return read_call("call", arguments, expected, tmp_path, **more)


def problem_of(call):
    return Problem.of(call.operation, call.sizes, call.dtype, call.scalars)


@pytest.fixture
def in_folder(tmp_path):
    given.look_in(str(tmp_path))
    return tmp_path


def test_without_such_integers_the_output_gives_the_sizes(tmp_path):
    call = read(tmp_path, {"a": 2.5, "x": Y, "y": None}, {"y": X})
    assert dict(zip(call.operation.dimensions, call.sizes, strict=True)) == {"shape_0": 3, "shape_1": 4}
    assert call.operation.scalars["a"].type == "f64"


def test_functions_get_all_arguments_and_cannot_change_them(tmp_path):
    def doubled(values):
        assert set(values) == {"a", "x", "y"}
        with pytest.raises(ValueError, match="read-only"):
            values["x"][0] = 1
        with pytest.raises(TypeError):
            values["a"] = 1
        return values["a"] * values["x"].ravel() + values["y"]

    call = read(tmp_path, {"a": 2.0, "x": X, "y": Y}, {"y": doubled})
    given.look_in(str(tmp_path))
    problem = problem_of(call)
    expected = problem.reference(problem.inputs(0))["y"].values
    np.testing.assert_array_equal(expected, 2 * np.arange(12) + 1)


class WithArray:
    def __array__(self, dtype=None, copy=None):
        return np.asarray(Y, dtype)


class WithDlpack:
    def __dlpack__(self, **options):
        return Y.__dlpack__(**options)

    def __dlpack_device__(self):
        return Y.__dlpack_device__()


class OnDevice:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.\nUse Tensor.cpu()")


@pytest.mark.parametrize("value", [WithArray(), WithDlpack(), Y.astype(">f4"), np.stack([Y, Y], 1)[:, 0]])
def test_whatever_gives_an_array_is_one(in_folder, value):
    call = read(in_folder, {"x": value, "y": None}, {"y": Y})
    np.testing.assert_array_equal(problem_of(call).inputs(0)["x"], Y)
    assert call.operation.arrays["x"].dtype == "f32"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.int64(3), "i32"),
        (True, "i32"),
        (2**31 - 1, "i32"),
        (2**31, "u32"),
        (2**32 - 1, "u32"),
        (2**32, "i64"),
        (-(2**31), "i32"),
        (-(2**31) - 1, "i64"),
        (2**53, "i64"),
        (np.float32(0.5), "f32"),
        (0.5, "f64"),
        (np.array(3), "i32"),
    ],
)
def test_scalars_are_as_narrow_as_holds_them(tmp_path, value, kind):
    call = read(tmp_path, {"k": value, "y": Y}, {"y": Y})
    assert call.operation.scalars["k"].type == kind
    assert call.scalars["k"] == float(value)


class Tensor:
    """One of PyTorch's, whose types are none of NumPy's."""

    def __init__(self, array):
        self.array, self.dtype = array, f"torch.{array.dtype}"

    def view(self, dtype):
        return self.array.view(dtype)

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("made", [lambda z: z, lambda z: z.astype(">c8"), Tensor])
def test_complex_numbers_are_pairs_and_structs_bytes_but_for_what_is_asked(in_folder, made):
    z, both = Y[:6] + 1j * X.ravel()[:6], np.zeros(6, "f4, u1")
    both["f1"] = 3
    call = read(
        in_folder,
        {"z": made(z.astype("c8")), "s": both, "y": None},
        {"y": lambda values: values["z"] ** 2 * values["s"]["f1"]},
    )
    declared = {name: (one.dtype, one.shape) for name, one in call.operation.arrays.items()}
    assert declared == {"z": ("f32", ("6", "2")), "s": ("u8", ("6", "5")), "y": ("f32", ("6", "2"))}
    assert call.compound == {"z": np.dtype("c8"), "s": both.dtype, "y": np.dtype("c8")}
    problem = problem_of(call)
    inputs = problem.inputs(0)
    np.testing.assert_array_equal(inputs["z"].ravel().view("c8"), z)
    np.testing.assert_array_equal(inputs["s"].ravel().view(both.dtype), both)


def test_truth_values_are_bytes(tmp_path):
    call = read(tmp_path, {"x": Y > 0, "y": None}, {"y": Y > 0})
    assert {array.dtype for array in call.operation.arrays.values()} == {"u8"}


def test_tolerance_follows_the_type_and_the_mean_or_what_is_said(tmp_path):
    check = problem_of(read(tmp_path, {"y": None}, {"y": 3 * Y})).bound("y")
    assert check.relative == 32 * 2.0**-24
    assert check.absolute == pytest.approx(3 * 32 * 2.0**-24)
    shares = {"bf16": 32 * 2.0**-8, "e4m3": 2 * 2.0**-4, "e5m2": 2 * 2.0**-3}
    narrow = {kind: np.ones(4).astype(numpy_dtype(kind)) for kind in shares}
    bound = problem_of(read(tmp_path, dict.fromkeys(shares), narrow)).bound
    assert {kind: bound(kind).relative for kind in shares} == shares
    arguments = {"x": None, "y": None}
    call = read(tmp_path, arguments, {"x": Y, "y": Y}, relative=1e-3, absolute={"y": 0.5})
    bounds = {name: problem_of(call).bound(name) for name in arguments}
    assert (bounds["x"].relative, bounds["x"].absolute) == (1e-3, smallest("f32") / 2)
    assert (bounds["y"].relative, bounds["y"].absolute) == (1e-3, 0.5)
    whole = problem_of(read(tmp_path, {"y": None}, {"y": np.arange(3)})).bound("y")
    assert (whole.relative, whole.absolute) == (0, 0)


def test_products_of_neighbouring_extents_are_sizes(tmp_path):
    cube = np.zeros((2, 3, 5), np.float32)
    numbers = {"a": 2, "b": 3, "c": 5, "ab": 6, "bc": 15, "abc": 30, "ac": 10}
    call = read(tmp_path, {**numbers, "x": cube, "y": Y}, {"y": Y})
    assert set(call.operation.dimensions) == {"a", "b", "c", "ab", "bc", "abc"}
    assert call.scalars == {"ac": 10}


def test_arrays_are_named_by_their_content_and_stored_once(tmp_path):
    call = read(tmp_path, {"x": Y, "y": Y.copy()}, {"y": Y})
    named = {*call.operation.inputs.values(), call.operation.checks["y"].value}
    assert len(named) == len(list(tmp_path.iterdir())) == 1
    other = read(tmp_path, {"x": X.reshape(4, 3), "y": Y}, {"y": Y})
    assert other.operation.inputs["x"] != read(tmp_path, {"x": X, "y": Y}, {"y": Y}).operation.inputs["x"]


@pytest.mark.parametrize(
    ("arguments", "expected", "message"),
    [
        ({"y": Y}, {}, "Nothing is expected of the kernel"),
        ({"y": Y}, {"z": Y}, r"'z' is expected, and is not an argument\. Expect one of y"),
        ({"x": None, "y": Y}, {"y": Y}, "x is None, and nothing is expected of it"),
        ({"x": None, "y": Y}, {"x": None, "y": Y}, "x is None, and nothing is expected of it"),
        ({"y": Y}, {"y": None}, "Nothing is expected of the kernel"),
        ({"2x": Y, "y": Y}, {"y": Y}, "'2x' is not"),
        ({1: Y, "y": Y}, {"y": Y}, "1 is not an argument name"),
        ({"x": [1, 2], "y": Y}, {"y": Y}, "x is a list: neither a number nor an array"),
        (
            {"x": OnDevice(), "y": Y},
            {"y": Y},
            r"x cannot be read as an array: can't convert cuda:0[^.]*\. Arr",
        ),
        ({"x": np.zeros(0), "y": Y}, {"y": Y}, "x is an empty array"),
        ({"x": X.T, "y": Y}, {"y": Y}, r"x lies in memory column by column.*Give x\.T"),
        ({"x": np.array(1j), "y": Y}, {"y": Y}, "x holds complex128"),
        (
            {"x": np.zeros(2, np.longdouble), "y": Y},
            {"y": Y},
            r"x holds float128\. Convert it to one of float3",
        ),
        ({"y": None}, {"y": np.zeros(2, "f4, i4")}, r"y holds structs\. Give an array of them as bytes"),
        ({"x": np.zeros((), "f4, i4")[()], "y": Y}, {"y": Y}, r"of one that is passed by value each member"),
        ({"a": float("nan"), "y": Y}, {"y": Y}, "a = nan is not a finite number"),
        ({"a": 2**53 + 1, "y": Y}, {"y": Y}, r"a = 9007199254740993 is too large"),
        ({"a": -(2**53) - 1, "y": Y}, {"y": Y}, r"a = -9007199254740993 is too large"),
        ({"é": Y, "y": Y}, {"y": Y}, "'é' is not"),
        ({"y": Y}, {"y": X}, r"y has the shape \(12,\); what is expected of it has the shape \(3, 4\)"),
        ({"y": Y}, {"y": Y * np.nan}, r"y holds NaN.* y\[0\] is the first"),
        ({"y": np.arange(3)}, {"y": np.full(3, 0.5)}, "y is nothing that int64 holds"),
        ({"y": np.zeros(2, np.uint8)}, {"y": np.array([1, 256])}, "y is nothing that uint8 holds"),
        ({"y": np.zeros(2, np.uint8)}, {"y": np.array([-1, 2])}, "y is nothing that uint8 holds"),
        ({"y": np.zeros(2, np.uint8)}, {"y": np.array([0.0, 1.5])}, "y is nothing that uint8 holds"),
        ({"y": np.zeros(2, np.int8)}, {"y": np.array([1, np.inf])}, "y is nothing that int8 holds"),
        ({"y": None}, {"y": np.float32(1)}, "What is expected of y is not an array"),
        ({"y": None}, {"y": np.array(["a"])}, "What is expected of y holds str32. Convert it"),
    ],
)
def test_what_is_no_call_is_refused(tmp_path, arguments, expected, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, arguments, expected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"relative": -1.0}, "relative = -1.0 is not an error of y"),
        ({"relative": float("nan")}, "relative = nan is not an error of y"),
        ({"absolute": "big"}, "absolute = 'big' is not an error of y"),
        ({"flops": "2 * m"}, r"flops = 2 \* m cannot be used: 'm' is not a size; those are n"),
        ({"nbytes": "n +"}, r"bytes = n \+ cannot be used"),
        ({"flops": -3}, "flops = -3 cannot be used: it is negative"),
    ],
)
def test_what_is_no_error_and_no_work_is_refused(tmp_path, more, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, {"n": 12, "y": Y}, {"y": Y}, **more)


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(InputError, match=r"no room for 48 bytes of arguments in .*: No space left on device"):
        read(tmp_path, {"y": Y}, {"y": Y})


def test_some_elements_are_those_of_the_whole(in_folder):
    arguments = {"x": X, "y": None, "z": None, "any": Y}
    call = read(in_folder, arguments, {"y": -X, "z": np.arange(5) - 2, "any": None})
    problem = problem_of(call)
    whole = problem.reference({})
    for name, indices in (("y", np.array([3, 0, 11])), ("z", np.array([4, 1]))):
        some = problem.reference_at({}, name, indices)
        np.testing.assert_array_equal(some.values, whole[name].values[indices])
        np.testing.assert_array_equal(some.magnitude, np.abs(whole[name].values[indices]))
        assert some.values.dtype == whole[name].values.dtype
    assert problem.reference_at({}, "any", np.array([3])) is None
    assert not whole["any"].values.size


@each(kind=[name for name, element in ELEMENT_TYPES.items() if element.of_ml_dtypes])
def test_what_only_pytorch_has_is_read_as_its_type(kind, monkeypatch, in_folder):
    torch = ModuleType("torch")
    torch.int8, torch.int16 = np.int8, np.int16
    monkeypatch.setitem(sys.modules, "torch", torch)
    given = np.arange(8).astype(numpy_dtype(kind))
    call = read(in_folder, {"x": Tensor(given), "y": Tensor(given)}, {"y": given})
    assert [array.dtype for array in call.operation.arrays.values()] == [kind, kind]
    inputs = problem_of(call).inputs(0)
    assert [inputs[name].dtype for name in "xy"] == [given.dtype] * 2
    assert (inputs["y"] == given).all()


@pytest.mark.parametrize("values", [[0, 255], [0.0, 255.0]])
def test_what_is_expected_of_integers_may_be_any_that_they_hold(in_folder, values):
    call = read(in_folder, {"y": np.zeros(2, np.uint8)}, {"y": np.array(values)})
    assert problem_of(call).reference({})["y"].values.tolist() == [0, 255]
