# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Warpgroup, 4-bit, 1-bit and sparse products of a real card are what the executor says, bit for bit."""

import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pytest

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), *(str(EXECUTOR / name) for name in ("tensor_cores", "warpgroups"))]

import more_products  # noqa: E402
import wgmma_corpus  # noqa: E402
from card_process import CardProcess  # noqa: E402

CASES = [
    pytest.param(runs, product, id=name)
    for runs, corpus in (
        (wgmma_corpus, wgmma_corpus.products()),
        (more_products, more_products.more_products()),
    )
    for name, product in corpus.items()
]


@pytest.fixture(scope="module")
def card(gpu_count, tmp_path_factory):
    """Opens the process that has a corpus's kernels, once."""
    with ExitStack() as held:

        @cache
        def opened(runs):
            made = CardProcess(runs.CardRuns, tmp_path_factory.mktemp("products"))
            return held.enter_context(made)

        yield opened


@pytest.mark.parametrize(("runs", "product"), CASES)
def test_card_and_executor_agree(card, runs, product):
    if card(runs).arch != "sm_90":
        pytest.skip("the executor computes what sm_90 does")
    found, expected = card(runs).run(product), runs.executed(product)[0]
    differ = [tuple(place) for place in np.argwhere(found != expected).tolist()]
    told = [f"{place}: {expected[place]:08x} here, {found[place]:08x} there" for place in differ[:8]]
    assert not differ, f"{len(differ)} of {found.size} words differ: " + "; ".join(told)
