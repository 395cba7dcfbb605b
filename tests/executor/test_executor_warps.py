# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Exchanging values between the lanes of a warp."""

import functools

import numpy as np
import pytest
from executor_harness import run_cuda, run_instruction

WARP = range(32)


def lanes(expression: str, out=np.int32, arch="sm_90", prologue="") -> list[int]:
    """Evaluate an expression in every lane; `v` is 3 * lane + 1."""
    kind = {np.int32: "int", np.uint32: "unsigned"}[out]
    source = f"""extern "C" __global__ void k({kind} *out) {{
    int lane = threadIdx.x, v = 3 * lane + 1;
    {prologue}
    out[lane] = {expression};
}}"""
    (buffer,), _ = run_cuda(source, np.zeros(32, out), arch=arch)
    return buffer.array().tolist()


@pytest.mark.parametrize(
    ("expression", "source"),
    [
        ("__shfl_sync(-1, v, 5)", lambda t: 5),
        ("__shfl_sync(-1, v, lane * 3)", lambda t: t * 3 % 32),
        ("__shfl_sync(-1, v, 2, 8)", lambda t: t // 8 * 8 + 2),
        ("__shfl_up_sync(-1, v, 3)", lambda t: t - 3 if t >= 3 else t),
        ("__shfl_up_sync(-1, v, 2, 8)", lambda t: t - 2 if t % 8 >= 2 else t),
        ("__shfl_down_sync(-1, v, 4)", lambda t: t + 4 if t < 28 else t),
        ("__shfl_down_sync(-1, v, 1, 4)", lambda t: t + 1 if t % 4 < 3 else t),
        ("__shfl_xor_sync(-1, v, 16)", lambda t: t ^ 16),
        ("__shfl_xor_sync(-1, v, 3, 16)", lambda t: t ^ 3),
    ],
)
def test_shuffles(expression, source):
    assert lanes(expression) == [3 * source(t) + 1 for t in WARP]


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Which lane is read, and whether it was in range: the pseudo-code of the PTX manual."""
    segment, clamp = c >> 8 & 31, c & 31
    farthest = lane & segment | clamp & ~segment
    source = {
        "up": lane - b,
        "down": lane + b,
        "bfly": lane ^ b,
        "idx": lane & segment | b & ~segment,
    }[mode]
    valid = source >= farthest if mode == "up" else source <= farthest
    return source if valid else lane, valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_say_whether_their_source_was_in_range(mode):
    text = f"{{ .reg .pred v; .reg .b32 x, y; shfl.sync.{mode}.b32 x|v, a, b, c, -1;"
    text += " selp.b32 y, 1000, 0, v; add.u32 d, x, y; }"
    values = [3 * t + 1 for t in WARP]
    for segment in (0, 16, 24, 28):
        for clamp in (0, 3, 12, 31):
            for b in (0, 1, 2, 5, 17, 31):
                c = segment << 8 | clamp
                got = run_instruction(text, ("u32",) * 3, "u32", values, [b] * 32, [c] * 32)
                expected = [shuffled(mode, t, b, c) for t in WARP]
                assert got.tolist() == [3 * source + 1 + 1000 * valid for source, valid in expected]


def test_votes():
    assert lanes("__all_sync(-1, lane >= 0)") == [1] * 32
    assert lanes("__all_sync(-1, lane > 0)") == [0] * 32
    assert lanes("__any_sync(-1, lane == 9)") == [1] * 32
    assert lanes("__ballot_sync(-1, lane & 1)", np.uint32) == [0xAAAAAAAA] * 32
    assert lanes("__activemask()", np.uint32) == [0xFFFFFFFF] * 32
    divided = lanes("r", np.uint32, prologue="unsigned r = 1; if (lane < 5) r = __ballot_sync(31, lane & 1);")
    assert divided == [0b01010] * 5 + [1] * 27


def test_matches():
    assert lanes("__match_any_sync(-1, lane / 8)", np.uint32) == [0xFF << (t // 8 * 8) for t in WARP]
    assert (
        lanes("same + (int)m", prologue="int same; unsigned m = __match_all_sync(-1, 7, &same);") == [0] * 32
    )
    assert (
        lanes("same + (int)m", prologue="int same; unsigned m = __match_all_sync(-1, v, &same);") == [0] * 32
    )


def test_warp_reductions():
    assert lanes("__reduce_add_sync(-1, v)") == [sum(3 * t + 1 for t in WARP)] * 32
    assert lanes("__reduce_max_sync(-1, v)") == [94] * 32
    assert lanes("__reduce_min_sync(-1, -v)") == [-94] * 32
    assert lanes("__reduce_xor_sync(-1, (unsigned)lane)", np.uint32) == [0] * 32


def test_one_lane_is_elected():
    prologue = """unsigned r = 7;
    if (lane >= 5)
        asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffe0; @p add.u32 %0, %0, 100; }" : "=r"(r));"""
    assert lanes("r", np.uint32, prologue=prologue) == [7] * 5 + [105] + [5] * 26


def test_a_tree_reduction():
    prologue = "for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(-1, v, d);"
    assert lanes("v", prologue=prologue) == [sum(3 * t + 1 for t in WARP)] * 32


def test_lane_masks_and_identity():
    source = """extern "C" __global__ void k(unsigned *out) {
    unsigned lane, warp, lt, ge;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    out[threadIdx.x] = lane + 100 * warp + (lt == (1u << lane) - 1) * 1000 + (ge == ~lt) * 10000;
}"""
    (out,), _ = run_cuda(source, np.zeros(64, np.uint32), block=(64, 1, 1))
    assert out.array().tolist() == [t % 32 + 100 * (t // 32) + 11000 for t in range(64)]


@pytest.mark.parametrize(
    ("values", "all_", "any_", "uni"),
    [([1] * 32, 1, 1, 1), ([0] * 32, 0, 0, 1), ([0] * 31 + [1], 0, 1, 0), ([1] * 31 + [0], 0, 1, 0)],
)
def test_votes_of_each_kind(values, all_, any_, uni):
    for mode, expected in (("all", all_), ("any", any_), ("uni", uni)):
        got = run_instruction(f"vote.sync.{mode}.pred d, a, -1;", ("pred",), "pred", values)
        assert got.tolist() == [expected] * 32


REDUCED = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32")),
        *((name, "b32") for name in ("and", "or", "xor")),
    ],
)
def test_reductions_are_over_the_lanes_that_take_part(name, kind):
    given = [-7 - 5 * t if kind == "s32" else 2**31 + 5 * t + 3 for t in WARP]
    text = f"{{ .reg .pred p; mov.u32 d, 0; setp.ge.u32 p, b, 27; @p redux.sync.{name}.{kind} d, a, -1; }}"
    got = run_instruction(text, (kind, "u32"), kind, given, WARP)
    total = functools.reduce(REDUCED[name], given[27:])
    assert got.tolist() == [0] * 27 + [total if kind == "s32" else total & 0xFFFFFFFF] * 5


def test_whether_all_lanes_hold_the_same_counts_those_that_take_part():
    text = """{ .reg .pred p, q; .reg .b32 m; mov.u32 m, 9; setp.ne.u32 p, a, a; setp.lt.u32 q, b, 20;
        @q match.all.sync.b32 m|p, a, -1; selp.b32 d, m, 5, p; }"""
    values = [7] * 20 + list(range(12))
    assert run_instruction(text, ("u32", "u32"), "u32", values, WARP).tolist() == [2**20 - 1] * 20 + [5] * 12
    values[4] = 8
    assert run_instruction(text, ("u32", "u32"), "u32", values, WARP).tolist() == [5] * 32


def test_matches_of_64_bits_tell_upper_halves_apart():
    values = [(t // 4 << 40) + 5 for t in WARP]
    got = run_instruction("match.any.sync.b64 d, a, -1;", ("u64",), "u32", values)
    assert got.tolist() == [0xF << (t // 4 * 4) for t in WARP]
