# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The warpgroup products of a real card are what the executor says they are, bit for bit."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), str(EXECUTOR / "warpgroups")]

from card_process import CardProcess  # noqa: E402
from wgmma_corpus import products  # noqa: E402
from wgmma_runs import CardRuns, executed  # noqa: E402


@pytest.fixture(scope="module")
def card(gpu_count, tmp_path_factory):
    with CardProcess(CardRuns, tmp_path_factory.mktemp("products")) as process:
        if process.arch != "sm_90":
            pytest.skip("only compute capability 9.0 has wgmma")
        yield process


@pytest.mark.parametrize("name", products())
def test_card_and_executor_agree(card, name):
    product = products()[name]
    found, expected = card.run(product), executed(product)[0]
    differ = np.argwhere(found != expected)
    told = [
        f"thread {t} register {r}: {expected[t, r]:08x} here, {found[t, r]:08x} there"
        for t, r in differ[:8].tolist()
    ]
    assert not len(differ), f"{len(differ)} of {found.size} words differ: " + "; ".join(told)
