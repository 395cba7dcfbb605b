# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Operands for kernels of one PTX instruction each: values at which rules bite, and random ones.

They follow from their names, by what every NumPy on every machine computes alike.
"""

import zlib

import numpy as np
from rules_corpus import SPECIAL_FLOATS

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
#: Lanes that execute an arithmetic instruction, each with operands of its own.
COUNT = 4096
_BLOCK = 128
_REGISTERS = {
    **dict.fromkeys(("u8", "s8", "b8", "u16", "s16", "f16", "bf16", "e4m3x2", "e5m2x2"), "b16"),
    **dict.fromkeys(("f16x2", "bf16x2", "tf32", "u16x2", "s16x2", "u32", "s32", "f32"), "b32"),
    **dict.fromkeys(("u64", "s64", "f64"), "b64"),
}
#: Beside those that the rules of the ISA are asked with.
_MORE_FLOATS = {
    "f32": "bf000000 3fffffff 01000000 00ffffff 43fa0000 c2fc0000 ff800001 80000001",
    "f64": "3f10000000000000 3e70000000000000 3e60000000000000 40efffffffffffff 47efffffefffffff"
    " 3fefffffffffffff fff0000000000001",
    "f16": "8001 3bff ffff fc01 4248 7801 0401 3555",
    "bf16": "8001 3f7f ffff ff81 4049 0081 3eab 437f",
}
_FLOATS = {kind: f"{words} {_MORE_FLOATS[kind]}" for kind, words in SPECIAL_FLOATS.items()}
_INTEGERS = (
    *(0, 1, -1, 2, 31, 32, 33, -(2**31), 2**31 - 1, 7, 8, 63, 64, 65, 127, 128, 255, 256, 1000, 0x12345678),
    *(-77, 0x80808080, 0x7F7F7F7F, 0xFFFF, 0x10000, 0x1000001, 0xFFFFFF, 0x5A5A5A5A, -128, -32768, 32767),
    *(16, 24, 0x8000, 0x80, 3, 5, 15, 0x7FFF8000, 0xAAAAAAAA, -32, 129, 254),
)
_WIDE = (
    *(2**63 - 1, 2**63, 2**53 + 1, 2**62 + 1, 2**24 + 1, 2**40 + 2**15, 0xFFFFFFFFFFFFFBFF),
    *(0x7FFFFFBFFFFFFFFF, 2**32, 2**32 - 1, 2**52 - 1, 0xFFFFFFFE00000001),
)


def register(kind: str) -> str:
    """The type of a register that holds values of a type."""
    return _REGISTERS.get(kind, kind)


def bytes_of(kind: str) -> int:
    """Bytes of a value in memory; a predicate takes one."""
    return 1 if kind in ("u8", "s8", "b8", "pred") else int(register(kind)[1:]) // 8


def _special(kind: str) -> np.ndarray:
    size = bytes_of(kind)
    if kind in ("f16x2", "bf16x2"):
        halves = _special(kind[:-2]).astype(np.uint32)
        return halves | np.roll(halves, 5) << np.uint32(16)
    if words := _FLOATS.get(kind.replace("tf32", "f32")):
        return np.array([int(word, 16) for word in words.split()], f"u{size}")
    values = (*_INTEGERS, *(_WIDE if size == 8 else ()))
    return np.array([value & (1 << 8 * size) - 1 for value in values], f"u{size}")


def _of_numbers(kind: str, values: np.ndarray) -> np.ndarray:
    """The bits of numbers, cut or rounded to a type; what is not a float is rounded to an integer."""
    match kind:
        case "f16" | "f32" | "tf32" | "f64":
            size = bytes_of(kind)
            return values.astype(f"f{size}").view(f"u{size}")
        case "bf16":
            return (values.astype("f4").view("u4") >> 16).astype("u2")
        case "f16x2" | "bf16x2":
            halves = _of_numbers(kind[:-2], values).astype("u4")
            return halves | np.roll(halves, 9) << np.uint32(16)
    return np.round(values).astype("i8").astype(f"i{bytes_of(kind)}").view(f"u{bytes_of(kind)}")


def column(kind: str, place: int) -> np.ndarray:
    """The operands in one place of an arithmetic instruction, of all lanes."""
    size, lane = bytes_of(kind), np.arange(COUNT)
    numbers = np.random.RandomState(zlib.crc32(f"{kind} {place} 0".encode()))
    anything = np.frombuffer(numbers.bytes(COUNT * size), f"u{size}").copy()
    if kind == "pred":
        return anything & 1
    special = _special(kind)
    n = len(special)
    row = lane // n
    found = special[[lane % n, row % n, (lane * 7 + row * 3) % n, (lane * 5 + row * 11 + 3) % n][place]]
    found[COUNT // 2 :] = anything[COUNT // 2 :]
    near = special[numbers.randint(0, n, COUNT)] + numbers.randint(-3, 4, COUNT).astype(f"i{size}").view(
        f"u{size}"
    )
    tame = _of_numbers(kind, np.ldexp(numbers.rand(COUNT) * 4 - 2, numbers.randint(-12, 12, COUNT)))
    last = lane >= COUNT * 3 // 4
    for parity, values in enumerate((near, tame)):
        chosen = last & (lane % 2 == parity)
        found[chosen] = values[chosen]
    return found


def elements(kind: str, count: int, name: str, together: int) -> np.ndarray:
    """Elements of matrices: so many together are tame, others of all sizes, special, and any finite ones."""
    numbers, way = np.random.RandomState(zlib.crc32(name.encode())), np.arange(count) // together % 4
    size = 1 if kind in ("u8", "s8", "u4", "s4", "b1", "e4m3", "e5m2") else bytes_of(kind)
    anything = np.frombuffer(numbers.bytes(count * size), f"u{size}").copy()
    if kind in ("e4m3", "e5m2"):
        mantissa, middle, last = (0x87, 0x30, 0x7F) if kind == "e4m3" else (0x83, 0x38, 0x7C)
        finite = np.where((anything & 0x7F) >= last, anything & 0x8F, anything)
        mixed = np.where(numbers.rand(count) < 0.01, anything, finite)
        tame = anything & np.uint8(mantissa) | np.uint8(middle)
        return np.choose(way, [tame, finite, mixed, finite]).astype("u1")
    if size == 1:
        return anything
    values = numbers.rand(count) * 4 - 2
    if kind == "s32":
        return np.where(way < 2, (values * 1000).astype("i4").view("u4"), anything)
    special = _special(kind)
    wide = _of_numbers(kind, np.ldexp(values, numbers.randint(-10, 11, count)))
    mixed = np.where(numbers.rand(count) < 0.03, special[numbers.randint(0, len(special), count)], wide)
    largest = {"f16": 0x7BFF, "bf16": 0x7F7F, "f64": 0x7FEFFFFFFFFFFFFF}.get(kind, 0x7F7FFFFF)
    sizes = anything & np.array((1 << 8 * size - 1) - 1, f"u{size}")
    finite = np.where(sizes > largest, anything & np.array(largest, f"u{size}"), anything)
    return np.choose(way, [_of_numbers(kind, values), wide, mixed, finite]).astype(f"u{size}")


def words(kind: str, count: int, name: str, together: int) -> np.ndarray:
    """Words full of elements of matrices; those of f64 have 64 bits."""
    if kind == "f64":
        return elements(kind, count, name, together)
    size = 1 if kind in ("u8", "s8", "u4", "s4", "b1", "e4m3", "e5m2") else bytes_of(kind)
    return elements(kind, count * 4 // size, name, together * 4 // size).view("u4")


def stored_places(kind: str, count: int, name: str) -> np.ndarray:
    """Words that tell which elements of a sparse matrix are stored."""
    ways = np.array([4, 14] if kind == "tf32" else [4, 8, 12, 9, 13, 14], "u4")
    numbers = np.random.RandomState(zlib.crc32(f"meta{name}".encode()))
    groups = ways[numbers.randint(0, len(ways), (count, 8))] << np.arange(0, 32, 4, dtype="u4")
    return np.bitwise_or.reduce(groups, axis=1)


def array(what: list) -> np.ndarray:
    """What a kernel is given: by one of the functions above and its arguments, or made of such.

    `beside` puts blocks of two arrays side by side, `often` takes every third element from the second, and
    `first` a part.
    """
    match what:
        case ["zeros", int(count), str(kind)]:
            return np.zeros(count, kind)
        case ["first", int(count), inner]:
            return array(inner)[:count]
        case ["beside", int(count), one, other]:
            parts = [array(each).reshape(-1, count) for each in (one, other)]
            return np.concatenate(parts, axis=1).reshape(-1)
        case ["often", one, other]:
            found = array(one)
            return np.where(np.arange(len(found)) % 3 == 0, array(other), found)
        case [str(name), *given]:
            return _MAKERS[name](*given)
    raise ValueError(what)


_MAKERS = {"column": column, "elements": elements, "words": words, "stored_places": stored_places}


def of_arithmetic(instructions: list[tuple[str, str]], kinds: list[str]) -> tuple[str, list[list], int, int]:
    """A kernel of instructions that each make `d`, whose type stands beside it, of `a`, `b`, `c` and `e`.

    Args:
        instructions: With the types of their results.
        kinds: The types of the operands.

    Returns:
        Its text, what its arrays hold, operands first, and how many blocks of how many threads it takes.
    """
    results = [result for _, result in instructions]
    parameters = ", ".join(f".param .u64 p{place}" for place in range(len(kinds) + len(results)))
    lines = [".reg .b64 p, i, q; .reg .b32 t, u; .reg .b16 h;", "mov.u32 t, %tid.x; mov.u32 u, %ctaid.x;"]
    lines += [f"mad.lo.u32 t, u, {_BLOCK}, t; cvt.u64.u32 i, t;"]

    def moved(place: int, kind: str) -> str:
        lines.append(f"ld.param.u64 p, [p{place}]; mad.lo.u64 q, i, {bytes_of(kind)}, p;")
        return f"{kind[0]}8" if bytes_of(kind) == 1 else register(kind)

    for place, (kind, letter) in enumerate(zip(kinds, "abce", strict=False)):
        as_type = moved(place, kind)
        load = f"ld.global.{as_type} {letter}, [q];"
        if kind == "pred":
            load = f"ld.global.u8 h, [q]; setp.ne.u16 {letter}, h, 0;"
        lines.append(f".reg .{register(kind)} {letter}; {load}")
    for place, (text, result) in enumerate(instructions, len(kinds)):
        as_type = moved(place, result)
        make, store = f"mov.{register(result)} d, 0; {text}", f"st.global.{as_type} [q], d;"
        if result == "pred":
            make, store = text, "selp.u16 h, 1, 0, d; st.global.u8 [q], h;"
        lines.append(f"{{ .reg .{register(result)} d; {make} {store} }}")
    whole = "\n".join([f".visible .entry k({parameters}) {{", *lines, "ret;", "}", ""])
    arrays = [["column", kind, place] for place, kind in enumerate(kinds)]
    arrays += [["zeros", COUNT, f"u{bytes_of(result)}"] for result in results]
    return whole, arrays, COUNT // _BLOCK, _BLOCK
