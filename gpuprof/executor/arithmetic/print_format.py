# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The format strings of `printf`: what they take, read here, and what they print, by the C library."""

import ctypes
import re
from collections.abc import Callable
from functools import lru_cache

_CONVERSION = re.compile(
    r"%[-+ #0]*(?P<width>\d+|\*)?(?:\.(?P<precision>\d*|\*))?(?P<length>hh|h|ll|l|j|z|t|L)?"
    r"(?P<kind>[diouxXeEfFgGaAcsp%])"
)
_FLOATS = "eEfFgGaA"
_WIDE = {"l", "ll", "j", "z", "t"}
#: Bytes of the longest that one conversion prints.
_MOST = 8192


@lru_cache(maxsize=256)
def argument_sizes(text: str) -> tuple[int, ...]:
    """Return the bytes of each argument that a format string takes, widths given as `*` included."""
    sizes: list[int] = []
    for found in _CONVERSION.finditer(text):
        if (kind := found["kind"]) != "%":
            sizes += [4] * [found["width"], found["precision"]].count("*")
            sizes.append(8 if kind in f"{_FLOATS}sp" or found["length"] in _WIDE else 4)
    return tuple(sizes)


def offsets(text: str) -> list[int]:
    """Return where each argument lies in the buffer that `vprintf` is given."""
    places, end = [], 0
    for size in argument_sizes(text):
        start = -(-end // size) * size
        places.append(start)
        end = start + size
    return places


def formatted(text: str, arguments: list[bytes], string: Callable[[int], str]) -> str:
    """Return what `printf` prints; what is no conversion is text.

    `arguments` are the bytes of each; `string` returns the text at an address, for `%s`.
    """
    given = iter(arguments)

    def printed(found: re.Match[str]) -> str:
        kind, how = found["kind"], found[0]
        if kind == "%":
            return "%"
        if kind not in "diouxX" and found["length"]:
            how = how.replace(found["length"], "")
        stars = [found["width"], found["precision"]].count("*")
        values: list[object] = [ctypes.c_int.from_buffer_copy(next(given)) for _ in range(stars)]
        content = next(given)
        if kind in _FLOATS:
            values.append(ctypes.c_double.from_buffer_copy(content))
        elif kind == "s":
            values.append(string(int.from_bytes(content, "little")).encode())
        else:
            values.append(ctypes.c_longlong(int.from_bytes(content, "little")))
        # One conversion, with what it takes, and in so many bytes: whatever a kernel asks for.
        made = ctypes.create_string_buffer(_MOST)
        length = ctypes.CDLL(None).snprintf(made, ctypes.c_size_t(_MOST), how.encode(), *values)
        return made.raw[: max(0, min(length, _MOST - 1))].decode("utf-8", "replace")

    return _CONVERSION.sub(printed, text)
