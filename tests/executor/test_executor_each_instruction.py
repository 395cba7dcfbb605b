# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX's instructions in each form that ptxas takes for sm_90: what they make of operands is what a card made.

`instructions/answers-h200.json.xz` has the arithmetic ones, and kernels of products of matrices, of atomics
and of what lanes exchange, with checksums of what an H200 left in their arrays.
"""

import json
import lzma
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor import GlobalMemory, launch, load_program

FOLDER = Path(__file__).parent / "instructions"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "rules")]

from operands import HEAD, array, of_arithmetic  # noqa: E402

pytestmark = pytest.mark.deep


@cache
def told() -> dict:
    return json.loads(lzma.decompress((FOLDER / "answers-h200.json.xz").read_bytes()))


@cache
def given(what: str) -> np.ndarray:
    return array(json.loads(what))


def differing(cases: Iterable[tuple]) -> list[str]:
    """Name the kernels that leave something else in arrays than the card, whose checksums come last."""
    found = []
    for name, text, arrays, grid, block, answer in cases:
        program, memory = load_program(HEAD + text, "k"), GlobalMemory()
        buffers = [memory.allocate(given(json.dumps(what)), f"array {i}") for i, what in enumerate(arrays)]
        launch(program, (grid, 1, 1), (block, 1, 1), buffers, memory)
        if any(zlib.crc32(buffers[int(place)].array().tobytes()) != value for place, value in answer.items()):
            found.append(name)
    return found


def test_arithmetic_is_what_the_card_computes():
    """In each form that ptxas takes, with 4,096 operands; approximations apart."""
    entries = told()["arithmetic"]
    assert not differing((entry[0], *of_arithmetic(*entry[:3]), entry[3]) for entry in entries)


def test_kernels_leave_what_they_do_on_the_card():
    """Products of matrices, atomics, and what lanes exchange."""
    assert not differing(told()["kernels"])
