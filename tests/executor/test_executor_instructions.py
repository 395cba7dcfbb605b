# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every arithmetic instruction against Python's own integers and rationals."""

import math

import numpy as np
import pytest
from executor_harness import refused, run_instruction

from gpuprof.executor import load_program

INTS = [
    0,
    1,
    2,
    3,
    5,
    7,
    31,
    32,
    255,
    256,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x12345678,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    3.5,
    1e-40,
    -1e-45,
    3.4e38,
    math.inf,
    -math.inf,
    math.nan,
    0.1,
    16777217.0,
]


def pairs(values):
    return tuple(zip(*[(a, b) for a in values for b in values], strict=True))


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_BINARY = {
    "add.u32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: (a * b) >> 32,
    "mul.hi.s32": lambda a, b: (signed(a) * signed(b)) >> 32,
    "mul24.lo.u32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mul24.hi.u32": lambda a, b: ((a & 0xFFFFFF) * (b & 0xFFFFFF)) >> 16,
    "mul24.lo.s32": lambda a, b: signed(a, 24) * signed(b, 24),
    "div.u32": lambda a, b: a // b if b else -1,
    "div.s32": lambda a, b: trunc_div(signed(a), signed(b)) if b else -1,
    "rem.u32": lambda a, b: a % b if b else -1,
    "rem.s32": lambda a, b: signed(a) - signed(b) * trunc_div(signed(a), signed(b)) if b else -1,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> b if b < 32 else 0,
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "add.sat.s32": lambda a, b: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
    "sub.sat.s32": lambda a, b: max(-(2**31), min(2**31 - 1, signed(a) - signed(b))),
}


@pytest.mark.parametrize("opcode", INTEGER_BINARY)
def test_integer_binary(opcode):
    a, b = pairs(INTS)
    got = run_instruction(f"{opcode} d, a, b;", ("u32", "u32"), "u32", a, b)
    expected = [INTEGER_BINARY[opcode](x, y) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
    assert got.tolist() == expected


INTEGER_UNARY = {
    "not.b32": lambda a: ~a,
    "neg.s32": lambda a: -a,
    "abs.s32": lambda a: abs(signed(a)),
    "cnot.b32": lambda a: int(a == 0),
    "brev.b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "popc.b32": lambda a: a.bit_count(),
    "clz.b32": lambda a: 32 - a.bit_length(),
    "bfind.u32": lambda a: a.bit_length() - 1,
    "bfind.shiftamt.u32": lambda a: 32 - a.bit_length() if a else -1,
    "bfind.s32": lambda a: (~signed(a) if signed(a) < 0 else signed(a)).bit_length() - 1,
}


@pytest.mark.parametrize("opcode", INTEGER_UNARY)
def test_integer_unary(opcode):
    got = run_instruction(f"{opcode} d, a;", ("u32",), "u32", INTS)
    assert got.tolist() == [INTEGER_UNARY[opcode](a) & 0xFFFFFFFF for a in INTS]


WIDE = [
    0,
    1,
    0xFFFFFFFF,
    0x100000000,
    0x7FFFFFFFFFFFFFFF,
    0x8000000000000000,
    0xFFFFFFFFFFFFFFFF,
    0x123456789ABCDEF,
]
INTEGER_64 = {
    "add.u64": lambda a, b: a + b,
    "mul.lo.s64": lambda a, b: a * b,
    "mul.hi.u64": lambda a, b: (a * b) >> 64,
    "mul.hi.s64": lambda a, b: (signed(a, 64) * signed(b, 64)) >> 64,
    "div.s64": lambda a, b: trunc_div(signed(a, 64), signed(b, 64)) if b else -1,
    "rem.u64": lambda a, b: a % b if b else -1,
    "min.s64": lambda a, b: min(signed(a, 64), signed(b, 64)),
}


@pytest.mark.parametrize("opcode", INTEGER_64)
def test_integer_64(opcode):
    a, b = pairs(WIDE)
    got = run_instruction(f"{opcode} d, a, b;", ("u64", "u64"), "u64", a, b)
    assert got.tolist() == [INTEGER_64[opcode](x, y) & (2**64 - 1) for x, y in zip(a, b, strict=True)]


def test_integer_64_bit_counts():
    assert run_instruction("popc.b64 d, a;", ("u64",), "u32", WIDE).tolist() == [a.bit_count() for a in WIDE]
    assert run_instruction("clz.b64 d, a;", ("u64",), "u32", WIDE).tolist() == [
        64 - a.bit_length() for a in WIDE
    ]
    got = run_instruction("brev.b64 d, a;", ("u64",), "u64", WIDE).tolist()
    assert got == [int(f"{a:064b}"[::-1], 2) for a in WIDE]


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("mad.lo.s32", lambda a, b, c: a * b + c),
        ("mad.hi.u32", lambda a, b, c: ((a * b) >> 32) + c),
        ("mad24.lo.u32", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
        ("sad.u32", lambda a, b, c: c + abs(a - b)),
        ("bfe.u32", lambda a, b, c: (a >> (b & 255)) & ((1 << (c & 255)) - 1)),
        ("shf.l.wrap.b32", lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32),
        ("shf.r.wrap.b32", lambda a, b, c: (b << 32 | a) >> (c & 31)),
        ("shf.l.clamp.b32", lambda a, b, c: ((b << 32 | a) << min(c, 32)) >> 32),
        ("shf.r.clamp.b32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
        (
            "dp4a.u32.u32",
            lambda a, b, c: c + sum((a >> s & 255) * (b >> s & 255) for s in (0, 8, 16, 24)),
        ),
        (
            "dp4a.s32.s32",
            lambda a, b, c: c + sum(signed(a >> s, 8) * signed(b >> s, 8) for s in (0, 8, 16, 24)),
        ),
        ("dp2a.lo.u32.u32", lambda a, b, c: c + (a & 0xFFFF) * (b & 255) + (a >> 16) * (b >> 8 & 255)),
        ("dp2a.hi.u32.u32", lambda a, b, c: c + (a & 0xFFFF) * (b >> 16 & 255) + (a >> 16) * (b >> 24)),
    ],
)
def test_integer_ternary(opcode, expected):
    rng = np.random.default_rng(1)
    a, b, c = (rng.choice(INTS, 200) for _ in range(3))
    got = run_instruction(f"{opcode} d, a, b, c;", ("u32",) * 3, "u32", a, b, c)
    wanted = [expected(int(x), int(y), int(z)) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == wanted


def test_wide_products():
    a, b = pairs(INTS)
    got = run_instruction("mul.wide.s32 d, a, b;", ("u32", "u32"), "s64", a, b)
    assert got.tolist() == [signed(x) * signed(y) for x, y in zip(a, b, strict=True)]
    got = run_instruction("mad.wide.u32 d, a, b, c;", ("u32", "u32", "u64"), "u64", a, b, [7] * len(a))
    assert got.tolist() == [x * y + 7 for x, y in zip(a, b, strict=True)]


def test_signed_bit_field_extraction_extends_the_sign():
    got = run_instruction(
        "bfe.s32 d, a, b, c;", ("u32",) * 3, "s32", [0xF0, 0xF0, 0x70, 5], [4, 4, 4, 0], [4, 8, 4, 0]
    )
    assert got.tolist() == [-1, 15, 7, 0]


def test_bit_field_insertion():
    got = run_instruction(
        "bfi.b32 d, a, b, c, e;", ("u32",) * 4, "u32", [0xF, 1, 3], [0, 0xFFFFFFFF, 9], [8, 0, 31], [4, 4, 4]
    )
    assert got.tolist() == [0xF00, 0xFFFFFFF1, 0x80000009]


def test_saturated_multiply_add():
    a, b, c = (
        [2**31 - 1, -(2**31), 5, 2**16, -(2**16)],
        [2, 2, 7, 2**15, 2**15],
        [9, 9, -1, 2**31 - 1, -(2**31)],
    )
    got = run_instruction("mad.hi.sat.s32 d, a, b, c;", ("s32",) * 3, "s32", a, b, c)
    exact = [(x * y >> 32) + z for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == [min(max(value, -(2**31)), 2**31 - 1) for value in exact]
    got = run_instruction(
        "mad.hi.sat.s32 d, a, b, c;", ("s32",) * 3, "s32", [2**31 - 1], [2**31 - 1], [2**31 - 1]
    )
    assert got.tolist() == [2**31 - 1]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bit_masks(mode):
    a, b = pairs([0, 1, 5, 31, 32, 33, 40, 64, 100])
    got = run_instruction(f"bmsk.{mode}.b32 d, a, b;", ("u32", "u32"), "u32", a, b)
    limit = (lambda n: min(n, 32)) if mode == "clamp" else (lambda n: n % 32)
    expected = [((1 << limit(y)) - 1 << limit(x)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
    assert got.tolist() == expected


def test_byte_permutation():
    a, b = 0x33221100, 0x77665544
    got = run_instruction(
        "prmt.b32 d, a, b, c;", ("u32",) * 3, "u32", [a] * 3, [b] * 3, [0x3210, 0x7531, 0x0008]
    )
    assert got.tolist() == [a, 0x77553311, 0x00000000]
    got = run_instruction("prmt.b32 d, a, b, c;", ("u32",) * 3, "u32", [0x80], [0], [0x8888])
    assert got.tolist() == [0xFFFFFFFF]
    got = run_instruction("prmt.b32 d, a, 0xF0, c;", ("u32", "b32", "u32"), "u32", [0x8001], [0], [0x4C99])
    assert got.tolist() == [0xF0FFFFFF]


@pytest.mark.parametrize("table", [0x00, 0x80, 0x96, 0xCA, 0xE8, 0xFF, 0x3C])
def test_three_input_logic(table):
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA
    got = run_instruction(f"lop3.b32 d, a, b, c, {table};", ("u32",) * 3, "u32", [a], [b], [c])
    assert got[0] == int(f"{table:02x}" * 4, 16)


def test_carries_chain_through_128_bits():
    x, y = 0xFFFFFFFF, 1
    text = "{ .reg .b32 t0; add.cc.u32 t0, a, b; addc.u32 d, c, 0; }"
    assert run_instruction(text, ("u32",) * 3, "u32", [x], [y], [5]).tolist() == [6]
    text = "{ .reg .b32 t0; sub.cc.u32 t0, a, b; subc.u32 d, c, 0; }"
    assert run_instruction(text, ("u32",) * 3, "u32", [0, 3], [1, 1], [5, 5]).tolist() == [4, 5]
    text = "{ .reg .b32 t0; mad.lo.cc.u32 t0, a, b, c; madc.hi.u32 d, a, b, c; }"
    a, b, c = 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF
    carry = ((a * b & 0xFFFFFFFF) + c) >> 32
    assert run_instruction(text, ("u32",) * 3, "u32", [a], [b], [c]).tolist() == [
        ((a * b >> 32) + c + carry) & 0xFFFFFFFF
    ]


CHAINS = {
    "add.cc.u32 t, a, b; addc.u32 d, c, e;": lambda a, b, c, e: c + e + (a + b >> 32),
    "add.cc.u32 t, a, b; addc.cc.u32 t, c, e; addc.u32 d, 0, 0;": lambda a, b, c, e: (
        (a + b >> 32) + c + e >> 32
    ),
    "sub.cc.u32 t, a, b; subc.u32 d, c, e;": lambda a, b, c, e: c - e - (a < b),
    "sub.cc.u32 t, a, b; subc.cc.u32 t, c, e; subc.u32 d, 0, 0;": lambda a, b, c, e: -(c - e - (a < b) < 0),
    "mad.lo.cc.u32 t, a, b, c; addc.u32 d, e, 0;": lambda a, b, c, e: e + ((a * b & 0xFFFFFFFF) + c >> 32),
    "mad.hi.cc.u32 t, a, b, c; addc.u32 d, e, 0;": lambda a, b, c, e: e + ((a * b >> 32) + c >> 32),
    "add.cc.u32 t, a, b; madc.lo.u32 d, a, c, e;": lambda a, b, c, e: a * c + e + (a + b >> 32),
    "add.cc.u32 t, a, b; madc.lo.cc.u32 t, a, c, e; addc.u32 d, 0, 0;": lambda a, b, c, e: (
        (a * c & 0xFFFFFFFF) + e + (a + b >> 32) >> 32
    ),
    "add.cc.u32 t, a, b; madc.hi.cc.u32 t, a, c, e; addc.u32 d, 0, 0;": lambda a, b, c, e: (
        (a * c >> 32) + e + (a + b >> 32) >> 32
    ),
}


@pytest.mark.parametrize("text", CHAINS)
def test_carries_are_those_of_integers_without_end(text):
    rng = np.random.default_rng(2)
    columns = [rng.choice([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], 400) for _ in range(4)]
    columns[1][:50] = -columns[0][:50] & 0xFFFFFFFF  # sums that just overflow
    got = run_instruction(text, ("u32",) * 4, "u32", *columns)
    wanted = [CHAINS[text](*map(int, row)) & 0xFFFFFFFF for row in zip(*columns, strict=True)]
    assert got.tolist() == wanted


COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    compare = COMPARISONS[name]
    a, b = pairs(INTS)
    got = run_instruction(f"setp.{name}.s32 d, a, b;", ("u32", "u32"), "pred", a, b)
    assert got.tolist() == [compare(signed(x), signed(y)) for x, y in zip(a, b, strict=True)]
    got = run_instruction(f"setp.{name}.u32 d, a, b;", ("u32", "u32"), "pred", a, b)
    assert got.tolist() == [compare(x, y) for x, y in zip(a, b, strict=True)]
    a, b = pairs(FLOATS)
    nan = [math.isnan(x) or math.isnan(y) for x, y in zip(a, b, strict=True)]
    held = [compare(np.float32(x), np.float32(y)) for x, y in zip(a, b, strict=True)]
    got = run_instruction(f"setp.{name}.f32 d, a, b;", ("f32", "f32"), "pred", a, b)
    assert got.tolist() == [h and not n for h, n in zip(held, nan, strict=True)]
    got = run_instruction(f"setp.{name}u.f32 d, a, b;", ("f32", "f32"), "pred", a, b)
    assert got.tolist() == [h or n for h, n in zip(held, nan, strict=True)]


def test_comparison_with_combination_and_second_result():
    values = [1, 2, 3]
    text = "{ .reg .pred n; setp.lt.and.s32 n|d, a, 2, b; }"
    assert run_instruction(text, ("s32", "pred"), "pred", values, [1, 1, 0]).tolist() == [0, 1, 0]
    text = "{ .reg .pred n; setp.lt.s32 n|d, a, 2; }"
    assert run_instruction(text, ("s32",), "pred", values).tolist() == [0, 1, 1]
    assert run_instruction(
        "setp.gt.or.s32 d, a, 2, !b;", ("s32", "pred"), "pred", values, [1, 0, 0]
    ).tolist() == [0, 1, 1]
    assert run_instruction("setp.nan.f32 d, a, a;", ("f32",), "pred", [1.0, math.nan]).tolist() == [0, 1]
    assert run_instruction("setp.num.f32 d, a, a;", ("f32",), "pred", [1.0, math.nan]).tolist() == [1, 0]


def test_selection():
    assert run_instruction(
        "selp.b32 d, a, b, c;", ("u32", "u32", "pred"), "u32", [1, 2], [3, 4], [1, 0]
    ).tolist() == [1, 4]
    assert run_instruction(
        "slct.u32.s32 d, a, b, c;", ("u32", "u32", "s32"), "u32", [1, 2], [3, 4], [0, -1]
    ).tolist() == [1, 4]
    assert run_instruction("set.lt.u32.s32 d, a, b;", ("s32", "s32"), "u32", [1, 2], [2, 1]).tolist() == [
        0xFFFFFFFF,
        0,
    ]
    assert run_instruction("set.lt.f32.s32 d, a, b;", ("s32", "s32"), "f32", [1, 2], [2, 1]).tolist() == [
        1.0,
        0.0,
    ]
    assert run_instruction("and.pred d, a, b;", ("pred", "pred"), "pred", [1, 1, 0], [1, 0, 0]).tolist() == [
        1,
        0,
        0,
    ]
    assert run_instruction("not.pred d, a;", ("pred",), "pred", [1, 0]).tolist() == [0, 1]


@pytest.mark.parametrize(("kind", "least"), [("f32", 2.0**-126), ("f64", 2.0**-1022)])
def test_classes_of_floats(kind, least):
    values = [0.0, -0.0, least / 2, -least / 2, least, -least, 1.0, math.inf, -math.inf, math.nan]
    classes = {
        "finite": [1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
        "infinite": [0, 0, 0, 0, 0, 0, 0, 1, 1, 0],
        "number": [1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        "normal": [1, 1, 0, 0, 1, 1, 1, 0, 0, 0],
        "subnormal": [0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
    }
    for name, expected in classes.items():
        assert run_instruction(f"testp.{name}.{kind} d, a;", (kind,), "pred", values).tolist() == expected, (
            name
        )


@pytest.mark.parametrize(
    ("opcode", "kinds", "values", "expected"),
    [
        ("cvt.rni.s32.f32", ("f32", "s32"), [0.5, 1.5, 2.5, -0.5, -1.5], [0, 2, 2, 0, -2]),
        (
            "cvt.rzi.s32.f32",
            ("f32", "s32"),
            [1.9, -1.9, math.nan, 3e9, -3e9],
            [1, -1, 0, 2**31 - 1, -(2**31)],
        ),
        ("cvt.rmi.s32.f32", ("f32", "s32"), [1.9, -1.1], [1, -2]),
        ("cvt.rpi.s32.f32", ("f32", "s32"), [1.1, -1.9], [2, -1]),
        ("cvt.rzi.u32.f32", ("f32", "u32"), [-1.0, 4e9, 5e9], [0, 4000000000, 2**32 - 1]),
        ("cvt.rzi.s64.f64", ("f64", "s64"), [1e300, -1e300, math.nan], [2**63 - 1, -(2**63), -(2**63)]),
        ("cvt.rzi.u64.f32", ("f32", "u64"), [1e30, -4.0], [2**64 - 1, 0]),
        (
            "cvt.rn.f32.s32",
            ("s32", "f32"),
            [16777217, 16777219, -16777217],
            [16777216.0, 16777220.0, -16777216.0],
        ),
        ("cvt.rz.f32.s32", ("s32", "f32"), [16777219, -16777219], [16777218.0, -16777218.0]),
        ("cvt.rp.f32.u32", ("u32", "f32"), [16777217], [16777218.0]),
        ("cvt.rm.f32.s64", ("s64", "f32"), [2**40 + 1, -(2**40) - 1], [2.0**40, -float(2**40 + 2**17)]),
        ("cvt.rn.f64.u64", ("u64", "f64"), [2**64 - 1], [2.0**64]),
        ("cvt.sat.u8.s32", ("s32", "u32"), [-5, 300, 7], [0, 255, 7]),
        ("cvt.s64.s32", ("s32", "s64"), [-1, 5], [-1, 5]),
        ("cvt.u64.u32", ("u32", "u64"), [2**32 - 1], [2**32 - 1]),
        ("cvt.u32.u64", ("u64", "u32"), [2**40 + 3], [3]),
        ("cvt.s32.s8", ("s32", "s32"), [0xFF, 0x7F], [-1, 127]),
        (
            "cvt.rn.f32.f64",
            ("f64", "f32"),
            [1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-40],
            [1.0, float(np.float32(1 + 2.0**-23))],
        ),
        ("cvt.rz.f32.f64", ("f64", "f32"), [1 + 2.0**-24, 1e300], [1.0, float(np.finfo(np.float32).max)]),
        (
            "cvt.rp.f32.f64",
            ("f64", "f32"),
            [1 + 2.0**-40, -1e300],
            [1 + 2.0**-23, -float(np.finfo(np.float32).max)],
        ),
        ("cvt.f64.f32", ("f32", "f64"), [0.5], [0.5]),
        ("cvt.rni.f32.f32", ("f32", "f32"), [0.5, 1.5, -2.5], [0.0, 2.0, -2.0]),
        ("cvt.rmi.f64.f64", ("f64", "f64"), [-0.5], [-1.0]),
        ("cvt.sat.f32.f32", ("f32", "f32"), [-1.0, 0.25, 7.0, math.nan], [0.0, 0.25, 1.0, 0.0]),
        ("cvt.rn.f16.f32", ("f32", "b16"), [1.0, 65520.0, 2049.0], [0x3C00, 0x7C00, 0x6800]),
        ("cvt.f32.f16", ("b16", "f32"), [0x3C00, 0x0001], [1.0, 2.0**-24]),
        (
            "cvt.rn.bf16.f32",
            ("f32", "b16"),
            [1.0, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-20],
            [0x3F80, 0x3F80, 0x3F81],
        ),
        ("cvt.f32.bf16", ("b16", "f32"), [0x3F80, 0xC000], [1.0, -2.0]),
    ],
)
def test_conversions(opcode, kinds, values, expected):
    source, target = kinds
    assert run_instruction(f"{opcode} d, a;", (source,), target, values).tolist() == expected


def test_packing_and_unpacking():
    assert run_instruction("mov.b64 d, {a, b};", ("u32", "u32"), "u64", [1], [2]).tolist() == [(2 << 32) | 1]
    text = "{ .reg .b32 lo, hi; mov.b64 {lo, hi}, a; sub.u32 d, hi, lo; }"
    assert run_instruction(text, ("u64",), "u32", [(7 << 32) | 3]).tolist() == [4]
    assert run_instruction("mov.b32 d, a;", ("f32",), "u32", [1.0]).tolist() == [0x3F800000]
    assert run_instruction("mov.f32 d, 0f40490FDB;", ("u32",), "f32", [0]).tolist() == [
        float(np.float32(math.pi))
    ]


FLOAT_UNARY = {
    "neg.f32": lambda a: -a,
    "abs.f32": abs,
    "sqrt.rn.f32": np.sqrt,
    "rcp.rn.f32": lambda a: np.float32(1) / a,
    "ex2.approx.f32": lambda a: np.exp2(np.float64(a)),
    "lg2.approx.f32": lambda a: np.log2(np.float64(a)),
    "tanh.approx.f32": lambda a: np.tanh(np.float64(a)),
    "rsqrt.approx.f32": lambda a: 1 / np.sqrt(np.float64(a)),
    "sqrt.approx.f32": np.sqrt,
    "rcp.approx.ftz.f32": lambda a: np.float32(1) / (a if abs(a) >= 2.0**-126 else a * np.float32(0)),
}


@pytest.mark.parametrize("opcode", FLOAT_UNARY)
def test_float_unary(opcode):
    values = np.array(FLOATS, dtype=np.float32)
    with np.errstate(all="ignore"):
        expected = np.array([FLOAT_UNARY[opcode](a) for a in values], dtype=np.float32)
        if ".ftz" in opcode:
            expected = np.where(np.abs(expected) < 2.0**-126, np.copysign(np.float32(0), expected), expected)
    got = run_instruction(f"{opcode} d, a;", ("f32",), "f32", values)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "function"), [("sin", np.sin), ("cos", np.cos)])
def test_sines_of_a_turn_are_as_close_as_the_isa_states(name, function):
    values = np.random.default_rng(4).uniform(-2 * math.pi, 2 * math.pi, 1000).astype(np.float32)
    got = run_instruction(f"{name}.approx.f32 d, a;", ("f32",), "f32", values)
    np.testing.assert_allclose(got, function(values.astype(np.float64)), rtol=0, atol=2**-20.5)


FLOAT_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.fmin,
    "max": np.fmax,
}


@pytest.mark.parametrize("name", FLOAT_BINARY)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_binary(name, kind):
    a, b = pairs(FLOATS)
    x, y = (np.array(v, dtype=f"f{int(kind[1:]) // 8}") for v in (a, b))
    with np.errstate(all="ignore"):
        expected = FLOAT_BINARY[name](x, y)
    opcode = f"{name}.rn.{kind}" if name == "div" else f"{name}.{kind}"
    np.testing.assert_array_equal(run_instruction(f"{opcode} d, a, b;", (kind, kind), kind, x, y), expected)


def test_float_minimum_orders_zeros_and_may_propagate_nan():
    assert np.signbit(
        run_instruction("min.f32 d, a, b;", ("f32", "f32"), "f32", [0.0, -0.0], [-0.0, 0.0])
    ).all()
    assert not np.signbit(
        run_instruction("max.f32 d, a, b;", ("f32", "f32"), "f32", [0.0, -0.0], [-0.0, 0.0])
    ).any()
    assert np.isnan(run_instruction("min.NaN.f32 d, a, b;", ("f32", "f32"), "f32", [math.nan], [1.0])).all()
    got = run_instruction("copysign.f32 d, a, b;", ("f32", "f32"), "f32", [-1.0, 1.0], [2.0, -3.0])
    assert got.tolist() == [-2.0, 3.0]


def test_flush_to_zero_and_saturation():
    tiny = [1e-40, -1e-40, 1.0]
    got = run_instruction("add.ftz.f32 d, a, b;", ("f32", "f32"), "f32", tiny, [0.0, -0.0, 0.0])
    assert got.tolist() == [0.0, 0.0, 1.0]
    assert np.signbit(got).tolist() == [False, True, False]
    got = run_instruction("mul.ftz.f32 d, a, b;", ("f32", "f32"), "f32", [1e-30], [1e-10])
    assert got.tolist() == [0.0]
    assert run_instruction(
        "mul.sat.f32 d, a, b;", ("f32", "f32"), "f32", [2.0, -1.0], [3.0, 1.0]
    ).tolist() == [1.0, 0.0]


def test_packed_halves():
    one, two, three = 0x3C00, 0x4000, 0x4200
    pack = lambda high, low: high << 16 | low  # noqa: E731
    got = run_instruction("add.f16x2 d, a, b;", ("b32", "b32"), "b32", [pack(one, two)], [pack(two, one)])
    assert got.tolist() == [pack(three, three)]
    assert run_instruction("mul.f16 d, a, b;", ("b16", "b16"), "b16", [two], [two]).tolist() == [0x4400]
    assert run_instruction("fma.rn.f16 d, a, b, c;", ("b16",) * 3, "b16", [two], [one], [one]).tolist() == [
        three
    ]
    got = run_instruction(
        "fma.rn.bf16x2 d, a, b, c;", ("b32",) * 3, "b32", [0x3F803F80], [0x40004000], [0x3F803F80]
    )
    assert got.tolist() == [0x40404040]
    got = run_instruction("cvt.rn.f16x2.f32 d, a, b;", ("f32", "f32"), "b32", [2.0], [1.0])
    assert got.tolist() == [pack(two, one)]


@pytest.mark.parametrize(
    "text",
    [
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {t, t, t, t}, t, t, 1, 1, 1;",
        "tensormap.replace.tile.rank.global.b1024.b32 [t], t;",
        "bogus.u32 t, t;",
        "cvt.rs.f16x2.f32 t, t, t, t;",
        "cvt.rn.satfinite.f16.f64 t, t;",
    ],
)
def test_an_unknown_instruction_is_named(text):
    for location, line in (
        (".loc 1 7 3\n", 7),
        ("", 0),
        (".loc 1 7 3\n.loc 1 0 0\n", 7),
        (".loc 1 0 0\n", 0),
    ):
        ptx = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 t;\n"
        ptx += f"{location}{text}\nret;\n}}\n"
        error = refused(load_program(ptx, "k"))
        assert error.name == text.split()[0].rstrip(";")
        assert error.line == line


def test_approximate_quotients_of_divisors_without_reciprocal_are_zero():
    """As the PTX ISA says of 2^126 < |b| < 2^128; `div.full` and `div.rn` have no such gap."""
    large, larger = np.float32(2.0**126), np.nextafter(np.float32(2.0**126), np.float32(np.inf))
    a = np.array([2.0**126, 8.0, -8.0, 2.0**127, np.inf, np.nan, 5.0], np.float32)
    b = np.array([large, larger, larger, -(2.0**127), larger, larger, np.inf], np.float32)
    with np.errstate(invalid="ignore"):
        got = run_instruction("div.approx.f32 d, a, b;", ("f32", "f32"), "f32", a, b)
        full = run_instruction("div.full.f32 d, a, b;", ("f32", "f32"), "f32", a, b)
        np.testing.assert_array_equal(full, a / b)
    np.testing.assert_array_equal(got, np.array([1, 0, 0, 0, np.nan, np.nan, 0], np.float32))
    assert np.signbit(got[:4]).tolist() == [False, False, True, True]
