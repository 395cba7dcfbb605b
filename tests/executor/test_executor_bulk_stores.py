# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the copy engine writes: boxes of arrays, combinations with what is there, and when it is done.

The launches stand in `copy_engine/`; NumPy says here what each must do, and tests/gpu asks a card.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from bulk_sources import STORED, cuda
from executor_harness import KERNELS_BY_HAND, caught, compile_cuda, line_of, run_cuda

from gpuprof.backends.sim.launching import descriptor_of
from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, encode_tensor_map, launch, load_program

sys.path.insert(0, str(Path(__file__).parent / "copy_engine"))

from copy_corpus import (
    BOXES,
    COMBINED,
    COMBINED_BOXES,
    MISPLACED_BOXES,
    NAN_BOXES,
    STORED_BOXES,
    Box,
    cases,
    executed,
    program,
    source,
)

pytestmark = pytest.mark.deep

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
_NUMPY |= {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "u64": np.uint64, "u8": np.uint8}
_NUMPY |= {"u16": np.uint16, "s32": np.int32, "s64": np.int64, "b32": np.uint32, "b64": np.uint64}


def elements(box: Box, *, stores: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each element of a box: its byte in shared memory, its byte in the array, whether it is inside.

    What is stored counts by whole pieces of 16 bytes of a row, as an H200 does it.
    """
    counts, item = box.counts, box.item_bytes
    steps = (1, *box.steps[1:]) if box.steps else (1,) * len(counts)
    index = np.indices(counts[::-1])[::-1].reshape(len(counts), -1)
    place = [p + i * s for p, i, s in zip(box.place, index, steps, strict=True)]
    each = 16 // item
    ends = (-(-box.extents[0] // each) * each, *box.extents[1:]) if stores else box.extents
    inside = np.all([(p >= 0) & (p < e) for p, e in zip(place, ends, strict=True)], axis=0)
    strides = (item, *box.map.stride_bytes)
    target = sum(p * s for p, s in zip(place, strides, strict=True))
    row = item * counts[0]
    shared = np.arange(index.shape[1]) * item
    shared += shared // row * max(0, box.swizzle - row)
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[box.swizzle]
    return shared ^ ((shared >> 7 & bits) << 4), target, inside


@pytest.mark.parametrize(
    "box", [one for one in STORED_BOXES if min(one.place) >= 0], ids=lambda one: one.name
)
def test_boxes_go_to_their_places_and_nowhere_else(box):
    case = cases()[f"store_{box.name}"]
    data, words = executed(case)
    kind = _UNSIGNED[box.item_bytes]
    shared, target, inside = elements(box, stores=True)
    expected = case.data.copy().view(kind)
    expected[target[inside] // box.item_bytes] = case.words.view(kind)[shared[inside] // box.item_bytes]
    np.testing.assert_array_equal(data.view(kind), expected)
    np.testing.assert_array_equal(words, case.words)


@pytest.mark.parametrize("box", [*BOXES, *NAN_BOXES], ids=lambda box: box.name)
def test_boxes_come_with_what_lies_outside_filled_up(box):
    case = cases()[f"load_{box.name}"]
    _, words = executed(case)
    kind = _UNSIGNED[box.item_bytes]
    shared, target, inside = elements(box)
    got = words.view(kind)[shared // box.item_bytes]
    np.testing.assert_array_equal(got[inside], case.data.view(kind)[target[inside] // box.item_bytes])
    outside = got[~inside]
    if box.fill == "nan":
        assert (outside.view(np.uint16) == 0x7FF7).all()
    else:
        assert not outside.any()


def combined(name: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """What NumPy makes of it; unlike atomic instructions, the engine adds subnormal f32 numbers."""
    if name == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if name == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    if name in ("and", "or", "xor"):
        return getattr(np, f"bitwise_{name}")(old, new)
    with np.errstate(all="ignore"):
        if old.dtype.kind in "iu":
            return {"add": np.add, "min": np.minimum, "max": np.maximum}[name](old, new)
        if name != "add":
            return {"min": np.fmin, "max": np.fmax}[name](old, new)
        return old + new


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for which NaN it is, and which zero."""
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, expected)
        return
    with np.errstate(invalid="ignore"):
        got, expected = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(got[~np.isnan(got)], expected[~np.isnan(expected)])


@pytest.mark.parametrize(("name", "kind"), COMBINED)
def test_stretches_are_combined_with_what_is_there(name, kind):
    case = cases()[f"reduce_{name}_{kind.replace('.', '_')}"]
    data, _ = executed(case)
    dtype = _NUMPY[kind.removeprefix("noftz.")]
    old, new = case.data.view(dtype), case.words.view(dtype)
    assert_same(data.view(dtype), combined(name, old, new))


@pytest.mark.parametrize(
    ("name", "box"),
    [(name, box) for name, box in COMBINED_BOXES if min(box.place) >= 0],
    ids=lambda value: getattr(value, "name", value),
)
def test_boxes_are_combined_with_what_is_there(name, box):
    case = cases()[f"box_{name}_{box.name}"]
    data, _ = executed(case)
    dtype = _NUMPY[box.dtype]
    shared, target, inside = elements(box, stores=True)
    expected = case.data.view(dtype).copy()
    place = target[inside] // box.item_bytes
    expected[place] = combined(
        name, expected[place], case.words.view(dtype)[shared[inside] // box.item_bytes]
    )
    assert_same(data.view(dtype), expected)


@pytest.mark.parametrize("name", [name for name, case in cases().items() if case.faults])
def test_only_loads_start_before_the_array(name):
    case = cases()[name]
    with pytest.raises(KernelFault) as error:
        executed(case)
    if error.value.kind is FaultKind.TRAP:
        axis, number = next((axis, n) for axis, n in enumerate(case.numbers[1:]) if n < 0)
        assert f"starts at coordinate {number} along dimension {axis}" in error.value.detail
        assert not name.startswith("load")


@pytest.mark.parametrize("way", ["store", "load", "box_add"])
@pytest.mark.parametrize("box", MISPLACED_BOXES, ids=lambda box: box.name)
def test_boxes_start_at_multiples_of_16_bytes(way, box):
    case = cases()[f"{way}_{box.name}"]
    with pytest.raises(KernelFault) as error:
        executed(case)
    fault, column = error.value, box.place[0]
    assert case.faults
    assert fault.kind is FaultKind.MISALIGNED
    assert (fault.thread, fault.address) == ((0, 0, 0), column * box.item_bytes)
    marked = source().splitlines()[fault.source_line - 1]
    assert "cp." in marked
    assert f"at coordinate {column} along the innermost dimension" in fault.detail
    assert f"start at multiples of {16 // box.item_bytes} elements" in fault.detail


def test_only_what_lies_inside_need_have_been_written():
    """A tile past the edge is not filled there, as nothing of it goes anywhere."""
    box = Box("edge", "f32", (40, 20), (16, 8), (36, 18))
    case = cases()["store_plane_corner"]
    memory = GlobalMemory()
    data = memory.allocate(np.zeros(box.array_bytes, np.uint8), "data")
    words = memory.allocate(np.ones(256, np.float32), "words")
    text = source().replace("tile[i] = words[i];", "if (i % 16 < 4 && i / 16 < 2) tile[i] = words[i];")
    edge = load_program(compile_cuda(text), case.name)
    tensor = encode_tensor_map(descriptor_of(box.map, data.address))
    launch(edge, (1, 1, 1), (64, 1, 1), [tensor, words, box.bytes, *box.place, 0, 0, 0], memory, box.bytes)
    assert data.array().view(np.float32).reshape(20, 40)[18:, 36:].tolist() == [[1] * 4] * 2
    nearer = (box.place[0] - 4, box.place[1])
    with pytest.raises(KernelFault) as error:
        launch(edge, (1, 1, 1), (64, 1, 1), [tensor, words, box.bytes, *nearer, 0, 0, 0], memory, box.bytes)
    assert error.value.kind is FaultKind.UNINITIALISED_SHARED
    assert error.value.address == 16


def test_what_the_engine_cannot_combine_is_a_fault():
    case = cases()["box_inc_u32"]
    memory = GlobalMemory()
    data, words = memory.allocate(case.data, "data"), memory.allocate(case.words, "words")
    wrong = Box("wrong", "i32", (41, 20), (16, 8), (32, 15)).map
    tensor = encode_tensor_map(descriptor_of(wrong, data.address))
    with pytest.raises(KernelFault, match="reduces by inc, which the copy engine cannot do with s32"):
        launch(program(case.name), (1, 1, 1), (64, 1, 1), [tensor, words, *case.numbers], memory, case.shared)


SEEN = KERNELS_BY_HAND["a bulk store that is seen"].text


def test_a_copy_that_has_been_read_has_not_yet_been_written():
    arrays = np.full(4, 9, np.float32), np.zeros(4, np.float32)
    (out, seen), _ = run_cuda(cuda(SEEN.replace("HOW", "")), *arrays)
    assert out.array().tolist() == seen.array().tolist() == [1, 2, 3, 4]
    source = cuda(SEEN.replace("HOW", ".read"))
    fault = caught(source, *arrays)
    assert fault.kind is FaultKind.ASYNC_COPY
    assert f"started in line {line_of(source, STORED)} may still write" in fault.detail


SUMS = KERNELS_BY_HAND["blocks send one tile each"].text


def test_blocks_may_combine_into_one_place_but_not_store():
    shape = {"grid": (5, 1, 1), "block": (64, 1, 1)}
    how = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
    (out,), _ = run_cuda(cuda(SUMS.replace("HOW", how)), np.zeros(64, np.float32), **shape)
    assert out.array().tolist() == [15] * 64
    stored = cuda(SUMS.replace("HOW", STORED + ".bulk_group"))
    fault = caught(stored, np.zeros(64, np.float32), **shape)
    assert fault.kind is FaultKind.GLOBAL_RACE
    assert fault.source_line == line_of(stored, "// sends")
