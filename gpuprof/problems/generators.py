# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The first content of arrays: a few distributions by name, the same numbers for the same seed."""

import ast
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from gpuprof.problems.dtypes import OF_RUN, integer_range, is_float, numpy_dtype, rounded
from gpuprof.problems.formulas import ExpressionError, evaluate_real, parse_expression, variables
from gpuprof.problems.numpy_later import np

if TYPE_CHECKING:
    from numpy.random import Generator

_Number = int | float
Array = Any


_Generator = Callable[["Generator", int, str, tuple[Any, ...]], Any]


def _uniform(rng: "Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    low, high = arguments
    # NumPy draws floats and doubles; a float would round the end of a range of integers beyond it.
    values = rng.random(count, dtype="f4" if is_float(dtype) and dtype != "f64" else "f8")
    values *= high - low
    values += low
    return values


def _normal(rng: "Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    mean, deviation = arguments
    drawn = rng.standard_normal(count, dtype="f8" if dtype == "f64" else "f4")
    drawn *= deviation
    drawn += mean
    return drawn


def _integers(rng: "Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    low, high = (int(bound) for bound in arguments)
    return rng.integers(low, high, count, np.uint64 if high > 2**63 else np.int64)


def _sorted(rng: "Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    return np.sort((_uniform if is_float(dtype) else _integers)(rng, count, dtype, arguments))


def _csr_offsets(rng: "Generator", count: int, dtype: str, arguments: tuple[_Number, ...]) -> Any:
    offsets = np.zeros(count, np.int64)
    if count > 1:
        np.cumsum(rng.multinomial(int(arguments[0]), np.full(count - 1, 1 / (count - 1))), out=offsets[1:])
    return offsets


def _csr_columns(rng: "Generator", count: int, dtype: str, arguments: tuple[Any, ...]) -> Any:
    """Columns that ascend within a row: sorted numbers of a shorter range, each moved on by its place."""
    offsets, columns = arguments[0].astype(np.int64), int(arguments[1])
    lengths = np.diff(offsets)
    if not len(lengths) or offsets[-1] != count or lengths.min() < 0:
        raise ExpressionError(f"the offsets do not end at the {count} elements of the columns")
    if lengths.max() > columns:
        raise ExpressionError(f"a row has {lengths.max()} elements, and there are {columns} columns")
    row = np.repeat(np.arange(len(lengths)), lengths)
    drawn = (rng.random(count) * (columns - lengths[row] + 1)).astype(np.int64)
    return drawn[np.lexsort((drawn, row))] + np.arange(count) - offsets[row]


#: Each with the number of its arguments, and what they are.
_GENERATORS: dict[str, tuple[_Generator, int, str]] = {
    "uniform": (_uniform, 2, "uniform(low, high), without high"),
    "normal": (_normal, 2, "normal(mean, deviation)"),
    "integers": (_integers, 2, "integers(low, high), without high"),
    "sorted": (_sorted, 2, "sorted(low, high), ascending, without high"),
    "permutation": (lambda rng, count, *_: rng.permutation(count), 0, "permutation: each index once"),
    "mask": (
        lambda rng, count, _, numbers: rng.random(count) < numbers[0],
        1,
        "mask(share), ones among zeros",
    ),
    "arange": (lambda rng, count, _, numbers: np.arange(count) * numbers[0], 1, "arange(step)"),
    "csr_offsets": (_csr_offsets, 1, "csr_offsets(elements)"),
    "csr_columns": (_csr_columns, 2, "csr_columns(OFFSETS, columns), OFFSETS being an array before it"),
    "zeros": (lambda rng, count, *_: np.full(count, 0), 0, "zeros"),
    "ones": (lambda rng, count, *_: np.full(count, 1), 0, "ones"),
    "constant": (lambda rng, count, _, numbers: np.full(count, numbers[0]), 1, "constant(value)"),
}
#: Those with a range of numbers.
_RANGES = ("uniform", "integers", "sorted")


def default_generator(dtype: str) -> str:
    """What an array of an element type holds unless its operation says otherwise."""
    return "uniform(-1, 1)" if dtype in OF_RUN or is_float(dtype) else "integers(0, 100)"


def check_generator(
    text: str, dtype: str, dimensions: Collection[str] = (), arrays: Collection[str] = ()
) -> None:
    """Refuse a text that names no content, or none of an element type, whatever the size."""
    name, nodes = _parse(text)
    terms = [_text_of(node, text) for node in nodes]
    if name == "csr_columns":
        if terms[0] not in arrays:
            before = ", ".join(arrays) or "none"
            raise ExpressionError(
                f"{text!r} needs the offsets, an array that is declared before it: {before}"
            )
        terms = terms[1:]
    unknown = {used for term in terms for used in variables(term, "reals")} - {*dimensions, "inf"}
    if unknown:
        raise ExpressionError(f"{text!r} uses {min(unknown)!r}, which is no dimension")
    if not any(variables(term, "reals") - {"inf"} for term in terms):
        _check_numbers(text, name, tuple(_number(term, {}, text) for term in terms), dtype)


def _check_numbers(text: str, name: str, arguments: tuple[_Number, ...], dtype: str) -> None:
    one_type = name in _RANGES and (arguments[0] >= 0 or arguments[1] <= 2**63)
    one_type |= (name, dtype) == ("constant", "u64")
    least, most = (-(2**63), 2**64) if one_type else (1 - 2**63, 2**63 - 1)
    if any(isinstance(number, int) and not least <= number <= most for number in arguments):
        raise ExpressionError(f"{text!r} holds something that is not a number of 64 bits")
    floats = dtype in OF_RUN or is_float(dtype)
    whole = name == "integers" or (name == "sorted" and not floats)
    if whole and any(bound != int(bound) for bound in arguments if isfinite(bound)):
        raise ExpressionError(f"{text!r} has a bound that is not an integer")
    if name != "constant" and not all(map(isfinite, arguments)):
        raise ExpressionError(f"{text!r} holds something that is not a number")
    if name in _RANGES and arguments[0] >= arguments[1]:
        raise ExpressionError(f"{text!r} has nothing between its bounds")
    if name == "mask" and not 0 <= arguments[0] <= 1:
        raise ExpressionError(f"{text!r} must be a share between 0 and 1")
    if floats:
        return
    least, most = integer_range(dtype)
    if name == "constant":
        fits = isfinite(arguments[0]) and arguments[0] == int(arguments[0]) and least <= arguments[0] <= most
    elif name == "normal":
        fits = False
    elif name in _RANGES:
        fits = least <= arguments[0] and arguments[1] <= most + 1
    else:
        fits = True
    if not fits:
        raise ExpressionError(f"{text!r} has numbers that {dtype} does not hold")


def generate(
    text: str,
    count: int,
    dtype: str,
    seed: int,
    stream: int,
    dimensions: Mapping[str, int] | None = None,
    array_of: Callable[[str], Array] | None = None,
) -> Any:
    """Reproducible content of one array, which may name dimensions, and arrays that are declared before.

    Raises:
        ExpressionError: The type does not hold all of its numbers, or a dimension makes no sense of them.
    """
    name, nodes = _parse(text)
    terms = [_text_of(node, text) for node in nodes]
    named = [array_of(terms.pop(0))] if array_of and name == "csr_columns" else []
    numbers = tuple(_number(term, dimensions or {}, text) for term in terms)
    _check_numbers(text, name, numbers, dtype)
    rng = np.random.Generator(np.random.SFC64([seed, stream]))
    drawn = _GENERATORS[name][0](rng, count, dtype, (*named, *numbers))
    if is_float(dtype):
        with np.errstate(over="ignore"):
            values = rounded(drawn, dtype)
        fits = np.isfinite(values).all() or (name == "constant" and not isfinite(numbers[0]))
    else:
        values = drawn.astype(numpy_dtype(dtype))
        indices = name in ("permutation", "arange", "csr_offsets", "csr_columns")
        fits = not indices or not count or int(drawn.max()) <= integer_range(dtype)[1]
    if not fits:
        raise ExpressionError(f"{text!r} has numbers that {dtype} does not hold")
    return values


def _parse(text: str) -> tuple[str, list[ast.expr]]:
    nodes: list[ast.expr] = []
    match parse_expression(text.strip()):
        case ast.Name(id=name):
            pass
        case ast.Call(func=ast.Name(id=name), args=nodes, keywords=[]):
            pass
        case _:
            name = ""
    if name not in _GENERATORS:
        forms = "; ".join(form for _, _, form in _GENERATORS.values())
        raise ExpressionError(f"{text!r} is none of: {forms}")
    _, count, form = _GENERATORS[name]
    if len(nodes) != count:
        raise ExpressionError(f"{text!r} must be {form}")
    return name, nodes


def _text_of(node: ast.expr, text: str) -> str:
    return ast.get_source_segment(text.strip(), node) or ""


def _number(term: str, dimensions: Mapping[str, int], text: str) -> _Number:
    if term.replace(" ", "") in ("inf", "-inf"):
        return float(term.replace(" ", ""))
    try:
        value = evaluate_real(term, dimensions)
    except ExpressionError as error:
        raise ExpressionError(f"{text!r} holds something that is not a number: {error}") from error
    return value
