# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Products of 4 bits and 1 bit, and sparse ones: NumPy says here what they are, and tests/gpu asks a card."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "tensor_cores"))

from more_products import TESTS, executed, more_products

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("name", [name for name, product in more_products().items() if product.exact])
def test_products_of_whole_numbers_are_exact(name):
    product = more_products()[name]
    words, _ = executed(product)
    expected = product.expected().astype(np.int32 if product.kinds[2] == "s32" else np.float32)
    np.testing.assert_array_equal(words, product.by_lane(expected.view(np.uint32)))


@pytest.mark.parametrize("name", [name for name, product in more_products().items() if not product.exact])
def test_other_sums_are_as_close_as_their_type_and_skip_what_is_not_stored(name):
    """An infinity of B that meets nothing stored makes no NaN."""
    product = more_products()[name]
    words, _ = executed(product)
    got = words.view(np.float32)
    with np.errstate(invalid="ignore"):
        plain = product.expected()
    finite = np.isfinite(product.by_lane(plain))
    assert finite.any()
    assert np.isinf(got).any()
    np.testing.assert_allclose(got[finite], product.by_lane(plain)[finite], rtol=1e-3, atol=1e-2)


def test_what_is_counted():
    _, result = executed(more_products()["m16n8k64_s4_s4"])
    assert result.counters["imma_instructions"] == 2 * TESTS
    assert result.counters["tensor_i8_operations"] == TESTS * 2 * 16 * 8 * 64
    _, result = executed(more_products()["sparse_k32_f16_0"])
    assert result.counters["hmma_instructions"] == TESTS
    assert "tensor_f16_operations" in result.hidden
    assert "imma_instructions" in executed(more_products()["m16n8k256_b1_and"])[1].hidden


@pytest.mark.parametrize("name", ["m16n8k64_u4_s4", "m16n8k256_b1_xor", "sparse_k8_tf32_3"])
def test_they_are_the_same_where_undefined_values_are_followed(name):
    product = more_products()[name]
    np.testing.assert_array_equal(executed(product, follow_undefined=True)[0], executed(product)[0])
