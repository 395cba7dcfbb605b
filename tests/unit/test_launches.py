# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`[[launches]]` and `[workspace]` of a header: what they may say, and the launches that they come to."""

from pathlib import Path

import pytest
from cuda_sources import kernel_file
from unit_support import DEVICE

from gpuprof.errors import CaseSkipped, HeaderError, InputError
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.shape import check_block, configure
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.problems.problem import ArraySpec, Problem


def read(old="", new=""):
    file = read_kernels(kernel_file("two_pass_sum", old, new), Path("sums.cu"), shipped_operation)
    return file.kernels[0], file.operation


def shape_at(n, kernel, operation, dtype="f32", **params):
    return configure(kernel, Problem.of(operation, (n,), dtype), kernel.launch.block, params, DEVICE)


def test_launches_in_order_with_their_workspace():
    kernel, operation = read()
    first, second = shape_at(1000, kernel, operation).launches
    assert (first.entry, first.arguments) == ("block_sums", ("n", "x", "partial"))
    assert (first.block, first.grid, first.dynamic_shared_bytes) == ((128, 1, 1), (4, 1, 1), 512)
    assert (second.arguments, second.grid) == ((4, "partial", "y"), (1, 1, 1))
    assert shape_at(1000, kernel, operation).workspace == (ArraySpec("partial", (4,), "f32", "out"),)
    assert kernel.entries == ("block_sums",)
    assert kernel.launch.block == (128, 1, 1)


def test_a_loop_of_the_host_is_said_once():
    loop = 'block_sums"\nrepeat = "cdiv(n, 400)"'
    kernel, operation = read(
        'block_sums"\narguments = ["n", "x"', loop + '\narguments = ["n // 2 ** iteration", "x"'
    )
    launches = shape_at(1000, kernel, operation).launches
    assert [one.arguments[0] for one in launches] == [1000, 500, 250, 4]
    for count in ("n - 1000", "n + 25"):
        kernel, operation = read('entry = "block_sums"', f'entry = "block_sums"\nrepeat = "{count}"')
        with pytest.raises(CaseSkipped, match="launches in a loop, not 1 to 1024"):
            shape_at(1000, kernel, operation)
    kernel, operation = read('entry = "block_sums"', 'entry = "block_sums"\nrepeat = "2"')
    launches = shape_at(1000, kernel, operation).launches
    assert [one.arguments[0] for one in launches] == ["n", 4, "n", 4]


def test_parameters_move_every_formula():
    kernel, operation = read()
    shape = shape_at(1000, kernel, operation, THREADS=64)
    assert [one.block for one in shape.launches] == [(64, 1, 1)] * 2
    assert shape.launches[0].grid == (8, 1, 1)
    assert shape.workspace[0].shape == (8,)
    assert dict(shape.defines) == {"real": "float", "THREADS": "64"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dimensions", "entry = 'k'\ndimensions", "entry does not go with launches"),
        ("dimensions", "arguments = ['n']\ndimensions", "arguments does not go with launches"),
        ("[workspace", "[launch]\nblock = [1]\n[workspace", "launch does not go with launches"),
        ('entry = "block_sums"', "", "the header lacks launches.entry"),
        ('entry = "block_sums"', 'entry = "a b"', "launches.entry must name a function"),
        *(
            ('["THREADS"]', block, r"launches\.block")
            for block in ("[]", "[1.5]", "[1, 1, 1, 1]", "[2147483648]", "[0]", "[1, -1]", "[true]")
        ),
        ('["THREADS"]', '["n"]', "launches.block of block_sums has no value: unknown name 'n'"),
        ('block = ["THREADS"]', 'block = ["THREADS - 128"]', r"launches.block of block_sums is \[0, 1, 1\]"),
        ('block = ["THREADS"]', 'block = ["THREADS"]\nany_block = true', "unknown field launches.any_block"),
        ('"n", "x", "partial"', '"n", "x", "other"', "arguments names 'other'"),
        ('"n", "x", "partial"', '"n +", "x", "partial"', "'n \\+' is not an expression"),
        ('"n", "x", "partial"', '"n + m", "x", "partial"', "uses 'm'; known are"),
        ("[workspace.partial]", "[workspace.x]", "workspace.x is the name of something that total has"),
        ("partial", "THREADS", "workspace.THREADS is the name of something else"),
        ('shape = ["cdiv(n, 2 * THREADS)"]', "shape = []", "workspace.partial.shape must be"),
        ('shape = ["cdiv(n, 2 * THREADS)"]', 'shape = ["block_x"]', "uses 'block_x'; known are"),
        ("[workspace.partial]", '[workspace.partial]\ndtype = "f12"', "dtype is 'f12', not one of real"),
        ('condition = "n', 'condition = "threads', "uses 'threads'; known are"),
        ('entry = "block_sums"', 'entry = "block_sums"\nrepeat = "threads"', "uses 'threads'; known are"),
    ],
)
def test_what_launches_cannot_say(old, new, words):
    with pytest.raises(HeaderError, match=words):
        read(old, new)


@pytest.mark.parametrize("count", [0, 1, 63, 64])
def test_there_are_one_to_64(count):
    """So many besides the last one, or none at all."""
    whole = kernel_file("two_pass_sum")
    first = whole.index("[[launches]]")
    second = whole.index("[[launches]]", first + 1)
    kernel = whole[:first] + count * whole[first:second] + whole[second:]
    if not count:
        end = kernel.index("[[require]]")
        kernel = kernel.replace(kernel[first:end], "").replace("dimensions", "launches = []\ndimensions")
    if count in (1, 63):
        assert len(read_kernels(kernel, Path("sums.cu"), shipped_operation).kernels[0].launches) == count + 1
        return
    with pytest.raises(HeaderError, match=f"launches has {count and count + 1} entries, not 1 to 64"):
        read_kernels(kernel, Path("sums.cu"), shipped_operation)


@pytest.mark.parametrize(
    ("old", "new", "params", "words"),
    [
        ('grid = ["1"]', 'grid = ["n - 1000"]', {}, "The grid of block_sums needs 0 blocks in x"),
        ("cdiv(n, 2 * THREADS)", "n - 1000", {}, "The workspace partial of sums would"),
        ("", "", {"THREADS": 2048}, "A block of block_sums would have 2048x1 threads; it holds"),
    ],
)
def test_a_launch_without_a_value_is_skipped(old, new, params, words):
    with pytest.raises(CaseSkipped, match=words):
        shape_at(1000, *read(old, new), **params)


def test_a_kernel_of_one_launch_may_have_a_workspace_and_formulas_as_arguments():
    source = """/*gpuprof
operation = "transpose"
arguments = ["nx * ny", "in", "scratch", "out", "TILE"]
parameters = { TILE = 4 }
[workspace.scratch]
shape = ["threads", "nx"]
dtype = "i64"
[launch]
block = [32, 8]
grid = ["1"]
*/
"""
    (kernel,) = read_kernels(source, Path("k.cu"), shipped_operation).kernels
    problem = Problem.of(shipped_operation("transpose"), (6, 7))
    shape = configure(kernel, problem, (32, 8, 1), {"TILE": 5}, DEVICE)
    assert shape.launches[0].arguments == (42, "in", "scratch", "out", 5)
    assert shape.workspace == (ArraySpec("scratch", (256, 6), "i64", "out"),)


def test_a_block_cannot_be_chosen():
    kernel, _ = read()
    check_block(kernel, (128, 1, 1))
    with pytest.raises(InputError, match="sums takes several launches, each with a block of its own"):
        check_block(kernel, (64, 1, 1))
