# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Formulas over numbers and arrays: what Python and NumPy would say, in a language of nothing else."""

import contextlib
import gc
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuprof.problems.formulas import (
    ARRAY_FUNCTIONS,
    ExpressionError,
    evaluate,
    evaluate_arrays,
    evaluate_real,
    parse_expression,
    variables,
)

RNG = np.random.default_rng(1)
#: Arrays as problems hand them over: of the run's type, of integers, one vector, and plain numbers.
VALUES = {
    "x": RNG.standard_normal((3, 4)).astype(np.float32),
    "y": RNG.uniform(0.1, 0.9, (3, 4)),
    "v": RNG.standard_normal(4),
    "h": RNG.standard_normal((2, 3)).astype(np.float16),
    "i": RNG.integers(0, 6, 12).astype(np.int32),
    "u": RNG.integers(0, 200, (3, 4)).astype(np.uint8),
    "w": np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
    "z": np.array([[0.0, -0.0, np.inf], [np.nan, -np.inf, 1e300]]),
    "n": 4,
    "k": 3,
    "s": 0.5,
}
#: The same, as wide as they are computed with, and what may be called of NumPy, by its name in formulas.
WIDE = {name: VALUES[name].astype(np.float64) for name in "xyvz"} | {
    name: VALUES[name].astype(np.int64) for name in "iu"
}
OTHERS = {
    "f32": lambda x: x.astype(np.float32).astype(np.float64),
    "f16": lambda x: x.astype(np.float16).astype(np.float64),
    "bf16": lambda x: x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64),
    "cdiv": lambda x, y: -(-x // y),
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "bincount": lambda x, minlength=0, weights=None: np.bincount(x.ravel(), weights, minlength),
}
#: All that a formula may use where Python evaluates it.
PYTHON = {
    "__builtins__": {},
    **{name: OTHERS.get(name) or getattr(np, name) for name in ARRAY_FUNCTIONS},
    **{**WIDE, "n": np.int64(4), "k": np.int64(3), "s": np.float64(0.5)},
}
#: Each function at least once, and each operator.
FUNCTIONS = [
    *(f"{name}(y)" for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "reciprocal")),
    *(f"{name}(y)" for name in ("sqrt", "cbrt", "square", "sin", "cos", "tan", "arcsin", "arccos", "arctan")),
    *(f"{name}(y)" for name in ("sinh", "cosh", "tanh")),
    *(f"{name}(x)" for name in ("abs", "sign", "floor", "ceil", "trunc", "rint", "f16", "bf16", "ravel")),
    *(f"{name}(z)" for name in ("isnan", "isinf", "isfinite")),
    *(f"{name}(x, y)" for name in ("maximum", "minimum", "fmax", "fmin", "arctan2", "hypot", "fmod")),
    *(
        f"{name}(x{how})"
        for name in ("sum", "prod", "max", "min", "mean", "var", "std")
        for how in ("", ", axis=1, keepdims=True")
    ),
    *("power(y, x)", "fmax(z, 1)", "maximum(z, 1)", "sum(x, 0)", "sum(x, axis=(0, 1))", "max(x, axis=-1)"),
    *("any(x > 1, axis=0)", "all(x > -9)", "argmax(x, axis=1)", "argmin(x)", "cumsum(x, axis=1)"),
    *("cumsum(x)", "cumprod(x, axis=0)", "cdiv(i, 3)", "sort(x)", "sort(x, axis=0)", "argsort(i)"),
    *("where(x > 0, x, 0)", "clip(x, -s, s)", "transpose(x)", "matmul(x, v)", "outer(v, v)", "flip(x)"),
    *("transpose(reshape(i, (2, 3, 2)), (2, 0, 1))", "flip(x, axis=1)", "reshape(x, (n, k))"),
    *("reshape(x, -1)", "reshape(x, (2 * n) // 2 * k)", "broadcast_to(v, (2, n))", "bincount(i, 8)"),
    *("bincount(reshape(i, (3, 4)))", "bincount(i, weights=2 * i, minlength=8)", "arange(n)", "roll(v, 1)"),
    *("roll(x, -1, axis=0)", "pad(v, 2)", "take(v, i % n)", "take(x, (0, 2), axis=0)", "f32(s * x)"),
    *("pad(x, ((0, 1), (2, 0)))", "pad(v, ((0, 3),))"),
    *("concatenate((v, v))", "concatenate([x, x], axis=1)", "reshape(x, [n, k])", "zeros((2, n))", "ones(n)"),
]
OPERATORS = [
    *("x + y", "x - v", "x * y", "x / y", "x // y", "x % y", "y ** 2", "x @ transpose(x)", "i & 3", "i | 8"),
    *("i ^ 5", "i << 2", "i >> 1", "-x", "+x", "~i", "i / 2", "i // 2", "x == x", "x != y", "x < y"),
    *("x <= y", "x > y", "x >= y", "n - 1", "s", "True", "x[0]", "x[-1, 1]", "x[[0, -1]]", "x[:, 1:]"),
    "(x + y)[1:]",
    *("x[::2, None, ::-1]", "x[k - 1, : n // 2]", "x[:, i % n]", "x[x > 0]", "v[None, :] * v[:, None]"),
]


def same(got, expected):
    assert got.shape == np.shape(expected)
    assert got.dtype.kind == np.asarray(expected).dtype.kind
    np.testing.assert_array_equal(got, expected)


@each(formula=[*FUNCTIONS, *OPERATORS])
def test_formula_is_what_numpy_says(formula):
    same(evaluate_arrays(formula, VALUES), eval(formula, PYTHON))


def test_not_is_of_each_element():
    same(evaluate_arrays("not x > 0", VALUES), ~(WIDE["x"] > 0))


def test_every_function_is_tried():
    called = {formula.partition("(")[0] for formula in FUNCTIONS}
    assert called == set(ARRAY_FUNCTIONS)


@pytest.mark.parametrize(
    ("formula", "dtype"),
    [
        ("h", np.float64),
        ("h * 2", np.float64),
        ("u - 201", np.int64),
        ("i * 2.0", np.float64),
        ("w // 2 + 1", np.uint64),  # a double does not hold it
        ("w & n", np.uint64),
    ],
)
def test_numbers_are_as_wide_as_they_can_be(formula, dtype):
    assert evaluate_arrays(formula, VALUES).dtype == dtype


def test_what_has_no_value_is_nan_or_infinite_and_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logarithm = np.array([[-np.inf, -np.inf, np.nan], [np.nan, np.nan, -np.inf]])
        same(evaluate_arrays("log(z - z)", VALUES), logarithm)
        assert np.isinf(evaluate_arrays("exp(10000 * y)", VALUES)).all()


def test_names_are_found_without_the_functions():
    formula = "exp(scale*x - max(scale*x, axis=1, keepdims=True)) / n"
    assert variables(formula, "arrays") == {"scale", "x", "n"}
    assert variables("sum(sum)", "arrays") == {"sum"}


REFUSED = [
    # Attributes, which lead out of any language.
    *("x.T", "x.__class__", "x.tofile('y')", "().__class__.__bases__", "sum.__globals__", "x.shape[0]"),
    # Calls of anything else.
    *("__import__('os')", "open('x')", "eval('x')", "np.sum(x)", "x(1)", "sum(x)(1)", "(sum)(x)(x)"),
    *("getattr(x, 'T')", "print(x)", "len(x)", "int(s)", "float('nan')", "range(3)"),
    *("save(x)", "fromfile(x)"),
    # Python's own constructions.
    *("lambda: x", "lambda x: x", "[x for x in y]", "{x for x in y}", "(x for x in y)", "{1: x}"),
    *("{x, y}", "[x, *y]", "x if s else y", "x and y", "x or y", "x in y", "x not in y", "x is y"),
    *("0 < x < 1", "(a := x)", "f'{x}'", "'x'", "b'x'", "1j", "...", "x[...]", "None", "await x"),
    *("yield x", "*x", "x if 1 else y"),
    # Arguments by packing, or of names that a function does not have.
    *("sum(*x)", "sum(**x)", "sum(x, **{'axis': 1})", "maximum(*(x, y))", "sum(x, dtype=1)"),
    *("sum(x, out=y)", "exp(x, y)", "exp()", "exp(x, where=y)", "maximum(x)", "sum()"),
    *("sum(x, 1, 1, 1)", "where(x)", "clip(x)", "sum(axis=1)", "sum(x, axis=1, axis=0)", "arange(1, 2)"),
    *("zeros(shape=n, dtype=x)", "take(x)", "pad(x)"),
    # No expression at all.
    *("", " ", "x +", "x y", "(x", "x)", "x = y", "x; y", "import os", "del x", "pass", "x\ny", "1 2"),
    *("\0", "x\\", "# x", "def f(): x", "x #\n+", "0x", "1_", "9" * 400),
    *("x" * 501, "(" * 240 + "x" + ")" * 240),
]


@each(formula=REFUSED)
def test_everything_else_is_refused_when_it_is_read(formula):
    with pytest.raises(ExpressionError):
        variables(formula, "arrays")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("x + q", "unknown name 'q'; known are h, i, k, n, s, u, v, w, x, y, z"),
        ("x + reshape(y, (2, 6))", "cannot be evaluated: operands could not be broadcast together"),
        ("pad(v, (0, 1))", "each axis takes a number, or a pair"),
        ("x[5]", "cannot be evaluated: index 5 is out of bounds"),
        ("sum(x, axis=7)", "cannot be evaluated: axis 7 is out of bounds"),
        ("reshape(x, -7)", "is not a shape"),
        ("2 ** -1", "cannot be evaluated: Integers to negative integer powers"),
        ("~x", "cannot be evaluated: ufunc 'invert' not supported"),
        ("n[0]", "cannot be evaluated: "),
    ],
)
def test_what_numpy_refuses_is_one_sentence(formula, words):
    with pytest.raises(ExpressionError) as caught:
        evaluate_arrays(formula, VALUES)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def either(text):
    """The value of a text, or the one error that it may raise."""
    try:
        value = evaluate_arrays(text, VALUES)
    except ExpressionError:
        return None
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize(
    "text",
    [
        *("-" * 499 + "x", "not " * 124 + "x", "~" * 499 + "i", "x" + "[0]" * 166),
        *("sum(" * 99 + "x" + ")" * 99, "(" * 199 + "x" + ")" * 199, "x" + "+x" * 249, "x" + "**0" * 166),
        "(" * 100 + "x," * 100 + ")" * 100,
    ],
)
def test_nesting_as_deep_as_a_text_is_long_is_no_crash(text):
    assert len(text) <= 500
    either(text)


#: Pieces of Python, none of which makes an array larger than those it is given.
PIECES = [
    *("x", "v", "i", "n", "s", "w", "z", "q", "0", "1", "2", "-1", "0.5", "1e9", "True", "None", "..."),
    *("1j", "'a'", "+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "~", "not "),
    *("==", "<", ">=", "!=", "(", ")", "[", "]", ",", ":", "::", " ", "=", "axis=", "keepdims=", "."),
    *(".T", ":=", "lambda ", " if ", " else ", " and ", " in ", " for ", " is ", "{", "}", "\n", "#"),
    *("\\", "\t", "é", "_", "import ", "__class__", "await ", "sum(", "max(", "exp(", "where(", "sort("),
    *("reshape(", "take(", "transpose(", "clip(", "concatenate(", "f16("),
]


@pytest.mark.deep
@settings(max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_pieces_of_python_have_a_value_or_are_refused(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        either(text)


# The language against Python itself, but for `not` and `**`: Python asks an array for one truth value, and
# NumPy's own power of two scalars is up to an ulp off that of arrays.

BINARY = ("+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=")
ONE = ("exp", "abs", "sqrt", "floor", "sign", "isnan", "square", "tanh", "cumsum", "transpose", "-", "~")
TWO = ("maximum", "minimum", "hypot", "power", "fmod")
REDUCED = ("sum", "max", "min", "mean", "prod", "any", "all", "argmax", "std")
AXES = ("0", "1", "-1", "None", "(0, 1)", "0, keepdims=True", "-1, keepdims=True")
INDICES = ("0", "-1", "1:", ":, 0", "::-1", "None", ":2, None", "0, 1", "x > 0", "7", "1:1")
#: What is made of smaller formulas, which stand for each {}.
LARGER = [
    *(f"({{}} {sign} {{}})" for sign in BINARY),
    *(f"{name}({{}})" for name in ONE),
    *(f"{name}({{}}, {{}})" for name in TWO),
    *(f"{name}({{}}, axis={axis})" for name in REDUCED for axis in AXES),
    *(f"({{}} + {{}})[{index}]" for index in INDICES),
    "where({}, {}, {})",
]


def composed(smallest, larger, max_leaves):
    """Formulas that are made of the smallest ones."""
    return st.recursive(
        smallest,
        lambda inner: st.sampled_from(larger).flatmap(
            lambda text: st.tuples(*[inner] * text.count("{}")).map(lambda parts: text.format(*parts))
        ),
        max_leaves=max_leaves,
    )


@pytest.mark.deep
@settings(max_examples=400)
@given(composed(st.sampled_from("xyviuznks"), LARGER, 6))
def test_formula_agrees_with_python_over_numpy(formula):
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = np.asarray(eval(formula, PYTHON))
    except Exception:
        expected = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = either(formula)
    assert (got is None) == (expected is None), formula
    if got is not None:
        same(got, expected)


KNOWN = {"M": 4096, "N": 100, "K": 7, "block_x": 32}

NUMBERS = st.integers(0, 2**40).map(str) | st.sampled_from(sorted(KNOWN))
#: Python's `and` and `or` give an operand; the header's give 0 or 1.
OF_NUMBERS = [
    *(f"({{}} {sign} {{}})" for sign in ("+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=")),
    *("({} < {} <= {})", "({} if {} else {})", "(-{})", "(not {})", "min({}, {})", "max({}, {})"),
    *("cdiv({}, {})", "({} != 0 and {} != 0)", "({} != 0 or {} != 0)"),
]


@given(composed(NUMBERS, OF_NUMBERS, 12))
def test_agrees_with_python(text):
    def cdiv(dividend, divisor):
        return dividend // divisor + (dividend % divisor != 0)

    names = {**KNOWN, "cdiv": cdiv, "min": min, "max": max, "__builtins__": {}}
    try:
        expected = eval(text, names)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            evaluate(text, KNOWN)
        return
    assert evaluate(text, KNOWN) == int(expected)
    assert type(evaluate(text, KNOWN)) is int


def test_a_chain_of_comparisons_ends_at_the_first_that_does_not_hold():
    assert evaluate("0 < 0 <= 1 // 0", KNOWN) == 0
    assert evaluate("1 < M <= 4096 < K", KNOWN) == 0
    with pytest.raises(ExpressionError, match="divides by zero"):
        evaluate("0 < 1 <= 1 // 0", KNOWN)


@each(
    text=[
        *("1.5", "M / 2", "1j", "'x'", "b'x'", "f'{M}'", "True", "None", "...", "M ** -1", "2 ** 65"),
        *("9 ** 9 ** 9 ** 9", "(2 ** 63 * 2) ** 2"),
        *("1 << 70", "M >> 1", "M & 1", "M | 1", "M ^ 1", "~M", "+M", "M @ N", "M.real", "M.__class__"),
        *("(1).bit_length()", "__import__('os')", "abs(M)", "int('3')", "min(M, key=N)", "min(*M)"),
        *("lambda: 1", "(lambda: 1)()", "(M := 3)", "[M]", "(M, N)", "{M}", "{}", "[x for x in M]", "M[0]"),
        *("M in N", "M not in N", "M is N", "await M"),
        # Too few arguments, or too many.
        *("cdiv(1)", "cdiv()", "cdiv(1, 2, 3)", "min()", "max()", "min(3)", "max(M)"),
        # Monsters.
        *("-" * 500 + "1", "1" + "+1" * 20_000, "(" * 300 + "1" + ")" * 300, "-" * 20_000 + "1", "9" * 5000),
        "not " * 20_000 + "1",
    ],
)
def test_anything_else_of_python_is_refused(text):
    with pytest.raises(ExpressionError):
        evaluate(text, KNOWN)


@pytest.mark.parametrize(
    "text", ["", "   ", "M +", "(M", "M N", "M; N", "import os", "M = 3", "yield", "\0", "if", "3x"]
)
def test_malformed_text_is_refused(text):
    for read in (variables, lambda text: evaluate(text, KNOWN)):
        with pytest.raises(ExpressionError, match="is not an expression"):
            read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cdiv(M, K - 7)", "'cdiv(M, K - 7)' divides by zero"),
        ("cdiv(Q, 2)", "unknown name 'Q'; known are K, M, N, block_x"),
    ],
)
def test_what_has_no_value_says_why(text, words):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, KNOWN)
    assert str(caught.value) == words


def test_where_nothing_is_known_nothing_is_listed():
    with pytest.raises(ExpressionError, match=r"unknown name 'n'\Z"):
        evaluate("n", {})


@pytest.mark.deep
@given(st.text(max_size=30))
def test_any_text_gives_an_integer_or_an_expression_error(text):
    with contextlib.suppress(ExpressionError):
        assert type(evaluate(text, KNOWN)) is int


def test_variables_are_the_names_read_without_the_functions():
    assert variables("cdiv(N, block_x) if M > 3 else min(K, N)") == {"N", "block_x", "M", "K"}
    assert variables("1 + 2") == set()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("2 ** -23", 2**-23), ("2.0 ** 3", 8), ("K ** 0.5", 7**0.5), ("K ** 2", 49), ("0.5 ** K", 2**-7)),
        *((text, None) for text in ("(-2.0) ** 0.5", "0.0 ** -1", "10.0 ** 400", "9 ** 9 ** 9 ** 9")),
    ],
)
def test_powers_of_any_numbers(text, value):
    if value is None:
        with pytest.raises(ExpressionError):
            evaluate_real(text, {"K": 7})
    else:
        assert evaluate_real(text, {"K": 7}) == value


def test_several_threads_read_expressions_while_garbage_is_collected():
    class Lets:
        """Lets another thread go on when it is collected."""

        def __del__(self):
            time.sleep(0)

    def read(_):
        for _ in range(1000):
            garbage = Lets()
            garbage.itself = garbage
            del garbage
            parse_expression("uniform(-1, 1) + a * (b - c)")

    before = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(1)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(read, range(8)))
    finally:
        gc.set_threshold(*before[0])
        sys.setswitchinterval(before[1])
