# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor copies: which box arrives where, and what is wrong with a map or a copy."""

import numpy as np
import pytest
from bulk_sources import cuda, numbers
from executor_harness import KERNELS_BY_HAND, cuda_program, refused, run_cuda

from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchRefused,
    UnsupportedInstruction,
    launch,
    load_program,
)
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor, decode_tensor_map, encode_tensor_map

pytestmark = pytest.mark.deep

_TENSOR = KERNELS_BY_HAND["a box of a tensor map"].text


def copy_box(array, box, place, swizzle=0, offset=0, expected_bytes=None) -> np.ndarray:
    """Run one tensor copy of `box` at `place`, both from the slowest dimension on; return what arrived."""
    memory = GlobalMemory()
    source = memory.allocate(array, "array")
    tensor = encode_tensor_map(
        TensorDescriptor(source.address, "f32", array.shape[::-1], array.strides[:1], box[::-1], swizzle)
    )
    size = int(np.prod(box)) * array.itemsize
    out = memory.allocate(np.zeros(size // 4, np.uint32), "out")
    program = cuda_program(cuda(_TENSOR).replace("OFFSET", str(offset // 4)))
    arguments = [tensor, out, *place[::-1], size if expected_bytes is None else expected_bytes]
    launch(program, (1, 1, 1), (32, 1, 1), arguments, memory, dynamic_shared_bytes=offset + size)
    return out.array().view(array.dtype)


def test_a_narrow_box_takes_the_width_of_its_swizzle():
    """As on an H200: one row after the other its bytes would fit."""
    with pytest.raises(KernelFault, match="shared memory") as caught:
        copy_box(numbers(40, 96), (8, 8), (4, 32), 128)
    assert caught.value.kind is FaultKind.OUT_OF_BOUNDS


def test_a_swizzle_goes_by_the_address():
    """A box that starts in the middle of the pattern takes it up there."""
    array, start = numbers(40, 96), 384
    got = copy_box(array, (16, 32), (4, 32), 128, offset=start)
    expected = np.zeros(17 * 32, np.float32)
    for piece, words in enumerate(array[4:20, 32:64].reshape(-1, 4), start // 16):
        row, column = divmod(piece, 8)
        to = 4 * (row * 8 + (column ^ row % 8)) - start // 4
        expected[to : to + 4] = words
    np.testing.assert_array_equal(got, expected[:512])


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({"offset": 64}, FaultKind.MISALIGNED, "which is not a multiple of 128"),
        ({"expected_bytes": 4096}, FaultKind.MBARRIER, "announced bytes are missing"),
        ({"expected_bytes": 512}, FaultKind.MBARRIER, "1536 bytes arrived that were not announced"),
    ],
)
def test_wrong_tensor_copies(keywords, kind, text):
    with pytest.raises(KernelFault) as error:
        copy_box(numbers(40, 96), (16, 32), (0, 0), **keywords)
    assert error.value.kind is kind
    assert text in str(error.value)


def test_a_map_of_another_rank_and_bytes_that_are_no_map():
    memory = GlobalMemory()
    source = memory.allocate(numbers(64), "array")
    out = memory.allocate(np.zeros(32, np.uint32), "out")
    program = cuda_program(cuda(_TENSOR).replace("OFFSET", "0"))
    line = encode_tensor_map(TensorDescriptor(source.address, "f32", (64,), (), (32,)))
    for argument, text in ((line, "array has 1 dimensions"), (b"\1" * TENSOR_MAP_BYTES, "which holds none")):
        with pytest.raises(KernelFault, match=text):
            launch(program, (1, 1, 1), (32, 1, 1), [argument, out, 0, 0, 128], memory, 1024)


WIDEST = {
    "address": 1 << 44,
    "element": "s64",
    "extents": (1 << 32, 1, 5, 1 << 32, 7),
    "strides": ((1 << 40) - 16, 16, 32, 48),
    "box": (256, 1, 256, 2, 1),
}

MAP = {
    "address": 0x7000_0000_0100,
    "element": "f32",
    "extents": (300, 200, 7),
    "strides": (1216, 243200),
    "box": (32, 64, 1),
    "swizzle_bytes": 128,
}
NARROW = {"address": 0, "extents": (9, 9), "strides": (48,), "box": (16, 1)}


def test_maps_up_to_the_edges_of_what_the_driver_takes_are_read_back():
    for arguments in (
        MAP,
        WIDEST,
        {"address": 16, "element": "u8", "extents": (1,), "strides": (), "box": (16,)},
        {"element": "bf16", "fills_nan": True, "swizzle_bytes": 32, **NARROW},
        {"element": "f32", "steps": (1, 8), "swizzle_bytes": 64, **NARROW},
    ):
        content = encode_tensor_map(TensorDescriptor(**arguments))
        assert len(content) == TENSOR_MAP_BYTES
        tensor = decode_tensor_map(content)
        assert tensor == TensorDescriptor(**arguments)
        assert tensor.dimensions == len(arguments["extents"])
        assert tensor.box_bytes == tensor.item_bytes * np.prod(tensor.counts)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"address": 8}, "multiple of 16"),
        ({"element": "s16"}, "not s16"),
        ({"steps": (1,)}, "as many steps as extents"),
        ({"steps": (1, 9, 1, 1, 1)}, "extents, 1 to 8"),
        ({"element": "u32", "fills_nan": True}, "not u32"),
        ({"strides": (1200 + 4, 16, 16, 16)}, "multiples of 16"),
        ({"element": "f32", "box": (6, 1, 1, 1, 1)}, "16 bytes, not 24"),
        ({"swizzle_bytes": 16}, "not 16"),
        ({"extents": (0, 1, 5, 6, 7)}, "extents are 1 to 2"),
        ({"extents": ((1 << 32) + 1, 1, 5, 6, 7)}, "extents are 1 to 2"),
        ({"extents": (4, 4, 4, 4, 4, 4), "box": (16,) * 6, "strides": (16,) * 5}, "1 to 5 extents"),
        ({"extents": (), "box": (), "strides": ()}, "1 to 5 extents"),
        ({"box": (256, 1, 256, 2)}, "as many box sizes"),
        ({"strides": (16, 16, 16)}, "one stride fewer"),
        ({"strides": (16, 1 << 40, 16, 16)}, r"below 2\^40"),
        ({"strides": (16, 0, 16, 16)}, "multiples of 16"),
        ({"strides": (16, 16, -16, 16)}, "multiples of 16"),
        ({"box": (2, 0, 1, 1, 1)}, "1 to 256"),
        ({"box": (2, 1, 257, 1, 1)}, "1 to 256"),
        ({"swizzle_bytes": 32, "box": (6, 1, 1, 1, 1)}, "at most the swizzle's 32 bytes, not 48"),
    ],
)
def test_maps_that_the_driver_refuses(change, text):
    with pytest.raises(LaunchRefused, match=text):
        encode_tensor_map(TensorDescriptor(**WIDEST | change))


@pytest.mark.parametrize("content", [b"", b"gpuprof\0", bytes(128), b"gpuprof\0" + bytes(121)])
def test_other_bytes_are_no_map(content):
    with pytest.raises(ValueError, match="not a tensor map"):
        decode_tensor_map(content)


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %2, %2}], [%0], {%3};",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%1], [%0], 16;",
    ],
)
def test_what_is_not_modelled_is_named(text):
    operands = text.replace("%0", "a").replace("%1", "p").replace("%2", "i").replace("%3", "h")
    ptx = (
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0)\n{\n"
        f".reg .b32 a, i; .reg .b16 h; .reg .b64 p;\n{operands}\nret;\n}}\n"
    )
    assert refused(load_program(ptx, "k"), 0).name.split(".")[0] == text.split(".")[0]


_DEVICE_MAP = KERNELS_BY_HAND["a tensor map that the kernel makes"].text


@pytest.mark.parametrize(("x", "y"), [(0, 0), (8, 3), (32, 18), (-4, -1)])
def test_a_map_that_the_kernel_makes_finds_its_box(x, y):
    data = np.arange(720, dtype=np.uint32).reshape(20, 36)
    arrays = data, np.zeros(32, np.uint32), np.zeros(128, np.uint8)
    source = cuda(_DEVICE_MAP).replace("SWIZZLE", "0")
    (_, out, _), result = run_cuda(source, *arrays, scalars=(x, y), arch="sm_90a")
    wide = np.pad(data, 8)
    np.testing.assert_array_equal(out.array().reshape(4, 8), wide[y + 8 : y + 12, x + 8 : x + 16])
    assert "global_store_requests" in result.hidden
    with pytest.raises(UnsupportedInstruction, match="swizzle_mode"):
        run_cuda(cuda(_DEVICE_MAP).replace("SWIZZLE", "6"), *arrays, scalars=(x, y), arch="sm_90a")
