# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The format strings of `printf`, as C reads them."""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_PART = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d*|\*))?(?P<length>hh|h|ll|l|j|z|t|L)?"
    r"(?P<kind>[diouxXeEfFgGaAcsp%])"
)
#: What a kernel asks for as `*` may be anything.
_WIDEST = 1024
_WIDE = {"l", "ll", "j", "z", "t"}
_BITS = {"hh": 8, "h": 16}


@dataclass(frozen=True)
class FormatPart:
    """One conversion, or text between two (`kind` is empty)."""

    text: str
    kind: str = ""
    flags: str = ""
    width: str = ""
    precision: str | None = None
    length: str = ""

    @property
    def bytes(self) -> int:
        """What its value takes among the arguments."""
        return 8 if self.kind in "eEfFgGaAsp" or self.length in _WIDE else 4


@lru_cache(maxsize=256)
def parts_of(text: str) -> tuple[FormatPart, ...]:
    """Cut a format string into text and conversions; what is no conversion is text."""
    parts, end = [], 0
    for found in _PART.finditer(text):
        parts.append(FormatPart(text[end : found.start()]))
        end = found.end()
        if found["kind"] == "%":
            parts.append(FormatPart("%"))
        else:
            groups = {name: found[name] or "" for name in ("kind", "flags", "width", "length")}
            parts.append(FormatPart(found[0], **groups, precision=found["precision"]))
    return (*parts, FormatPart(text[end:]))


def argument_sizes(text: str) -> list[int]:
    """Return the bytes of each argument that a format string takes, widths given as `*` included."""
    sizes = []
    for part in parts_of(text):
        if part.kind:
            sizes += [4] * ((part.width == "*") + (part.precision == "*")) + [part.bytes]
    return sizes


def offsets(text: str) -> list[int]:
    """Return where each argument lies in the buffer that `vprintf` is given."""
    places, end = [], 0
    for size in argument_sizes(text):
        start = -(-end // size) * size
        places.append(start)
        end = start + size
    return places


def formatted(text: str, arguments: list[bytes], string: Callable[[int], str]) -> str:
    """Return what `printf` prints.

    `arguments` are the bytes of each; `string` returns the text at an address, for `%s`.
    """
    given = iter(arguments)
    result = []
    for part in parts_of(text):
        if not part.kind:
            result.append(part.text)
            continue
        width, precision, flags = part.width, part.precision, part.flags
        if width == "*":
            wide = int.from_bytes(next(given), "little", signed=True)
            flags, width = flags + "-" * (wide < 0), str(min(abs(wide), _WIDEST))
        if precision == "*":
            exact = int.from_bytes(next(given), "little", signed=True)
            precision = str(min(exact, _WIDEST)) if exact >= 0 else None
        result.append(_converted(part, flags, width, precision, next(given), string))
    return "".join(result)


def _converted(
    part: FormatPart,
    flags: str,
    width: str,
    precision: str | None,
    content: bytes,
    string: Callable[[int], str],
) -> str:
    after = "" if precision is None else f".{precision or 0}"
    kind = part.kind
    if kind in "eEfFgGaA":
        return _float(struct.unpack("<d", content)[0], kind, flags, width, after)
    number = int.from_bytes(content, "little", signed=kind in "di")
    if kind == "s":
        words = string(number)[: None if precision is None else int(precision or 0)]
        return f"%{_justified(flags)}{width}s" % words
    if kind == "c":
        return f"%{_justified(flags)}{width}s" % chr(number & 0xFF)
    if kind == "p":
        return f"%{_justified(flags)}{width}s" % (hex(number) if number else "(nil)")
    return _integer(_cut(number, part), kind, flags, width, after)


def _cut(number: int, part: FormatPart) -> int:
    bits = _BITS.get(part.length)
    if bits is None:
        return number
    number &= (1 << bits) - 1
    return number - (1 << bits) if part.kind in "di" and number >> (bits - 1) else number


def _integer(number: int, kind: str, flags: str, width: str, after: str) -> str:
    if kind not in "di":  # signs are for signed numbers only
        flags = flags.replace("+", "").replace(" ", "")
    if after:  # the precision says how many digits: zeros do not fill up
        flags = flags.replace("0", "")
    if after == ".0" and number == 0:
        return f"%{_justified(flags)}{width}s" % ("0" if kind == "o" and "#" in flags else "")
    if "#" in flags:
        if kind == "o":
            digits = f"%{after}o" % number
            return f"%{_justified(flags)}{width}s" % (digits if digits.startswith("0") else f"0{digits}")
        if number == 0:
            flags = flags.replace("#", "")
    return f"%{flags}{width}{after}{'d' if kind in 'iu' else kind}" % number


def _float(value: float, kind: str, flags: str, width: str, after: str) -> str:
    if not math.isfinite(value):
        sign = "-" if math.copysign(1.0, value) < 0 else "+" if "+" in flags else " " if " " in flags else ""
        words = sign + ("nan" if math.isnan(value) else "inf")
        return f"%{_justified(flags)}{width}s" % (words.upper() if kind.isupper() else words)
    if kind in "aA":
        words = _hexadecimal(value)
        return f"%{_justified(flags)}{width}s" % (words.upper() if kind == "A" else words)
    return f"%{flags}{width}{after}{kind}" % value


def _hexadecimal(value: float) -> str:
    """Write a float as `%a` does: without the zeros at the end."""
    head, _, exponent = value.hex().partition("p")
    return (head.rstrip("0").rstrip(".") if "." in head else head) + f"p{exponent}"


def _justified(flags: str) -> str:
    return "-" if "-" in flags else ""
