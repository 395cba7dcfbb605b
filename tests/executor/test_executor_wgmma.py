# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`wgmma`: products of operands in shared memory, in every layout, and what is wrong with their waits.

The launches stand in `warpgroups/`, with digests of what a card left; tests/gpu asks it anew.
"""

import json
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from each import each
from executor_harness import compile_cuda

from gpuprof.executor import FaultKind, KernelFault, LaunchResult

sys.path.insert(0, str(Path(__file__).parent / "warpgroups"))

from wgmma_corpus import IMAGE_BYTES, Wgmma, executed, products

pytestmark = pytest.mark.deep


@cache
def left(name: str) -> tuple[np.ndarray, LaunchResult]:
    """What a product leaves, and what it counts."""
    return executed(products()[name])


@each(name=products())
def test_what_is_counted(name):
    product = products()[name]
    counters, hidden = left(name)[1].counters, left(name)[1].hidden
    kind = {"s8": "i8", "u8": "i8", "e5m2": "e4m3"}.get(product.kind, product.kind)
    assert counters[f"tensor_{kind}_operations"] == 2 * 64 * product.columns * product.depth
    if kind in ("f16", "bf16", "tf32"):
        assert counters["hmma_instructions"] == 4
    else:
        assert "hmma_instructions" in hidden


def test_sums_are_those_of_a_card_bit_for_bit():
    """Digests of what an H200 left in the registers of D, by the words of all threads."""
    answers = json.loads((Path(__file__).parent / "warpgroups" / "answers-h200.json").read_text())
    assert answers.keys() == products().keys()
    for name in products():
        assert sha256(left(name)[0].tobytes()).hexdigest()[:16] == answers[name], name


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
    np.testing.assert_array_equal(words, left(name)[0])


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
    np.testing.assert_array_equal(words, left("f16_columns8")[0])


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
    words, _ = executed(products()["bf16_mixed"], grid=3)
    np.testing.assert_array_equal(words, left("bf16_mixed")[0])
