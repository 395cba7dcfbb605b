# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""GEMMs of TF32 and of 8-bit floats, and FP32 from three TF32 products: right at sizes that fit no tile."""

import pytest
from problem_support import find_kernel, measured, problem_for

pytestmark = pytest.mark.deep

#: Rows of any length, copied by elements; the copy engine takes multiples of four.
RAGGED = {
    "tf32x3_mma": [(1, 1, 1), (33, 35, 17), (129, 140, 37)],
    "tf32x3": [(1, 4, 4), (20, 36, 12), (257, 260, 68)],
    "tf32": [(1, 4, 4), (257, 260, 100)],
    "tf32_64": [(1, 4, 4), (129, 140, 100)],
    "tf32_split": [(1, 4, 4), (130, 140, 500)],
    "tf32_packed": [(1, 1, 1), (301, 139, 103)],
    "tf32_gathered": [(1, 1, 1), (129, 67, 101)],
    "e4m3": [(1, 8, 16), (257, 264, 272)],
    "e4m3_64": [(1, 8, 16), (131, 152, 144)],
    "e4m3_192": [(1, 8, 16), (131, 200, 144)],
    "e4m3_split": [(1, 8, 16), (130, 136, 1040)],
}
THREE_PRODUCTS = ("tf32x3_mma", "tf32x3")


def measure(name, size, **scalars):
    kernel = find_kernel("gemm", name)
    return measured(kernel, problem_for(kernel, *size, dtype=kernel.dtypes[0], **scalars))


@pytest.mark.parametrize(("name", "size"), [(name, size) for name, sizes in RAGGED.items() for size in sizes])
def test_right_at_every_size(name, size):
    measurement = measure(name, size, **({"alpha": -1.5, "beta": 0.75} if size[0] % 2 else {}))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.resources.spill_bytes == 0


@pytest.mark.parametrize("name", THREE_PRODUCTS)
def test_exact_as_fp32_and_without_bank_conflicts(name):
    m, n, k = size = 256, 128, 512
    measurement = measure(name, size)
    # One product of TF32 would be off by thousands of roundoffs.
    simple = measure("naive", size).verification.max_rel_error
    assert measurement.verification.max_rel_error < simple < 4 * 2**-24
    counters = measurement.counters
    assert counters["tensor_tf32_operations"].value == 3 * 2 * m * n * k
    for kind in ("shared_load", "shared_store", "async_copy_shared"):
        # What the copy engine stores, no counter sees.
        assert counters[f"{kind}_bank_conflicts"].value in (0, None), kind
