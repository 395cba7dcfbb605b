# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A real card's products of 4 bits and 1 bit, and sparse ones, are what the executor says, bit for bit."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), str(EXECUTOR / "tensor_cores")]

from card_process import CardProcess  # noqa: E402
from more_products import more_products  # noqa: E402
from more_runs import CardRuns, executed  # noqa: E402


@pytest.fixture(scope="module")
def card(gpu_count, tmp_path_factory):
    with CardProcess(CardRuns, tmp_path_factory.mktemp("more")) as process:
        if process.arch != "sm_90":
            pytest.skip("the executor computes what sm_90 does")
        yield process


@pytest.mark.parametrize("name", more_products())
def test_card_and_executor_agree(card, name):
    product = more_products()[name]
    found, expected = card.run(product), executed(product)[0]
    differ = np.argwhere(found != expected)
    told = [
        f"product {p} lane {lane} word {w}: {expected[p, lane, w]:08x} here, {found[p, lane, w]:08x} there"
        for p, lane, w in differ[:8].tolist()
    ]
    assert not len(differ), f"{len(differ)} of {found.size} words differ: " + "; ".join(told)
