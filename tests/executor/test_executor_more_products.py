# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Products of 4 bits and 1 bit, and sparse ones: what is counted; what they are, cards say.

What an H200 answered holds `test_executor_each_instruction.py`, and tests/gpu asks a card anew.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from executor_harness import compile_both

sys.path.insert(0, str(Path(__file__).parent / "tensor_cores"))

from more_products import TESTS, executed, more_products

pytestmark = pytest.mark.deep


def test_what_is_counted():
    _, result = executed(more_products()["m16n8k64_s4_s4"])
    assert result.counters["imma_instructions"] == 2 * TESTS
    assert result.counters["tensor_i8_operations"] == TESTS * 2 * 16 * 8 * 64
    _, result = executed(more_products()["sparse_k32_f16_0"])
    assert result.counters["hmma_instructions"] == TESTS
    assert "tensor_f16_operations" in result.hidden
    assert "imma_instructions" in executed(more_products()["m16n8k256_b1_and"])[1].hidden


@pytest.mark.parametrize("name", ["sparse_k8_tf32_2", "sparse_k8_tf32_3"])
def test_any_lane_of_four_may_say_what_a_sparse_row_holds(name):
    product = more_products()[name]
    first = replace(product, selector=0)
    words, _ = executed(first, compile_both(first.source, (), "sm_90")[0])
    np.testing.assert_array_equal(executed(product)[0], words)


@pytest.mark.parametrize("name", ["m16n8k64_u4_s4", "m16n8k256_b1_xor", "sparse_k8_tf32_3"])
def test_they_are_the_same_where_undefined_values_are_followed(name):
    product = more_products()[name]
    np.testing.assert_array_equal(executed(product, follow_undefined=True)[0], executed(product)[0])
