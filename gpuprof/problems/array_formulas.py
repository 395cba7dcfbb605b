# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Formulas over arrays: what an operation's result must be, evaluated by NumPy in double precision.

A closed part of Python's expressions over the operation's arrays, scalars and dimensions: operators, slices,
and the functions named here. There is no attribute, no import, no name but these and no call of anything
else. Floating-point arrays are evaluated in float64, integer ones in 64-bit integers.
"""

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gpuprof.problems.dtypes import rounded
from gpuprof.problems.formulas import ExpressionError, parse_expression

Value = Any
_Term = Callable[[Mapping[str, Value]], Value]


class _LazyNumpy:
    """NumPy, loaded when a formula is evaluated: to read one, as every command line does, needs none."""

    def __getattr__(self, name: str) -> Any:
        import numpy

        return getattr(numpy, name)


np = _LazyNumpy()

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
_UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Invert: "invert",
    ast.Not: "logical_not",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


def _shape(value: Value) -> tuple[int, ...]:
    """A shape, whose extents formulas compute as any other numbers."""
    extents = tuple(int(extent) for extent in (value if isinstance(value, tuple) else (value,)))
    if any(extent < -1 for extent in extents):
        raise ExpressionError(f"{extents} is not a shape")
    return extents


def _reshape(array: Value, shape: Value) -> Value:
    return np.reshape(array, _shape(shape))


def _broadcast_to(array: Value, shape: Value) -> Value:
    return np.broadcast_to(array, _shape(shape))


def _bincount(array: Value, minlength: Value = 0) -> Value:
    return np.bincount(np.ravel(array), minlength=int(minlength))


def _arange(count: Value) -> Value:
    return np.arange(int(count), dtype=np.int64)


def _roll(array: Value, shift: Value, axis: Value = None) -> Value:
    return np.roll(array, int(shift), axis)


def _pad(array: Value, width: Value) -> Value:
    """Zeros around an array, so many on each side of each axis."""
    return np.pad(array, int(width))


def _take(array: Value, indices: Value, axis: Value = None) -> Value:
    return np.take(array, np.asarray(indices, np.int64), axis)


def _rounded_to(dtype: str) -> Callable[[Value], Value]:
    """Rounded to an element type and back."""
    return lambda value: rounded(np.asarray(value, np.float64), dtype).astype(np.float64)


def _reduction(name: str) -> Callable[..., Value]:
    def reduced(array: Value, axis: Value = None, keepdims: Value = False) -> Value:
        return getattr(np, name)(array, axis=axis, keepdims=bool(keepdims))

    return reduced


def _cumulative(name: str) -> Callable[..., Value]:
    def accumulated(array: Value, axis: Value = None) -> Value:
        return getattr(np, name)(array, axis=axis)

    return accumulated


#: Element by element, with the number of operands.
_ELEMENTWISE: dict[str, int] = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"), 1),
    **dict.fromkeys(("abs", "sign", "floor", "ceil", "trunc", "rint", "reciprocal"), 1),
    **dict.fromkeys(("isnan", "isinf", "isfinite"), 1),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "arctan2", "hypot", "power", "fmod"), 2),
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _reduction(name) for name in ("sum", "prod", "max", "min", "mean", "var", "std")},
    **{name: _reduction(name) for name in ("any", "all", "argmax", "argmin")},
    **{name: _cumulative(name) for name in ("cumsum", "cumprod")},
    "sort": lambda array, axis=-1: np.sort(array, axis=axis),
    "argsort": lambda array, axis=-1: np.argsort(array, axis=axis, kind="stable"),
    "where": lambda condition, yes, no: np.where(condition, yes, no),
    "clip": lambda array, low, high: np.clip(array, low, high),
    "transpose": lambda array, axes=None: np.transpose(array, axes),
    "matmul": lambda left, right: np.matmul(left, right),
    "outer": lambda left, right: np.outer(left, right),
    "flip": lambda array, axis=None: np.flip(array, axis),
    "ravel": lambda array: np.ravel(array),
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "bincount": _bincount,
    "arange": _arange,
    "roll": _roll,
    "pad": _pad,
    "take": _take,
    "concatenate": lambda arrays, axis=0: np.concatenate(arrays, axis),
    "zeros": lambda shape: np.zeros(_shape(shape)),
    "ones": lambda shape: np.ones(_shape(shape)),
    **{dtype: _rounded_to(dtype) for dtype in ("f32", "f16", "bf16")},
}
#: Every function that a formula may call.
FUNCTION_NAMES = tuple(sorted((*_ELEMENTWISE, *_FUNCTIONS)))


def array_variables(text: str) -> set[str]:
    """Names that a formula reads."""
    return set(_parse(text).names)


def evaluate_arrays(text: str, values: Mapping[str, Any]) -> Any:
    """Value of a formula over arrays.

    Raises:
        ExpressionError: The formula is malformed, names something unknown, or NumPy refuses it: shapes that
            do not fit.
        MemoryError: There is no room for an array on the way.
    """
    formula = _parse(text)
    for name in sorted(formula.names - values.keys()):
        raise ExpressionError(f"unknown name {name!r}; known are {', '.join(sorted(values))}")
    doubles = {name: _widened(values[name]) for name in formula.names}
    try:
        with np.errstate(all="ignore"):
            return np.asarray(formula.value(doubles))
    except ExpressionError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError, ArithmeticError) as error:
        text = str(error).partition("\n")[0] or type(error).__name__
        raise ExpressionError(f"{formula.text!r} cannot be evaluated: {text}") from error


def _widened(value: Any) -> Value:
    if isinstance(value, int | float):  # like a constant: it takes the type of the array that it meets
        return value
    if np.issubdtype(value.dtype, np.unsignedinteger):
        return value.astype(np.uint64 if value.dtype.itemsize == 8 else np.int64)
    return value.astype(np.int64 if np.issubdtype(value.dtype, np.integer) else np.float64)


@lru_cache(maxsize=256)
def _parse(text: str) -> "_Formula":
    return _Formula(text.strip())


class _Formula:
    """A formula as a function of its variables, and their names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        self.value = self._term(parse_expression(text))

    def _term(self, node: ast.expr) -> _Term:
        match node:
            case ast.Constant(value=bool() as flag):
                return lambda values: flag
            case ast.Constant(value=int() as number):
                if abs(number) >= 2**63:
                    raise ExpressionError(f"{self._source(node)!r} is too large a number")
                return lambda values: number
            case ast.Constant(value=float() as number):
                return lambda values: number
            case ast.Name(id=name):
                self.names.add(name)
                return lambda values: values[name]
            case ast.BinOp(op=op):
                name, left, right = _BINARY[type(op)], self._term(node.left), self._term(node.right)
                return lambda values: getattr(np, name)(left(values), right(values))
            case ast.UnaryOp(op=op):
                name, operand = _UNARY[type(op)], self._term(node.operand)
                return lambda values: getattr(np, name)(operand(values))
            case ast.Compare(ops=[op], comparators=[other]) if type(op) in _COMPARE:
                name, first, second = _COMPARE[type(op)], self._term(node.left), self._term(other)
                return lambda values: getattr(np, name)(first(values), second(values))
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
            case ast.Subscript():
                array, index = self._term(node.value), self._index(node.slice)
                return lambda values: array(values)[index(values)]
            case ast.Tuple(elts=elements):
                terms = [self._term(element) for element in elements]
                return lambda values: tuple(term(values) for term in terms)
        raise ExpressionError(f"{self._source(node)!r} is not allowed in a formula")

    def _call(self, name: str, node: ast.Call) -> _Term:
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise ExpressionError(f"{self._source(node)!r} is not allowed in a formula")
        positional = [self._term(argument) for argument in node.args]
        named = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in named:
                raise ExpressionError(f"{self._source(node)!r} is not allowed in a formula")
            named[keyword.arg] = self._option(keyword.value)
        if name in _ELEMENTWISE:
            if named or len(positional) != _ELEMENTWISE[name]:
                raise ExpressionError(f"{self._source(node)!r} has the wrong arguments")
            function: Callable[..., Value] = lambda *operands: getattr(np, name)(*operands)  # noqa: E731
        elif name in _FUNCTIONS:
            function = _FUNCTIONS[name]
            try:
                inspect.signature(function).bind(*positional, **named)
            except TypeError as error:
                raise ExpressionError(f"{self._source(node)!r} has the wrong arguments: {error}") from error
        else:
            raise ExpressionError(f"there is no function {name!r}; there are {', '.join(FUNCTION_NAMES)}")
        return lambda values: function(
            *(term(values) for term in positional), **{key: term(values) for key, term in named.items()}
        )

    def _option(self, node: ast.expr) -> _Term:
        """The value of a keyword: an axis or several, a flag, a number."""
        match node:
            case ast.Constant(value=None):
                return lambda values: None
            case ast.Constant(value=bool() as flag):
                return lambda values: flag
            case ast.Tuple(elts=elements):
                terms = [self._term(element) for element in elements]
                return lambda values: tuple(int(term(values)) for term in terms)
        term = self._term(node)
        return lambda values: int(term(values))

    def _index(self, node: ast.expr) -> _Term:
        match node:
            case ast.Constant(value=None):
                return lambda values: None
            case ast.Slice(lower=lower, upper=upper, step=step):
                ends = [None if end is None else self._term(end) for end in (lower, upper, step)]
                return lambda values: slice(*(None if end is None else int(end(values)) for end in ends))
            case ast.Tuple(elts=elements):
                parts = [self._index(element) for element in elements]
                return lambda values: tuple(part(values) for part in parts)
        return self._term(node)

    def _source(self, node: ast.expr) -> str | None:
        return ast.get_source_segment(self.text, node)
