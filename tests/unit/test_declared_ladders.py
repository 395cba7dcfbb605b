# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The shipped operations without code: their references against plain loops, and what their checks see."""

import numpy as np
import pytest

from gpuprof.errors import HeaderError
from gpuprof.kernels.paths import Source, ladder_of
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_operation
from gpuprof.problems.check import compare
from gpuprof.problems.declaration import load_operation
from gpuprof.problems.problem import Problem

SEED = 5


def problem(name, *sizes, dtype="f32", **options):
    return Problem.of(shipped_operation(name), sizes, dtype, None, options)


def expected_of(problem):
    """The values of the one output, and what tells wrong ones."""
    (spec,) = problem.outputs
    expected = problem.reference(problem.inputs(SEED))[spec.name]

    def wrong(values):
        got = np.asarray(values, problem.inputs(SEED)["x"].dtype)
        return int(compare(got, expected.values, expected.magnitude, problem.bound(spec.name)).wrong.sum())

    return expected.values, wrong


@pytest.mark.parametrize("n", [1000, 2**24])
def test_sum_that_misses_one_element_is_wrong(n):
    summed = problem("reduce", n)
    (values, wrong), x = expected_of(summed), summed.inputs(SEED)["x"]
    missed = next(element for element in x[::-1] if element)
    assert wrong(values - missed) == 1


@pytest.mark.parametrize("columns", [33, 1000, 8192])
def test_softmax_that_leaves_an_average_element_out_of_its_sum_is_wrong(columns):
    softmax = problem("softmax", 1, columns)
    values, wrong = expected_of(softmax)
    assert wrong(values / (1 - 1 / columns)) == columns


DECLARATION = """name = "mine"
dimensions = ["n"]
[arrays.x]
shape = ["n"]
[arrays.y]
shape = ["n"]
role = "out"
{options}
[work]
bytes = "n"
[check]
y = "2 * x"
relative = "u"
{ceiling}
"""


def declared(tmp_path, options="", ceiling="", **replaced):
    text = DECLARATION.format(options=options, ceiling=ceiling)
    for old, new in replaced.items():
        text = text.replace(old, new)
    path = tmp_path / "operation.toml"
    path.write_text(text)
    return load_operation(path)


OPTIONS = '[options.result]\nvalues = { all = "", half = "" }\nceiling = "half"\n'


def test_ceiling_with_checks(tmp_path):
    operation = declared(tmp_path, OPTIONS, '[ceiling]\ny = { value = "x", equal = true }')
    half = Problem.of(operation, (3,), options={"result": "half"})
    assert half.checks["y"].value == "x"
    assert Problem.of(operation, (3,)).checks["y"].value == "2 * x"


@pytest.mark.parametrize(
    ("options", "ceiling", "words"),
    [
        ("", '[ceiling]\ny = "x"\nequal = true', "ceiling has checks for kernels that no option calls a"),
        (OPTIONS, '[ceiling]\ny = "z"\nequal = true', "ceiling.y.value uses 'z'; known are n, x"),
        (OPTIONS, '[ceiling]\nx = "x"', "lacks ceiling.y.value"),
    ],
)
def test_faulty_checks_of_a_ceiling_are_refused(tmp_path, options, ceiling, words):
    with pytest.raises(HeaderError) as caught:
        declared(tmp_path, options, ceiling)
    assert words in caught.value.what


@pytest.mark.parametrize("name", ["in", "lambda", "is"])
def test_name_that_no_formula_can_use_is_refused_where_it_stands(tmp_path, name):
    with pytest.raises(HeaderError, match=f"names '{name}', which formulas use for something else"):
        declared(tmp_path, **{"arrays.x": f"arrays.{name}"})


def test_they_need_no_code():
    declared_only = {
        path.parent.name for path in KERNEL_ROOT.glob("*/operation.toml") if not load_operation(path).coded
    }
    assert declared_only >= {"reduce", "softmax"}


@pytest.mark.parametrize(("name", "said"), [("b", "the path before it b"), ("a", "declares a unlike")])
def test_what_tells_two_operations_apart_is_said(name, said):
    text = """/*gpuprof
operation = "{0}"
dimensions = ["n"]
arguments = ["y"]
arrays.y = {{ shape = ["n"], role = "out" }}
work.bytes = "4 * n"
check.y = {{ value = "{1} * ones(n)", equal = true }}
launch = {{ block = [32], grid = ["1"] }}
*/
extern "C" __global__ void {2}(float *y) {{}}
"""
    with pytest.raises(HeaderError, match=said):
        ladder_of(
            [Source(text.format(name, 1, "first"), "first"), Source(text.format("a", 2, "second"), "second")]
        )
