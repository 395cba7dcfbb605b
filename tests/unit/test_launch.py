# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From kernel, problem and block to its launches, and how a stream is held back while they are queued."""

import ctypes
from collections import Counter
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from cuda_sources import kernel_file
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, find_kernel
from unit_support import DEVICE, MINIMAL, parse_kernel

from gpuprof.backends.gpu import timer as timing
from gpuprof.backends.gpu.timer import Around, EventTimer
from gpuprof.errors import CaseSkipped, HeaderError, InputError
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.shape import check_block, configure
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.records import replace

blocks = st.tuples(st.integers(1, 64), st.integers(1, 64)).filter(lambda block: block[0] * block[1] <= 1024)


def launch(kernel, problem, block=None, device=DEVICE, **params):
    """The one launch of a case."""
    (only,) = configure(kernel, problem, block or kernel.block, params, device).launches
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
HOPPER, BLACKWELL = (replace(DEVICE, compute_capability=number) for number in ("9.0", "12.0"))
FEW_SMS = replace(HOPPER, sm_count=10)
SMALL = replace(DEVICE, max_threads_per_block=512, max_grid=(4, 8, 2))
CUBE = Gemm(64, 64, 64)


def changed(old="", new="", source=MINIMAL["gemm"]):
    """A kernel of a header in which a text stands for another."""
    return parse_kernel(source.replace(old, new) if old else source, Path("mine.cu"))


def over(grid):
    """A kernel with a grid in x."""
    return changed("cdiv(N, block_x)", grid)


PLAIN, TILED = changed("[launch]", "[launch]\nany_block = true"), changed("[launch]", HEADER)
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
    if "needs" in words:
        assert ("size" in caught.value.fix) is (" 0 " in words or " -" in words)


def test_a_block_has_as_many_threads_as_the_device_holds():
    kernel = find_kernel("gemm", "naive")
    check_block(kernel, (16, 8, 8))
    with pytest.raises(InputError, match="has 1,040 threads"):
        check_block(kernel, (16, 5, 13))


def read(old="", new=""):
    file = read_kernels(kernel_file("two_pass_sum", old, new), Path("sums.cu"))
    return file.kernels[0], file.operation


def shape_at(n, kernel, operation, dtype="f32", **params):
    return configure(kernel, Problem.of(operation, (n,), dtype), kernel.block, params, DEVICE)


def test_launches_in_order_with_their_workspace():
    kernel, operation = read()
    first, second = shape_at(1000, kernel, operation).launches
    assert (first.entry, first.arguments) == ("block_sums", ("n", "x", "partial"))
    assert (first.block, first.grid, first.dynamic_shared_bytes) == ((128, 1, 1), (4, 1, 1), 512)
    assert (second.arguments, second.grid) == ((4, "partial", "y"), (1, 1, 1))
    assert shape_at(1000, kernel, operation).workspace == (ArraySpec("partial", (4,), "f32", "out"),)
    assert kernel.entries == ("block_sums",)
    assert kernel.block == (128, 1, 1)


def test_a_loop_of_the_host_is_said_once():
    loop = 'block_sums"\nrepeat = "cdiv(n, 400)"'
    kernel, operation = read(
        'block_sums"\narguments = ["n", "x"', loop + '\narguments = ["n // 2 ** iteration", "x"'
    )
    launches = shape_at(1000, kernel, operation).launches
    assert [one.arguments[0] for one in launches] == [1000, 500, 250, 4]
    kernel, operation = read('block_sums"\narguments = ["n"', loop + '\narguments = ["iteration"')
    assert [one.arguments[0] for one in shape_at(1000, kernel, operation).launches] == [0, 1, 2, 4]
    for times in ("n - 1000", "n + 25"):
        kernel, operation = read('entry = "block_sums"', f'entry = "block_sums"\nrepeat = "{times}"')
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
        ('["THREADS"]', '["n"]', "unknown name 'n'; known are THREADS. It may use parameters"),
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
        assert len(read_kernels(kernel, Path("sums.cu")).kernels[0].launches) == count + 1
        return
    with pytest.raises(HeaderError, match=f"launches has {count and count + 1} entries, not 1 to 64"):
        read_kernels(kernel, Path("sums.cu"))


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
    (kernel,) = read_kernels(source, Path("k.cu")).kernels
    problem = Problem.of(shipped_operation("transpose"), (6, 7))
    shape = configure(kernel, problem, (32, 8, 1), {"TILE": 5}, DEVICE)
    assert shape.launches[0].arguments == (42, "in", "scratch", "out", 5)
    assert shape.workspace == (ArraySpec("scratch", (256, 6), "i64", "out"),)


def test_a_block_cannot_be_chosen():
    kernel, _ = read()
    check_block(kernel, (128, 1, 1))
    with pytest.raises(InputError, match="sums takes several launches, each with a block of its own"):
        check_block(kernel, (64, 1, 1))


GOOD = SimpleNamespace(value=0)


@pytest.fixture
def closed(monkeypatch):
    """Values that the stream was told to wait for, with a driver whose events are 5 us apart."""
    pinned, closed = ctypes.create_string_buffer(64), []
    numbers = count()
    api = SimpleNamespace(
        CU_MEMHOSTALLOC_DEVICEMAP=2,
        CUstreamWaitValue_flags=SimpleNamespace(CU_STREAM_WAIT_VALUE_GEQ=0),
        CUevent_flags=SimpleNamespace(CU_EVENT_DEFAULT=0),
        cuMemHostAlloc=lambda nbytes, flags: (GOOD, ctypes.addressof(pinned)),
        cuMemHostGetDevicePointer=lambda host, flags: (GOOD, host),
        cuStreamWaitValue32=lambda stream, address, value, flags: (closed.append(value), (GOOD,))[1],
        cuStreamSynchronize=lambda stream: (GOOD,),
        cuEventCreate=lambda flags: (GOOD, next(numbers)),
        cuEventRecord=lambda event, stream: (GOOD,),
        cuEventElapsedTime=lambda start, end: (GOOD, 0.005),
    )
    monkeypatch.setattr(timing, "driver", lambda: api)
    return closed


def nothing():
    pass


def test_batch_is_held_back(closed):
    timer = EventTimer("stream", nothing)
    timer.calibrate(nothing)
    assert timer.pair_us == 5.0
    assert timer.floor_us == 0.032
    before = len(closed)
    assert len(timer.cold(nothing, 3, settle=2)) == 3
    assert len(timer.warm(nothing, 3, group=4)) == 3
    assert len(closed) > before + 1
    assert timer.ungated == ""


@pytest.mark.parametrize("launches", [1, 100, 400, 960, 5000])
def test_no_more_is_queued_than_a_driver_takes(closed, launches):
    queued = 0

    def launch():
        nonlocal queued
        queued += launches

    timer = EventTimer("stream", nothing)
    samples = timer.max_batch(launches)
    timer.cold(launch, samples, settle=2, launches=launches)
    assert samples * launches <= queued <= (samples + 2) * launches
    assert bool(closed) == (not timer.ungated)
    assert not closed or queued + 3 * samples + 2 <= 1020
    assert bool(closed) == (launches < 900)


@pytest.mark.parametrize("beside", [0, 1, 2])
def test_launches_are_timed_at_each_of_four_places_in_the_queue(closed, beside):
    queued = []
    timer = EventTimer("stream", lambda: queued.append("flush"))
    before = Around(beside, lambda: queued.extend(["beside"] * beside), nothing)
    timer.cold(lambda: queued.append("timed"), 64, settle=0, around=before)
    places = Counter(number % 4 for number, what in enumerate(queued) if what == "timed")
    assert places == dict.fromkeys(range(4), 16)
