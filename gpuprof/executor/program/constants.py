# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Literals of PTX, and the constant expressions that its operands, offsets and initialisers may be.

C's operators, on integers of 64 bits, with or without a sign, or on doubles: "Constant Expressions" in the
PTX ISA. What that leaves open is as ptxas 13.0 has it: `~` and `%` are unsigned, and shifts take 6 bits.
"""

import operator
import re
import struct
from collections.abc import Callable
from math import copysign, inf

from gpuprof.executor.program.ptx import Imm

_BITS = re.compile(r"0(?:[fF]([0-9a-fA-F]{8})|[dD]([0-9a-fA-F]{16}))")
_TOKEN = re.compile(
    r"\s*(?:(?P<real>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<whole>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+|WARP_SZ)(?P<unsigned>U?)(?![\w.])"
    r"|(?P<cast>\(\s*\.[su]64\s*\))|(?P<sign><<|>>|[<>=!]=|&&|\|\||[-+*/%<>&^|?:()!~]))\s*"
)
_PLACE = re.compile(r"([A-Za-z_$%][\w$%.]*)\s*([+-].*)", re.DOTALL)
_MASK = (1 << 64) - 1
_SHIFTS, _TESTS = ("<<", ">>"), ("||", "&&", "==", "!=", "<", ">", "<=", ">=")


class _Unsigned(int):
    """A value of type `.u64`; other integers are `.s64`."""


def _quotient(a: float, b: float) -> float:
    if isinstance(a, float):
        return a / b
    return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


#: From the loosest to the tightest, each level by its signs; only some are for floats too.
_LEVELS: tuple[dict[str, Callable[..., float]], ...] = (
    {"||": lambda a, b: bool(a or b)},
    {"&&": lambda a, b: bool(a and b)},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _quotient, "%": operator.mod},
)


def begins_constant(text: str) -> bool:
    """Whether what begins so may be a constant: no name does."""
    return text[:1] in tuple("0123456789.-+~!(") or text.startswith("WARP_SZ")


def literal(text: str) -> Imm | None:
    """Return the value of a literal or of a constant expression; None where a text is neither."""
    digits = text.removeprefix("-")
    if digits.isdecimal() and len(digits) < 20 and (digits == "0" or digits[0] != "0"):  # most are
        return Imm(int(text))
    if not begins_constant(text):
        return None
    if exact := _BITS.fullmatch(text):
        return Imm(int(exact[1] or exact[2], 16), 32 if exact[1] else 64)
    try:
        value = _Expression(text).value
    except (ValueError, TypeError, ZeroDivisionError, RecursionError):
        return None
    if isinstance(value, float):
        return Imm(int.from_bytes(struct.pack("<d", value), "little"), 64)
    return Imm(int(value))


def content_of(text: str, size: int) -> int | None:
    """Return what a constant is in so many bytes; None where a text is no constant."""
    if (held := literal(text)) is None:
        return None
    bits = held.bits
    if held.width == 64 and size == 4:
        (value,) = struct.unpack("<d", bits.to_bytes(8, "little"))
        try:
            single = struct.pack("<f", value)
        except OverflowError:
            single = struct.pack("<f", copysign(inf, value))
        bits = int.from_bytes(single, "little")
    return bits & ((1 << 8 * size) - 1)


def base_and_offset(text: str) -> tuple[str, int]:
    """Split `base + constant` of an address."""
    if (found := _PLACE.fullmatch(text)) and (offset := literal(found[2].removeprefix("+").strip())):
        return found[1], _typed(offset.bits, False)
    return text, 0


class _Expression:
    """The value of a text; `ValueError` or `TypeError` where it has none."""

    def __init__(self, text: str) -> None:
        #: The next one last.
        self._tokens = list(_TOKEN.finditer(text))[::-1]
        if sum(len(token[0]) for token in self._tokens) != len(text):
            raise ValueError(text)
        self.value = self._chosen()
        if self._tokens:
            raise ValueError(text)

    def _taken(self, *signs: str) -> str:
        """Go past a sign, if it is one of these; return it."""
        if not self._tokens or self._tokens[-1]["sign"] not in signs:
            return ""
        return str(self._tokens.pop()["sign"])

    def _needed(self, sign: str) -> None:
        if not self._taken(sign):
            raise ValueError(sign)

    def _chosen(self) -> float:
        condition = self._binary(0)
        if not self._taken("?"):
            return condition
        first = self._chosen()
        self._needed(":")
        second = self._chosen()
        return first if _integer(condition) else second

    def _binary(self, level: int) -> float:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while sign := self._taken(*_LEVELS[level]):
            value = _combined(sign, _LEVELS[level][sign], value, self._binary(level + 1))
        return value

    def _unary(self) -> float:
        match self._taken("+", "-", "!", "~", "("):
            case "+":
                return self._unary()
            case "-":
                value = self._unary()
                return -value if isinstance(value, float) else _typed(-value, isinstance(value, _Unsigned))
            case "!":
                return int(not _integer(self._unary()))
            case "~":
                return _typed(~_integer(self._unary()), True)
            case "(":
                value = self._chosen()
                self._needed(")")
                return value
        if not self._tokens:
            raise ValueError("nothing there")
        token = self._tokens.pop()
        if token["cast"]:
            return _typed(_integer(self._unary()), "u" in token["cast"])
        if token["real"]:
            return float(token["real"])
        if (digits := token["whole"]) == "WARP_SZ":
            return 32
        number = int(digits or "", 8 if re.fullmatch("0[0-7]+", digits or "") else 0)
        return _typed(number, bool(token["unsigned"]) or number >> 63 > 0)


def _integer(value: float) -> int:
    if isinstance(value, float):
        raise TypeError(value)
    return value


def _typed(value: int, unsigned: bool) -> int:
    """What an integer is in 64 bits."""
    return _Unsigned(value & _MASK) if unsigned else (value + (1 << 63) & _MASK) - (1 << 63)


def _combined(sign: str, apply: Callable[..., float], a: float, b: float) -> float:
    if isinstance(a, float) and isinstance(b, float) and sign not in ("%", "||", "&&"):
        value = apply(a, b)
        return value if isinstance(value, float) else int(value)
    a, b = _integer(a), _integer(b)
    unsigned = sign == "%" or isinstance(a, _Unsigned) or (isinstance(b, _Unsigned) and sign not in _SHIFTS)
    value = apply(*(each & _MASK if unsigned else each for each in (a, b)))
    return _typed(int(value), unsigned and sign not in _TESTS)
