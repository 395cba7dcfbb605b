# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Formulas of kernel headers and operations: launch grids, constraints, work models and error bounds.

The language is a small, side-effect-free part of Python's: numbers, names, arithmetic, comparisons, `and`,
`or`, `not`, conditional expressions and a few functions. Where integers are wanted nothing else exists; work
and bounds have fractions, division and roots as well. A text is turned into functions once; whatever lies
outside the language is refused then, not when a kernel is launched.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_Number = int | float
_Term = Callable[[Mapping[str, _Number]], _Number]

#: Far above any formula's need, and low enough that no nesting exhausts Python's stack.
MOST_CHARACTERS = 500
_COMPARE: dict[type[ast.cmpop], Callable[[_Number, _Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class _Grammar:
    """What a formula may hold besides comparisons, conditions and names."""

    binary: dict[type[ast.operator], Callable[[_Number, _Number], _Number]]
    functions: dict[str, tuple[Callable[..., _Number], int, int]]
    fractions: bool


_INTEGERS = _Grammar(
    binary={
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    },
    functions={
        "cdiv": (lambda dividend, divisor: -(-dividend // divisor), 2, 2),
        "min": (min, 2, MOST_CHARACTERS),
        "max": (max, 2, MOST_CHARACTERS),
    },
    fractions=False,
)
_REALS = _Grammar(
    binary={**_INTEGERS.binary, ast.Div: operator.truediv},
    functions={
        **_INTEGERS.functions,
        "sqrt": (math.sqrt, 1, 1),
        "log2": (math.log2, 1, 1),
        "log": (math.log, 1, 1),
        "exp": (math.exp, 1, 1),
        "abs": (abs, 1, 1),
    },
    fractions=True,
)


class ExpressionError(ValueError):
    """An expression outside the language, or one that names an unknown variable."""


def variables(text: str, *, reals: bool = False) -> set[str]:
    """Names that a formula reads."""
    return set(_parse(text, reals).names)


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """Value of a formula of integers; comparisons give 0 or 1.

    Raises:
        ExpressionError: The expression is malformed, divides by zero or names something unknown.
    """
    return int(_value(text, values, reals=False))


def evaluate_real(text: str, values: Mapping[str, _Number]) -> _Number:
    """Value of a formula of any numbers; it stays an integer as long as nothing makes a fraction of it.

    Raises:
        ExpressionError: The expression is malformed, divides by zero, names something unknown or has no
            value.
    """
    try:
        value = _value(text, values, reals=True)
        if math.isfinite(value):
            return int(value) if isinstance(value, bool) else value
    except (ValueError, OverflowError) as error:
        if isinstance(error, ExpressionError):
            raise
    raise ExpressionError(f"{text!r} has no finite value")


def _value(text: str, values: Mapping[str, _Number], *, reals: bool) -> _Number:
    expression = _parse(text, reals)
    for name in sorted(expression.names - values.keys()):
        raise ExpressionError(f"unknown name {name!r}; known are {', '.join(sorted(values))}")
    try:
        return expression.value(values)
    except ZeroDivisionError as error:
        raise ExpressionError(f"{text!r} divides by zero") from error


@lru_cache(maxsize=1024)
def _parse(text: str, reals: bool) -> "_Expression":
    return _Expression(text.strip(), _REALS if reals else _INTEGERS)


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression, of Python's grammar so far."""
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"an expression of {len(text)} characters is longer than {MOST_CHARACTERS}")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from error
    except (ValueError, MemoryError, RecursionError) as error:  # a null byte; beyond the parser's stack
        raise ExpressionError(f"{text!r} is not an expression: {error or 'nested too deeply'}") from error


class _Expression:
    """An expression as a function of its variables, and their names."""

    def __init__(self, text: str, grammar: _Grammar) -> None:
        self.names: set[str] = set()
        self._text = text
        self._grammar = grammar
        self.value = self._term(parse_expression(text))

    def _term(self, node: ast.expr) -> _Term:
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return lambda values: number
            case ast.Name(id=name):
                self.names.add(name)
                return lambda values: values[name]
            case ast.Constant(value=float() as number) if self._grammar.fractions:
                return lambda values: number
            case ast.BinOp(op=op) if type(op) in self._grammar.binary:
                combine = self._grammar.binary[type(op)]
                left, right = self._term(node.left), self._term(node.right)
                return lambda values: combine(left(values), right(values))
            case ast.UnaryOp(op=ast.USub()):
                negated = self._term(node.operand)
                return lambda values: -negated(values)
            case ast.UnaryOp(op=ast.Not()):
                denied = self._term(node.operand)
                return lambda values: not denied(values)
            case ast.BoolOp(op=op):
                decide = all if isinstance(op, ast.And) else any
                operands = self._terms(node.values)
                return lambda values: decide(operand(values) for operand in operands)
            case ast.Compare(ops=ops) if all(type(op) in _COMPARE for op in ops):
                relations = [_COMPARE[type(op)] for op in ops]
                terms = self._terms([node.left, *node.comparators])
                return lambda values: _holds(relations, (term(values) for term in terms))
            case ast.IfExp():
                test, then, other = self._terms([node.test, node.body, node.orelse])
                return lambda values: then(values) if test(values) else other(values)
            case ast.Call(func=ast.Name(id=name), args=nodes, keywords=[]) if name in self._grammar.functions:
                function, fewest, most = self._grammar.functions[name]
                if fewest <= len(nodes) <= most:
                    arguments = self._terms(nodes)
                    return lambda values: function(*(argument(values) for argument in arguments))
                raise ExpressionError(f"{self._source(node)!r} has the wrong number of arguments")
        raise ExpressionError(f"{self._source(node)!r} is not allowed in a formula")

    def _terms(self, nodes: list[ast.expr]) -> list[_Term]:
        return list(map(self._term, nodes))

    def _source(self, node: ast.expr) -> str | None:
        return ast.get_source_segment(self._text, node)


def _holds(relations: list[Callable[[_Number, _Number], bool]], terms: Iterable[_Number]) -> bool:
    """Whether a chain of comparisons holds; what follows one that does not is never evaluated."""
    return all(holds(*pair) for holds, pair in zip(relations, pairwise(terms), strict=False))
