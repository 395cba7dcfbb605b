# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From kernel, problem and block to a launch: shared memory, requirements, and what a device launches."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, find_kernel
from unit_support import DEVICE, MINIMAL, parse_kernel

from gpuprof.errors import CaseSkipped, InputError
from gpuprof.kernels.shape import check_block, configure

blocks = st.tuples(st.integers(1, 64), st.integers(1, 64)).filter(lambda block: block[0] * block[1] <= 1024)


def shape_of(kernel, problem, block=None, device=DEVICE, **params):
    return configure(kernel, problem, block or kernel.launch.block, params, device)


def launch(kernel, problem, block=None, device=DEVICE, **params):
    """The one launch of a case."""
    (only,) = shape_of(kernel, problem, block, device, **params).launches
    return only


@given(k=st.integers(1, 5000), block=blocks, dtype=st.sampled_from(["f32", "f64"]))
def test_panels_grow_with_k(k, block, dtype):
    shape = launch(find_kernel("gemm", "smem_panel"), Gemm(64, 64, k, dtype), (*block, 1))
    assert shape.dynamic_shared_bytes == sum(block) * k * (4 if dtype == "f32" else 8)


#: What a header may ask for besides, and what may be asked of it.
HEADER = """parameters = { TILE = 8 }
dtypes = ["f32", "f64"]
require = [
{ condition = "M % TILE == 0", because = "M must be a multiple of the tile" },
{ condition = "arch >= 90", because = "it needs Hopper" },
{ condition = "real_bytes == 4", because = "it is float only" },
{ condition = "sm_count > 80 and threads == 1024", because = "too small" }]
[launch]"""
HOPPER, BLACKWELL = (dataclasses.replace(DEVICE, compute_capability=number) for number in ("9.0", "12.0"))
FEW_SMS = dataclasses.replace(HOPPER, sm_count=10)
SMALL = dataclasses.replace(DEVICE, max_threads_per_block=512, max_grid=(4, 8, 2))
CUBE = Gemm(64, 64, 64)


def changed(old="", new="", source=MINIMAL["gemm"]):
    """A kernel of a header in which a text stands for another."""
    return parse_kernel(source.replace(old, new) if old else source, Path("mine.cu"))


def over(grid):
    """A kernel with a grid in x."""
    return changed("cdiv(N, block_x)", grid)


PLAIN, TILED = changed(), changed("[launch]", HEADER)
SHARED = changed("grid =", 'dynamic_shared_bytes = "K - 64"\ngrid =')


@pytest.mark.parametrize(
    ("kernel", "problem", "more", "words"),
    [
        (find_kernel("gemm", "smem_tiled"), CUBE, {"block": (32, 16, 1)}, "smem_tiled loads square tiles: "),
        (TILED, CUBE, {"device": HOPPER}, None),
        (TILED, CUBE, {"device": BLACKWELL}, None),
        (TILED, Gemm(63, 64, 64), {"device": HOPPER}, "M must be a multiple of the tile."),
        (TILED, CUBE, {"device": HOPPER, "TILE": 3}, "M must be a multiple of the tile."),
        (TILED, CUBE, {}, "it needs Hopper."),
        (TILED, Gemm(64, 64, 64, "f64"), {"device": HOPPER}, "it is float only."),
        (TILED, CUBE, {"device": FEW_SMS}, "too small."),
        (TILED, CUBE, {"EDGE": 3}, "mine has no parameter EDGE; those that it has: TILE."),
        (PLAIN, CUBE, {"EDGE": 3}, "mine has no parameter EDGE; those that it has: none."),
        (PLAIN, Gemm(8, 8, 8, "f64"), {}, "mine is written for f32, not f64."),
        (changed('"alpha", '), CUBE, {}, None),
        (changed('"alpha", '), Gemm(8, 8, 8, alpha=0.5), {}, "no alpha: it computes with alpha = 1 only."),
        (changed('"beta", '), Gemm(8, 8, 8, beta=0.5), {}, "no beta: it computes with beta = 0 only."),
        (PLAIN, Gemm(65535 * 32, 1, 1), {}, None),
        (PLAIN, Gemm(65535 * 32 + 1, 1, 1), {}, "needs 65536 blocks in y; the device launches 1 to 65535."),
        (over("0"), CUBE, {}, "The grid needs 0 blocks in x; the device launches 1 to"),
        (over("M - 100"), CUBE, {}, "The grid needs -36 blocks in x; the device launches 1 to"),
        (over("N // (M - 64)"), CUBE, {}, "mine cannot be evaluated for this size: 'N // (M - 64)' divides"),
        (PLAIN, Gemm(128, 128, 8), {"block": (32, 16, 1), "device": SMALL}, None),
        (PLAIN, CUBE, {"block": (32, 17, 1), "device": SMALL}, "have 32x17 threads; it holds 1 to 512."),
        (PLAIN, Gemm(129, 128, 8), {"block": (32, 16, 1), "device": SMALL}, "needs 9 blocks in y; the dev"),
        (PLAIN, Gemm(128, 129, 8), {"block": (32, 16, 1), "device": SMALL}, "needs 5 blocks in x; the dev"),
        (SHARED, CUBE, {}, None),
        (SHARED, Gemm(64, 64, 63), {}, "asks for -1 bytes"),
    ],
)
def test_what_cannot_be_launched_is_skipped_with_its_sentence(kernel, problem, more, words):
    if words is None:
        assert launch(kernel, problem, **more).grid[2] == 1
        return
    with pytest.raises(CaseSkipped) as caught:
        launch(kernel, problem, **more)
    assert words in caught.value.what


def test_a_block_has_as_many_threads_as_the_device_holds():
    kernel = find_kernel("gemm", "naive")
    check_block(kernel, (16, 8, 8), 1024)
    with pytest.raises(InputError, match="has 1040 threads"):
        check_block(kernel, (16, 5, 13), 1024)
