# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Formulas of kernel headers and operations: launch grids, constraints, work, error bounds, and results.

One closed part of Python's expressions: names, numbers, operators, comparisons, and the functions named here.
There is no attribute, no import, and no call of anything else. It is spoken about integers, where nothing
else exists; about reals, for work and bounds, with division and roots; and about arrays, where NumPy
evaluates in float64 and 64-bit integers what a result must be. A text is turned into functions once: whatever
lies outside the language is refused then, not when a kernel is launched.
"""

import ast
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, Literal

from msgspec import Struct

from gpuprof.operators import ARITHMETIC, COMPARISONS
from gpuprof.problems.dtypes import rounded
from gpuprof.problems.numpy_later import np

Value = Any
_Term = Callable[[Mapping[str, Value]], Value]
_Function = Callable[..., Value]
#: What formulas are about.
Language = Literal["integers", "reals", "arrays"]

#: Far above any formula's need, and low enough that no nesting exhausts Python's stack.
MOST_CHARACTERS = 500


def _numpy(name: str) -> _Function:
    return lambda *operands: getattr(np, name)(*operands)


def _unary(name: str) -> _Function:
    return lambda operand, /: getattr(np, name)(operand)


def _binary(name: str) -> _Function:
    return lambda first, second, /: getattr(np, name)(first, second)


def _shape(value: Value) -> tuple[int, ...]:
    """A shape, whose extents formulas compute as any other numbers."""
    extents = tuple(int(extent) for extent in (value if isinstance(value, tuple) else (value,)))
    if any(extent < -1 for extent in extents):
        raise ExpressionError(f"{extents} is not a shape")
    return extents


def _widths(width: Value, array: Value) -> list[tuple[int, int]]:
    """How much goes before and behind each axis: of one number for all, or one or a pair for each."""
    widths = width if isinstance(width, tuple) else (width,) * np.ndim(array)
    if len(widths) != np.ndim(array):
        got = f"pad got {len(widths)} widths for an array of {np.ndim(array)} dimensions"
        raise ValueError(f"{got}; each axis takes a number, or a pair: pad(x, ((before, behind),))")
    return [(int(each[0]), int(each[1])) if isinstance(each, tuple) else (int(each),) * 2 for each in widths]


def _rounded_to(dtype: str) -> _Function:
    """Rounded to an element type and back."""
    return lambda value: rounded(np.asarray(value, np.float64), dtype).astype(np.float64)


def _reduction(name: str) -> _Function:
    return lambda array, axis=None, keepdims=False: getattr(np, name)(
        array, axis=axis, keepdims=bool(keepdims)
    )


def _small_power(base: int, exponent: int) -> int:
    if not 0 <= exponent <= 64 or abs(base) >> 64:
        raise ExpressionError(f"{base} ** {exponent} is no power of a 64-bit number to at most 64")
    power: int = base**exponent
    return power


def _real_power(base: int | float, exponent: int | float) -> int | float:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        return _small_power(base, exponent)
    return math.pow(base, exponent)


class _Grammar(Struct, frozen=True):
    """What a formula may hold besides numbers and names; of arrays also indices, tuples and keywords.

    `takes` tells of it where a formula holds something else.
    """

    binary: Mapping[type[ast.operator], _Function]
    unary: Mapping[type[ast.unaryop], _Function]
    compare: Mapping[type[ast.cmpop], _Function]
    functions: Mapping[str, _Function]
    fractions: bool
    takes: str
    arrays: bool = False


_INTEGERS = _Grammar(
    binary={**ARITHMETIC, ast.Pow: _small_power},
    unary={ast.USub: operator.neg, ast.Not: operator.not_},
    compare=COMPARISONS,
    functions={
        "cdiv": lambda dividend, divisor, /: -(-dividend // divisor),
        "min": lambda first, second, /, *others: min(first, second, *others),
        "max": lambda first, second, /, *others: max(first, second, *others),
    },
    fractions=False,
    takes="of whole numbers: + - * // % **, comparisons, and, or, not, cdiv(a, b), min and max",
)
_REALS = _Grammar(
    binary={**_INTEGERS.binary, ast.Div: operator.truediv, ast.Pow: _real_power},
    unary=_INTEGERS.unary,
    compare=COMPARISONS,
    functions={
        **_INTEGERS.functions,
        "sqrt": math.sqrt,
        "log2": math.log2,
        "log": lambda value, /: math.log(value),
        "exp": math.exp,
        "abs": abs,
    },
    fractions=True,
    takes="of numbers: + - * / // %, comparisons, and, or, not, functions such as sqrt",
)
_ARRAYS = _Grammar(
    binary={
        ast.Add: _numpy("add"),
        ast.Sub: _numpy("subtract"),
        ast.Mult: _numpy("multiply"),
        ast.Div: _numpy("divide"),
        ast.FloorDiv: _numpy("floor_divide"),
        ast.Mod: _numpy("mod"),
        ast.Pow: _numpy("power"),
        ast.MatMult: _numpy("matmul"),
        ast.BitAnd: _numpy("bitwise_and"),
        ast.BitOr: _numpy("bitwise_or"),
        ast.BitXor: _numpy("bitwise_xor"),
        ast.LShift: _numpy("left_shift"),
        ast.RShift: _numpy("right_shift"),
    },
    unary={
        ast.USub: _numpy("negative"),
        ast.UAdd: _numpy("positive"),
        ast.Invert: _numpy("invert"),
        ast.Not: _numpy("logical_not"),
    },
    compare=COMPARISONS,
    functions={
        **{name: _unary(name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt")},
        **{name: _unary(name) for name in ("cbrt", "square", "sin", "cos", "tan", "arcsin", "arccos")},
        **{name: _unary(name) for name in ("arctan", "sinh", "cosh", "tanh", "abs", "sign", "floor", "ceil")},
        **{
            name: _unary(name)
            for name in ("trunc", "rint", "reciprocal", "isnan", "isinf", "isfinite", "ravel")
        },
        **{name: _binary(name) for name in ("maximum", "minimum", "fmax", "fmin", "arctan2", "hypot")},
        **{name: _binary(name) for name in ("power", "fmod", "matmul", "outer")},
        **{name: _reduction(name) for name in ("sum", "prod", "max", "min", "mean", "var", "std")},
        **{name: _reduction(name) for name in ("any", "all", "argmax", "argmin")},
        "cumsum": lambda array, axis=None: np.cumsum(array, axis),
        "cumprod": lambda array, axis=None: np.cumprod(array, axis),
        "cdiv": _INTEGERS.functions["cdiv"],
        "sort": lambda array, axis=-1: np.sort(array, axis=axis),
        "argsort": lambda array, axis=-1: np.argsort(array, axis=axis, kind="stable"),
        "where": lambda condition, yes, no: np.where(condition, yes, no),
        "clip": lambda array, low, high: np.clip(array, low, high),
        "transpose": lambda array, axes=None: np.transpose(array, axes),
        "flip": lambda array, axis=None: np.flip(array, axis),
        "reshape": lambda array, shape: np.reshape(array, _shape(shape)),
        "broadcast_to": lambda array, shape: np.broadcast_to(array, _shape(shape)),
        "bincount": lambda array, minlength=0, weights=None: np.bincount(
            np.ravel(array), None if weights is None else np.ravel(weights), int(minlength)
        ),
        "arange": lambda count: np.arange(int(count), dtype=np.int64),
        "roll": lambda array, shift, axis=None: np.roll(array, int(shift), axis),
        # Zeros around an array, or what stands at its edge.
        "pad": lambda array, width, edge=False: np.pad(
            array, _widths(width, array), "edge" if edge else "constant"
        ),
        "take": lambda array, indices, axis=None: np.take(array, np.asarray(indices, np.int64), axis),
        "concatenate": lambda arrays, axis=0: np.concatenate(arrays, axis),
        "zeros": lambda shape: np.zeros(_shape(shape)),
        "ones": lambda shape: np.ones(_shape(shape)),
        **{dtype: _rounded_to(dtype) for dtype in ("f32", "f16", "bf16")},
    },
    fractions=True,
    takes="of arrays: + - * / // % ** @, comparisons of two, & | ^ << >> ~, slices, functions of NumPy",
    arrays=True,
)
_GRAMMARS: dict[Language, _Grammar] = {"integers": _INTEGERS, "reals": _REALS, "arrays": _ARRAYS}
#: Every function that a formula over arrays may call.
ARRAY_FUNCTIONS = tuple(sorted(_ARRAYS.functions))


class ExpressionError(ValueError):
    """An expression outside the language, or one that names an unknown variable."""


def variables(text: str, language: Language = "integers") -> set[str]:
    """Names that a formula reads.

    Raises:
        ExpressionError: The text is not an expression of the language.
    """
    return set(_parse(text, language).names)


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """Value of a formula of integers; comparisons give 0 or 1.

    Raises:
        ExpressionError: The expression is malformed, divides by zero or names something unknown.
    """
    return int(_number(text, values, "integers"))


def evaluate_real(text: str, values: Mapping[str, int | float]) -> int | float:
    """Value of a formula of any numbers; it stays an integer as long as nothing makes a fraction of it.

    Raises:
        ExpressionError: The expression is malformed, divides by zero, names something unknown or has no
            value.
    """
    try:
        value = _number(text, values, "reals")
        if math.isfinite(value):
            return int(value) if isinstance(value, bool) else value
    except (ValueError, OverflowError) as error:
        if isinstance(error, ExpressionError):
            raise
    raise ExpressionError(f"{text!r} has no finite value")


def evaluate_arrays(text: str, values: Mapping[str, Any]) -> Any:
    """Value of a formula over arrays, scalars and dimensions, as a NumPy array.

    Raises:
        ExpressionError: The formula is malformed, names something unknown, or NumPy refuses it: shapes that
            do not fit.
        MemoryError: There is no room for an array on the way.
    """
    formula = _known(text, values, "arrays")
    doubles = {name: _widened(values[name]) for name in formula.names}
    try:
        with np.errstate(all="ignore"):
            return np.asarray(formula.value(doubles))
    except ExpressionError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError, ArithmeticError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise ExpressionError(f"{formula.text!r} cannot be evaluated: {why}") from error


def _number(text: str, values: Mapping[str, Any], language: Language) -> int | float:
    try:
        value: int | float = _parse(text, language).value(values)
        return value
    except KeyError:
        _known(text, values, language)
        raise
    except ZeroDivisionError as error:
        raise ExpressionError(f"{text!r} divides by zero") from error


def _known(text: str, values: Mapping[str, Any], language: Language) -> "_Formula":
    """A formula that names nothing but these values."""
    formula = _parse(text, language)
    for name in sorted(formula.names - values.keys()):
        known = f"; known are {', '.join(sorted(values))}" if values else ""
        raise ExpressionError(f"unknown name {name!r}{known}")
    return formula


def _widened(value: Any) -> Value:
    # A number is like a constant: it takes the type of the array that it meets.
    if isinstance(value, int | float) or value.dtype == np.bool_:
        return value
    if np.issubdtype(value.dtype, np.unsignedinteger):
        return value.astype(np.uint64 if value.dtype.itemsize == 8 else np.int64)
    return value.astype(np.int64 if np.issubdtype(value.dtype, np.integer) else np.float64)


@lru_cache(maxsize=1024)
def _parse(text: str, language: Language) -> "_Formula":
    # A comment ends with its line, of which the grammar knows nothing.
    return _Formula(re.sub(r"#.*|\n", " ", text).strip(), _GRAMMARS[language])


#: CPython 3.11 counts depth for all threads together, and fails where collecting garbage changes them.
_PARSING = Lock()


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression, of Python's grammar so far.

    Raises:
        ExpressionError: It is none, or too long.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"an expression of {len(text)} characters is longer than {MOST_CHARACTERS}")
    try:
        with _PARSING:
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        why = error.msg if text.strip() else "it is empty"
        raise ExpressionError(f"{text!r} is not an expression: {why}") from error
    except (ValueError, MemoryError, RecursionError) as error:  # a null byte; beyond the parser's stack
        raise ExpressionError(f"{text!r} is not an expression: {error or 'nested too deeply'}") from error


_signature = cache(inspect.signature)


class _Formula:
    """A formula as a function of its variables, and their names."""

    def __init__(self, text: str, grammar: _Grammar) -> None:
        self.text = text
        self.names: set[str] = set()
        self._grammar = grammar
        self.value = self._term(parse_expression(text))

    def _term(self, node: ast.expr) -> _Term:
        grammar = self._grammar
        match node:
            case ast.Constant(value=bool() | int() | float() as constant) if self._is_allowed(constant):
                return lambda values: constant
            case ast.Name(id=name):
                self.names.add(name)
                return lambda values: values[name]
            case ast.BinOp(op=op) if type(op) in grammar.binary:
                combine = grammar.binary[type(op)]
                left, right = self._term(node.left), self._term(node.right)
                return lambda values: combine(left(values), right(values))
            case ast.UnaryOp(op=op) if type(op) in grammar.unary:
                change, operand = grammar.unary[type(op)], self._term(node.operand)
                return lambda values: change(operand(values))
            case ast.Compare(ops=ops) if all(type(op) in grammar.compare for op in ops):
                relations = [grammar.compare[type(op)] for op in ops]
                terms = self._terms([node.left, *node.comparators])
                if len(ops) == 1:
                    return lambda values: relations[0](terms[0](values), terms[1](values))
                if not grammar.arrays:
                    return lambda values: _holds(relations, (term(values) for term in terms))
            case ast.BoolOp(op=op) if not grammar.arrays:
                decide = all if isinstance(op, ast.And) else any
                operands = self._terms(node.values)
                return lambda values: decide(operand(values) for operand in operands)
            case ast.IfExp() if not grammar.arrays:
                test, then, other = self._terms([node.test, node.body, node.orelse])
                return lambda values: then(values) if test(values) else other(values)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
            case ast.Subscript() if grammar.arrays:
                array, index = self._term(node.value), self._index(node.slice)
                return lambda values: array(values)[index(values)]
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if grammar.arrays:
                parts = self._terms(elements)
                return lambda values: tuple(part(values) for part in parts)
        raise self._not_allowed(node)

    def _terms(self, nodes: list[ast.expr]) -> list[_Term]:
        return list(map(self._term, nodes))

    def _is_allowed(self, constant: bool | int | float) -> bool:
        if isinstance(constant, bool):
            return self._grammar.arrays
        if isinstance(constant, float):
            return self._grammar.fractions
        return not self._grammar.arrays or abs(constant) < 2**63

    def _call(self, name: str, node: ast.Call) -> _Term:
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._not_allowed(node)
        named: dict[str, _Term] = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in named or not self._grammar.arrays:
                raise self._not_allowed(node)
            option = self._term if keyword.arg == "weights" else self._option
            named[keyword.arg] = option(keyword.value)
        positional = self._terms(node.args)
        function = self._grammar.functions.get(name)
        if function is None:
            known = ", ".join(sorted(self._grammar.functions))
            raise ExpressionError(f"there is no function {name!r}; there are {known}")
        try:
            _signature(function).bind(*positional, **named)
        except TypeError as error:
            raise ExpressionError(f"{self._source(node)!r} has the wrong arguments: {error}") from error
        if not named:  # a choice among kernels evaluates thousands
            return lambda values: function(*[term(values) for term in positional])
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
                terms = self._terms(elements)
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
            case ast.List(elts=elements):  # of elements, where a tuple is one of dimensions
                parts = self._terms(elements)
                return lambda values: [int(part(values)) for part in parts]
        return self._term(node)

    def _not_allowed(self, node: ast.expr) -> ExpressionError:
        fraction = isinstance(node, ast.Constant) and isinstance(node.value, float)
        more = "; an argument with a fraction is one of [scalars]" * fraction
        return ExpressionError(
            f"{self._source(node)!r} is not allowed in a formula {self._grammar.takes}{more}"
        )

    def _source(self, node: ast.expr) -> str | None:
        return ast.get_source_segment(self.text, node)


def _holds(relations: list[_Function], terms: Iterable[Value]) -> bool:
    """Whether a chain of comparisons holds; what follows one that does not is never evaluated."""
    return all(holds(*pair) for holds, pair in zip(relations, pairwise(terms), strict=False))
