# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Header expressions: Python's own arithmetic on integers, and nothing else of Python."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.problems.formulas import ExpressionError, evaluate, variables

VALUES = {"M": 4096, "N": 100, "K": 7, "block_x": 32}

_integers = st.integers(0, 2**40).map(str)
_names = st.sampled_from(sorted(VALUES))


def _deeper(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        inner.map(lambda t: f"(-{t})"),
        inner.map(lambda t: f"(not {t})"),
        pair.map(lambda t: f"min({t[0]}, {t[1]})"),
        pair.map(lambda t: f"max({t[0]}, {t[1]})"),
        pair.map(lambda t: f"cdiv({t[0]}, {t[1]})"),
        # Python's `and` and `or` give an operand; the header's give 0 or 1.
        pair.map(lambda t: f"({t[0]} != 0 and {t[1]} != 0)"),
        pair.map(lambda t: f"({t[0]} != 0 or {t[1]} != 0)"),
    )


@given(st.recursive(_integers | _names, _deeper, max_leaves=12))
def test_agrees_with_python(text):
    def cdiv(dividend, divisor):
        return dividend // divisor + (dividend % divisor != 0)

    names = {**VALUES, "cdiv": cdiv, "min": min, "max": max, "__builtins__": {}}
    try:
        expected = eval(text, names)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            evaluate(text, VALUES)
        return
    assert evaluate(text, VALUES) == int(expected)
    assert type(evaluate(text, VALUES)) is int


def test_a_chain_of_comparisons_ends_at_the_first_that_does_not_hold():
    assert evaluate("0 < 0 <= 1 // 0", VALUES) == 0
    assert evaluate("1 < M <= 4096 < K", VALUES) == 0
    with pytest.raises(ExpressionError, match="divides by zero"):
        evaluate("0 < 1 <= 1 // 0", VALUES)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1.5",
            "M / 2",
            "1j",
            "'x'",
            "b'x'",
            "f'{M}'",
            "True",
            "None",
            "...",
            "M ** -1",
            "2 ** 64",
            "9 ** 9 ** 9 ** 9",
            "(2 ** 63 * 2) ** 2",
        ),
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
        evaluate(text, VALUES)


@pytest.mark.parametrize(
    "text", ["", "   ", "M +", "(M", "M N", "M; N", "import os", "M = 3", "yield", "\0", "if", "3x"]
)
def test_malformed_text_is_refused(text):
    for read in (variables, lambda text: evaluate(text, VALUES)):
        with pytest.raises(ExpressionError, match="is not an expression"):
            read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(
            (text, f"{text!r} divides by zero")
            for text in ("1 // 0", "M % 0", "cdiv(M, 0)", "cdiv(M, K - 7)")
        ),
        ("cdiv(Q, 2)", "unknown name 'Q'; known are K, M, N, block_x"),
    ],
)
def test_what_has_no_value_says_why(text, words):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, VALUES)
    assert str(caught.value) == words


@given(st.text(max_size=30))
def test_any_text_gives_an_integer_or_an_expression_error(text):
    with contextlib.suppress(ExpressionError):
        assert type(evaluate(text, VALUES)) is int


def test_variables_are_the_names_read_without_the_functions():
    assert variables("cdiv(N, block_x) if M > 3 else min(K, N)") == {"N", "block_x", "M", "K"}
    assert variables("1 + 2") == set()
