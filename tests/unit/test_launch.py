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
from gpuprof.text import format_extent

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


def with_header(extra="", op="gemm", body="", **replaced):
    text = MINIMAL[op].replace("[launch]", f"{extra}\n[launch]")
    for old, new in replaced.items():
        text = text.replace(f"{old} = ", f"{new}\n#")
    return parse_kernel(text + body, Path("mine.cu"))


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


def test_shared_memory_of_the_published_cases():
    panel = find_kernel("gemm", "smem_panel")
    assert launch(panel, Gemm(128, 128, 128)).dynamic_shared_bytes == 32 * 1024
    assert launch(panel, Gemm(4096, 4096, 4096)).dynamic_shared_bytes == 2**20
    assert launch(find_kernel("gemm", "smem_tiled"), Gemm(1, 1, 1)).dynamic_shared_bytes == 8 * 1024
    assert launch(find_kernel("gemm", "reg_2x1"), Gemm(1, 1, 1)).dynamic_shared_bytes == 0


def test_unmet_requirement_skips_with_the_headers_sentence():
    with pytest.raises(CaseSkipped) as caught:
        launch(find_kernel("gemm", "smem_tiled"), Gemm(64, 64, 64), (32, 16, 1))
    assert str(caught.value) == "smem_tiled loads square tiles: block x and block y must be equal."


def test_requirement_may_speak_of_size_device_and_parameters():
    kernel = with_header(
        extra="parameters = { TILE = 8 }\nrequire = ["
        "{ condition = 'M % TILE == 0', because = 'M must be a multiple of the tile' },"
        "{ condition = 'arch >= 90', because = 'it needs Hopper' },"
        "{ condition = 'real_bytes == 4', because = 'it is float only' },"
        "{ condition = 'sm_count > 80 and threads == 1024', because = 'too small' }]\n"
        "dtypes = ['f32', 'f64']",
    )
    hopper = dataclasses.replace(DEVICE, compute_capability="9.0")
    blackwell = dataclasses.replace(DEVICE, compute_capability="12.0")
    for device in (hopper, blackwell):
        assert launch(kernel, Gemm(64, 64, 64), device=device).grid == (2, 2, 1)
    for problem, device, params, words in [
        (Gemm(63, 64, 64), hopper, {}, "M must be a multiple of the tile."),
        (Gemm(64, 64, 64), hopper, {"TILE": 3}, "M must be a multiple of the tile."),
        (Gemm(64, 64, 64), DEVICE, {}, "it needs Hopper."),
        (Gemm(64, 64, 64, "f64"), hopper, {}, "it is float only."),
        (Gemm(64, 64, 64), dataclasses.replace(hopper, sm_count=10), {}, "too small."),
    ]:
        with pytest.raises(CaseSkipped) as caught:
            launch(kernel, problem, device=device, **params)
        assert caught.value.what == words


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Gemm(8, 8, 8, "f64"), "mine is written for f32, not f64."),
        (Gemm(8, 8, 8, alpha=0.5), "mine takes no alpha: it computes with alpha = 1 only."),
        (Gemm(8, 8, 8, beta=0.5), "mine takes no beta: it computes with beta = 0 only."),
    ],
)
def test_problem_beyond_the_kernel_is_skipped(problem, words):
    source = MINIMAL["gemm"].replace('"alpha", ', "").replace('"beta", ', "")
    kernel = parse_kernel(source, Path("mine.cu"))
    assert launch(kernel, Gemm(8, 8, 8)).grid == (1, 1, 1)
    with pytest.raises(CaseSkipped) as caught:
        launch(kernel, problem)
    assert caught.value.what == words


@pytest.mark.parametrize(("extra", "known"), [("", "none"), ("parameters = { TM = 1, TN = 2 }", "TM, TN")])
def test_parameter_that_a_kernel_lacks_is_skipped_with_those_that_it_has(extra, known):
    with pytest.raises(CaseSkipped) as caught:
        launch(with_header(extra=extra), Gemm(64, 64, 64), TILE=3)
    assert caught.value.what == f"mine has no parameter TILE; those that it has: {known}."


def test_grid_beyond_the_device_is_skipped():
    kernel = find_kernel("gemm", "naive")
    assert launch(kernel, Gemm(65535, 1, 1), (1024, 1, 1)).grid == (1, 65535, 1)
    with pytest.raises(CaseSkipped) as caught:
        launch(kernel, Gemm(65536, 1, 1), (1024, 1, 1))
    assert caught.value.what == "The grid needs 65536 blocks in y; the device launches 1 to 65535."
    assert caught.value.fix


@pytest.mark.parametrize("grid", ["0", "M - 100", "-1"])
def test_empty_grid_is_skipped(grid):
    kernel = parse_kernel(MINIMAL["gemm"].replace("cdiv(N, block_x)", grid), Path("mine.cu"))
    with pytest.raises(CaseSkipped, match=r"The grid needs -?\d+ blocks in x; the device launches 1 to"):
        launch(kernel, Gemm(64, 64, 64))


def test_expression_that_divides_by_zero_is_skipped_with_its_text():
    kernel = parse_kernel(MINIMAL["gemm"].replace("cdiv(N, block_x)", "N // (M - 64)"), Path("mine.cu"))
    with pytest.raises(CaseSkipped) as caught:
        launch(kernel, Gemm(64, 64, 64))
    assert caught.value.what == (
        "The header of mine cannot be evaluated for this size: 'N // (M - 64)' divides by zero."
    )


def test_macros_are_defined_only_where_the_source_mentions_them():
    extra = "parameters = { TILE = 8, DEPTH = 2 }\n# DEPTH BLOCK_X BLOCK_Y real"
    kernel = with_header(extra=extra, body="real f() { return TILE * BLOCK_Y; } // REAL BLOCK_XY")
    shape = shape_of(kernel, Gemm(64, 64, 64), TILE=16)
    assert dict(shape.defines) == {"real": "float", "TILE": "16", "BLOCK_Y": "32"}


def test_element_type_follows_the_problem():
    kernel = find_kernel("gemm", "naive")
    assert dict(shape_of(kernel, Gemm(8, 8, 8, "f32")).defines) == {"real": "float"}
    assert dict(shape_of(kernel, Gemm(8, 8, 8, "f64")).defines) == {"real": "double"}


def test_equal_macros_for_every_size_so_that_one_compilation_serves_all():
    for kernel in (kernel for op in ("gemm", "transpose") for kernel in ladder(op) if kernel.id in TILES):
        problems = [Gemm(n, n, n) if kernel.operation == "gemm" else Transpose(n, n) for n in (64, 100)]
        assert len({shape_of(kernel, problem).defines for problem in problems}) == 1


def test_block_of_as_many_threads_as_the_device_holds_is_taken():
    kernel = find_kernel("gemm", "naive")
    check_block(kernel, (16, 8, 8), 1024)
    with pytest.raises(InputError, match="has 1040 threads"):
        check_block(kernel, (16, 5, 13), 1024)
    small = dataclasses.replace(DEVICE, max_threads_per_block=512, max_grid=(4, 8, 2))
    assert launch(kernel, Gemm(128, 128, 8), (32, 16, 1), device=small).grid == (4, 8, 1)
    for sizes, block, words in (
        ((128, 128, 8), (32, 17, 1), "would have 32x17 threads; it holds 1 to 512"),
        ((129, 128, 8), (32, 16, 1), "needs 9 blocks in y; the device launches 1 to 8"),
        ((128, 129, 8), (32, 16, 1), "needs 5 blocks in x; the device launches 1 to 4"),
    ):
        with pytest.raises(CaseSkipped, match=words):
            launch(kernel, Gemm(*sizes), block, device=small)


def test_shared_memory_of_zero_bytes_is_a_launch():
    source = MINIMAL["gemm"].replace("grid =", 'dynamic_shared_bytes = "K - 64"\ngrid =')
    kernel = parse_kernel(source, Path("mine.cu"))
    assert launch(kernel, Gemm(64, 64, 64)).dynamic_shared_bytes == 0
    with pytest.raises(CaseSkipped, match="asks for -1 bytes"):
        launch(kernel, Gemm(64, 64, 63))


@pytest.mark.parametrize(
    ("extent", "text"), [((8, 32, 1), "8x32"), ((8, 8, 4), "8x8x4"), ((256, 1, 1), "256x1")]
)
def test_extents_are_shown_as_they_are_typed(extent, text):
    assert format_extent(extent) == text
