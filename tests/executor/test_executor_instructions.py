# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions and special registers beside what a card answered for `test_executor_each_instruction.py`."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from executor_harness import refused, run_cuda, run_instruction

from gpuprof.executor import load_program
from gpuprof.executor.steps.batch import Geometry
from gpuprof.executor.steps.special_registers import Surroundings


def _signed(value: int, bits: int = 32) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _s32(value: int) -> int:
    return min(max(value, -(1 << 31)), (1 << 31) - 1)


#: A borrow is a carry that is not set: each kind of chain takes what the other leaves, as long division does.
CHAINS = {
    "sub.cc.u32 t, a, b; addc.u32 d, c, e;": lambda a, b, c, e: c + e + (a >= b),
    "sub.cc.u32 t, a, b; subc.cc.u32 t, c, e; addc.u32 d, 0, 0;": lambda a, b, c, e: c - e >= (a < b),
    "add.cc.u32 t, a, b; subc.u32 d, c, e;": lambda a, b, c, e: c - e - (a + b >> 32 == 0),
    # As ptxas makes them of other instructions.
    "vmad.s32.s32.s32.sat.shr7 d, a, b.h1, c;": lambda a, b, c, e: _s32(
        _signed(a) * _signed(b >> 16, 16) + _signed(c) >> 7
    ),
    "vmad.u32.u32.u32.po.shr15 d, a, b.b3, c;": lambda a, b, c, e: (
        (_signed(a) * (b >> 24) + _signed(c) + 1) % (1 << 64) >> 15
    ),
    "vmad.s32.s32.u32.sat d, -a, b, c;": lambda a, b, c, e: _s32(_signed(c) - _signed(a) * _signed(b)),
    "vmad.u32.u32.u32.sat d, a, b.b0, c;": lambda a, b, c, e: min(
        max(_signed(a) * (b & 255) + _signed(c), 0), (1 << 32) - 1
    ),
    "vshl.u32.u32.u32.sat.clamp d, a, b;": lambda a, b, c, e: min(
        max(_signed(a << min(b, 32), 34), 0), (1 << 32) - 1
    ),
}


@pytest.mark.parametrize("text", CHAINS)
def test_results_are_those_of_integers_without_end(text):
    rng = np.random.default_rng(2)
    columns = [rng.choice([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], 400) for _ in range(4)]
    columns[1][:50] = -columns[0][:50] & 0xFFFFFFFF  # sums that just overflow
    got = run_instruction(text, ("u32",) * 4, "u32", *columns)
    wanted = [CHAINS[text](*map(int, row)) & 0xFFFFFFFF for row in zip(*columns, strict=True)]
    assert got.tolist() == wanted


@pytest.mark.parametrize(
    ("text", "kinds", "result", "columns", "expected"),
    [
        ("and.pred d, a, b;", "pred pred", "pred", ([1, 1, 0], [1, 0, 0]), [1, 0, 0]),
        ("not.pred d, a;", "pred", "pred", ([1, 0],), [0, 1]),
        ("mov.b64 d, {a, b};", "u32 u32", "u64", ([1], [2]), [(2 << 32) | 1]),
        (
            "{ .reg .b32 lo, hi; mov.b64 {lo, hi}, a; sub.u32 d, hi, lo; }",
            "u64",
            "u32",
            ([(7 << 32) | 3],),
            [4],
        ),
        ("mov.b32 d, a;", "f32", "u32", ([1.0],), [0x3F800000]),
        ("mov.f32 d, 0f40490FDB;", "u32", "f32", ([0],), [float(np.float32(math.pi))]),
    ],
)
def test_predicates_and_packing(text, kinds, result, columns, expected):
    assert run_instruction(text, (*kinds.split(),), result, *columns).tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "tensormap.replace.tile.rank.global.b1024.b32 [t], t;",
        "bogus.u32 t, t;",
        "cvt.rs.f16x2.f32 t, t, t, t;",
        "cvt.rn.satfinite.f16.f64 t, t;",
        "cvt.rn.relu.f16.f64 t, t;",
        "cvt.rn.satfinite.f16.s32 t, t;",
    ],
)
def test_an_unknown_instruction_is_named(text):
    for location, line in (
        (".loc 1 7 3\n", 7),
        ("", 7),  # of the text itself
        (".loc 1 7 3\n.loc 1 0 0\n", 7),
        (".loc 1 0 0\n", 0),
    ):
        ptx = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 t;\n"
        ptx += f"{location}{text}\nret;\n}}\n"
        error = refused(load_program(ptx, "k"))
        assert error.name == text.split()[0].rstrip(";")
        assert error.line == line


@pytest.mark.parametrize(("kind", "one"), [("f16", 0x3C00), ("bf16", 0x3F80)])
def test_a_factor_from_outside_an_array_counts_as_zero(kind, one):
    """Of all 65,536 values an H200 takes two for such: what a tensor copy fills in, with either sign."""
    numbers = [0x7FF7, 0xFFF7, 0x7FF6, 0x7FFF, one]
    for text in (f"fma.rn.oob.{kind} d, a, b, b;", f"fma.rn.oob.relu.{kind} d, b, a, b;"):
        got = run_instruction(text, ("b16", "b16"), "b16", numbers, [one] * 5)
        assert got.tolist() == [0, 0, 0x7FFF, 0x7FFF, 0x4000]
    assert run_instruction(f"fma.rn.oob.{kind} d, b, b, a;", ("b16",) * 2, "b16", [0x7FF7], [one]) == [0x7FFF]


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=["f16", "bf16"])
def test_packed_halves_are_compared_each_by_itself(dtype):
    kind = {"float16": "f16", "bfloat16": "bf16"}[dtype.name]
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, (2, 1024, 2)).astype(np.uint16)  # operands, words, halves
    bits[:, :9, 0] = np.array(list(itertools.product((0, 0x8000, 0x7FFF), repeat=2)), np.uint16).T
    with np.errstate(invalid="ignore"):
        less = np.less(*bits.view(dtype).astype(np.float32))
    words = bits.view(np.uint32)[..., 0]
    got = run_instruction(f"set.lt.{kind}x2.{kind}x2 d, a, b;", ("b32", "b32"), "b32", *words)
    one = dtype.type(1).view(np.uint16)
    np.testing.assert_array_equal(got.view(np.uint16).reshape(-1, 2), np.where(less, one, 0))
    for half, text in enumerate(("d|z", "z|d")):
        source = f".reg .pred z; setp.lt.{kind}x2 {text}, a, b;"
        got = run_instruction(source, ("b32", "b32"), "pred", *words)
        np.testing.assert_array_equal(got, less[:, half])


@pytest.mark.parametrize(("architecture", "warps"), [(75, 32), (80, 64), (86, 48), (89, 48), (90, 64)])
def test_warps_of_a_multiprocessor(architecture, warps):
    around = Surroundings(Geometry((1, 1, 1), (32, 1, 1)), None, architecture, 0, 0, 132)
    assert around.of_launch()["%nwarpid"] == warps


def test_a_loop_that_waits_for_a_time_ends_and_says_whose_time_it_is():
    source = """extern "C" __global__ void k(long long *out) {
    const long long start = clock64();
    long long now = start;
    while (now - start < 10000000)
        now = clock64();
    out[0] = now - start;
}"""
    (out,), result = run_cuda(source, np.zeros(1, np.int64), block=(1, 1, 1))
    assert out.array()[0] >= 10_000_000
    assert result.lane_instructions < 100_000
    assert result.remarks == ("%clock64: instructions were counted, not time of the card",)


def test_blocks_are_dealt_out_in_turn():
    source = """extern "C" __global__ void k(unsigned *out) {
    asm volatile("mov.u32 %0, %%smid;" : "=r"(out[blockIdx.x]));
}"""
    (out,), result = run_cuda(
        source, np.zeros(5, np.uint32), grid=(5, 1, 1), block=(1, 1, 1), multiprocessors=3
    )
    assert out.array().tolist() == [0, 1, 2, 0, 1]
    assert result.remarks == ("%smid: the executor's own; a card deals out blocks otherwise",)
    (_,), result = run_cuda(source.replace("smid", "ctaid.x"), np.zeros(5, np.uint32), grid=(5, 1, 1))
    assert result.remarks == ()
