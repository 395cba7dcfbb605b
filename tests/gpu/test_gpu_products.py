# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Warpgroup products of a real card are what the executor says, bit for bit."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), str(EXECUTOR / "warpgroups")]

from card_process import CardProcess  # noqa: E402
from wgmma_corpus import CardRuns, executed, products  # noqa: E402


@pytest.fixture(scope="module")
def card(gpu_count, tmp_path_factory):
    """The process that has the kernels."""
    with CardProcess(CardRuns, tmp_path_factory.mktemp("products")) as opened:
        yield opened


@pytest.mark.parametrize("name", products())
def test_card_and_executor_agree(card, name):
    if card.arch != "sm_90":
        pytest.skip("the executor computes what sm_90 does")
    product = products()[name]
    found, expected = card.run(product), executed(product)[0]
    differ = [tuple(place) for place in np.argwhere(found != expected).tolist()]
    told = [f"{place}: {expected[place]:08x} here, {found[place]:08x} there" for place in differ[:8]]
    assert not differ, f"{len(differ)} of {found.size} words differ: " + "; ".join(told)
