# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The first content of arrays: a few distributions by name, the same numbers for the same seed."""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuprof.problems.dtypes import OF_RUN, integer_range, is_float, numpy_dtype, rounded
from gpuprof.problems.formulas import ExpressionError, parse_expression

if TYPE_CHECKING:
    import numpy as np

_Number = int | float
_Generator = Callable[["np.random.Generator", int, str, tuple[_Number, ...]], Any]


def _uniform(rng: "np.random.Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    low, high = arguments
    # NumPy draws floats and doubles; a float would round the end of a range of integers beyond it.
    values = rng.random(count, dtype="f4" if is_float(dtype) and dtype != "f64" else "f8")
    values *= high - low
    values += low
    return values


def _normal(rng: "np.random.Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    mean, deviation = arguments
    drawn = rng.standard_normal(count, dtype="f8" if dtype == "f64" else "f4")
    drawn *= deviation
    drawn += mean
    return drawn


def _integers(rng: "np.random.Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    low, high = (int(bound) for bound in arguments)
    return rng.integers(low, high, count)


def _permutation(rng: "np.random.Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    return rng.permutation(count)


def _constant(rng: "np.random.Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    import numpy as np

    return np.full(count, arguments[0])


#: Each with the number of its arguments, and what they are.
_GENERATORS: dict[str, tuple[_Generator, int, str]] = {
    "uniform": (_uniform, 2, "uniform(low, high), without high"),
    "normal": (_normal, 2, "normal(mean, deviation)"),
    "integers": (_integers, 2, "integers(low, high), without high"),
    "permutation": (_permutation, 0, "permutation: each index once"),
    "zeros": (lambda rng, count, dtype, _: _constant(rng, count, dtype, (0,)), 0, "zeros"),
    "ones": (lambda rng, count, dtype, _: _constant(rng, count, dtype, (1,)), 0, "ones"),
    "constant": (_constant, 1, "constant(value)"),
}


def default_generator(dtype: str) -> str:
    """What an array of an element type holds unless its operation says otherwise."""
    return "uniform(-1, 1)" if dtype in OF_RUN or is_float(dtype) else "integers(0, 100)"


def check_generator(text: str, dtype: str) -> None:
    """Refuse a text that names no content, or none of an element type."""
    name, arguments = _parse(text)
    if dtype in OF_RUN or is_float(dtype):
        return
    least, most = integer_range(dtype)
    if name == "constant":
        fits = arguments[0] == int(arguments[0]) and least <= arguments[0] <= most
    elif name == "normal":
        fits = False
    elif name in ("uniform", "integers"):
        fits = least <= arguments[0] and arguments[1] <= most + 1
    else:
        fits = True
    if not fits:
        raise ExpressionError(f"{text!r} has numbers that {dtype} does not hold")


def generate(text: str, count: int, dtype: str, seed: int, stream: int) -> Any:
    """Reproducible content of one array.

    Raises:
        ExpressionError: The type does not hold all of its numbers.
    """
    import numpy as np

    name, arguments = _parse(text)
    rng = np.random.Generator(np.random.SFC64([seed, stream]))
    drawn = _GENERATORS[name][0](rng, count, dtype, arguments)
    if is_float(dtype):
        values = rounded(drawn, dtype)
        fits = np.isfinite(values).all()
    else:
        values = drawn.astype(numpy_dtype(dtype))
        fits = name != "permutation" or count - 1 <= integer_range(dtype)[1]
    if not fits:
        raise ExpressionError(f"{text!r} has numbers that {dtype} does not hold")
    return values


def _parse(text: str) -> tuple[str, tuple[_Number, ...]]:
    match parse_expression(text.strip()):
        case ast.Name(id=name):
            arguments: list[_Number] = []
        case ast.Call(func=ast.Name(id=name), args=nodes, keywords=[]):
            arguments = [_number(node, text) for node in nodes]
        case _:
            name, arguments = "", []
    if name not in _GENERATORS:
        forms = "; ".join(form for _, _, form in _GENERATORS.values())
        raise ExpressionError(f"{text!r} is none of: {forms}")
    _, count, form = _GENERATORS[name]
    if len(arguments) != count:
        raise ExpressionError(f"{text!r} must be {form}")
    if name == "integers" and any(bound != int(bound) for bound in arguments):
        raise ExpressionError(f"{text!r} has a bound that is not an integer")
    if name in ("uniform", "integers") and arguments[0] >= arguments[1]:
        raise ExpressionError(f"{text!r} has nothing between its bounds")
    return name, tuple(arguments)


def _number(node: ast.expr, text: str) -> _Number:
    match node:
        case ast.Constant(value=int() | float() as value) if (
            not isinstance(value, bool) and abs(value) < 2**63
        ):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner, text)
    raise ExpressionError(f"{text!r} holds something that is not a number")
