# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From kernel, problem and block to a launch: the grid covers the output exactly, or the case is skipped."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, Transpose, find_kernel, ladder
from unit_support import DEVICE, MINIMAL, parse_kernel

from gpuprof.errors import CaseSkipped, InputError
from gpuprof.kernels.shape import check_block, configure

#: Elements of the output's index space that one block of each kernel covers in x and y, from its block.
TILES = {
    "naive": lambda x, y: (x, y),
    "smem_panel": lambda x, y: (x, y),
    "smem_tiled": lambda x, y: (x, y),
    "reg_2x1": lambda x, y: (x, 2 * y),
    "copy_row": lambda x, y: (x, y),
    "copy_col": lambda x, y: (x, y),
    "naive_row": lambda x, y: (x, y),
    "naive_col": lambda x, y: (x, y),
    "unroll4_row": lambda x, y: (4 * x, y),
    "unroll4_col": lambda x, y: (4 * x, y),
    "diagonal_row": lambda x, y: (x, y),
    "diagonal_col": lambda x, y: (x, y),
}
#: Kernels whose x walks the input's rows, hence columns of nx; the others walk ny.
X_IS_NX = {"copy_row", "naive_row", "unroll4_row", "diagonal_row"}

extents = st.integers(1, 20_000)
blocks = st.tuples(st.integers(1, 64), st.integers(1, 64)).filter(lambda block: block[0] * block[1] <= 1024)


def shape_of(kernel, problem, block=None, device=DEVICE, **params):
    return configure(kernel, problem, block or kernel.launch.block, params, device)


def launch(kernel, problem, block=None, device=DEVICE, **params):
    """The one launch of a case."""
    (only,) = shape_of(kernel, problem, block, device, **params).launches
    return only


@pytest.mark.parametrize(
    "kernel", [k for op in ("gemm", "transpose") for k in ladder(op) if k.id in TILES], ids=lambda k: k.id
)
@given(data=st.data(), width=extents, height=extents, depth=extents)
def test_grid_covers_the_output_exactly_once(kernel, data, width, height, depth):
    block = (*data.draw(blocks), 1) if kernel.launch.any_block else kernel.launch.block
    if kernel.id == "smem_tiled":
        edge = min(block[0], 32)
        block = (edge, edge, 1)
    if kernel.operation == "gemm":
        problem, extent_x, extent_y = Gemm(height, width, depth), width, height
    elif kernel.id in X_IS_NX:
        problem, extent_x, extent_y = Transpose(width, height), width, height
    else:
        problem, extent_x, extent_y = Transpose(height, width), width, height
    shape = launch(kernel, problem, block)
    assert shape.block == block
    assert shape.grid[2] == 1
    for grid, tile, extent in zip(
        shape.grid, TILES[kernel.id](*block[:2]), (extent_x, extent_y), strict=False
    ):
        assert grid * tile >= extent
        assert (grid - 1) * tile < extent


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
