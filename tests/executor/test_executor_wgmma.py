# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`wgmma`: products of operands in shared memory, in every layout, and what is wrong with their waits.

The launches stand in `warpgroups/`; NumPy says here what each must do, and tests/gpu asks a card.
"""

import json
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from executor_harness import compile_cuda

from gpuprof.executor import FaultKind, KernelFault, LaunchResult

sys.path.insert(0, str(Path(__file__).parent / "warpgroups"))

from wgmma_corpus import IMAGE_BYTES, Wgmma, executed, products

pytestmark = pytest.mark.deep

_EIGHT_BITS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
_FLOATS = {"f16": np.float16, "f32": np.float32}


def numbers(bits: np.ndarray, kind: str) -> np.ndarray:
    """What bits stand for, in float64, or in int64."""
    if kind in ("s8", "u8", "s32"):
        return bits.view({"s8": np.int8, "u8": np.uint8, "s32": np.int32}[kind]).astype(np.int64)
    if kind in _EIGHT_BITS:
        return bits.view(_EIGHT_BITS[kind]).astype(np.float64)
    if kind == "tf32":
        bits = bits & ~np.uint32(0x1FFF)
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(np.float16 if kind == "f16" else np.float32).astype(np.float64)


def exact(product: Wgmma) -> np.ndarray:
    a, b, c = product.operands()
    left, right = (
        numbers(bits, product.kind) * (-1 if minus else 1)
        for bits, minus in zip((a, b), product.negated, strict=True)
    )
    return left @ right.T + (numbers(c, product.sums) if product.adds else 0)


@cache
def left(name: str) -> tuple[np.ndarray, LaunchResult]:
    """What a product leaves, and what it counts."""
    return executed(products()[name])


@pytest.mark.parametrize("name", [name for name, product in products().items() if product.exact])
def test_products_of_whole_numbers_are_exact(name):
    product = products()[name]
    words, result = left(name)
    expected = exact(product).astype({"s32": np.int32, **_FLOATS}[product.sums])
    unsigned = expected.view(np.uint16 if product.sums == "f16" else np.uint32)
    np.testing.assert_array_equal(words, product.threads(unsigned))
    kind = {"s8": "i8", "u8": "i8", "e5m2": "e4m3"}.get(product.kind, product.kind)
    operations = result.counters[f"tensor_{kind}_operations"]
    assert operations == 2 * 64 * product.columns * product.depth
    if kind in ("f16", "bf16", "tf32"):
        assert result.counters["hmma_instructions"] == 4
    else:
        assert "hmma_instructions" in result.hidden


def test_sums_are_those_of_a_card_bit_for_bit():
    """Digests of what an H200 left in the registers of D, by the words of all threads."""
    answers = json.loads((Path(__file__).parent / "warpgroups" / "answers-h200.json").read_text())
    assert answers.keys() == products().keys()
    for name in products():
        assert sha256(left(name)[0].tobytes()).hexdigest()[:16] == answers[name], name


@pytest.mark.parametrize("name", [name for name, product in products().items() if not product.exact])
def test_other_sums_are_as_close_as_their_type(name):
    product = products()[name]
    words, _ = left(name)
    a, b, c = (
        np.abs(numbers(bits, kind))
        for bits, kind in zip(product.operands(), (product.kind, product.kind, product.sums), strict=True)
    )
    bits = exact(product)
    kind = _FLOATS[product.sums]
    bound = (a @ b.T + c) * 2.0**-20 + np.abs(bits) * np.finfo(kind).eps
    if product.kind in _EIGHT_BITS:  # each term is truncated 13 bits below the largest one's first
        bound = (a @ b.T + c) * 2.0**-9
    got = words.view(kind).astype(np.float64)
    spread = [
        product.threads(x.astype(kind).view(np.uint16 if kind is np.float16 else np.uint32)).view(kind)
        for x in (bits, bound)
    ]
    assert (np.abs(got - spread[0]) <= 2 * spread[1]).all()


def wrong(product: Wgmma, before: str, after: str) -> tuple[KernelFault, str]:
    """The fault of a kernel with a text replaced, and the line that it names."""
    assert before in product.source
    changed = product.source.replace(before, after)
    with pytest.raises(KernelFault) as error:
        executed(product, compile_cuda(changed, (), "sm_90a"))
    line = changed.splitlines()[error.value.source_line - 1]
    return error.value, line


@pytest.mark.parametrize("name", ["f16_columns8", "f16_layout1", "s8_s32_layout0"])
def test_a_block_of_a_cluster_multiplies_what_lies_in_its_own_memory(name):
    product = products()[name]
    source = product.source
    for before, after in (
        ("__global__ void", "__global__ void __cluster_dims__(2, 1, 1)"),
        ("= image[i];", "= blockIdx.x ? image[i] : 0;"),
        (
            "(unsigned)__cvta_generic_to_shared(tile) >> 4",
            "((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4",
        ),
        ("        out[t", "        if (blockIdx.x) out[t"),
    ):
        assert before in source
        source = source.replace(before, after)
    words, _ = executed(product, compile_cuda(source, (), "sm_90a"), grid=2)
    alone, _ = executed(product)
    np.testing.assert_array_equal(words, alone)


FENCE = 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'


def test_operands_that_threads_wrote_need_a_fence():
    fault, line = wrong(products()["f16_columns8"], FENCE, "")
    assert (fault.kind, fault.thread, fault.address) == (FaultKind.PROXY, (0, 0, 0), 0)
    assert "wgmma" in line or "setp" in line
    assert "multiplies byte 0 of shared memory, which line" in fault.detail


def test_operands_that_asynchronous_copies_brought_need_none():
    product = products()["f16_columns8"]
    copied = product.source.replace(
        "tile[i] = image[i];",
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :'
        ' : "r"((unsigned)__cvta_generic_to_shared(tile + i)), "l"(image + i) : "memory");',
    ).replace(FENCE, 'asm volatile("cp.async.wait_all;" ::: "memory");')
    assert FENCE not in copied
    words, _ = executed(product, compile_cuda(copied, (), "sm_90a"))
    np.testing.assert_array_equal(words, executed(product)[0])


def test_operands_must_not_be_overwritten_before_the_wait():
    fault, line = wrong(products()["f16_columns8"], WAIT, "tile[t] = 0; // early\n" + WAIT)
    assert (fault.kind, fault.thread, fault.address) == (FaultKind.ASYNC_COPY, (0, 0, 0), 0)
    assert "// early" in line
    assert "which the wgmma of line" in fault.detail


def test_a_block_must_wait_before_it_ends():
    fault, _ = wrong(products()["f16_columns8"], WAIT, "")
    assert fault.kind is FaultKind.ASYNC_COPY
    assert "ends without waiting for its wgmma" in fault.detail


def test_operands_lie_within_shared_memory():
    product = products()["f16_columns8"]
    fault, _ = wrong(product, "b += start + ", "b += start + 4096 + ")
    assert fault.kind is FaultKind.OUT_OF_BOUNDS
    assert f"of shared memory, which has {IMAGE_BYTES} bytes" in fault.detail


def test_blocks_multiply_side_by_side():
    product = products()["bf16_mixed"]
    words, _ = executed(product, grid=3)
    np.testing.assert_array_equal(words, executed(product)[0])
