# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Integer expressions of kernel headers: launch grids, shared-memory sizes and constraints.

The language is a small, side-effect-free part of Python's: integers, names, arithmetic, comparisons,
`and`/`or`/`not`, conditional expressions, and the functions `cdiv`, `min` and `max`. A text is turned into
functions once; whatever lies outside the language is refused then, not when a kernel is launched.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

_Term = Callable[[Mapping[str, int]], int]

#: Far above any header's need, and low enough that no nesting exhausts Python's stack.
_MOST_CHARACTERS = 500
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: Each function with the fewest and the most arguments it takes.
_FUNCTIONS: dict[str, tuple[Callable[..., int], int, int]] = {
    "cdiv": (lambda dividend, divisor: -(-dividend // divisor), 2, 2),
    "min": (min, 2, _MOST_CHARACTERS),
    "max": (max, 2, _MOST_CHARACTERS),
}


class ExpressionError(ValueError):
    """An expression outside the language, or one that names an unknown variable."""


def variables(text: str) -> set[str]:
    """Names that an expression reads.

    Raises:
        ExpressionError: The text is not an expression of the language.
    """
    return set(_parse(text).names)


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """Value of an expression; comparisons give 0 or 1.

    Args:
        text: The expression.
        values: Value of each variable it may name.

    Raises:
        ExpressionError: The expression is malformed, divides by zero or names something unknown.
    """
    expression = _parse(text)
    for name in sorted(expression.names - values.keys()):
        raise ExpressionError(f"unknown name {name!r}; known are {', '.join(sorted(values))}")
    try:
        return int(expression.value(values))
    except ZeroDivisionError as error:
        raise ExpressionError(f"{text!r} divides by zero") from error


@lru_cache(maxsize=1024)
def _parse(text: str) -> "_Expression":
    return _Expression(text.strip())


class _Expression:
    """An expression as a function of its variables, and their names."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise ExpressionError(
                f"an expression of {len(text)} characters is longer than {_MOST_CHARACTERS}"
            )
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from error
        except (ValueError, MemoryError) as error:  # a null byte; parentheses beyond the parser's stack
            raise ExpressionError(f"{text!r} is not an expression: {error or 'nested too deeply'}") from error
        self.names: set[str] = set()
        self._text = text
        self.value = self._term(tree.body)

    def _term(self, node: ast.expr) -> _Term:
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return lambda values: number
            case ast.Name(id=name):
                self.names.add(name)
                return lambda values: values[name]
            case ast.BinOp(op=op) if type(op) in _BINARY:
                combine, left, right = _BINARY[type(op)], self._term(node.left), self._term(node.right)
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
                return lambda values: _holds(relations, [term(values) for term in terms])
            case ast.IfExp():
                test, then, other = self._terms([node.test, node.body, node.orelse])
                return lambda values: then(values) if test(values) else other(values)
            case ast.Call(func=ast.Name(id=name), args=nodes, keywords=[]) if name in _FUNCTIONS:
                function, fewest, most = _FUNCTIONS[name]
                if fewest <= len(nodes) <= most:
                    arguments = self._terms(nodes)
                    return lambda values: function(*(argument(values) for argument in arguments))
                raise ExpressionError(f"{self._source(node)!r} has the wrong number of arguments")
        raise ExpressionError(f"{self._source(node)!r} is not allowed in a header expression")

    def _terms(self, nodes: list[ast.expr]) -> list[_Term]:
        return list(map(self._term, nodes))

    def _source(self, node: ast.expr) -> str | None:
        return ast.get_source_segment(self._text, node)


def _holds(relations: list[Callable[[int, int], bool]], terms: list[int]) -> bool:
    return all(holds(*pair) for holds, *pair in zip(relations, terms, terms[1:], strict=False))
