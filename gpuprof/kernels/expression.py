# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Integer expressions of kernel headers: launch grids, shared-memory sizes and constraints.

The language is a small, side-effect-free part of Python's: integers, names, arithmetic, comparisons,
`and`/`or`/`not`, conditional expressions, and the functions `cdiv`, `min` and `max`.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

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
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda dividend, divisor: -(-dividend // divisor),
    "min": min,
    "max": max,
}


class ExpressionError(ValueError):
    """An expression outside the language, or one that names an unknown variable."""


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not an expression: {error.msg}") from error


def variables(text: str) -> set[str]:
    """Names that an expression reads.

    Raises:
        ExpressionError: The text is not an expression of the language.
    """
    tree = _parse(text)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names - _FUNCTIONS.keys()


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """Value of an expression; comparisons give 0 or 1.

    Args:
        text: The expression.
        values: Value of each variable it may name.

    Raises:
        ExpressionError: The expression is malformed, divides by zero or names something unknown.
    """
    try:
        return int(_evaluate(_parse(text), values))
    except ZeroDivisionError as error:
        raise ExpressionError(f"{text!r} divides by zero") from error


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError("true and false are not numbers here")
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            if name not in values:
                raise ExpressionError(f"unknown name {name!r}; known are {', '.join(sorted(values))}")
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _evaluate(operand, values))
        case ast.BoolOp(op=op, values=operands):
            combine = all if isinstance(op, ast.And) else any
            return int(combine(_evaluate(operand, values) for operand in operands))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            terms = [_evaluate(term, values) for term in (left, *comparators)]
            if not all(type(op) in _COMPARE for op in ops):
                raise ExpressionError("only ==, !=, <, <=, >, >= compare here")
            pairs = zip(ops, terms, terms[1:], strict=False)
            return int(all(_COMPARE[type(op)](left, right) for op, left, right in pairs))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _evaluate(body if _evaluate(test, values) else orelse, values)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(argument, values) for argument in arguments))
    raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in a header expression")
