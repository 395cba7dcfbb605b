# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The copy engine of a real card writes what the executor says it does, bit for bit."""

import sys
from pathlib import Path

import numpy as np
import pytest

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), str(EXECUTOR / "copy_engine")]

from card_process import CardProcess, CardTrouble  # noqa: E402
from copy_corpus import CardRuns, cases, executed  # noqa: E402

from gpuprof.devices.device import parse_arch  # noqa: E402
from gpuprof.executor import FaultKind, KernelFault  # noqa: E402


@pytest.fixture(scope="module")
def card(gpu_count, tmp_path_factory):
    with CardProcess(CardRuns, tmp_path_factory.mktemp("copies")) as process:
        if parse_arch(process.arch) < (9, 0):
            pytest.skip("the copy engine came with compute capability 9.0")
        yield process


@pytest.mark.parametrize("name", [name for name, case in cases().items() if case.faults])
def test_both_trap(card, name):
    with pytest.raises(CardTrouble, match="CUDA_ERROR_ILLEGAL_INSTRUCTION"):
        card.run(cases()[name])
    with pytest.raises(KernelFault) as error:
        executed(cases()[name])
    assert error.value.kind in (FaultKind.MISALIGNED, FaultKind.TRAP)


@pytest.mark.parametrize("name", [name for name, case in cases().items() if not case.faults])
def test_card_and_executor_agree(card, name):
    case = cases()[name]
    found, expected = card.run(case), executed(case)
    for array, mine, theirs in zip(("data", "words"), expected, found, strict=True):
        words = [side.view(np.uint8).reshape(-1, case.item_bytes)[:, ::-1] for side in (mine, theirs)]
        differ = np.flatnonzero((words[0] != words[1]).any(axis=1))
        told = [
            f"{i}: {words[0][i].tobytes().hex()} here, {words[1][i].tobytes().hex()} there, before"
            f" {getattr(case, array).view(np.uint8).reshape(-1, case.item_bytes)[i, ::-1].tobytes().hex()}"
            for i in differ[:8]
        ]
        assert not differ.size, f"{differ.size} elements of {array} differ: " + "; ".join(told)
