# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Video instructions, as public code uses them: operations on parts of words, picked and put back."""

import numpy as np
import pytest
from executor_harness import run_instruction

pytestmark = pytest.mark.deep


def video(name: str, a: list[int], b: list[int], c: list[int]) -> list[int]:
    kinds = ("b32", "b32", "b32")
    return run_instruction(f"{name};", kinds, "b32", a, b, c).tolist()


def lanes(word: int, count: int, *, signed: bool) -> list[int]:
    """The small integers of a word, the lowest first."""
    bits = 32 // count
    parts = [word >> (bits * i) & (1 << bits) - 1 for i in range(count)]
    return [part - (part >> (bits - 1) << bits) if signed else part for part in parts]


def words(count: int) -> list[list[int]]:
    rng = np.random.default_rng(5)
    chosen = [0, 0xFFFF_FFFF, 0x8000_8000, 0x7FFF_7FFF, 0x80FF_7F01, 0x0102_0304]
    return [
        [*chosen, *rng.permutation(chosen).tolist(), *rng.integers(0, 2**32, 40).tolist()]
        for _ in range(count)
    ]


OPERATIONS = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda x, y: (x + y + (x + y >= 0)) >> 1,
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("flag", ["", ".sat", ".add"])
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", OPERATIONS)
def test_small_integers_meet_their_like(name, count, flag, signed):
    kind, bits = "s32" if signed else "u32", 32 // count
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    columns = words(3)
    expected = []
    for a, b, c in zip(*columns, strict=True):
        pairs = zip(lanes(a, count, signed=signed), lanes(b, count, signed=signed), strict=True)
        found = [OPERATIONS[name](x, y) for x, y in pairs]
        if flag == ".sat":
            found = [min(max(each, least), most) for each in found]
        if flag == ".add":
            expected.append((sum(found) + c) % 2**32)
        else:
            expected.append(sum(each % 2**bits << bits * i for i, each in enumerate(found)))
    assert video(f"{name}{count}.{kind}.{kind}.{kind}{flag} d, a, b, c", *columns) == expected


def part(word: int, bits: int, place: int, *, signed: bool) -> int:
    return lanes(word, 32 // bits, signed=signed)[place]


#: Video instructions that pick parts of words, by what they give.
PICKED = {
    "vshr.u32.u32.u32.clamp.add d, a, b.b0, c": lambda a, b, c: (a >> min(b & 255, 32)) + c,
    "vshr.s32.s32.u32.wrap d, a, b": lambda a, b, c: part(a, 32, 0, signed=True) >> (b & 31),
    "vshl.u32.u32.u32.wrap d, a.h1, b": lambda a, b, c: (a >> 16) << (b & 31),
    "vadd.s32.u32.s32.sat d, a, b.h1": lambda a, b, c: min(
        max(a + part(b, 16, 1, signed=True), -(2**31)), 2**31 - 1
    ),
    "vsub.s32.u32.s32 d.h1, a.b3, b, c": lambda a, b, c: (
        (c & 0xFFFF) | ((a >> 24) - part(b, 32, 0, signed=True)) % 2**16 << 16
    ),
    "vmin.s32.u32.s32.max d, a.h0, b, c": lambda a, b, c: max(
        min(a & 0xFFFF, part(b, 32, 0, signed=True)), part(c, 32, 0, signed=True)
    ),
    "vset.s32.u32.lt.add d, a, b, c": lambda a, b, c: (part(a, 32, 0, signed=True) < b) + c,
    "vset2.u32.s32.ge d, a, b, c": lambda a, b, c: sum(
        (part(a, 16, i, signed=False) >= part(b, 16, i, signed=True)) << 16 * i for i in (0, 1)
    ),
    # Lane 0 is of c; lane 3 is b's lane 3 and a's lane 0, lane 1 a's lanes 2 and 3.
    "vadd4.u32.u32.u32 d.b31, a.b7123, b.b0131, c": lambda a, b, c: (
        (c & 0x00FF_00FF)
        | (part(b, 8, 3, signed=False) + part(a, 8, 0, signed=False)) % 256 << 24
        | (part(a, 8, 2, signed=False) + part(a, 8, 3, signed=False)) % 256 << 8
    ),
}


@pytest.mark.parametrize("form", PICKED)
def test_parts_are_picked_from_words_and_put_into_words(form):
    columns = words(3)
    expected = [PICKED[form](*each) % 2**32 for each in zip(*columns, strict=True)]
    assert video(form, *columns) == expected
