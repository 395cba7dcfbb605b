# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Instructions and special registers beside what a card answered for `test_executor_each_instruction.py`."""

import itertools
import math
import re

import ml_dtypes
import numpy as np
import pytest
from executor_harness import PTX_HEAD, exact_fma, refused, run_cuda, run_instruction

from gpuprof.executor import UnsupportedInstruction, load_program
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
        # Modifiers that a later PTX may have.
        "add.later.s32 t, t, t;",
        "setp.eq.later.s32 p, t, t;",
        "shf.l.later.b32 t, t, t, t;",
        "popc.later.b32 t, t;",
        "selp.later.b32 t, t, t, p;",
    ],
)
def test_an_unknown_instruction_is_named(text):
    for location, line in (
        (".loc 1 7 3\n", 7),
        ("", 7),  # of the text itself
        (".loc 1 7 3\n.loc 1 0 0\n", 7),
        (".loc 1 0 0\n", 0),
    ):
        ptx = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
        ptx += f".reg .b32 t; .reg .pred p;\n{location}{text}\nret;\n}}\n"
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


@pytest.mark.parametrize(
    ("text", "advised"),
    [
        ("tcgen05.wait::ld.sync.aligned;", True),
        ("st.bulk.weak.shared::cta [t], t, 0;", True),
        ("multimem.red.relaxed.sys.global.add.f32 [t], t;", False),
    ],
)
def test_what_only_newer_cards_have_can_be_compiled_for_older_ones(text, advised):
    kernel = f".visible .entry k()\n{{.reg .b64 t;\n{text}\nret;}}"
    error = refused(load_program(".version 8.7\n.target sm_100a\n.address_size 64\n" + kernel, "k"))
    assert ("compile it for sm_90" in error.fix) == advised


def _floats(count: int, dtype=np.float32) -> np.ndarray:
    """Numbers of all kinds: sums that cancel, ties, subnormals, infinities, NaNs."""
    rng = np.random.default_rng(7)
    scale = 2.0 ** rng.integers(-12, 12, count)
    values = (rng.integers(-(1 << 11), 1 << 11, count) * scale).astype(dtype)
    values[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e-5, 2.0**-20]
    return rng.permutation(values)


#: What Blackwell's instructions on two floats compute of each, and the same in NumPy.
PAIRS = {
    "add.rn.f32x2 d, a, b;": np.add,
    "sub.f32x2 d, a, b;": np.subtract,
    "mul.rn.f32x2 d, a, b;": np.multiply,
    "fma.rn.f32x2 d, a, b, c;": exact_fma,
    "mul.f32x2 d, a, b; add.f32x2 d, d, c;": exact_fma,
    "mul.f32x2 d, a, b; sub.f32x2 d, c, d;": lambda a, b, c: exact_fma(-a, b, c),
    "mul.rn.f32x2 d, a, b; add.rn.f32x2 d, d, c;": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("text", PAIRS)
def test_two_floats_of_a_register_are_computed_each_by_itself(text):
    """A product and its sum are rounded once where ptxas makes FFMA2 of them."""
    columns = [_floats(256), _floats(512)[256:], _floats(1024)[768:]][: 2 + ("c" in text)]
    words = [column.view(np.uint64) for column in columns]
    got = run_instruction(text, ("b64",) * len(words), "b64", *words).view(np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, PAIRS[text](*columns))


#: What takes halves, makes them floats, and rounds once.
MIXED = {
    "add.rn.f32.{} d, a, b;": lambda a, b: a + b,
    "sub.f32.{} d, a, b;": lambda a, b: a - b,
    "add.rz.f32.{} d, a, b;": lambda a, b: toward_zero(a.astype(np.float64) + b.astype(np.float64)),
    "fma.rn.f32.{} d, a, a, b;": lambda a, b: exact_fma(a, a, b),
}


def toward_zero(value: np.ndarray) -> np.ndarray:
    """Round float64 to float32 so that no size grows."""
    near = value.astype(np.float32)
    return np.where(np.abs(near) > np.abs(value), np.nextafter(near, np.float32(0)), near)


@pytest.mark.parametrize("text", MIXED)
@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_halves_are_widened_before_they_meet_a_float(text, kind, dtype):
    floats = _floats(512)[256:]
    halves = np.clip(_floats(256), -60000, 60000).astype(dtype)
    got = run_instruction(text.format(kind), ("b16", "f32"), "f32", halves.view(np.uint16), floats)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, MIXED[text](halves.astype(np.float32), floats))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min.f32 d, a, b, c;", lambda *of: np.fmin.reduce(of)),
        ("max.NaN.f32 d, a, b, c;", lambda *of: np.maximum.reduce(of)),
        ("max.abs.f32 d, a, b, c;", lambda *of: np.fmax.reduce(np.abs(of))),
    ],
)
def test_the_least_and_the_greatest_of_three(text, expected):
    columns = [_floats(256), _floats(512)[256:], _floats(1024)[768:]]
    got = run_instruction(text, ("f32",) * 3, "f32", *columns)
    np.testing.assert_array_equal(got, expected(*columns))


#: Exponent and fraction bits of small floats without infinities and NaNs; two travel in how many bits.
SMALL = {"e2m1x2": (2, 1, 8), "e2m3x2": (2, 3, 16), "e3m2x2": (3, 2, 16)}


def _small(kind: str) -> np.ndarray:
    """The numbers of such a format by their bits, as IEEE 754 makes them of exponent and fraction."""
    exponent_bits, fraction_bits, _ = SMALL[kind]
    codes = np.arange(2 ** (1 + exponent_bits + fraction_bits))
    field = codes >> fraction_bits & (1 << exponent_bits) - 1
    fraction = (codes & (1 << fraction_bits) - 1) / (1 << fraction_bits) + (field > 0)
    sign = 1 - 2.0 * (codes >> exponent_bits + fraction_bits)
    return (sign * fraction * 2.0 ** (np.maximum(field, 1) - (1 << exponent_bits - 1) + 1)).astype(np.float32)


@pytest.mark.parametrize("kind", SMALL)
def test_small_floats_are_the_nearest_and_mean_what_their_bits_say(kind):
    numbers, bits = _small(kind), SMALL[kind][2]
    rng = np.random.default_rng(11)
    steps = (numbers[:-1] + numbers[1:]) / 2  # ties
    given = np.resize(np.concatenate([numbers, steps, rng.normal(size=200), [1e9, -np.inf]]), 512)
    given = given.astype(np.float32)
    distance = np.abs(numbers.astype(np.float64) - np.clip(given, numbers.min(), numbers.max())[:, None])
    # Of two that are as near the even one; of zeros that of the same sign.
    other_sign = np.signbit(numbers) != np.signbit(given)[:, None]
    nearest = np.lexsort((np.arange(numbers.size) % 2 + 0 * distance, other_sign, distance))[:, 0]
    text = f"cvt.rn.satfinite.{kind}.f32 d, a, b;"
    if bits == 8:
        text = f".reg .b8 n; {text.replace('d,', 'n,', 1)} mov.b16 d, {{n, 0}};"
    got = run_instruction(text, ("f32",) * 2, "u16", given[:256], given[256:])
    np.testing.assert_array_equal(got, nearest[:256] << bits // 2 | nearest[256:])
    not_one = run_instruction(text, ("f32",) * 2, "u16", [np.nan], [np.float32(1)])
    assert not_one[0] >> bits // 2 == numbers.argmax()
    for half, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        text = f"cvt.rn.{half}x2.{kind} d, a;"
        if bits == 8:
            text = f".reg .b8 n, o; mov.b16 {{n, o}}, a; {text.replace('a;', 'n;')}"
        back = run_instruction(text, ("b16",), "b32", got).view(dtype).astype(np.float32)
        np.testing.assert_array_equal(
            back.reshape(-1, 2), numbers[np.stack([nearest[256:], nearest[:256]], 1)]
        )


def test_scales_are_powers_of_two_not_above_or_not_below():
    given = np.concatenate([_floats(248), [2.0**-127, 2.0**-126, 3 * 2.0**-128, 2.0**-130, 3.3e38, 2, 3, 0]])
    given = given.astype(np.float32)
    for mode, rounded in (("rz", np.floor), ("rp", np.ceil)):
        size = np.maximum(np.abs(given.astype(np.float64)), 2.0**-127)
        with np.errstate(invalid="ignore"):
            wanted = np.where(np.isnan(given), 255, np.minimum(rounded(np.log2(size)) + 127, 255))
        for finite, largest in (("", 255), (".satfinite", 254)):
            text = f"cvt.{mode}{finite}.ue8m0x2.f32 d, a, b;"
            got = run_instruction(text, ("f32",) * 2, "u16", given, given[::-1])
            clamped = np.where(np.isnan(given), 255, np.minimum(wanted, largest)).astype(int)
            np.testing.assert_array_equal(got, clamped << 8 | clamped[::-1])
    codes = np.arange(256, dtype=np.uint16) * 257
    made = run_instruction("cvt.rn.bf16x2.ue8m0x2 d, a;", ("b16",), "b32", codes).view(ml_dtypes.bfloat16)
    values = np.ldexp(1.0, np.arange(256) - 127)
    values[255] = np.nan
    np.testing.assert_array_equal(made.astype(np.float64).reshape(-1, 2), np.stack([values] * 2, 1))


def test_an_operand_that_nobody_reads_is_refused():
    with pytest.raises(UnsupportedInstruction, match=re.escape("`add.f32` (line 5)")):
        load_program(PTX_HEAD + ".visible .entry k()\n{ .reg .f32 a; add.f32 a, a, a, a;\nret; }", "k")


@pytest.mark.parametrize(
    "text",
    [
        "add.wrap.u32 n, n, n;",
        "neg.sat.f32 x, x;",
        "rem.hi.u32 n, n, n;",
        "ex2.approx.sat.f32 x, x;",
        "ld.global.L1::evict_twice.u32 n, [to];",
        "ld.global.nc.unified.u32 n, [to];",
        "st.bulk.weak.shared::cta [to], wide, 0;",
        "st.global.relaxed.grid.u32 [to], n;",
        "atom.global.add.sat.u32 n, [to], n;",
        "red.global.add.rz.f32 [to], x;",
        "cp.async.ca.shared.global.reversed [n], [to], 4;",
        "shfl.sync.bfly.rotate.b32 n, n, 1, 31, -1;",
        "vote.sync.ballot.quad.b32 n, p, -1;",
        "match.sync.any.not.b32 n, n, -1;",
        "redux.sync.add.sat.s32 n, n, -1;",
        "mbarrier.arrive.twice.shared.b64 _, [n];",
        "fence.acquire.sync_restrict::shared::cta.gpu;",
        "barrier.cluster.arrive.partial;",
        "wmma.load.a.sync.aligned.m16n16k16.global.row.conjugate.f16 {n, n, n, n, n, n, n, n}, [to];",
        "mov.reversed.b32 n, n;",
    ],
)
def test_a_modifier_that_an_instruction_does_not_know_is_refused_where_it_is_reached(text):
    registers = ".reg .u32 n; .reg .u64 to, wide; .reg .f32 x; .reg .pred p;"
    program = load_program(f"{PTX_HEAD}.visible .entry k()\n{{ {registers}\n{text}\nret; }}", "k")
    assert refused(program).name == text.split()[0].replace("::", ".").rstrip(";")


def test_a_barrier_with_a_modifier_that_it_does_not_know_is_refused():
    with pytest.raises(UnsupportedInstruction, match=re.escape("`barrier.sync.half`")):
        load_program(PTX_HEAD + ".visible .entry k()\n{ barrier.sync.half 0;\nret; }", "k")


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("modifiers", "combine"),
    [
        ("min", np.fmin),
        ("max", np.fmax),
        ("max.NaN", np.maximum),
        ("min.abs", lambda one: np.fmin.reduce(np.abs(one), axis=1)),
    ],
)
def test_warps_reduce_floats(modifiers, combine, half):
    """Zeros have an order; a NaN loses, unless it is to win or there is nothing else."""
    given = _floats(128).reshape(4, 32)
    given[1] = [0.0, 0.0, -0.0, -0.0] * 8
    given[2] = np.nan
    text = f"redux.sync.{modifiers}.f32 d, a, -1;"
    parts = given
    if half:  # even lanes by themselves
        text = f"and.b32 t, t, 1; setp.eq.u32 P, t, 0; mov.b32 d, a; @P {text.replace('-1', '0x55555555')}"
        text, parts = f".reg .pred P; {text}", given[:, ::2]
    got = run_instruction(text, ("f32",), "f32", given.ravel()).reshape(4, 32)
    reduced = getattr(combine, "reduce", None)
    wanted = reduced(parts, axis=1) if reduced else combine(parts)
    wanted[1] = 0.0 if "max" in modifiers or "abs" in modifiers else -0.0
    exchanged = got[:, ::2] if half else got
    np.testing.assert_array_equal(exchanged, np.broadcast_to(wanted[:, None], exchanged.shape))
    assert (np.signbit(exchanged[1]) == ("abs" not in modifiers and "min" in modifiers)).all()
    if half:
        np.testing.assert_array_equal(got[:, 1::2], given[:, 1::2])


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
